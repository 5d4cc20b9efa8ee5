"""Variational inference that splits one cluster at a time (Kurihara, Welling and Vlassis 2006), which 2013 compares with."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import entr, softmax

from papers.baselines.full_ascent import FullAscent
from stickbreak.model import Summary

STEPS = 10  # of the two halves of a cluster alone
TOLERANCE = 1e-5  # of the bound: ascents that gain less in a step have converged
LEAST = 1.0  # nats that a split must gain: a half to which no row belongs gains a tenth of one by the tails of all rows
FEWEST = 2.0  # rows of a cluster that is split
PART = 0.01  # rows of which a cluster has less stay together


@dataclass(frozen=True)
class SplitAscent:
    """From one cluster, the best split of a cluster and then coordinate ascent on all rows, while the ELBO rises.

    A cluster is split at its mean, at right angles to the principal axis of its rows, and the halves share these rows out in
    a few steps; rows of which it has next to nothing all go to the larger half.  That split is kept after which the ELBO is
    highest.  The bound is that of the library, with nested truncation, where Kurihara ties the tail of the sticks to the
    prior; and there is no kd-tree, which only saves time.

    Attributes
    ----------
    ascent : steps on all rows
    coordinates : (N, C) in which the principal axis is sought: the rows X, or their statistics for a family whose clusters
        have one mean, where halves of a symmetric cluster would be alike
    """

    ascent: FullAscent
    coordinates: np.ndarray

    def stages(self) -> Iterator[Summary]:
        """The summary of all rows before any split, and after each that is kept."""
        R = np.ones((len(self.ascent.X), 1))
        now = self.ascent.sums(R)
        yield now
        while (pieces := self.best_split(now, R)) is not None:
            R = self.converged(pieces)
            after = self.ascent.sums(R)
            if self.bound(after) - self.bound(now) < LEAST:
                return
            now = after
            yield now

    def bound(self, sums: Summary) -> float:
        """The exact ELBO, with the clusters in their best order."""
        return self.ascent.model.bound(self.ascent.model.ordered(sums))

    def converged(self, R: np.ndarray) -> np.ndarray:
        """Responsibilities (N, K) after steps on all rows from others, without clusters to which no row belongs."""
        sums = self.ascent.sums(R)
        before = -np.inf
        while (now := self.bound(sums)) - before > TOLERANCE * abs(now):
            before = now
            sums = self.ascent.model.ordered(sums)
            R = self.ascent.responsibilities(sums.take(np.flatnonzero(sums.N >= 1.0)))
            sums = self.ascent.sums(R)
        return R

    def best_split(self, now: Summary, R: np.ndarray) -> np.ndarray | None:
        """Responsibilities (N, K + 1) in which one cluster is in two, those with the highest bound; None if none can be."""
        best = None
        highest = -np.inf
        for k in np.flatnonzero(now.N >= FEWEST):
            halves = self.split(now, R[:, k], k)
            bound = self.bound(with_halves(now, k, halves, self.ascent.features))
            if bound > highest:
                best = np.column_stack([np.delete(R, k, axis=1), halves])
                highest = bound
        return best

    def split(self, now: Summary, mass: np.ndarray, k: int) -> np.ndarray:
        """Responsibilities (N, 2) of the halves of cluster k, which add up to its own, ``mass`` (N,)."""
        rows = np.flatnonzero(mass > PART * mass.max())
        w = mass[rows]
        T = self.ascent.features[rows]
        side = beyond_mean(self.coordinates[rows], w)
        halves = w[:, None] * np.column_stack([side, ~side])
        for _ in range(STEPS):
            W, b = self.ascent.model.likelihood.weights(halves.sum(axis=0), halves.T @ T)
            parts = with_halves(now, k, halves, T)
            log_weights = self.ascent.model.posterior(parts).step.log_weights[-2:]
            halves = w[:, None] * softmax(T @ W.T + b + log_weights, axis=1)
        found = np.zeros((len(mass), 2))
        found[:, halves.sum(axis=0).argmax()] = mass
        found[rows] = halves
        return found


def with_halves(now: Summary, k: int, halves: np.ndarray, T: np.ndarray) -> Summary:
    """Sums in which two clusters with responsibilities (n, 2) of rows with statistics T (n, F), last, replace cluster k."""
    rest = now.take(np.delete(np.arange(now.K), k))
    return replace(
        rest,
        N=np.append(rest.N, halves.sum(axis=0)),
        S=np.concatenate([rest.S, halves.T @ T]),
        H=np.append(rest.H, entr(halves).sum(axis=0)),
    )


def beyond_mean(coordinates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Whether each of rows (n, C) is on one side of their mean along their principal axis, (n,)."""
    centred = coordinates - np.average(coordinates, axis=0, weights=weights)
    _, axes = np.linalg.eigh((centred.T * weights) @ centred)
    return centred @ axes[:, -1] > 0.0
