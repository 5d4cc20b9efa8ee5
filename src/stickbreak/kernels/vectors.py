"""Loops over vectors in place of array expressions, which take many times as long to compile (see `_jit`)."""

from ._jit import part as _part


@_part
def clear(x):
    """Set all numbers of x to zero."""
    for k in range(x.size):
        x[k] = 0.0


@_part
def put(x, out):
    """Write the numbers x to ``out``."""
    for k in range(x.size):
        out[k] = x[k]


@_part
def sum_of(x):
    """The sum of the numbers x."""
    found = 0.0
    for k in range(x.size):
        found += x[k]
    return found


@_part
def place_of_largest(x):
    """The place of the largest of the numbers x, the first of equal ones."""
    best = 0
    for k in range(1, x.size):
        if x[k] > x[best]:
            best = k
    return best


@_part
def place_of_smallest(x):
    """The place of the smallest of the numbers x, the first of equal ones."""
    best = 0
    for k in range(1, x.size):
        if x[k] < x[best]:
            best = k
    return best


@_part
def any_above(x, least):
    """Whether any of the numbers x is above another; they are counted, for which several fit into one instruction."""
    count = 0
    for k in range(x.size):
        count += 1 if x[k] > least else 0
    return count > 0


@_part
def gather(x, places, out):
    """Write the numbers x[places] to ``out``."""
    for j in range(places.size):
        out[j] = x[places[j]]


@_part
def largest_first(x, order):
    """Write the places of the numbers x to ``order``, the largest first and equal ones in their order; for few numbers."""
    for k in range(x.size):
        j = k
        while j > 0 and x[k] > x[order[j - 1]]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = k
