"""A kind of data: what differs between rows, bags of words, groups of rows and sequences."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource
from ..likelihoods import Likelihood
from .parameters import Parameters
from .summary import Summary

Array = NDArray[np.floating]

THRESHOLD = 0.1  # rows with more responsibility than this represent a cluster (2013 supplement, Eq. 23)


def share_of_limit(most_kept: int, inside: NDArray[np.integer], total: NDArray[np.integer]) -> NDArray[np.int64]:
    """How many clusters may take the place of those in a set of clusters, of rows or documents with at most ``most_kept``.

    In proportion to how many of their clusters are in the set, rounded down, so that moves of the same lap, whose sets have no
    cluster in common, stay within the limit together.

    inside, total : (n,) how many clusters each has in the set, and in all; at least one
    """
    return np.asarray(most_kept * inside.astype(np.int64) // total)


class Batch(NamedTuple):
    """A chunk of data as a visit reads it: rows, documents or sequences X, and their weights.

    first : the number of the first
    start : of documents, what the last visit left to start from (`Summary.warm_start`); of rows, their clusters then
    answers : (n,) what documents say beside their words, NaN where that is unknown; None: nothing
    """

    X: Any
    weights: Array
    first: int = 0
    start: NDArray[Any] | None = None
    answers: Array | None = None


class Drawn(NamedTuple):
    """Rows (or documents) drawn from one chunk: the cluster, the row number, responsibility over the chance of being drawn.

    parts : of documents, what was drawn itself: the part of each that belongs to its cluster, CSR, or rows of groups
    """

    owners: NDArray[np.integer]
    rows: NDArray[np.integer]
    chosen: Array
    parts: Any = None


class Owners(NamedTuple):
    """The cluster of each row of a chunk at a visit, and what the next is to lose if it looks only at clusters near these.

    clusters : (n,) that with the largest responsibility
    outside : for each breadth of what is near, narrowest first, nats, to first order: the responsibilities of the rows in
        clusters that are not near
    """

    clusters: NDArray[np.integer]
    outside: tuple[float, ...]


class Recipe(NamedTuple):
    """How moves change the clusters of a kind of data.

    whole : a proposal stands for all clusters (`stickbreak.moves.states`), otherwise for those that it adds
    tries : by move, failures after which a cluster must change to be tried again
    scored : sums tell what a merge gains, apart from entropy; otherwise only its data term is known
    pairs : merges that are looked at, for each cluster
    ordered : the order of the allocation is the best one, and clusters without rows go; otherwise orders must be compared, and
        moves decide on clusters without rows
    rests : laps in a row that need not learn hyperparameters, after one in which that gained little: above zero where the
        optimum of the allocation takes as long as a visit to the data
    """

    whole: bool
    tries: Mapping[str, int]
    scored: bool
    pairs: float
    ordered: bool
    rests: int = 0


class Kind(Protocol):
    """What visits do with a kind of data, and how moves change its clusters: a frozen value.

    What is `prepared` for a visit, how a chunk is held, and what is `kept` of its responsibilities, each kind knows alone.

    Attributes
    ----------
    units : what is exchangeable, for messages
    allocations : the base class of the allocations for such data
    summary : the class of the summaries
    sample_size : how many rows or documents to draw for a cluster
    recipe : how moves change clusters
    takes_latent : whether rows may have latent variables (`Likelihood.latent`)
    has_documents : whether rows share the proportions of a document, so that a document may mix clusters
    has_order : whether rows depend on those before them
    """

    units: ClassVar[str]
    allocations: ClassVar[type]
    summary: ClassVar[type[Summary]]
    sample_size: ClassVar[int]
    recipe: ClassVar[Recipe]
    takes_latent: ClassVar[bool]
    has_documents: ClassVar[bool]
    has_order: ClassVar[bool]

    def start(self, rows: Summary) -> Summary:
        """A start for such data, of which only rows are known."""
        ...

    def near(self, likelihood: Likelihood, K: int, divergences: Callable[[], Array], source: Any) -> "NearKind | None":
        """The same kind for visits that look only at clusters near those of the last visit; None where that saves no time.

        divergences : (K, K) of the clusters, made if it is asked for (`Posterior.divergences`)
        """
        ...

    def rounded(self, parameters: Parameters, dtype: np.dtype[np.floating]) -> Parameters:
        """Parameters in the precision in which features and scores are to be formed."""
        ...

    def prepare(self, likelihood: Likelihood, parameters: Parameters, source: Any) -> Any:
        """What the local step of every chunk shares."""
        ...

    def local_step(
        self, likelihood: Likelihood, prepared: Any, batch: Batch, base: bool, keep: bool
    ) -> tuple[Any, Any]:
        """Summary of a chunk, and what is kept of its responsibilities.

        base : whether to sum up the base measure, which depends on the data alone
        keep : whether responsibilities are wanted, where they are not at hand
        """
        ...

    def track(
        self, likelihood: Likelihood, prepared: Any, removed: tuple[int, ...], batch: Batch, kept: Any, summary: Any
    ) -> Summary:
        """The summary of clusters J, prepared (None: one that takes everything), that get the mass of ``removed``."""
        ...

    def draw(self, batch: Batch, kept: Any, summary: Any, limits: Array, salt: int) -> Drawn:
        """What is drawn of a chunk for each cluster, with chance ``limits`` (K,) per unit of weight."""
        ...

    def sample(self, source: ArraySource, drawn: Sequence[Drawn], cluster: int, mass: float) -> tuple[Any, Array]:
        """What was drawn for one cluster, and weights with which it stands for its ``mass``."""
        ...


def looks_at_all(kind: Kind, likelihood: Likelihood, K: int, divergences: Callable[[], Array], source: Any) -> None:
    """No kind for visits that look only at near clusters (`Kind.near`): those of this kind look at all."""


class NearKind(Kind, Protocol):
    """A kind whose visits look only at the clusters near those of the last visit."""

    def within(self, breadth: int) -> "NearKind":
        """The same for visits that look this far: one of the breadths of `Owners.outside`."""
        ...

    def owners(self, kept: Any, weights: Array) -> Owners:
        """The clusters from which such a visit starts (`Batch.start`), after any visit with these responsibilities."""
        ...
