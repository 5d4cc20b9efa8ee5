"""Names from data as text in pictures: in one line, not too long, and shown as they are."""

from collections.abc import Iterable
from typing import Any

LONGEST = 24  # characters of a name


def plain(name: Any, longest: int = LONGEST) -> str:
    """A name in one line of so many characters at most, in which matplotlib finds no formula."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(name)).split())
    short = line if len(line) <= longest else f"{line[: longest - 1]}…"
    return short.replace("$", r"\$")


def column_names(model: Any) -> list[str]:
    """The names of the columns that a model was fitted to, x0, x1, ... where they have none."""
    known = getattr(model, "feature_names_in_", ())
    return [str(known[d]) if d < len(known) else f"x{d}" for d in range(model.n_features_in_ + model.n_targets_)]


def listed(words: Iterable[Any], most: int, longest: int = LONGEST) -> str:
    """The first of some words, with commas."""
    chosen = [plain(word, longest) for word, _ in zip(words, range(most))]
    return ", ".join(chosen)
