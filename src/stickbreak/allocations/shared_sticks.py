"""Shares by sticks whose concentration is known or has a gamma prior: their optimum, for topics and for states."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, NamedTuple, Self, TypeVar

from scipy.special import expit

from ._base import RANGE, Array, Solution, Solved, within_range
from ._sticks import best_gamma, best_sticks, expected_rest, stick_logits, stick_means
from .concentration import Belief, GammaConcentration, GivenSticks, Moments, belief

Data = TypeVar("Data")
SETTLED = 1e-6  # relative change of a concentration
MOST_SEARCHES = 20  # for sticks, from those of the concentration before on
MOST_STEPS = 200  # of the concentration alone


class Stick(NamedTuple):
    """The terms of sticks in a bound (see `_sticks.stick_bound`).

    bound : function of a concentration; returns the bound as a function of the logits (K,), with its gradient
    exponents : c, (K + 1,);  strengths : (n, 2)
    """

    bound: Callable[[float], Callable[[Array], tuple[float, Array]]]
    exponents: Array
    strengths: Array


class SharedSticks(ABC, Generic[Data]):
    """Shares beta by sticks u_k ~ Beta(1, c), whose concentration c is a number or c ~ Gamma(s_1, s_2).

    With a prior, the posterior is q(c) prod_k q(u_k), q(c) = Gamma(s_1 + K, s_2 - sum_k E[log (1 - u_k)]) (BJ appendix B).
    Put in, the bound is a function of the sticks alone: for known c it has K log c + c sum_k E[log (1 - u_k)], for which

        log Gamma(s_1 + K) / Gamma(s_1) + s_1 log s_2 - (s_1 + K) log (s_2 - sum_k E[log (1 - u_k)])

    stands.  This is convex in sum_k E[log (1 - u_k)], with slope E[c]: the best sticks at c = E[c] never lower it.
    """

    concentration: float | GammaConcentration

    @abstractmethod
    def solve(self, summary: Data) -> Solution:
        """The optimum for a summary."""

    @abstractmethod
    def _sticks(self, summary: Data) -> Stick:
        """The terms of the bound of a summary."""

    @abstractmethod
    def _begin(self, summary: Data) -> tuple[Array, Array]:
        """Where the search for the best sticks begins: logits (K,), and about how many draws of each share (K + 1,)."""

    @property
    def _belief(self) -> Belief:
        """What is known of the concentration."""
        return belief(self.concentration)

    def _best(self, summary: Data) -> Solution:
        """The best sticks, by L-BFGS, and the concentration in turn until that has settled."""
        sticks = self._sticks(summary)
        x, counts = self._begin(summary)
        c = within_range(self._belief.mean, *RANGE)
        for _ in range(MOST_SEARCHES):
            x, value = self._search(summary, c, x, counts)
            given = self._given(sticks, x, c)
            before = c
            c = within_range(given.moments.mean, *RANGE)
            if abs(c - before) <= SETTLED * before:
                break
        return Solved(stick_means(expit(x)), value + given.gain)

    def _search(self, summary: Data, c: float, x: Array, counts: Array) -> tuple[Array, float]:
        """The best logits of stick means at a concentration, from x (K,) on, and the bound there."""
        return best_sticks(self._sticks(summary).bound(c), x, counts)

    def at(self, summary: Data, shares: Array) -> Solution:
        """The solution with these shares (K + 1,)."""
        sticks = self._sticks(summary)
        x = stick_logits(shares)
        c = self._settled(sticks, x)
        return Solved(shares, sticks.bound(c)(x)[0] + self._given(sticks, x, c).gain)

    def concentration_moments(self, summary: Data) -> Moments:
        """Posterior mean and standard deviation of the concentration; of one that is known, itself and zero."""
        sticks = self._sticks(summary)
        x = stick_logits(self._best(summary).shares)
        return self._given(sticks, x, self._settled(sticks, x)).moments

    def _settled(self, sticks: Stick, x: Array) -> float:
        """The concentration that sticks with logits x imply."""
        c = within_range(self._belief.mean, *RANGE)
        for _ in range(MOST_STEPS):
            before = c
            c = within_range(self._given(sticks, x, c).moments.mean, *RANGE)
            if abs(c - before) <= SETTLED * before:
                break
        return c

    def _given(self, sticks: Stick, x: Array, c: float) -> GivenSticks:
        """What sticks with logits x, and weights for c, say of the concentration."""
        return self._belief.given_sticks(len(x), lambda: expected_rest(x, sticks.exponents, c, sticks.strengths), c)

    def _with_best_concentration(self, summary: Data, solution: Solution) -> tuple[Self, Solution]:
        """This prior at the concentration that raises the bound, and its optimum; one with a prior has a posterior instead."""
        if isinstance(self.concentration, GammaConcentration):
            return self, solution
        prior: Any = self
        sticks = self._sticks(summary)
        best = best_gamma(solution.shares, sticks.exponents, self.concentration, sticks.strengths)
        other: Self = replace(prior, concentration=within_range(best, *RANGE))
        return self._or_better(solution, other, summary)

    def _or_better(self, solution: Solution, other: Self, summary: Data) -> tuple[Self, Solution]:
        """This prior and its optimum, or another prior if its bound is higher."""
        if other == self:
            return self, solution
        found = other.solve(summary)
        return (other, found) if found.value > solution.value else (self, solution)
