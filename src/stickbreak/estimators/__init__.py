"""The front door: scikit-learn estimators that validate, choose, delegate and expose."""

from ._hierarchy import Hierarchy
from ._stability import Stability
from .hmm import HMM
from .mixture import Mixture
from .topic_model import TopicModel

__all__ = ["HMM", "Hierarchy", "Mixture", "Stability", "TopicModel"]
