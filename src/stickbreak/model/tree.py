"""Sums over the clusters below each node of a tree of merges."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def upwards(values: Array, parents: NDArray[np.int64], axis: int = 0) -> Array:
    """Values of the clusters, (K, ...), added up along the trees of their merges, (nodes, ...).

    parents : each after its children, -1 for roots (`stickbreak.moves.agglomeration.ancestry`)
    axis : that of the clusters
    """
    moved = np.moveaxis(values, axis, 0)
    missing: Any = (len(parents) - len(moved), *moved.shape[1:])
    nodes = np.concatenate([moved, np.zeros(missing)])
    for node, parent in enumerate(parents):
        if parent >= 0:
            nodes[parent] += nodes[node]
    return np.moveaxis(nodes, 0, axis)
