"""Inverses of many small symmetric matrices that are sums of products, as weights of quadratic forms."""

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit
from ._jit import part as _part
from .determinants import gathered_reference
from .lanes import LANES, eliminate, gather, log_product, subtract, subtract_four


@_part
def _inverse(W, scale, share, Y):
    """Write (U')^-1 to the lower triangle of Y, where `eliminate` has left diag(d) U in W, and U has ones on its diagonal.

    scale : (m, lanes), of which the first D are 1 / d;  share : (4, lanes) for what this needs;  Y : see `quadratic_weights`
    """
    for p in range(W.shape[0]):
        for lane in range(LANES):
            for i in range(p):
                Y[p, i, lane] = 0.0
            Y[p, p, lane] = 1.0
        whole = p - p % 4
        for i in range(0, whole, 4):
            for s in range(4):
                for lane in range(LANES):
                    share[s, lane] = W[i + s, p, lane] * scale[i + s, lane]
            a, b, c, d = Y[i, : i + 4], Y[i + 1, : i + 4], Y[i + 2, : i + 4], Y[i + 3, : i + 4]
            subtract_four(Y[p, : i + 4], share[0], share[1], share[2], share[3], a, b, c, d)
        for i in range(whole, p):
            for lane in range(LANES):
                share[0, lane] = W[i, p, lane] * scale[i, lane]
            subtract(Y[p, : i + 1], share[0], Y[i, : i + 1])


@_part
def _products(Y, scale, share, W):
    """Write Y' diag(scale) Y to the upper triangle of W."""
    D = W.shape[0]
    for i in range(D):
        for j in range(i, D):
            for lane in range(LANES):
                W[i, j, lane] = 0.0
        for p in range(i - i % 4, D, 4):
            for s in range(4):
                for lane in range(LANES):
                    share[s, lane] = -scale[p + s, lane] * Y[p + s, i, lane]
            end = min(p + 4, D)
            a, b, c, d = Y[p, i:end], Y[p + 1, i:end], Y[p + 2, i:end], Y[p + 3, i:end]
            subtract_four(W[i, i:end], share[0], share[1], share[2], share[3], a, b, c, d)


@_jit
def quadratic_weights(S, n, place, base, weight, rounding, first, nu, at, times, logdets, out, variances):
    """Elements of V_k = L^-T diag(q .., nu_k ..) L^-1, J_k = L L', with q for the first M columns and nu_k for the q others.

    S, n, place, base, weight, rounding : in, J_k (D, D), see `stickbreak.kernels.determinants.log_determinants`
    first : M;  nu : (K,) in;  at, times : (F,) in, where in the upper triangle of V (D^2,) the elements are, and times what
    logdets : (K, 2) out, log determinants of what `log_determinants` says, not finite where J_k is not positive definite
    out : (K, F) out;  variances : (K, D) out, the diagonals of V
    """
    D = base.shape[0]
    m = (D + 3) // 4 * 4
    W = np.empty((D, D, LANES))
    V = W.reshape(D * D, LANES)
    Y = np.zeros((m, m, LANES))  # rows beyond D, and elements above the diagonal, stay zero
    scale = np.zeros((m, LANES))
    wide = np.empty((4, D, LANES))
    share = np.empty((4, LANES))
    for begin in range(0, n.size, LANES):
        lanes = min(LANES, n.size - begin)
        gather(S, n, begin, place, base, weight, rounding, W)
        eliminate(W, 0, D, wide)
        for lane in range(LANES):
            k = min(begin + lane, n.size - 1)
            logdets[k, 0] = log_product(W, 0, first, lane)
            logdets[k, 1] = log_product(W, first, D, lane)
            for i in range(D):
                scale[i, lane] = 1.0 / W[i, i, lane]
        _inverse(W, scale, share, Y)
        for lane in range(LANES):
            k = min(begin + lane, n.size - 1)
            for i in range(D):
                scale[i, lane] *= D - first if i < first else nu[k]
        _products(Y, scale, share, W)
        for lane in range(lanes):
            for f in range(at.size):
                out[begin + lane, f] = V[at[f], lane] * times[f]
            for i in range(D):
                variances[begin + lane, i] = W[i, i, lane]


def quadratic_weights_reference(
    S: NDArray[np.floating],
    n: NDArray[np.floating],
    place: NDArray[np.integer],
    base: NDArray[np.floating],
    weight: NDArray[np.floating],
    rounding: NDArray[np.floating],
    first: int,
    nu: NDArray[np.floating],
) -> NDArray[np.floating]:
    """V (K, D, D), elements of which `quadratic_weights` writes."""
    half = np.linalg.inv(np.linalg.cholesky(gathered_reference(S, n, place, base, weight, rounding)))
    half[:, :first] *= np.sqrt(len(base) - first)
    half[:, first:] *= np.sqrt(nu)[:, None, None]
    return np.asarray(half.swapaxes(1, 2) @ half)
