"""What pictures need to know of the clusters, topics or states of a fitted model."""

from collections.abc import Iterable, Sequence
from typing import Any

from ._text import listed, plain

WORDS, SHORT = 3, 14  # that name a topic, and their characters


def thing(model: Any) -> str:
    """What a model calls its clusters."""
    names = {"n_states_": "state", "n_topics_": "topic"}
    return next((name for attribute, name in names.items() if hasattr(model, attribute)), "cluster")


def belongs(artist: Any, k: int, part: str) -> None:
    """Name what a picture shows of one cluster; a page can then point at the cluster in all of its pictures.

    part : of the cluster, a word that no other artist of the picture has for it
    """
    artist.set_gid(f"of-{k}-{part}")


def belong(artist: Any, clusters: Iterable[int], part: str) -> None:
    """The same of a collection with one mark of each of these clusters, in their order."""
    artist.set_gid(f"of-{'.'.join(map(str, clusters))}-{part}")


def counted(n: int, what: str) -> str:
    """A number of things in words."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def members_of(model: Any) -> str:
    """What the clusters of a model consist of."""
    if not hasattr(model, "n_topics_"):
        return "rows"
    return "tokens" if hasattr(model, "topics_") else "rows"


def given_names(model: Any) -> list[str]:
    """The name of each cluster that was named in advance; the others have an empty one."""
    names = [""] * model.summary_.K
    for name, k in model.model_.likelihood.names_of(model.summary_.S).items():
        names[k] = name
    return names


def short_names(model: Any, vocabulary: Sequence[str] | None = None) -> list[str]:
    """The number of each cluster, its name if it was named in advance, and for topics of words the top words."""
    given = [f"{k} {plain(name)}".rstrip() for k, name in enumerate(given_names(model))]
    if not hasattr(model, "topics_"):
        return given
    top = model.top_words(vocabulary, WORDS)
    return [f"{name}: {listed((word for word, _ in words), WORDS, SHORT)}" for name, words in zip(given, top)]
