"""What the experiments of the papers share: a command line, a table beside the paper's figures, JSON and a picture.

Importing it puts ``benchmarks/`` on the path, where ``common`` and ``papers.baselines`` are.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib.figure import Figure

sys.path.append(str(Path(__file__).resolve().parents[1]))
from common import DATA, ROOT, show, write

RESULTS = ROOT / "results" / "papers"


@dataclass(frozen=True)
class Outcome:
    """What an experiment found; all of it can be written as JSON.

    table : rows to print, with the keys "what", "paper", "ours" and "peer"
    runs : every run with its curves, from which the picture is drawn
    """

    table: list[dict[str, Any]]
    runs: list[dict[str, Any]]


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    name : of its command, its JSON and its picture
    about : the docstring of its module: source, setting, and how long it takes
    measure : runs it; the small version if the first argument is true, with the seeds 0, 1, ... below the second
    draw : draws the paper's picture of an outcome
    seeds : of the full version, unless the command line has others
    small_seeds : of the small version
    """

    name: str
    about: str
    measure: Callable[[bool, int], Outcome]
    draw: Callable[[Outcome, Figure], None]
    seeds: int = 1
    small_seeds: int = 1

    def main(self, arguments: Sequence[str] | None = None) -> Outcome | None:
        """Run the experiment as the command line says, print its table, and write JSON and picture.

        Returns None, and says so, if the small version needs data that are not there.
        """
        try:
            return self._shown(arguments)
        except FileNotFoundError as missing:
            if "--small" not in (arguments or sys.argv) or not Path(missing.filename).is_relative_to(DATA):
                raise
            print(f"{self.name}: skipped, as {missing.filename} is not there")
            return None

    def _shown(self, arguments: Sequence[str] | None) -> Outcome:
        options = self._options(arguments)
        file = RESULTS / f"{self.name}{'_small' if options.small else ''}.json"
        outcome = self._written(file) if options.redraw else self._measured(file, options)
        show(outcome.table)
        picture = Figure(layout="constrained", dpi=80)
        self.draw(outcome, picture)
        picture.savefig(file.with_suffix(".png"))
        return outcome

    def _written(self, file: Path) -> Outcome:
        written = json.loads(file.read_text())
        return Outcome(written["table"], written["runs"])

    def _measured(self, file: Path, options: argparse.Namespace) -> Outcome:
        seeds = options.seeds or (self.small_seeds if options.small else self.seeds)
        began = time.process_time()
        outcome = self.measure(options.small, seeds)
        print(f"{self.name}: {seeds} seed(s), {time.process_time() - began:.0f} CPU seconds")
        write(file, {"table": outcome.table, "runs": outcome.runs})
        return outcome

    def _options(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        parser = argparse.ArgumentParser(description=self.about, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--small", action="store_true", help="a version of seconds")
        parser.add_argument("--seeds", type=int, help=f"{self.seeds} by default, small {self.small_seeds}")
        parser.add_argument("--redraw", action="store_true", help="draw the last run again")
        return parser.parse_args(arguments)
