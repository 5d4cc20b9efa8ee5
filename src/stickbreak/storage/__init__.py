"""Model files: saving fitted estimators, and loading them."""

from .container import ModelFileError, file_version
from .loading import load
from .saving import save_model

__all__ = ["ModelFileError", "file_version", "load", "save_model"]
