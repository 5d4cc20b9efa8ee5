"""Streams whose clusters, topics or states are born, merge and die, as an algorithm."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._arguments import as_floats, check_count, real, shown
from ..data import ArraySource
from ..likelihoods import Likelihood
from ..model import Model
from .algorithm import Memoized
from .remembered import Recalled, Remembered
from .renewal import Renewed
from .search import Search
from .session import Session
from .state import Options
from .stream import Stream


@dataclass(frozen=True)
class Streaming:
    """A stream that comes in batches, of `partial_fit`: clusters, topics or states are born, merge and die along the way.

    The first call fits its data like any others.  Each later one visits its data once and adds what they say to the sums of
    all before, which are not seen again.

    Of rows (`Mixture`):

    - *births* are those of Thesis 4.2: where rows of a cluster are explained much worse than its rows before, new clusters
      are fitted to them, which get their mass in this batch, and stay if the ELBO of all rows rises;
    - *merges* and *splits* are judged whenever half as many rows have come as the memory holds, a bounded sample of all rows:
      what merging pairs of clusters loses in entropy, and how a cluster falls into pieces, is estimated from that sample;
    - *deaths*: a cluster that stands for less than one row goes, which happens where earlier rows are forgotten.

    Of documents and sequences (`TopicModel`, `HMM`) the memory is a bounded sample of all that came before, and what has come
    since moves were last judged.  When that is half as much as the sample, or earlier where a batch contradicts the sums of a
    topic or state, a search of all that is remembered begins with the topics in hand; births, merges and deletes are those
    that raise the exact ELBO of what is remembered.  Topics that go on, where the log marginal likelihood prefers them as one
    with what is found now, keep the sums of the whole stream; what has come of late is visited anew; all else is as the
    sample has it.  ``max_laps`` is that of
    each search.  Long sequences are remembered in windows.  Answers of documents and labels are not for streams.

    ``lower_bound_`` is the ELBO of all data so far for the responsibilities that they had when they came, those of forgotten
    data by their remaining weight: exact until clusters change by the memory, from then on an estimate.  Hyperparameters that
    are learnt are learnt on from the sums after each batch.

    Memory and the time for a batch, on average, do not grow with the stream.  Model files do not have what is remembered;
    pickles do, and go on as if nothing had happened.  A stream of documents or sequences that goes on from a file fills half
    of its memory before moves are judged.

    Parameters
    ----------
    forgetting : float above 0, at most 1, default 1
        The share of their weight that earlier data keep at each batch.  1 forgets nothing; with 0.99 the last hundred batches
        count for most.
    memory_rows : int >= 2, default 20,000
        The rows, documents, or rows of sequences in the sample.  A search of more takes longer, and finds rarer
        topics or states.

    Raises
    ------
    ValueError
        If a value is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from stickbreak import Mixture
    >>> from stickbreak.inference import Streaming
    >>> rng = np.random.default_rng(0)
    >>> model = Mixture("gaussian", algorithm=Streaming(), random_state=0)
    >>> for centre in (0.0, 20.0, 40.0):
    ...     _ = model.partial_fit(rng.normal(centre, 1.0, (500, 2)))
    >>> model.n_clusters_
    3
    """

    forgetting: float = 1.0
    memory_rows: int = 20_000
    searches: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    takes: ClassVar[tuple[str, ...]] = ("rows", "documents", "sequences")
    resumes: ClassVar[bool] = True
    seats: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0.0 < real(self.forgetting) <= 1.0:
            raise ValueError(f"forgetting must be a number above 0, at most 1; got {shown(self.forgetting)}.")
        as_floats(self, "forgetting")
        check_count(self.memory_rows, "memory_rows")
        if self.memory_rows < 2:
            raise ValueError(f"memory_rows must be at least 2; got {shown(self.memory_rows)}.")

    def begin(
        self,
        search: Callable[..., Search],
        model: Model,
        source: ArraySource,
        session: Session,
        rng: np.random.Generator,
        options: Options,
    ) -> Search:
        """The search of the first batch."""
        return Memoized().begin(search, model, source, session, rng, options)

    def of(self, moves: tuple[str, ...], prior: Likelihood, learn: tuple[str, ...]) -> Stream:
        """How a batch is learnt from, with these moves, a prior before it is learnt, and the hyperparameters to learn."""
        return Stream(moves, prior, learn, self.forgetting, self.memory_rows)

    def remembered(self, source: ArraySource, rng: np.random.Generator) -> Remembered:
        """The memory after the first rows."""
        return self.nothing(source).after(source, 0.0, self.memory_rows, rng)._replace(waiting=0)

    def nothing(self, source: ArraySource) -> Remembered:
        """A memory without rows, for rows like those of a source."""
        return Remembered(source.taken(np.empty(0, np.intp)))

    def renewed(
        self,
        prior: Model,
        search: Callable[..., Search],
        ready: Callable[[Any], ArraySource],
        moves: tuple[str, ...],
        learn: tuple[str, ...],
    ) -> Renewed:
        """How a batch of documents or sequences is learnt from (the fields of `Renewed`)."""
        return Renewed(prior, search, ready, moves, learn, self.forgetting, self.memory_rows)

    def recalled(self, source: ArraySource, rng: np.random.Generator) -> Recalled:
        """The memory after the first documents or sequences."""
        return self.unknown(0.0).after(source, None, 1.0, self.memory_rows, rng)

    def unknown(self, weight: float) -> Recalled:
        """A memory of nothing of a stream of so many documents or rows; it is filled before moves are judged."""
        return Recalled(None, weight, filling=self.memory_rows // 2 if weight > 0.0 else 0)
