"""The front door: scikit-learn estimators that validate, choose, delegate and expose."""

from .mixture import Mixture
from .topic_model import TopicModel

__all__ = ["Mixture", "TopicModel"]
