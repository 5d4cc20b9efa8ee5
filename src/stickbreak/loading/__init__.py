"""Loading fitted estimators from model files."""

from .model_file import load

__all__ = ["load"]
