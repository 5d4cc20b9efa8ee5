"""Sources of batches: rows in memory or on disk, read as they are visited."""

from .sources import ArraySource, Chunk, SparseSource

__all__ = ["ArraySource", "Chunk", "SparseSource"]
