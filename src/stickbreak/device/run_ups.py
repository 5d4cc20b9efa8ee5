"""Messages to segments of sequences from the rows around them: a chain forgets what is far enough away."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.run_ups import SETTLED
from .devices import Device
from .segments import Segments

Array = NDArray[np.floating]
Index = NDArray[np.intp]

MOST = 128  # rows of the longest run-up: a chain that remembers more has other ways


class RunUps:
    """Messages to the rows at the ends of segments, from two unlike beginnings some segments away.

    All segments go through their messages at once, and hand them on to their neighbours; that is done again until
    both beginnings lead to the same  (`stickbreak.model.run_ups.boundary_messages`).

    L : (n, K) likelihoods, in the order of the segments
    arbitrary : (2, K) the two beginnings
    """

    def __init__(self, device: Device, segments: Segments, L: Any, arbitrary: Array) -> None:
        self.device = device
        self.segments = segments
        self.L = L
        self.arbitrary = arbitrary
        self._passes = -(-MOST // segments.n_steps)

    def forward(self, own: Array, fresh: NDArray[np.bool_], start: Any, A: Any) -> Any:
        """Messages (G, K) from the row before each segment; None where a chain does not forget.

        own : (G, K) those to the first segment of each part, in its row;  fresh : (G,) whether a sequence begins with a segment
        """
        xp = self.device.xp
        edges = self.segments.edges.tolist()
        first = self.device.array(fresh)[None, :, None] if fresh.any() else None

        def through(messages: Any) -> Any:
            """Messages after the last rows."""
            ended = []
            for t, (a, b) in enumerate(pairwise(edges)):
                if b - a < messages.shape[1]:
                    ended.append(messages[:, b - a :, :])
                    messages = messages[:, : b - a, :]
                messages = xp.matmul(messages, A)
                if t == 0 and first is not None:
                    messages = xp.where(first, start[None, None, :], messages)
                messages = _normalised(xp, messages * self.L[None, a:b, :])
            return xp.concat([messages, *ended[::-1]], axis=1) if ended else messages

        return self._settled(list(self.segments.parts), own, through)

    def backward(self, own: Array, At: Any) -> Any:
        """Messages (G, K) to the last row of each segment from those that follow; ``own``: of the last of each part."""
        xp = self.device.xp
        edges = self.segments.edges.tolist()

        def through(given: Any) -> Any:
            """Messages to the rows before the first."""
            messages = given[:, :0, :]
            for a, b in reversed([*pairwise(edges)]):
                if b - a > messages.shape[1]:
                    messages = xp.concat([messages, given[:, messages.shape[1] : b - a, :]], axis=1)
                messages = _normalised(xp, xp.matmul(messages * self.L[None, a:b, :], At))
            return messages

        return self._settled([part[::-1] for part in self.segments.parts], own, through)

    def _settled(self, parts: list[Index], own: Array, through: Callable[[Any], Any]) -> Any:
        """Messages once two unlike beginnings lead to the same, None if they do not in time.

        parts : segments, in the order in which they hand messages on;  own : (G, K) to the first of each part
        """
        xp = self.device.xp
        given = np.zeros(len(own), np.bool_)
        given[[part[0] for part in parts]] = True
        before = np.zeros(len(own), np.intp)
        for part in parts:
            before[part[1:]] = part[:-1]
        is_given = self.device.array(given)[None, :, None]
        messages = self.device.array(np.where(given[None, :, None], own, self.arbitrary[:, None, :]))
        known = messages
        neighbours = self.device.array(before)
        for _ in range(self._passes):
            messages = xp.where(is_given, known, xp.take(through(messages), neighbours, axis=1))
            if float(xp.max(xp.abs(messages[0, :, :] - messages[1, :, :]))) <= SETTLED:
                return messages[0, :, :]
        return None


def _normalised(xp: Any, messages: Any) -> Any:
    return messages / xp.sum(messages, axis=-1, keepdims=True)
