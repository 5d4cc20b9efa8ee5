"""Classes that documents answer, with a margin between their scores: maximum entropy discrimination (Thesis 8.3, MED-LDA)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from ._base import Answered, Terms
from ._classes import ClassResponse, Touching, terms_of
from ._ridge import NARROWEST

Array = NDArray[np.floating]


@dataclass(frozen=True)
class HingeResponse(ClassResponse):
    """Classes with the loss C max_c (1(c != y_d) + (w_c - w_y)' m_d), m_d the shares of topics in document d.

    That is zero where the score of the right class is ahead of all others by one, and grows with what it lacks (Crammer and
    Singer 2001; MED-LDA for several classes, Zhu et al. 2012, of which Thesis Eq. 8.5 is the case of numbers).
    w_kc ~ Normal(0, 1 / precision).  For any gamma > 0, any psi and any probabilities p of the C classes, the largest of
    scores a is at most

        max_c a_c  <=  max_c (psi_c - gamma p_c) + gamma/2 (1 + |p|^2) + p' (a - psi) + |a - psi|^2 / (2 gamma)

    where a - psi adds up to zero; p is best as the point of the simplex nearest to psi / gamma.  For two classes this is
    |u| <= u^2 / (2 gamma) + gamma / 2 (`MarginResponse`), and as there each document has its own psi and gamma.  So q(w) is
    Gaussian, and the objective gains, with the sums of `stickbreak.responses`,

        Y + tr(B' S B) / 2 - (C - 1)/2 log det(I + M / precision),    S = (M + precision I)^-1

    Unlike `CategoricalResponse` it is no model of answers: the cost says how much errors matter and is not learnt, and
    documents that are right by a margin pull at no topic.

    Parameters
    ----------
    n_classes : int >= 2, or None
        C; None: the classes of the answers.
    cost : float, 1e-6 to 1e6
        Of an answer that lacks one in its score, in nats.
    precision : float, 1e-6 to 1e6, or None
        Of the weights; None: 0.1 at first, then learnt.

    References
    ----------
    Crammer and Singer, On the algorithmic implementation of multiclass kernel-based vector machines, Journal of Machine
    Learning Research 2, 2001.

    Zhu, Ahmed and Xing, MedLDA: maximum margin supervised topic models, Journal of Machine Learning Research 13, 2012.

    The point p: Martins and Astudillo, From softmax to sparsemax, International Conference on Machine Learning, 2016.
    """

    positive: ClassVar[tuple[str, ...]] = ("cost",)

    n_classes: int | None = None
    cost: float = 10.0
    precision: float | None = None

    def chances(self, sums: Answered, m: Array) -> Array:
        """In proportion to exp(-loss) of each class, were it the answer, at E[w]; of documents with shares m (n, K), (n, C)."""
        psi = m @ self.weights(sums)
        n, C = psi.shape
        losses = [_with_margins(psi, np.full(n, c)).max(axis=1) - psi[:, c] for c in range(C)]
        return np.asarray(softmax(-self.cost * np.stack(losses, axis=1), axis=1))

    def parabolas(self, y: Array, psi: Array, spread: Array) -> Terms:
        """Those above the largest score that are the lowest (`largest_score`); y are codes 0, ..., C - 1."""
        return terms_of(largest_score(_with_margins(psi, y), (psi.shape[1] - 1) * spread), psi, y, self.cost)


def _with_margins(psi: Array, y: Array) -> Array:
    """Scores psi (n, C) with one added to those of all classes but y (n,)."""
    a = psi + 1.0
    rows = np.arange(len(y))
    codes = y.astype(np.intp)
    a[rows, codes] = psi[rows, codes]
    return a


def largest_score(psi: Array, spread: Array) -> Touching:
    """The parabolas above max_c a_c that are lowest on average, of documents whose scores are psi (n, C) on average.

    spread : (n,) E|a - psi|^2, of what adds up to zero

    With the best p they are p' psi + gamma/2 (1 - |p|^2) + spread / (2 gamma) on average.  Where p has the k largest
    scores, 1 - |p|^2 is 1 - 1/k - V_k / gamma^2, with V_k the sum of squares of these scores around their mean; so the best
    gamma has

        gamma_k^2 = k / (k - 1) (spread + V_k),

    and k is the one for which that is the least.
    """
    n, C = psi.shape
    ordered = -np.sort(-psi, axis=1)
    k = np.arange(1.0, C + 1.0)
    apart = ordered - ordered[:, :1]  # from the largest, so that squares are of differences
    means = np.cumsum(apart, axis=1) / k
    V = np.maximum(np.cumsum(apart**2, axis=1) - k * means**2, 0.0)
    squares = k[1:] / (k[1:] - 1.0) * (spread[:, None] + V[:, 1:])
    best = squares.argmin(axis=1)
    rows = np.arange(n)
    width = np.maximum(np.sqrt(squares[rows, best]), NARROWEST)
    own = psi - ordered[:, :1] - means[rows, best + 1][:, None]
    p = np.maximum(own / width[:, None] + 1.0 / (best + 2.0)[:, None], 0.0)
    p /= p.sum(axis=1, keepdims=True)
    values = (psi - width[:, None] * p).max(axis=1) + 0.5 * width * (1.0 + (p**2).sum(axis=1))
    return Touching(values, p, 1.0 / width)
