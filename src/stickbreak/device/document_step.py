"""Documents of a group at their fixed point, and what they say, in the functions of the array API."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.documents import FLOOR
from ..model.document_step import CHANGE, ITERATIONS, TINY32
from .devices import Device
from .special import digamma, exp_digamma, log_gamma

Array = NDArray[np.floating]

LOOKS = 8  # iterations between two looks at which documents have converged
LEAST32 = 1e-26  # of factors in float32
FAINT = 1e-18  # probabilities of single topics, beside the largest, that are rounding


class Own(NamedTuple):
    """Tables on a device: likelihoods E and their logarithms (V, K), pseudo-counts (K,), and both as iterations take them."""

    E: Any
    scores: Any
    coarse: Any
    prior: Any
    rough: Any


class Entries(NamedTuple):
    """The entries of a group of documents, (m, L) each: words, counts (0 where there are no more), and log masses, if any."""

    words: Any
    counts: Any
    log_mass: Any


class Part(NamedTuple):
    """`Counted` for a group of documents: log_Z and shares (m, L), of which the second are counts over Z or over the mass."""

    single: Any
    p: Any
    N: Any
    log_Z: Any
    share: Any
    sums: Any


def rows_of(xp: Any, table: Any, words: Any) -> Any:
    """Rows of a table (V, K) for words (m, L), (m, L, K)."""
    m, length = words.shape
    return xp.reshape(xp.take(table, xp.reshape(words, (-1,)), axis=0), (m, length, table.shape[1]))


def fixed_point(device: Device, on: Own, entries: Entries, start: Array | None) -> Any:
    """Counts (m, K) of documents at their fixed point (Thesis Alg. 5.1), each iterated until it has converged.

    start : (m, K), or None for r proportional to E_ek prior_k
    """
    xp = device.xp
    kind = on.coarse.dtype
    tiny = TINY32 if kind == xp.float32 else FLOOR**2
    least = LEAST32 if kind == xp.float32 else FLOOR
    K = on.coarse.shape[1]
    E = rows_of(xp, on.coarse, entries.words)
    c = xp.astype(entries.counts, kind)
    moving = np.arange(c.shape[0])
    if start is None:
        n = xp.zeros_like(E[:, 0, :])
        p = n + on.rough[None, :]
        known = False
    else:
        n = xp.astype(device.array(np.ascontiguousarray(start, np.float64)), kind)
        p = exp_digamma(xp, n + on.rough[None, :], least)
        known = True
    ends: list[Any] = []
    where: list[NDArray[np.intp]] = []
    done = xp.zeros_like(n[:, 0]) > 1.0
    for i in range(ITERATIONS):
        Z = xp.clip((E @ p[:, :, None])[:, :, 0], min=tiny)
        fresh = ((c / Z)[:, None, :] @ E)[:, 0, :] * p
        change = xp.sum(xp.abs(fresh - n), axis=1)
        n = xp.where(done[:, None], n, fresh)
        if known or i > 0:
            done = done | (change <= CHANGE * K)
        p = exp_digamma(xp, n + on.rough[None, :], least)
        if i % LOOKS == LOOKS - 1 or i == ITERATIONS - 1:
            over = device.host(done) if i < ITERATIONS - 1 else np.ones(len(moving), np.bool_)
            if not over.any():
                continue
            rest = np.flatnonzero(~over)
            ends.append(xp.take(n, device.array(np.flatnonzero(over)), axis=0))
            where.append(moving[over])
            if not len(rest):
                break
            left = device.array(rest)
            E, c, n, p, done = (xp.take(values, left, axis=0) for values in (E, c, n, p, done))
            moving = moving[rest]
    order = np.argsort(np.concatenate(where))
    return xp.take(xp.concat(ends, axis=0), device.array(order), axis=0)


def document_statistics(xp: Any, on: Own, entries: Entries, N: Any, given: Any, choose: bool) -> Part:
    """`stickbreak.kernels.document_statistics.document_statistics` for a group of documents, without what it leaves out.

    given : (m,) whether documents have a single topic; None, if they may choose where ``choose``
    """
    c = entries.counts
    prior = on.prior[None, :]
    E = rows_of(xp, on.E, entries.words)
    p = xp.clip(xp.exp(digamma(xp, N + prior)), min=FLOOR)
    Z = (E @ p[:, :, None])[:, :, 0]
    real = c > 0.0
    log_Z = xp.log(Z)
    part = log_Z if entries.log_mass is None else log_Z - entries.log_mass
    share = c / Z
    both = xp.stack([share, share * part], axis=1) @ E
    acc = both[:, 0, :] * p
    rises = log_gamma(xp, acc + prior) - log_gamma(xp, prior)
    sums = [digamma(xp, acc + prior), rises + log_gamma(xp, prior), acc * xp.log(p), both[:, 1, :] * p]
    none = xp.zeros_like(c[:, 0]) > 1.0
    single = none if given is None else given
    if given is None and not choose:
        return Part(single, p, acc, log_Z, share, xp.stack([xp.sum(s, axis=0) for s in sums]))
    mass = xp.ones_like(c[:, 0]) if entries.log_mass is None else xp.exp(entries.log_mass[:, 0])
    n = xp.sum(c, axis=1) / mass
    data = (c[:, None, :] @ rows_of(xp, on.scores, entries.words))[:, 0, :] / mass[:, None]
    rise = log_gamma(xp, prior + n[:, None]) - log_gamma(xp, prior)
    rho = data + rise
    top = xp.max(rho, axis=1, keepdims=True)
    log_total = xp.log(xp.sum(xp.exp(rho - top), axis=1, keepdims=True)) + top
    if given is None:
        bound = xp.sum(rises - acc * xp.log(p), axis=1) + xp.sum(xp.where(real, c * log_Z, xp.zeros_like(c)), axis=1)
        single = (log_total[:, 0] > bound) & (xp.sum(c, axis=1) >= 1.0)
    rho = xp.exp(rho - log_total)
    rho = xp.where(rho > FAINT, rho, xp.zeros_like(rho)) * mass[:, None]
    entropy = -rho * xp.log(xp.where(rho > 0.0, rho, xp.ones_like(rho)))
    alone = [
        digamma(xp, prior) + rho * (digamma(xp, prior + n[:, None]) - digamma(xp, prior)),
        log_gamma(xp, prior) + rho * rise,
        xp.zeros_like(rho),
        rho * data + entropy,
    ]
    one = single[:, None]
    return Part(
        single,
        xp.where(one, rho, p),
        xp.where(one, n[:, None] * rho, acc),
        xp.where(one, xp.zeros_like(log_Z), log_Z),
        xp.where(one, c / mass[:, None], share),
        xp.stack([xp.sum(xp.where(one, a, b), axis=0) for a, b in zip(alone, sums)]),
    )
