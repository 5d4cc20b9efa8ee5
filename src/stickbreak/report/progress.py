"""A live line about a fit in progress."""

import sys
import time
from types import TracebackType
from typing import Literal, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ..inference.trace import Lap


class Progress:
    """A line on the terminal that follows a fit: lap, ELBO per row, K, accepted moves, speed, time spent and left.

    Use it as a context manager and call it with each `Lap`.

    Parameters
    ----------
    total_rows : N, for the ELBO per row
    max_laps : the most laps the fit will take; the time left is that of all the laps that may remain, an upper bound,
        because a fit that converges stops earlier
    enabled : "auto" shows the line if stderr is a terminal
    console : where to; stderr by default
    """

    def __init__(
        self,
        total_rows: int,
        max_laps: int,
        enabled: bool | Literal["auto"] = "auto",
        console: Console | None = None,
    ) -> None:
        self.total_rows = total_rows
        self.max_laps = max_laps
        self.lap: Lap | None = None
        self.moves = 0
        self._stage = (0, 0.0)  # laps and seconds before the first lap on as many rows
        self._began = time.perf_counter()
        shown = sys.stderr.isatty() if enabled == "auto" else enabled
        self._live: Live | None = None
        if shown:
            console = console or Console(stderr=True)
            self._live = Live(console=console, get_renderable=self._line, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._began = time.perf_counter()
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, lap: Lap) -> None:
        """Take note of a finished lap."""
        if self.lap is None or self.lap.sample_rows != lap.sample_rows:
            self._stage = (0, 0.0) if self.lap is None else (self.lap.number, self.lap.seconds)
        self.lap = lap
        self.moves += lap.accepted
        if self._live is not None:
            self._live.refresh()

    def _line(self) -> Text:
        return Text(self.text(time.perf_counter() - self._began), no_wrap=True, overflow="ellipsis")

    def text(self, elapsed: float) -> str:
        """The line, ``elapsed`` seconds after the start."""
        lap = self.lap
        if lap is None:
            return f"lap 1  {clock(elapsed)}"
        parts = (
            f"lap {lap.number}",
            f"ELBO/row {lap.lower_bound / max(lap.sample_rows or self.total_rows, 1):.4f}",
            f"K {lap.n_clusters}",
            f"{self.moves} {'move' if self.moves == 1 else 'moves'}",
            f"{short(lap.rows_per_second)} rows/s",
            *((f"on {short(lap.sample_rows)} rows",) if lap.sample_rows else ()),
            clock(elapsed),
            f"left {self._left(lap)}",
        )
        return "  ".join(parts)

    def _left(self, lap: Lap) -> str:
        """Time for all the laps that may remain, at the mean pace on as many rows; one lap or a sample tells too little."""
        laps = lap.number - self._stage[0]
        seconds = lap.seconds - self._stage[1]
        if laps < 2 or lap.sample_rows:
            return "--"
        return f"<= {clock((self.max_laps - lap.number) * seconds / laps)}"


def clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def short(number: float) -> str:
    """A positive number in three digits: 950, 12.3k, 4.56M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"
