"""Messages to parts of a sequence from the rows around them: run-ups, after which a chain has forgotten where they began."""

import numpy as np

from ..data.sequences import Sequences
from ..kernels.markov import backward, forward
from ..likelihoods import Likelihood
from .potentials import WORKSPACE, Array, Prepared, scores_of_rows

RUN_UP, SETTLED = 32, 1e-13  # rows before a part of a sequence, at first; the change of messages at which they suffice
LANES = 4  # of a chunk
LANE = 1024  # rows of a lane that does not begin with a sequence, at least
NEAR = 0.25  # of a lane: how far from where it would begin a sequence may begin, to be its beginning


def lanes_of(
    likelihood: Likelihood, prepared: Prepared, X: Sequences, forth_only: bool = False
) -> tuple[list[int], Array, Array]:
    """Where the lanes of a chunk begin, and its end; the messages to each from the rows before it, and after it (lanes, Kp).

    They begin with sequences where these begin near enough, or else after a run-up that is shorter than they are.
    """
    n = len(X)
    starts = np.flatnonzero(X.first(slice(0, len(X))))
    starts = starts[starts > 0]
    edges = {0, n}
    for target in np.arange(1, LANES) * n // LANES:
        nearest = int(starts[np.abs(starts - target).argmin()]) if len(starts) else n
        if LANES * abs(nearest - target) <= NEAR * n or (n < LANES * LANE and nearest < n):
            edges.add(nearest)
        elif n >= LANES * LANE:
            edges.add(int(target))
    cuts = sorted(edges)
    most = n / LANES
    while True:
        begin = boundary_messages(likelihood, prepared, X, cuts[:-1], True, most)
        end = (
            begin if begin is None or forth_only else boundary_messages(likelihood, prepared, X, cuts[1:], False, most)
        )
        if begin is not None and end is not None:
            return cuts, begin, end
        cuts = [0, n]
        most = np.inf


def boundary_messages(
    likelihood: Likelihood, prepared: Prepared, X: Sequences, cuts: list[int], before: bool, most: float
) -> Array | None:
    """Messages to each of the rows ``cuts`` of a chunk from those before it, or to the row before from it and those after.

    Uniform where a sequence begins at the row, (n, Kp).  A run-up from far enough forgets where it began: messages from two
    unlike beginnings must have become the same, or else it is made longer, up to the whole of the sequence, or to ``most``
    rows.
    """
    Kp = len(prepared.start)
    K = prepared.K
    found = np.zeros((len(cuts), Kp))
    found[:, :K] = 1.0 / K
    rest = np.array([X.before(cut) if before else X.after(cut) for cut in cuts])
    left = np.flatnonzero(rest)
    length = RUN_UP
    while len(left):
        sizes = np.minimum(length, rest[left])
        if sizes.max() > most:
            return None
        pieces = [slice(cuts[i] - n, cuts[i]) if before else slice(cuts[i], cuts[i] + n) for i, n in zip(left, sizes)]
        begins = [np.where((sizes == rest[left])[:, None], found[left], message) for message in prepared.arbitrary]
        ends = _handed_over(likelihood, prepared, X, pieces, np.concatenate(begins), before).reshape(2, len(left), Kp)
        settled = np.abs(ends[0] - ends[1]).max(axis=1) <= SETTLED
        found[left[settled]] = ends[0, settled]
        left = left[~settled]
        length = 4 * length
    return found


def _handed_over(
    likelihood: Likelihood, prepared: Prepared, X: Sequences, pieces: list[slice], ends: Array, before: bool
) -> Array:
    """Messages (2 n, Kp) forward or backward through n pieces of rows, from one beginning of each, and from another."""
    lane = np.arange(2 * len(pieces))
    edges = np.cumsum([0, *2 * [piece.stop - piece.start for piece in pieces]])
    first = np.concatenate(2 * [X.first(piece) for piece in pieces])
    if prepared.table is None:
        rows, weights = (np.concatenate([read(piece) for piece in pieces]) for read in (X.rows, X.weights))
        L = scores_of_rows(likelihood, prepared.parameters, rows, weights).L
        codes = np.tile(np.arange(len(rows)), 2)
    else:
        L = prepared.table.L
        codes = np.concatenate(2 * [X.codes(piece) for piece in pieces])
    alpha, R, G = (WORKSPACE.array(name, (len(codes) + len(lane), ends.shape[1])) for name in ("run-up", "R", "G"))
    if before:
        alpha[edges[:-1] + lane] = ends
        forward(L, codes, first, edges, prepared.start, prepared.A, alpha, np.empty(len(codes)))
        return np.asarray(alpha[edges[1:] + lane])
    alpha[:] = 1.0
    backward(L, codes, first, edges, prepared.At, alpha, ends, R, G)
    return ends
