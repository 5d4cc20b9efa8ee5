"""Model files and checkpoints: what they hold, and writing them.  `stickbreak.loading` makes estimators of model files."""

from .container import ModelFileError, file_version
from .saving import save_model

__all__ = ["ModelFileError", "file_version", "save_model"]
