"""The layout of tables in memory."""

import numpy as np
import pytest

from stickbreak.kernels.layout import in_rows

SHAPES = (0, 3), (1, 5), (9, 1), (8, 16), (17, 23)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_of_a_row_lie_side_by_side(shape, order, dtype):
    table = np.asarray(np.random.default_rng(0).standard_normal(shape), dtype=dtype, order=order)
    rows = in_rows(table)
    np.testing.assert_array_equal(rows, table)
    assert rows.flags.c_contiguous
    assert rows.dtype == np.float64


def test_part_of_a_table_has_its_own_numbers():
    table = np.asfortranarray(np.arange(80.0).reshape(10, 8))
    np.testing.assert_array_equal(in_rows(table[1:9]), table[1:9])
    np.testing.assert_array_equal(in_rows(table[:, ::2]), table[:, ::2])


def test_a_table_in_rows_is_not_copied():
    table = np.ones((3, 4))
    assert in_rows(table) is table
