"""The entries of documents, as compiled loops read them."""

import numpy as np
import pytest
from scipy import sparse

from stickbreak.data import Groups
from stickbreak.model import BAGS, GROUPS


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_entries_have_one_kind_of_indices(kind):
    """Kernels are compiled once more for each kind."""
    X = sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    X.indptr, X.indices = X.indptr.astype(kind), X.indices.astype(kind)
    for entries in (BAGS.entries(X), GROUPS.entries(Groups(np.array([0, 2, 3], kind), np.ones((3, 2))))):
        assert entries.indptr.dtype == entries.rows.dtype == np.int32
        assert entries.indptr.tolist() == [0, 2, 3]
    np.testing.assert_array_equal(BAGS.entries(X).rows, [0, 2, 1])
