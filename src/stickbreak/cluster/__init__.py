"""Fits on the workers of a Dask cluster; dask itself is imported only by who asks for it."""

from .blocks import is_collection
from .executor import DaskExecutor, executor_of, need_dask

__all__ = ["DaskExecutor", "executor_of", "is_collection", "need_dask"]
