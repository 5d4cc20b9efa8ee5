"""Whether an error is one of ours: raised by us, of a type that we promise, and about what was wrong with the input."""

import linecache
import traceback
from collections.abc import Iterable
from pathlib import Path

import sklearn

import stickbreak

from .attacker import REFUSED, Outcome

HERE, OURS, CHECKS = Path(__file__).parent, Path(stickbreak.__file__).parent, Path(sklearn.__file__).parent
TYPES = (ValueError, TypeError, MemoryError, FloatingPointError, OSError)
CONTRACT = ("float() argument must be a string or a real number", "int() argument must be a string")  # of scikit-learn
SEED = "Seed must be between"  # of NumPy, for what random_state takes
SHORTEST = 20
FOREIGN = (  # what other libraries say of what we handed them
    *("numba", "lapack", "object has no attribute", "not subscriptable", "unhashable", "operands", "broadcast"),
    *("ufunc", "out of bounds", "nonetype", "lam value", "svd", "singular", "leading minor", "unsupported operand"),
    *("unable to allocate", "cannot convert float", "could not convert", "not supported between", "maximum recursion"),
    *("ndarray'>", "positional argument", "unpack", "codec can't", "not positive definite"),
)


def place(error: BaseException) -> str:
    """Where an error was raised: file:line of the last frame, and that of the last frame of ours."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if Path(f.filename).is_relative_to(OURS)]
    shown = [f"{Path(f.filename).name}:{f.lineno}" for f in (*ours[-1:], *frames[-1:])]
    return " > ".join(dict.fromkeys(shown))


def foreign(error: BaseException) -> str | None:
    """Why an error is none of ours, or None."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    raised = "raise" in linecache.getline(last.filename, last.lineno or 0)
    file = Path(last.filename)
    by_us = raised and (file.is_relative_to(OURS) or file.is_relative_to(CHECKS))
    if not isinstance(error, TYPES):
        return f"{type(error).__name__} is no type of ours"
    text = str(error)
    if not by_us and not (file.is_relative_to(CHECKS) and text.startswith(CONTRACT)) and not text.startswith(SEED):
        return "raised by others"
    said = [word for word in FOREIGN if word in text.lower()]
    if said:
        return f"says {said[0]!r}"
    return f"says no more than {text!r}" if len(text) < SHORTEST else None


def judged(error: BaseException, about: Iterable[str], what: str = "") -> Outcome:
    """Refused, or a finding: an error that is none of ours, or that says nothing of what was wrong.

    about : words of which the message must have one; none where nothing was wrong
    """
    text = " ".join(str(error).split())[:300]
    said = f"{what}{type(error).__name__}: {text} [{place(error)}]"
    reason = foreign(error)
    if reason is not None:
        return Outcome("foreign error", f"{reason}: {said}")
    words = list(about)
    if not words:
        return Outcome("refused for nothing", said)
    if not any(word.lower() in text.lower() for word in words):
        return Outcome("unclear error", f"names none of {', '.join(words[:6])}: {said}")
    return Outcome(REFUSED, said)
