"""Arrays of other libraries: features are made of those of NumPy and of any that follows the array API alike."""

from importlib import import_module
from typing import Any

import numpy as np


def namespace(X: Any) -> Any:
    """The functions of the library of an array: NumPy's, or those of the array API for a tensor."""
    return np if isinstance(X, np.ndarray) else import_module("array_api_compat").array_namespace(X)


def like(values: Any, X: Any, dtype: str | None = None) -> Any:
    """NumPy ``values`` as an array of the library of X, on its device; of its type, or of ``dtype`` by name."""
    if isinstance(X, np.ndarray):
        return np.asarray(values, X.dtype if dtype is None else dtype)
    xp = namespace(X)
    kind = X.dtype if dtype is None else getattr(xp, dtype)
    return xp.asarray(
        np.array(values), dtype=kind, device=X.device
    )  # a copy: what is mapped read-only cannot be shared


def converted(X: Any, dtype: Any) -> Any:
    """X in another type, that of an array of the same library."""
    return X.astype(dtype, copy=False) if isinstance(X, np.ndarray) else namespace(X).astype(X, dtype, copy=False)
