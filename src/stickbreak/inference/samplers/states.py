"""Sequences as a sampler draws their states: blocked Gibbs sampling of the sticky HDP-HMM (Thesis 6.6; Fox et al. 2011)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ...allocations.markov import ChainPrior
from ...allocations.transitions import Transitions
from ...data import ArraySource, Chunk
from ...data.sequences import SequenceSource
from ...likelihoods import Likelihood
from ...model import Model, Parameters, SequenceSummary, Summary
from ...model.paths import drawn_path, viterbi
from ...model.potentials import Prepared, prepared_for
from ...model.sequences import labelled
from ..executor import Executor
from .chain import Steps
from .conjugate import require_conjugate
from .subject import Labels, check_draws

Array = NDArray[np.floating]

NUMBER = 8  # bytes
PIECE = 1 << 15  # rows whose base measure is taken at a time


class StateTable(NamedTuple):
    """What a sampler knows of sequences.

    likelihood, allocation : with all hyperparameters known
    base : sum of log h(x) of the rows observed
    """

    likelihood: Likelihood
    allocation: ChainPrior
    source: SequenceSource
    base: float

    @property
    def n_rows(self) -> int:
        """T, of all sequences."""
        return self.source.n_rows

    def total(self, labels: NDArray[np.integer]) -> SequenceSummary:
        """The summary of rows that are each wholly in the state of its label, below the highest."""
        found = labelled(self.likelihood, self.source, labels.astype(np.intp, copy=False))
        found.base[...] = self.base
        return found


class States(NamedTuple):
    """States of rows, without those that have none."""

    labels: Labels
    K: int
    concentration: float
    log_joint: float


@dataclass
class StateSteps:
    """A chain of states, shares, transitions and parameters of so many states.

    A sweep draws the shares given the states, rows of transitions integrated out; the rows of transitions; the parameters; and
    the states of each sequence all at once: messages are filtered forward, states sampled backward.

    table : the sequences
    labels : (T,) the state of each row
    transitions : at the shares as they are
    total : the summary of the states
    """

    table: StateTable
    labels: Labels
    transitions: Transitions
    total: SequenceSummary

    @classmethod
    def begin(cls, n_states: int, table: StateTable, labels: NDArray[np.integer]) -> Self:
        """Begin with these labels, those beyond the states in the last one, and equal shares."""
        codes = np.minimum(np.unique(labels, return_inverse=True)[1], n_states - 1).astype(np.int64)
        return cls(table, codes, table.allocation.transitions(n_states), _all_of(table, codes, n_states))

    def step(self, rng: np.random.Generator) -> None:
        """Draw shares, transitions, parameters, and the states of every sequence."""
        table = self.table
        counted = self.total.transitions
        self.transitions = table.allocation.with_drawn_shares(self.transitions, counted, rng)
        log_rows = self.transitions.draw_log_rows(counted, rng)
        W, b = table.likelihood.draw_weights(self.total.N, self.total.S, rng)
        prepared = prepared_for(table.likelihood, Parameters(W, b, np.exp(log_rows)), table.source)
        uniform = rng.random(table.n_rows)
        for chunk in table.source.whole():
            rows = slice(chunk.start, chunk.stop)
            X = table.source.read(chunk)[0]
            drawn_path(table.likelihood, prepared, X, uniform[rows], self.labels[rows])
        self.total = _all_of(table, self.labels, self.transitions.L)

    @property
    def partition(self) -> States:
        """The states that have rows, and log p(X, z | beta): transitions and parameters integrated out at the shares drawn."""
        used, codes = np.unique(self.labels, return_inverse=True)
        data = self.table.likelihood.log_marginal(self.total.N, self.total.S).sum() + self.table.base
        log_joint = float(data) + self.transitions.log_chance(self.total.transitions)
        return States(codes.astype(np.int64), len(used), self.transitions.concentration, log_joint)


def _all_of(table: StateTable, labels: Labels, L: int) -> SequenceSummary:
    """The summary of L states, of which some have no rows."""
    found = table.total(labels)
    return found.insert_empty(L - found.K)


@dataclass(frozen=True)
class StateSubject:
    """Sequences of a hidden Markov model (see `Subject`)."""

    def check(self, model: Model, source: ArraySource, collapsed: bool) -> None:
        """Refuse collapsed sweeps, a prior that is not conjugate, and a family that draws no parameters."""
        if collapsed:
            raise ValueError(
                'kind must be "blocked" for algorithm=Gibbs(...) of an HMM, whose states hardly move one row at a time, given '
                'their neighbours; use Gibbs(kind="blocked").'
            )
        require_conjugate(model, "Gibbs")
        check_draws(model)

    def size(self, model: Model, source: ArraySource) -> float:
        """Bytes: chains share no more than the rows."""
        return 0.0

    def table(self, model: Model, source: SequenceSource) -> StateTable:
        """The sequences."""
        assert isinstance(model.allocation, ChainPrior)
        flat = source.flat
        base = 0.0
        for start in range(0, flat.n_rows, PIECE):
            X, weights = flat.read(Chunk(start, min(start + PIECE, flat.n_rows)))
            base += float(weights @ model.likelihood.log_base(X))
        return StateTable(model.likelihood, model.allocation, source, base)

    def steps(
        self, collapsed: bool, split_merge: bool, n_clusters: int
    ) -> Callable[[StateTable, NDArray[np.integer]], Steps]:
        """Sweeps over shares, transitions, parameters and states, which are blocked."""
        return partial(StateSteps.begin, n_clusters)

    def most_probable(self, model: Model, start: Summary, source: SequenceSource, executor: Executor) -> Labels:
        """The most probable path through each sequence, (T,)."""
        prepared = model.kind.prepare(model.likelihood, model.parameters(start, source.dtype), source)
        task = partial(_path, model.likelihood, prepared)
        return np.concatenate(list(executor.over(source, task, source.whole())))

    def total(self, model: Model, table: StateTable, labels: Labels) -> SequenceSummary:
        """The summary of the states of the rows."""
        return table.total(labels)


STATES = StateSubject()


def _path(likelihood: Likelihood, prepared: Prepared, source: SequenceSource, chunk: Chunk) -> Labels:
    """The most probable path through the sequences of a chunk."""
    return viterbi(likelihood, prepared, source.read(chunk)[0]).astype(np.int64)
