"""What documents answer beside their words: numbers, or classes, that follow from their topics (Thesis 8.3)."""

from ._base import Answered, NoResponse, Reading, Response, Terms
from ._numbers import NumericResponse
from .categorical import CategoricalResponse
from .gaussian import GaussianResponse
from .margin import MarginResponse

__all__ = [
    "Answered",
    "CategoricalResponse",
    "GaussianResponse",
    "MarginResponse",
    "NoResponse",
    "NumericResponse",
    "Reading",
    "Response",
    "Terms",
]
