"""The tree of the clusters, topics or states of one model, for a look at fewer of them."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from .._arguments import check_count
from ..model import Model, Summary
from ..moves.agglomeration import merges

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Hierarchy:
    """The merges of K clusters down to one, the pair first that loses least (Thesis 6.5.1).

    Two clusters, topics or states are worth as much less as one as their rows and assignments become less probable, in nats:

        loss = log p(x_a) + log p(x_b) - log p(x_a, x_b) - log p(z' | shares) + log p(z | shares)

    with marginal likelihoods of rows.  The assignments z of n rows to clusters of a and b rows gain
    (a + b) log (a + b) - a log a - b log b; those of states count transitions; those of topics are left out, since sums do not
    tell them.  A loss is negative where fewer would be better.  Clusters with names of their own are merged last.

    Attributes
    ----------
    losses : array (K - 1,)
        Of each merge, in order.
    linkage : array (K - 1, 4)
        The same for `scipy.cluster.hierarchy`: the two nodes that become node K + i, a height, and how many clusters that node
        holds.  Heights are losses, raised where a later merge loses less, and never negative.
    """

    losses: Array
    linkage: Array

    @classmethod
    def of(cls, model: Model, summary: Summary) -> Self:
        """Agglomerate the clusters of a model."""
        K = summary.K
        node = np.arange(K)
        size = np.ones(K)
        before = 0.0
        losses = np.zeros(K - 1)
        named = model.named(summary)
        linkage = np.zeros((K - 1, 4))
        for i, step in enumerate(merges(model.posterior(summary.without_local()))):
            size[step.kept] += size[step.gone]
            losses[i], before = before - step.gain, step.gain
            if named[step.kept] and named[step.gone]:
                losses[i] -= model.likelihood.apart
            named[step.kept] |= named[step.gone]
            linkage[i] = *sorted((node[step.kept], node[step.gone])), 0.0, size[step.kept]
            node[step.kept] = K + i
        linkage[:, 2] = np.maximum.accumulate(np.maximum(losses, 0.0))
        return cls(losses, linkage)

    def cut(self, n: int) -> NDArray[np.intp]:
        """The group (K,) of each cluster where n groups are left: 0 is that of the first cluster, 1 of the next other, ...

        ``model.hierarchy_.cut(5)[model.labels_]`` are labels of five groups.

        n : int from 1 to K
        """
        K = len(self.linkage) + 1
        check_count(n, "n")
        if n > K:
            raise ValueError(f"n must be a whole number from 1 to {K}, the number of clusters; got {n}.")
        group = np.arange(2 * K - 1)
        for i in range(K - n):
            low, high = self.linkage[i, :2].astype(np.intp)
            group[(group == group[low]) | (group == group[high])] = K + i
        known, first = np.unique(group[:K], return_index=True)
        return np.argsort(np.argsort(first))[np.searchsorted(known, group[:K])]
