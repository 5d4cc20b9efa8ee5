"""Checkpoints: the journal of a fit in a file, from which the same fit goes on after a crash.

The file is a safetensors container like a model file, with a checksum; nothing in it is executed.  It is written in one step:
whatever happens, there is the old one or the new one, complete.
"""

import json
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..data.atomic import as_path, check_folder
from ..inference.session import Journal, Leg
from ..inference.state import State
from ..model import Memo
from .container import CHECKPOINT, DAMAGED, RECORD, ModelFileError, check_sum, one_line, read, write
from .states import Decoder, Encoder, closed_set
from .values import as_list, as_text, as_whole, expect, expect_keys, parse

SHARE = 0.01  # of the time, at most, goes into writing
KEYS = {"fit", "seed", "legs", "results"}
MOST_SEED = 1 << 32


class Checkpoint(Journal):
    """A journal that is written to a file now and then, and begins with what is in the file.

    An ascent that is over, and to which the search does not come back, needs the summaries of its batches no more: those of a
    journal would otherwise fill memory.  So journals hold these by weak references, as long as their ascents do.

    Parameters
    ----------
    path : of the file; it is read if it is there
    seconds : at least so many from one writing to the next, or a hundred times what writing takes
    results : the classes of results, beyond those of searches

    Raises
    ------
    ModelFileError : the file is no checkpoint, or is damaged.
    FileNotFoundError : the folder does not exist.
    """

    def __init__(self, path: Any, seconds: float, results: Iterable[type] = ()) -> None:
        super().__init__()
        self._classes = closed_set(results)
        self.path = as_path(path, "checkpoint")
        self.seconds = seconds
        self._memos: list[weakref.ref[Memo] | None] = []
        self._held: list[Memo | None] = []
        self._warned = False
        if self.path.is_dir():
            raise IsADirectoryError(f"checkpoint must name a file; {self.path} is a directory.")
        check_folder(self.path)
        if self.path.exists():
            self._read()
        self._next_write = time.monotonic() + seconds

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"the checkpoint {self.path}"

    def open(self, fit: Callable[[], Mapping[str, str]]) -> None:
        """Begin a fit, or take it up again, from the first ascent."""
        super().open(fit)
        self._memos = [None] * len(self.legs)

    def next(self) -> Leg | None:
        """What is known of the ascent that begins or goes on now."""
        known = super().next()
        self._lighten()
        return known

    def note(self, leg: Leg) -> None:
        """What is known of it now, after another lap; written, if it is time."""
        super().note(leg)
        self._memos[self._place - 1 :] = [None]
        if time.monotonic() >= self._next_write:
            self._write()

    def check(self, value: Any) -> None:
        """Refuse a value that a file could not hold, before it is too late."""
        Encoder(self._classes).encode(value)

    def leave(self, over: bool) -> None:
        """A search ends.  Unless it is over, the summaries of batches that its ascents still hold are kept."""
        for leg, known in zip(self.legs, self._memos):
            if not over and isinstance(leg.state, State):
                self._held.append(leg.state.memo if known is None else known())

    def close(self, outcome: Any) -> None:
        """The fit is over: the file has its outcome, or the last laps of a fit that can go on."""
        super().close(outcome)
        self._write()

    def _lighten(self) -> None:
        """Hold the summaries of the batches of ascents that have ended no longer than these do."""
        if self.keeps_batches:
            return
        for i, leg in enumerate(self.legs[: self._place - 1]):
            if self._memos[i] is None and isinstance(leg.state, State) and leg.state.done:
                self._memos[i] = weakref.ref(leg.state.memo)
                self.legs[i] = leg._replace(state=leg.state._replace(memo=leg.state.memo.only_local()))

    def _whole(self, leg: Leg, known: "weakref.ref[Memo] | None") -> Leg:
        """A leg with the summaries of its batches, if the search may still go on from there."""
        memo = None if known is None else known()
        return leg if memo is None else leg._replace(state=leg.state._replace(memo=memo))

    def _write(self) -> None:
        """Write the file; where that fails, the last one stays, and the fit goes on."""
        began = time.monotonic()
        try:
            encoder = Encoder(self._classes)
            legs = [self._whole(leg, known) for leg, known in zip(self.legs, self._memos)]
            record = {
                "fit": dict(self.fit or {}),
                "seed": self.seed,
                "legs": encoder.encode(legs),
                "results": encoder.encode(self.results),
            }
            write(json.dumps(record, allow_nan=False), encoder.tensors, self.path, CHECKPOINT)
        except (OSError, MemoryError) as error:
            self._warn(error)
        ended = time.monotonic()
        self._next_write = ended + max(self.seconds, (ended - began) / SHARE)

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            warnings.warn(
                f"the checkpoint was not written: {one_line(error)}.  The fit goes on and tries again; the last checkpoint, if "
                "there is one, is as it was.",
                UserWarning,
                stacklevel=2,
            )
        self._warned = True

    def _read(self) -> None:
        """What is in the file."""
        metadata, tensors = read(self.path, CHECKPOINT)
        check_sum(self.path, metadata, tensors)
        try:
            record = parse(tensors.pop(RECORD).tobytes())
            expect_keys("checkpoint", record, KEYS)
            decoder = Decoder(tensors, self._classes)
            legs = decoder.decode(as_list("legs", record["legs"]))
            results = decoder.decode(record["results"])
            expect(not decoder.tensors, "tensors", list(decoder.tensors), "those that are referred to")
            expect(all(isinstance(leg, Leg) for leg in legs), "legs", type(legs), "legs")
            expect(isinstance(results, dict), "results", results, "a table")
            expect(isinstance(record["fit"], dict), "fit", record["fit"], "a table")
            self.fit = {name: as_text(name, value) for name, value in record["fit"].items()}
            self.seed = as_whole("seed", record["seed"], 0)
            expect(self.seed < MOST_SEED, "seed", self.seed, "below 2^32")
        except DAMAGED as error:
            raise ModelFileError(
                f"{self.path} is damaged: {one_line(error)}.  Remove it to begin the fit anew."
            ) from error
        self.legs = legs
        self.results = results
