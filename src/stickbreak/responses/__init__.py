"""What documents answer beside their words: numbers, or classes, that follow from their topics (Thesis 8.3)."""

from ._base import Answered, Loss, NoResponse, Reading, Response, Terms
from ._classes import ClassResponse
from ._numbers import NumericResponse
from ._ridge import RidgeResponse
from .categorical import CategoricalResponse
from .gaussian import GaussianResponse
from .hinge import HingeResponse
from .margin import MarginResponse

__all__ = [
    "Answered",
    "CategoricalResponse",
    "ClassResponse",
    "GaussianResponse",
    "HingeResponse",
    "Loss",
    "MarginResponse",
    "NoResponse",
    "NumericResponse",
    "Reading",
    "Response",
    "RidgeResponse",
    "Terms",
]
