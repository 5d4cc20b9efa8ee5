"""What ``model.plot`` is: the pictures of each kind of model, as methods."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..description.topics import RELEVANCE
from .clusters import clusters
from .documents import documents
from .durations import durations
from .fit import fit
from .hierarchy import hierarchy
from .members import members
from .outliers import outliers
from .over_time import over_time
from .profiles import profiles
from .selection import selection
from .similarity import similarity
from .sizes import sizes
from .stability import Agreement, stability
from .timeline import timeline
from .topic_map import topic_map
from .transitions import transitions
from .words import words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Plots:
    """Pictures of any fitted model, made with matplotlib (``pip install stickbreak[plot]``).

    Every method takes ``ax=``, the axes to draw in, by default those of a new figure, and returns the axes, or the figure where
    there are several.  Every one raises an ImportError where matplotlib is missing.
    """

    model: Any

    def __repr__(self) -> str:
        names = sorted(name for name in dir(self) if not name.startswith("_") and name != "model")
        return f"pictures of this {type(self.model).__name__}: {', '.join(names)}"

    def fit(self, ax: "Axes | None" = None) -> "Axes":
        """How the search went: the ELBO (nats), moves, excursions by what they began with, and the number of clusters, by lap.

        Numbers such as 24→12 beside an end of an ascent are the clusters that it began with and those that were kept.
        """
        return fit(self.model, ax)

    def sizes(self, ax: "Axes | None" = None) -> "Axes":
        """The expected count N_k of each cluster, topic or state in order of size; on a log scale if these are very unlike."""
        return sizes(self.model, ax)

    def hierarchy(
        self, n: int | None = None, vocabulary: Sequence[str] | None = None, ax: "Axes | None" = None
    ) -> "Axes":
        """The tree of merges, ``hierarchy_``, as a dendrogram; the height of a merge is what it loses, in nats.

        Parameters
        ----------
        n : int from 1 to K, optional
            Branches are in the colours of n groups, those of ``hierarchy_.cut(n)``.
        vocabulary : V words that name topics, by default the names of the columns at `fit`
        """
        return hierarchy(self.model, n, vocabulary, ax)

    def stability(self, found: Agreement, ax: "Axes | None" = None) -> "Axes":
        """Which clusters other fits find, too: the overlap with the most similar cluster of each, and the mean.

        Parameters
        ----------
        found : the result of ``model.stability(X)``
        """
        return stability(self.model, found, ax)


class FamilyPlots(Plots):
    """Pictures of models of rows, whose family may have been chosen."""

    def profiles(self, ax: "Axes | None" = None) -> "Axes":
        """The mean of each column, or chance of each level, in each cluster, in standard deviations from that of all rows.

        Columns that differ in the same clusters are beside each other; of more than 60 those that differ most are shown.
        """
        return profiles(self.model, ax)

    def selection(self, ax: "Axes | None" = None) -> "Axes":
        """How many nats each family of ``selection_`` is below the best.

        Raises
        ------
        ValueError
            If there was nothing to choose.
        """
        return selection(self.model, ax)


class MixturePlots(FamilyPlots):
    """Pictures of a `Mixture`."""

    def clusters(self, X: Any, projection: str | None = None, ax: "Axes | None" = None) -> "Axes":
        """Rows in two dimensions, faint where their cluster is in doubt, and each cluster's ellipses of 1 and 2 deviations.

        Parameters
        ----------
        X : rows as in `fit`; 5,000 of more are drawn.  Missing values are filled in.
        projection : {"discriminant", "pca"}, optional
            Axes along which clusters differ most beside their rows (Fisher), or rows differ most.  By default two columns are
            shown as they are, one column as a histogram, and more by discriminant axes, where there are several clusters.
        """
        return clusters(self.model, X, projection, ax)

    def members(
        self, X: Any, k: int, n: int = 8, image_shape: tuple[int, int] | None = None, ax: "Axes | None" = None
    ) -> "Axes | Figure":
        """The n rows of cluster k that it explains best, and the n it explains worst.

        Parameters
        ----------
        X : rows as in `fit`; of more than 5,000 a sample is looked at
        k : int from 0 to ``n_clusters_`` - 1
        image_shape : (height, width), optional
            Rows are shown as images of so many pixels, otherwise as a table of standard deviations from the mean of all.
        """
        return members(self.model, X, k, n, image_shape, ax)

    def outliers(self, X: Any, n: int = 10, ax: "Axes | None" = None) -> "Axes":
        """The log density of every row in increasing order, `score_samples`, with the numbers of the n lowest."""
        return outliers(self.model, X, n, ax)


class TopicPlots(Plots):
    """Pictures of a `TopicModel`."""

    def words(
        self,
        n: int = 8,
        n_topics: int = 12,
        vocabulary: Sequence[str] | None = None,
        relevance: float = RELEVANCE,
        ax: "Axes | None" = None,
    ) -> "Figure":
        """The n top words of the largest topics, with their probabilities.

        Parameters
        ----------
        vocabulary : V words, by default the names of the columns at `fit`
        relevance : float in [0, 1], what top words are chosen by (`TopicModel.top_words`); 1 for the probability
        """
        return words(self.model, n, n_topics, vocabulary, relevance, ax)

    def map(self, vocabulary: Sequence[str] | None = None, ax: "Axes | None" = None) -> "Axes":
        """Topics in two dimensions, near where their words are alike (Jensen-Shannon), of an area in proportion to shares."""
        return topic_map(self.model, vocabulary, ax)

    def heatmap(self, vocabulary: Sequence[str] | None = None, ax: "Axes | None" = None) -> "Axes":
        """How alike the words of each pair of topics are: cosines from 0 to 1."""
        return similarity(self.model, vocabulary, ax)

    def documents(
        self,
        k: int,
        X: Any,
        titles: Sequence[str] | None = None,
        n: int = 12,
        lengths: Any = None,
        vocabulary: Sequence[str] | None = None,
        ax: "Axes | None" = None,
    ) -> "Axes":
        """The n documents with the largest share of topic k.

        Parameters
        ----------
        k : int from 0 to ``n_topics_`` - 1
        X, lengths : documents as in `fit`
        titles : a name for each document, by default its number
        vocabulary : V words that name the topic, by default the names of the columns at `fit`
        """
        return documents(self.model, k, X, titles, n, lengths, vocabulary, ax)

    def over_time(
        self,
        timestamps: Any,
        X: Any,
        n_topics: int = 7,
        n_bins: int = 20,
        lengths: Any = None,
        ax: "Axes | None" = None,
    ) -> "Axes":
        """The mean shares of the largest topics in the documents of each of ``n_bins`` equal spans of time.

        Parameters
        ----------
        timestamps : (N,) a number or a date for each document; those that are missing are left out
        X, lengths : documents as in `fit`
        """
        return over_time(self.model, timestamps, X, n_topics, n_bins, lengths, ax)


class StatePlots(FamilyPlots):
    """Pictures of an `HMM`."""

    def timeline(
        self,
        X: Any,
        lengths: Any = None,
        steps: tuple[int, int] | None = None,
        n_sequences: int = 4,
        ax: "Axes | None" = None,
    ) -> "Figure":
        """The signals of the first sequences above their most probable states.

        Parameters
        ----------
        X, lengths : sequences as in `fit`
        steps : (first, end), optional
            The part of each sequence to show.
        """
        return timeline(self.model, X, lengths, steps, n_sequences, ax)

    def transitions(self, ax: "Axes | None" = None) -> "Figure":
        """Which state follows which, given that a state is left: a graph and a matrix of probabilities."""
        return transitions(self.model, ax)

    def durations(self, X: Any = None, lengths: Any = None, ax: "Axes | None" = None) -> "Axes":
        """The expected number of steps of each state, and with sequences X those of each segment of their paths."""
        return durations(self.model, X, lengths, ax)

    def dendrogram(self, n: int | None = None, ax: "Axes | None" = None) -> "Axes":
        """The same as `hierarchy`."""
        return self.hierarchy(n, ax=ax)
