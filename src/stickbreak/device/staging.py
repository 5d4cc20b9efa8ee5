"""Data on their way to a device: lanes that compute while others copy, through pinned buffers, and data that stay there."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from queue import LifoQueue
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, Chunk, SequenceSource
from .devices import Device

LANES = 2  # blocks in the works at a time: one is read and copied while the other is computed with
PINNED = 1 << 25  # bytes of each of the two pinned buffers of a lane
STAYING = 2  # times the bytes of a block, that data may have to stay on a device


class Pinned(NamedTuple):
    """A buffer that a card copies from by itself: its bytes (PINNED,), the same as a tensor, and the event of the last copy."""

    bytes: NDArray[np.uint8]
    tensor: Any
    copied: Any


class Staging:
    """Arrays to a card in pieces, through buffers of which one is filled while the card copies from the other.

    make : makes a buffer
    """

    def __init__(self, make: Callable[[], Pinned]) -> None:
        self._buffers = [make() for _ in range(2)]

    def copy(self, values: NDArray[Any], target: Any) -> None:
        """Begin to copy rows ``values`` (n, ...) to ``target``, of the same shape and type, on the card."""
        size = max(values[:1].nbytes, 1)
        rows = max(1, len(self._buffers[0].bytes) // size)
        if size > len(self._buffers[0].bytes):
            raise ValueError(f"a row of {size:,} bytes is larger than a pinned buffer.")
        for i, start in enumerate(range(0, len(values), rows)):
            piece = values[start : start + rows]
            buffer = self._buffers[i % 2]
            buffer.copied.synchronize()
            np.copyto(buffer.bytes[: piece.nbytes].view(piece.dtype).reshape(piece.shape), piece)
            pinned = buffer.tensor[: piece.nbytes].view(target.dtype).reshape(piece.shape)
            target[start : start + rows].copy_(pinned, non_blocking=True)
            buffer.copied.record()


class Lane:
    """What a thread computes with on a device: on a card of torch a stream of its own, and pinned buffers."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._stream: Any = None
        self._staging: Staging | None = None
        if device.is_card and device.library == "torch":
            cuda = device.xp.cuda
            with cuda.device(device.number):
                self._stream = cuda.Stream()
                self._staging = Staging(lambda: _pinned(device))

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Compute on its stream; what is not finite is looked for and done again, so NumPy need not warn of it."""
        with ExitStack() as stack:
            stack.enter_context(np.errstate(all="ignore"))
            if self.device.library == "torch":  # whoever trains a network around a fit may have fewer digits for it
                stack.enter_context(self.device.xp.autocast(self.device.name.partition(":")[0], enabled=False))
            if self._stream is not None:
                cuda = self.device.xp.cuda
                stack.enter_context(cuda.device(self.device.number))
                stack.enter_context(cuda.stream(self._stream))
            yield

    def upload(self, values: NDArray[Any]) -> Any:
        """An array of the device with these values, once what this lane does next looks at it."""
        if self._staging is None or values.nbytes == 0:
            return self.device.array(values)
        target = self.device.empty(values.shape, values.dtype)
        self._staging.copy(values, target)
        return target

    def fill(self, values: NDArray[Any], target: Any) -> None:
        """Copy values to a part of an array of the device."""
        if self._staging is None or values.nbytes == 0:
            target[...] = self.device.array(values)
        else:
            self._staging.copy(values, target)

    def finish(self) -> None:
        """Wait until all that this lane was given to do is done."""
        if self._stream is not None:
            self._stream.synchronize()


def _pinned(device: Device) -> Pinned:
    torch = device.xp
    tensor = torch.empty(PINNED, dtype=torch.uint8, pin_memory=True)
    return Pinned(tensor.numpy(), tensor, torch.cuda.Event())


@contextmanager
def lane_of(device: Device) -> Iterator[Lane]:
    """A lane of a device, which no other thread has until it is given back."""
    lanes = _lanes(device)
    lane = lanes.get()
    try:
        with lane.entered():
            yield lane
    finally:
        lanes.put(lane)


@lru_cache
def _lanes(device: Device) -> LifoQueue[Lane]:
    lanes = LifoQueue[Lane]()
    for _ in range(LANES):
        lanes.put(Lane(device))
    return lanes


class Held:
    """Rows of a source and their weights on a device: kept there from the first visit on where they fit, or moved at each."""

    def __init__(self, device: Device, source: ArraySource) -> None:
        self.device = device
        width = source.n_columns * source.dtype.itemsize + 8
        self.fits = source.n_rows * width <= STAYING * device.block_bytes
        self._lock = threading.Lock()
        self._whole: tuple[Any, Any] | None = None

    def read(self, source: ArraySource, chunk: Chunk, lane: Lane) -> tuple[Any, Any]:
        """Rows (n, D) and weights (n,) of a chunk."""
        if not self.fits:
            X, weights = _read(source, chunk)
            return lane.upload(X), lane.upload(weights)
        with self._lock:
            if self._whole is None:
                self._whole = self._moved(source, lane)
        rows = slice(chunk.start, chunk.stop)
        return self._whole[0][rows, :], self._whole[1][rows]

    def _moved(self, source: ArraySource, lane: Lane) -> tuple[Any, Any]:
        X = self.device.empty((source.n_rows, source.n_columns), source.dtype)
        weights = self.device.empty((source.n_rows,), np.float64)
        for chunk in source.batches(1)[0]:
            rows = slice(chunk.start, chunk.stop)
            values, own = _read(source, chunk)
            lane.fill(values, X[rows, :])
            lane.fill(own, weights[rows])
        lane.finish()
        return X, weights


def _read(source: ArraySource, chunk: Chunk) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Rows of a chunk, of sequences or not, and their weights in float64."""
    if isinstance(source, SequenceSource):
        return source.rows(chunk), np.array(source.observed(chunk), np.float64)
    X, weights = source.read(chunk)
    return X, weights.astype(np.float64, copy=False)


_HELD: WeakKeyDictionary[ArraySource, dict[Device, Held]] = WeakKeyDictionary()
_GUARD = threading.Lock()


def held(device: Device, source: ArraySource) -> Held:
    """The rows of a source on a device, for as long as the source is there."""
    with _GUARD:
        of_source = _HELD.setdefault(source, {})
        if device not in of_source:
            of_source[device] = Held(device, source)
        return of_source[device]
