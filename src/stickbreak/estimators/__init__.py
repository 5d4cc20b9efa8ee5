"""The front door: scikit-learn estimators that validate, choose, delegate and expose."""

from .mixture import Mixture

__all__ = ["Mixture"]
