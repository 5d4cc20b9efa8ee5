"""Rows of data as likelihoods take them."""

from typing import Any

Rows = Any  # (n, D): a dense array, missing values as NaN, or a `scipy.sparse.csr_array`
