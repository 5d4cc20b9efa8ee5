"""Likelihoods and priors of the user's own, named as ``module:Name``."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import allocations, likelihoods
from ..allocations.markov import ChainPrior
from ..allocations.mixture import MixturePrior
from ..allocations.topics import TopicPrior
from ..data.table import DataError
from ..likelihoods import Likelihood
from ..storage.values import encode, known_classes

SEPARATOR = ":"
PRIORS: tuple[type, ...] = (MixturePrior, TopicPrior, ChainPrior)


def own_or_name(text: str | None, option: str, *kinds: type) -> Any:
    """What an option stands for: an object of the user's own where it names one as ``module:Name``, else the text itself."""
    if text is None or SEPARATOR not in text:
        return text
    value = _imported(text, option)
    if isinstance(value, type):
        try:
            value = value()
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{option} {text}: {value.__name__}() failed: {error} Name an object with its parameters, such as "
                f"`name = {value.__name__}(...)` in the module."
            ) from error
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise DataError(f"{option} {text} is a {type(value).__name__}, not a {wanted} of stickbreak.")
    _register(type(value), option, text)
    try:
        encode(value, option, {})  # so that no fit is lost
    except TypeError as error:
        raise DataError(f"{option} {text}: {error}") from error
    return value


def register(names: Sequence[str] | None) -> None:
    """Make likelihoods and priors, each ``module:Name`` of a class or an object, known to model files."""
    for text in names or ():
        value = _imported(text, "--register")
        kind = value if isinstance(value, type) else type(value)
        if not issubclass(kind, (Likelihood, *PRIORS)):
            raise DataError(f"--register {text} is neither a likelihood nor a prior of stickbreak.")
        _register(kind, "--register", text)


def _imported(text: str, option: str) -> Any:
    """The object that ``module:Name`` stands for; modules of the current folder are found, too."""
    module, _, name = text.partition(SEPARATOR)
    if not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise DataError(f"{option} {text} must be module{SEPARATOR}Name, such as geometric{SEPARATOR}Geometric.")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        return getattr(import_module(module), name)
    except AttributeError:
        raise DataError(f"{option} {text}: there is no {name} in {module}.") from None
    except Exception as error:  # whatever the module raises when it is imported
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"{option} {text}: {module} cannot be imported from {folder} or sys.path; {reason}.") from error


def _register(kind: type, option: str, text: str) -> None:
    """Let model files name a class, unless another has its name."""
    known = known_classes().get(kind.__name__)
    if known is kind:
        return
    if known is not None:
        raise DataError(f"{option} {text}: stickbreak has another class {kind.__name__}; give yours a name of its own.")
    if issubclass(kind, Likelihood):
        likelihoods.REGISTRY[kind.__name__] = kind
    else:
        allocations.REGISTRY[kind.__name__] = kind
