"""Topics dissolved: each document shares out its tokens of a topic among its other topics, in proportion to these."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ...data import BagSource
from ...likelihoods import Multinomial
from ...model import Posterior, Summary
from . import ascents
from .ascents import TopicAscents
from .restarts import Restarts

Array = NDArray[np.floating]

NUMBERS = 1 << 20  # entries of documents times topics that are looked at together
LEAST = 1e-6  # tokens that a document has of any topic, at least: one of a single topic shares out its tokens, too


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py.

    Attributes
    ----------
    dear : a topic is dissolved on trial if that seems to lose less than so many times what its parameters cost
    trials : topics in a row that were dissolved in vain, after which no other is
    """

    dear: float = 3.0
    trials: int = 2


TUNING = Tuning()


class Dissolving(NamedTuple):
    """What becomes of topics where some of them are dissolved.

    posterior : of all documents
    counts : (K, N) N_dk of the documents, with their pseudo-counts
    """

    posterior: Posterior
    counts: Array

    @classmethod
    def of(cls, posterior: Posterior, counts: Array) -> Self:
        """The same, of counts (K, N) alone."""
        prior = posterior.step.prior
        assert prior is not None
        return cls(posterior, np.maximum(counts + prior[: len(counts), None], LEAST))

    def handed(self, gone: Sequence[int]) -> Array:
        """Tokens of topics that are dissolved together and which topics get them, (g, K): sum_d N_dk N_dj / sum_i N_di.

        The last sum is over the topics that are left.
        """
        ours = self.counts[list(gone)]
        rest = np.maximum(self.counts.sum(axis=0) - ours.sum(axis=0), LEAST)
        handed = np.asarray((ours / rest) @ self.counts.T)
        handed[:, list(gone)] = 0.0
        return handed

    def start(self, gone: Sequence[int]) -> Summary:
        """The topics that are left, alone, with what they are handed: words of all documents on average."""
        start = self.posterior.summary.as_start
        kept = np.setdiff1d(np.arange(start.K), gone)
        shares = self.handed(gone)[:, kept]
        shares /= shares.sum(axis=1, keepdims=True)
        left = start.take(kept)
        return replace(left, N=left.N + start.N[list(gone)] @ shares, S=left.S + shares.T @ start.S[list(gone)])

    def gains(self, source: BagSource) -> Array:
        """What dissolving each topic alone gains, about, (K,).

        It is what the parameters of the topic cost, and sum_dv x_dv (log q_dv - log p_dv) with the probabilities of word v in
        document d at the mean of all parameters, with the topic and without it:

            p_dv = sum_j pi_dj phi_jv,    q_dv = sum_j!=k pi_dj / (1 - pi_dk) ((1 - w_j) phi_jv + w_j S_kv / N_k)

        where w_j is the share of what j is handed in its tokens and pseudo-counts then.  So it leaves out what laps gain from
        there, and the documents' proportions are not integrated out.
        """
        total = self.posterior.summary
        likelihood = self.posterior.model.likelihood
        plain = likelihood.plain
        assert isinstance(plain, Multinomial)
        V = source.n_columns
        phi = likelihood.posterior(total.N, total.S).probabilities[:, :V].T
        own = (total.S[:, :V] / np.maximum(total.N, LEAST)[:, None]).T
        sizes = self.counts.sum(axis=0)
        pi = (self.counts / sizes).T
        log_rest = np.log(np.maximum(sizes - self.counts, LEAST) / sizes).T
        handed = np.concatenate([self.handed([k]) for k in range(total.K)])
        new = handed / (handed + total.N + plain.concentration.sum())
        old = 1.0 - new - np.eye(total.K)
        from_k = pi @ new.T
        gains = self.posterior.cost.astype(np.float64)
        for d, v, x in _words(source, max(1, NUMBERS // total.K)):
            parts = pi[d] * phi[v]
            without = parts @ old.T + own[v] * from_k[d]
            gains += x @ (np.log(without / parts.sum(axis=1, keepdims=True)) - log_rest[d])
        return np.asarray(gains)


def dissolve(search: TopicAscents, restarts: Restarts) -> bool:
    """Ascents from the best topics alone, ever more of them dissolved, the least missed first; whether one gains.

    Merges and deletes move the tokens of a topic by their words.  Where growth went too far, small topics have what many
    documents have left over of many topics: words that no other topic explains any more.
    """
    best = search.outcome
    counts = best.counts if "delete" in search.moves and best.total.K > 1 else None
    if counts is None or not isinstance(search.source, BagSource):
        return False
    dissolving = Dissolving.of(best.posterior, counts)
    gains = dissolving.gains(search.source)
    gains[best.model.named(best.total)] = -np.inf
    order = np.argsort(-gains, kind="stable")
    gone: list[int] = []
    in_vain = 0
    for k in order[gains[order] > -TUNING.dear * best.posterior.cost[order]]:
        if in_vain == TUNING.trials or not search.may_lap() or len(gone) + 2 > best.total.K:
            break
        start = dissolving.start([*gone, int(k)])
        patience = ascents.TUNING.fresh_patience
        trial = search.ascend(best.model, start, search.options, "dissolved", patience=patience)
        if restarts.keep(trial, search.options):
            gone.append(int(k))
            in_vain = 0
        else:
            in_vain += 1
    return bool(gone)


def _words(source: BagSource, n: int) -> Iterator[tuple[NDArray[np.integer], NDArray[np.integer], Array]]:
    """Documents, words and counts x_dv > 0, at most n at a time: documents may be mapped or far."""
    for chunk in source.batches(1)[0]:
        X, _ = source.read(chunk)
        documents = chunk.start + np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        for i in range(0, len(documents), n):
            yield documents[i : i + n], X.indices[i : i + n], X.data[i : i + n]
        source.release()
