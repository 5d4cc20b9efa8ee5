"""Attack the library for a while: ``python -m hostile.attack --minutes 60``; see ``--help``.

Workers are processes.  Each writes a case to a file before it runs it, so a crash or a hang costs one worker and is
reported with the case that did it.
"""

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from .attacker import Attacker, Outcome, drawn

KINDS = {
    "fits": "fits",
    "models": "model_files",
    "files": "input_files",
    "sparse": "sparse_arrays",
    "doors": "doors",
    "threads": "threads",
    "signals": "signals",
    "readonly": "readonly",
    "commands": "command_line",
    "disks": "full_disks",
}
SHARES = {
    "fits": 20,
    "models": 3,
    "files": 3,
    "sparse": 3,
    "doors": 3,
    "threads": 1,
    "signals": 1,
    "readonly": 0.02,
    "commands": 1,
    "disks": 1,
}
PER_SEED = 12  # cases drawn from one seed
MEMORY = 10 << 30  # bytes of address space of a worker
PER_WORKER = 1500  # cases, after which a worker is replaced, so that what leaks does not add up
WAIT = 0.2  # seconds between looks at the workers
PLACE = re.compile(r"\[[^\[\]]*:\d+\]$")  # at the end of what is said of an error
SHOWN = 3  # cases shown per finding


def attackers(kind: str) -> list[Attacker]:
    return import_module(f".{KINDS[kind]}", __package__).ATTACKERS


# A worker --------------------------------------------------------------------------------------------------------------


def work(folder: Path, kinds: list[str], first: int, stride: int) -> None:
    """Run cases for ever; write each to ``running`` before, and how it ended to ``done`` after."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    turns = [(kind, a) for kind in kinds for a in attackers(kind)]
    weights = [SHARES[kind] / len(attackers(kind)) for kind, _ in turns]
    credit, seed, ran = [0.0] * len(turns), first, 0
    with (folder / "done").open("a", buffering=1) as done:
        while ran < PER_WORKER:
            credit = [c + w for c, w in zip(credit, weights)]
            i = max(range(len(turns)), key=credit.__getitem__)
            credit[i] -= sum(weights)
            attacker = turns[i][1]
            few = max(1, round(PER_SEED * min(1.0, 20.0 / attacker.seconds)))
            for case in drawn(attacker.cases, seed, few):
                text = repr(case)
                cpu = time.process_time()
                _put(folder / "running", json.dumps([attacker.name, text, time.time(), attacker.seconds, seed]))
                outcome = _run(attacker, case, folder / "output")
                done.write(
                    json.dumps([attacker.name, text, outcome.kind, outcome.detail, time.process_time() - cpu]) + "\n"
                )
                ran += 1
            seed += stride


def _put(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def _run(attacker: Attacker, case: Any, output: Path) -> Outcome:
    """Run a case; what it prints, which libraries below do when they are misused, is a finding."""
    try:
        outcome = attacker.run(case)
    except Exception as error:
        import traceback

        return Outcome("attacker failed", "".join(traceback.format_exception(error))[-1500:])
    sys.stdout.flush()
    sys.stderr.flush()
    if output.stat().st_size:
        text = output.read_text(errors="replace")
        os.truncate(output, 0)
        if not outcome.is_finding:
            return Outcome("prints", text[-300:])
    return outcome


# The one who watches ---------------------------------------------------------------------------------------------------


@dataclass
class Worker:
    """A worker process, its folder, and how much of its results has been read."""

    folder: Path
    kinds: list[str]
    seed: int
    stride: int
    process: Any = None
    done: IO[str] | None = None
    started: float = 0.0

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("done", "output"):
            (self.folder / name).write_text("")
        (self.folder / "running").unlink(missing_ok=True)
        command = [sys.executable, "-m", f"{__package__}.attack", "--work", str(self.folder), "--seed", str(self.seed)]
        with (self.folder / "output").open("a") as output:
            self.process = subprocess.Popen(
                [*command, "--stride", str(self.stride), "--only", ",".join(self.kinds)],
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.done, self.started = (self.folder / "done").open(), time.time()

    def results(self) -> list[list[Any]]:
        assert self.done is not None
        found = []
        while line := self.done.readline():
            if not line.endswith("\n"):
                self.done.seek(self.done.tell() - len(line.encode()))
                break
            found.append(json.loads(line))
        return found

    def running(self) -> list[Any] | None:
        path = self.folder / "running"
        return json.loads(path.read_text()) if path.exists() else None

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def casualty(self) -> tuple[str, str, Outcome] | None:
        """The case that ended or hung this worker, if it has."""
        code, running = self.process.poll(), self.running()
        if code is None:
            if running is None or time.time() - running[2] < running[3]:
                return None
            self.kill()
            return running[0], running[1], Outcome("hang", f"over {running[3]:g} s")
        if code == 0:
            return None
        said = (self.folder / "output").read_text(errors="replace")[-400:]
        name, text = running[:2] if running else ("start", "")
        return name, text, Outcome("crash", f"exit {code}: {said}")


@dataclass
class Tally:
    """How many runs ended in each way, and the cases of findings."""

    counts: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    findings: dict[tuple[str, str, str], list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    seconds: Counter = field(default_factory=Counter)
    began: float = field(default_factory=time.time)

    @property
    def runs(self) -> int:
        return sum(c.total() for c in self.counts.values())

    def add(self, name: str, text: str, outcome: Outcome, seconds: float = 0.0) -> None:
        self.counts[name][outcome.kind] += 1
        self.seconds[name] += seconds
        if outcome.is_finding:
            place = PLACE.search(outcome.detail)
            self.findings[name, outcome.kind, place[0] if place else ""].append((text, outcome.detail))

    def line(self) -> str:
        seconds = time.time() - self.began
        found = sum(len(cases) for cases in self.findings.values())
        speed = self.runs / max(seconds, 1e-9)
        return f"{self.runs} runs in {seconds:.0f} s ({speed:.1f} a second), {found} findings of {len(self.findings)} kinds"

    def report(self) -> str:
        lines = []
        for (name, kind, _), cases in sorted(self.findings.items(), key=lambda item: -len(item[1])):
            detail = min(cases, key=lambda case: len(case[0]))[1]
            lines += ["", f"{len(cases)} x {kind} ({name}): {detail}"]
            lines += [f"    --replay {json.dumps(f'{name}: {text}')}" for text, _ in sorted(cases, key=len)[:SHOWN]]
        lines += ["", self.line()]
        for name, counts in sorted(self.counts.items()):
            each = self.seconds[name] / counts.total()
            lines.append(f"  {name} ({each:.2f} s each): " + ", ".join(f"{k} {n}" for k, n in counts.most_common()))
        return "\n".join(lines)


def watch(kinds: list[str], workers: int, seed: int, runs: int, seconds: float, log: Path | None) -> Tally:
    """Keep workers at work until so many runs are done or so much time is over."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="attack") as folder:
        team = [Worker(Path(folder) / str(i), kinds, seed + i, workers) for i in range(workers)]
        for worker in team:
            worker.start()
        try:
            shown = 0.0
            while tally.runs < runs and time.time() - tally.began < seconds:
                time.sleep(WAIT)
                for worker in team:
                    _look_after(worker, tally, log)
                if time.time() - shown > 10.0:
                    print(tally.line(), file=sys.stderr, flush=True)
                    shown = time.time()
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
        finally:
            for worker in team:
                if worker.process.poll() is None:
                    worker.kill()
    return tally


