"""Clusters, and how many there are, in data too large for the usual tools."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._collector import paused

if TYPE_CHECKING:
    from . import likelihoods
    from .cluster import DaskExecutor
    from .data.check import DataWarning
    from .estimators import HMM, Mixture, TopicModel
    from .loading import load

__version__ = "0.1.0"

__all__ = ["HMM", "DaskExecutor", "DataWarning", "Mixture", "TopicModel", "__version__", "likelihoods", "load"]

_HOMES = {
    "DaskExecutor": "cluster",
    "DataWarning": "data.check",
    "HMM": "estimators",
    "Mixture": "estimators",
    "TopicModel": "estimators",
    "load": "loading",
}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used, so that importing the package is quick."""
    if name in _HOMES:
        with paused():
            home = import_module(f".{_HOMES[name]}", __name__)
        return getattr(home, name)
    if name == "likelihoods":
        return import_module(".likelihoods", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
