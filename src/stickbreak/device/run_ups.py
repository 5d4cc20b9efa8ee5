"""Messages to segments of sequences from the rows around them: a chain forgets what is far enough away."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.messages import SETTLED
from .devices import Device
from .segments import Segments

Array = NDArray[np.floating]
Flags = NDArray[np.bool_]

LENGTHS = 32, 128  # rows of a run-up, and of a second one where messages still tell of where the first began


class RunUps:
    """Messages to the rows at the ends of segments, from two unlike beginnings some rows away.

    Where both became the same, nothing farther away matters  (`stickbreak.model.messages.boundary_messages`).

    L : (n, K) likelihoods, in the order of the rows
    arbitrary : (2, K) the two beginnings
    """

    def __init__(self, device: Device, segments: Segments, L: Any, arbitrary: Array) -> None:
        self.device = device
        self.segments = segments
        self.L = L
        self.arbitrary = arbitrary
        n = L.shape[0]
        part = np.empty(len(segments.starts), np.intp)
        for i, own in enumerate(segments.parts):
            part[own] = i
        begins = np.array([segments.starts[own[0]] for own in segments.parts])
        ends = np.append(begins[1:], n)
        self._before = segments.starts - begins[part]
        self._after = ends[part] - (segments.starts + segments.lengths)

    def forward(self, own: Array, fresh: Flags, start: Any, A: Any) -> Any:
        """Messages (G, K) from the row before each segment; None where a chain does not forget.

        own : (G, K) those to the first segment of each part, in its row;  fresh : (G,) whether a sequence begins with a segment
        """
        xp = self.device.xp
        firsts = np.array([part[0] for part in self.segments.parts])
        known = own[self._of_parts(firsts)]
        begins = fresh[self._of_parts(firsts)]

        def step(message: Any, L: Any, first: Any) -> Any:
            ahead = message @ A
            if first is not None:
                ahead = xp.where(first[None, :, None], start[None, None, :], ahead)
            return ahead * L[None, :, :]

        return self._settled(self._before, known, begins, step, lambda r: self.segments.starts[None, :] - r)

    def backward(self, own: Array, At: Any) -> Any:
        """Messages (G, K) to the last row of each segment from those that follow; ``own``: of the last of each part."""
        lasts = np.array([part[-1] for part in self.segments.parts])
        known = own[self._of_parts(lasts)]
        ends = self.segments.starts + self.segments.lengths - 1

        def step(message: Any, L: Any, first: Any) -> Any:
            return (message * L[None, :, :]) @ At

        return self._settled(self._after, known, np.zeros(len(known), np.bool_), step, lambda r: ends[None, :] + r)

    def _of_parts(self, ends: NDArray[np.intp]) -> NDArray[np.intp]:
        """For each segment, the segment at an end of its part."""
        found = np.empty(len(self.segments.starts), np.intp)
        for end, own in zip(ends, self.segments.parts):
            found[own] = end
        return found

    def _settled(self, rest: NDArray[np.intp], known: Array, begins: Flags, step: Any, row: Any) -> Any:
        """Messages after a run-up that suffices, None if none does.

        rest : (G,) rows between each segment and the end of its part;  known : (G, K) messages there
        begins : (G,) whether a sequence begins there;  row : the rows (1, G) that are so many rows away
        """
        xp = self.device.xp
        G = len(rest)
        for length in LENGTHS:
            r = min(length, int(rest.max(initial=0)))
            near = rest <= r
            message = np.where(near[None, :, None], known, self.arbitrary[:, None, :])
            held = self.device.array(message)
            for away in range(r, 0, -1):
                active = rest >= away
                rows = np.where(active, row(away)[0], 0)
                L = xp.take(self.L, self.device.array(rows), axis=0)
                first = begins & (rest == away)
                after = step(held, L, self.device.array(first) if first.any() else None)
                after = after / xp.sum(after, axis=2, keepdims=True)
                held = after if active.all() else xp.where(self.device.array(active)[None, :, None], after, held)
            if not G or float(xp.max(xp.abs(held[0, :, :] - held[1, :, :]))) <= SETTLED:
                return held[0, :, :]
        return None
