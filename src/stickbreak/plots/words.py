"""The top words of topics."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import check_count
from ..description.topics import RELEVANCE
from ._canvas import INK, QUIET, SMALL, bare, panels
from ._clusters import belongs, counted, given_names
from ._palette import GOOD
from ._text import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS, FEWER = 4, 3  # of panels, in a figure of their own and in given axes


def words(
    model: Any,
    n: int = 8,
    n_topics: int = 12,
    vocabulary: Sequence[str] | None = None,
    relevance: float = RELEVANCE,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draw the n top words of the largest topics with their probabilities, each topic with its share of all tokens.

    relevance : what top words are chosen and ordered by (`TopicModel.top_words`); 1 for the probability

    Raises
    ------
    TypeError : the topics are not of words.
    ValueError : relevance is outside [0, 1].
    """
    check_count(n, "n")
    check_count(n_topics, "n_topics")
    top = model.top_words(vocabulary, n, relevance)
    order = np.argsort(-model.topic_shares_, kind="stable")[:n_topics]
    given = given_names(model)
    tiles = panels(ax, len(order), COLUMNS if ax is None else FEWER, 2.7, 0.6 + 0.2 * n, gap=(0.9, 0.45))
    for tile, k in zip(tiles, order):
        names = [plain(word, 18) for word, _ in top[k]]
        chances = [chance for _, chance in top[k]]
        places = np.arange(len(names))
        tile.barh(places, chances, color=GOOD, height=0.75)
        tile.set_yticks(places, names, fontsize=SMALL, color=INK)
        tile.set_ylim(n - 0.5, -0.5)
        tile.tick_params(axis="y", length=0)
        tile.locator_params(axis="x", nbins=3)
        tile.tick_params(axis="x", labelsize=SMALL - 2, colors=QUIET)
        name = plain(given[k]) or "topic"
        tile.set_title(f"{name} {k}   {model.topic_shares_[k]:.1%}", loc="left", fontsize=SMALL + 1)
        bare(tile)
        belongs(tile, k, "words")
    figure: Figure = tiles[0].figure
    if ax is None:
        K = model.n_topics_
        rest = f"the largest {len(order)} of {K} topics" if len(order) < K else counted(K, "topic")
        figure.suptitle(f"{rest}: probabilities of their top words", x=0.01, ha="left", fontsize=11)
    return figure
