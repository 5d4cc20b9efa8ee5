"""The most probable paths of states through all sequences of a source."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..data import Chunk, SequenceSource
from ..model import Model, Summary
from ..model.paths import viterbi
from ..model.potentials import Prepared
from .executor import Executor


def best_paths(model: Model, total: Summary, source: SequenceSource, executor: Executor) -> NDArray[np.intp]:
    """The most probable state of every row, given all rows of its sequence, (T,)."""
    prepared = model.kind.prepare(model.likelihood, model.parameters(total, source.dtype), source)
    paths = executor.over(source, partial(_path_of, model, prepared), source.whole())
    return np.concatenate(list(paths))


def _path_of(model: Model, prepared: Prepared, source: SequenceSource, chunk: Chunk) -> NDArray[np.intp]:
    """The most probable path through the sequences of one chunk."""
    return viterbi(model.likelihood, prepared, source.read(chunk)[0])
