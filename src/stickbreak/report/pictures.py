"""The pictures of the report of a fitted model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..plots._clusters import counted, thing
from ..plots._rows import rows_of
from .svg import inline_svg

MOST_DETAILED = 6  # clusters or topics whose members are shown


@dataclass(frozen=True)
class Picture:
    """A picture of a report: a title, what it shows in words, what draws it, and the number of the one cluster it is of."""

    title: str
    alt: str
    draw: Callable[[], Any]
    of: int | None = None

    def svg(self, name: str) -> str:
        """The picture as inline SVG."""
        return inline_svg(self.draw, name, f"{self.title}: {self.alt}")


def pictures(
    model: Any, X: Any, lengths: Any = None, names: Sequence[str] | None = None
) -> tuple[list[Picture], list[Picture]]:
    """The pictures of what was found in X, and those of the members of the largest clusters.

    names : of words, which topics are named by

    Raises
    ------
    ValueError : lengths are given for rows of a mixture.
    """
    kinds = {"cluster": _of_mixture, "topic": _of_topics, "state": _of_states}
    what = thing(model)
    own, members = kinds[what](model, X, lengths, names)
    K = counted(model.summary_.K, what)
    sizes = Picture("Sizes", f"the expected size of each of {K}, as in the table", model.plot.sizes)
    tree = partial(model.plot.hierarchy, vocabulary=names)
    merges = Picture("Hierarchy", f"which of {K} merge at what loss of the bound", tree)
    return [*own, sizes, *([merges] if model.summary_.K > 1 else [])], members


def search_pictures(model: Any) -> list[Picture]:
    """The pictures of how the model was found: the bound, and the families that were compared."""
    found = []
    if getattr(model, "selection_", []):
        found.append(Picture("Families", "how many nats each family is below the best", model.plot.selection))
    if model.lower_bounds_:
        bound = Picture("Bound", "the bound, moves and number of clusters by lap", model.plot.fit)
        found.append(bound)
    return found


def _of_mixture(model: Any, X: Any, lengths: Any, names: Any) -> tuple[list[Picture], list[Picture]]:
    if lengths is not None:
        raise ValueError("lengths are those of sequences or documents; rows of a mixture have none, so leave it out.")
    plot = model.plot
    found = [
        Picture("Clusters", "rows in two dimensions with the outline of each cluster", lambda: plot.clusters(X)),
        Picture("Profiles", "how each cluster differs from all rows in each column", plot.profiles),
        Picture(
            "Strange rows", "the log density of each row, with the numbers of the lowest", lambda: plot.outliers(X)
        ),
    ]
    labels = rows_of(model, X).R.argmax(axis=1)
    sizes = np.bincount(labels, minlength=model.n_clusters_)
    largest = [int(k) for k in np.argsort(-sizes, kind="stable")[:MOST_DETAILED] if sizes[k]]
    return found, [
        Picture(f"Cluster {k}", "its most typical and its strangest rows", partial(plot.members, X, k), k)
        for k in largest
    ]


def _of_topics(model: Any, X: Any, lengths: Any, names: Any) -> tuple[list[Picture], list[Picture]]:
    plot = model.plot
    found = []
    if hasattr(model, "topics_"):
        found = [
            Picture(
                "Words",
                "top words of the largest topics, by relevance, with their probabilities",
                partial(plot.words, vocabulary=names),
            ),
            Picture(
                "Map", "topics in two dimensions, near where their words are alike", partial(plot.map, vocabulary=names)
            ),
            Picture(
                "Similarity", "how alike the words of each pair of topics are", partial(plot.heatmap, vocabulary=names)
            ),
        ]
    draw = partial(plot.documents, lengths=lengths, vocabulary=names)
    largest = np.argsort(-model.topic_shares_, kind="stable")[:MOST_DETAILED].tolist()
    return found, [
        Picture(f"Topic {k}", "the documents with the largest share", partial(draw, k, X), k) for k in largest
    ]


def _of_states(model: Any, X: Any, lengths: Any, names: Any) -> tuple[list[Picture], list[Picture]]:
    plot = model.plot
    found = [
        Picture("Timeline", "the signals above their most probable states", lambda: plot.timeline(X, lengths)),
        Picture("Profiles", "how each state differs from all rows in each column", plot.profiles),
        Picture("Transitions", "which state follows which", plot.transitions),
        Picture("Durations", "how many steps each state lasts", lambda: plot.durations(X, lengths)),
    ]
    return found, []
