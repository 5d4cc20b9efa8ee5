"""Sources of batches: rows in memory or on disk, read as they are visited."""

from .answered import AnsweredBags
from .documents import BagSource, Groups, GroupSource
from .sequences import Sequences, SequenceSource
from .sources import ArraySource, Chunk, SparseSource

__all__ = [
    "AnsweredBags",
    "ArraySource",
    "BagSource",
    "Chunk",
    "GroupSource",
    "Groups",
    "SequenceSource",
    "Sequences",
    "SparseSource",
]