def _look_after(worker: Worker, tally: Tally, log: Path | None) -> None:
    """Count what a worker has done, and replace it when it is gone or hangs."""
    casualty = worker.casualty()
    ended = worker.process.poll() is not None
    results = [(name, text, Outcome(kind, detail), s) for name, text, kind, detail, s in worker.results()]
    if casualty is not None:
        results.append((*casualty, 0.0))
    for name, text, outcome, seconds in results:
        tally.add(name, text, outcome, seconds)
        if log is not None and outcome.is_finding:
            with log.open("a") as file:
                file.write(json.dumps([name, outcome.kind, outcome.detail, text]) + "\n")
    if ended or casualty is not None:
        if casualty is not None and casualty[0] == "start":
            raise RuntimeError(f"a worker does not start: {casualty[2].detail}")
        running = worker.running()
        worker.seed = (running[4] if running else worker.seed) + worker.stride
        worker.start()


def replay(text: str) -> Outcome:
    """Run one case of a report again, in this process."""
    name, _, case = text.partition(": ")
    every = {a.name: a for kind in KINDS for a in attackers(kind)}
    return every[name].replay(case)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hostile.attack", description="Attack the library.")
    parser.add_argument("--runs", type=int, default=20_000, help="stop after so many runs (default 20,000)")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so many minutes (default 60)")
    parser.add_argument("--seed", type=int, help="the first seed; by default from the clock")
    parser.add_argument("--only", default=",".join(KINDS), help=f"which attackers, of {','.join(KINDS)}")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="processes (default: cores)")
    parser.add_argument("--log", type=Path, help="append every finding to this file, one JSON list a line")
    parser.add_argument("--replay", help="run one case of a report again")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--stride", type=int, default=1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.replay is not None:
        outcome = replay(given.replay)
        print(outcome.kind, outcome.detail, sep=": ")
        return int(outcome.is_finding)
    kinds = given.only.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"--only: unknown {', '.join(sorted(unknown))}; known: {', '.join(KINDS)}")
    if given.work is not None:
        work(given.work, kinds, given.seed, given.stride)
        return 0
    seed = int(time.time()) if given.seed is None else given.seed
    print(f"seed {seed}", file=sys.stderr)
    tally = watch(kinds, given.workers, seed, given.runs, 60.0 * given.minutes, given.log)
    print(tally.report())
    return int(bool(tally.findings))


if __name__ == "__main__":
    sys.exit(main())
