"""Classes that documents answer: a multinomial logistic regression on the shares of topics, by Boehning's bound."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from ._base import Answered, Reading, Terms
from ._classes import ClassResponse, Touching, terms_of

Array = NDArray[np.floating]

STEEPNESS = 0.5  # Boehning's parabola


@dataclass(frozen=True)
class CategoricalResponse(ClassResponse):
    """p(y_d = c) = softmax(w' m_d)_c, where m_d are the shares of topics among the tokens of document d.

    w_kc ~ Normal(0, 1 / precision).  The log-sum-exp is bounded from above by a parabola of the fixed curvature
    (I - 11'/C) / 2 (Boehning 1992), which touches it at a point psi_d of the document's own.  So q(w) is Gaussian, and the
    objective gains, with the sums of `stickbreak.responses`,

        Y + tr(B' S B) / 2 - (C - 1)/2 log det(I + M / precision),    S = (M + precision I)^-1

    where the columns of B add up to zero.  Topics that no document with an answer has change nothing.

    Parameters
    ----------
    n_classes : int >= 2, or None
        C; None: the classes of the answers.
    weight : float, 1e-6 to 1e6
        How many times the answer of a document counts; 1 is the model above, more makes topics follow the answers more closely.
    precision : float, 1e-6 to 1e6, or None
        Of the weights; None: 0.1 at first, then learnt.

    References
    ----------
    Boehning, Multinomial logistic regression algorithm, Annals of the Institute of Statistical Mathematics 44, 1992.
    """

    positive: ClassVar[tuple[str, ...]] = ("weight",)

    n_classes: int | None = None
    weight: float = 1.0
    precision: float | None = None

    def chances(self, sums: Answered, m: Array) -> Array:
        """The probabilities of the classes at E[w], for documents with shares m (n, K), (n, C)."""
        return np.asarray(softmax(m @ self.weights(sums), axis=1))

    def reading(self, sums: Answered) -> Reading:
        """As of all responses of classes; documents count by their weight."""
        return super().reading(sums)._replace(weight=self.weight)

    def parabolas(self, y: Array, psi: Array, spread: Array) -> Terms:
        """Boehning's at the expected scores psi (n, C), where it is the highest; y are codes 0, ..., C - 1."""
        loss = Touching(logsumexp(psi, axis=1), softmax(psi, axis=1), np.full(len(y), STEEPNESS))
        return terms_of(loss, psi, y, self.weight)
