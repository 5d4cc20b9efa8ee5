"""No simple baseline may beat a default fit in its own bound: fits to data with known clusters beside eight rivals.

A rival is another fit at the same prior: the true labels, without moves and with all of them ("truth on"); one cluster; K/2, K
and 2K distant rows (K is the true number) with merges and deletes; the fit started from itself; and its clusters joined one by
one, through losses, with the best levels fitted again.  A gap is the bound of the fit less that of the rival, in nats: where it
is negative, the search has missed something.

    python benchmarks/right_number.py [--sets NAME ...] [--small] [--most-rows N] [--seeds N] [--json FILE]
    python benchmarks/right_number.py --exact N [--small]
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from baselines import baselines, fitted
from exact_number import report_exact
from right_number_data import DATA_SETS, DataSet

NEAR, TOLERANCE = 1.0, 1e-6  # nats, and the share of the bound that a settled fit may have left
WARM = 200  # rows of a fit before any is timed, by which everything is compiled
FEW = 8000  # rows of the sets that are small, beside some of those in which a search is most easily misled
MISLEADING = ("d1-k2-n20000-3sd-equal", "d4-k10-n20000-4sd-1%", "few-far", "very-few-far")
SMALL = tuple(name for name, data in DATA_SETS.items() if data.n_rows <= FEW or name in MISLEADING)
RIVALS = ("truth", "truth on", "one", "K/2 seeds", "K seeds", "2K seeds", "itself", "joined")
COLUMNS = ("name", "seed", "N", "D", "true K", "K", "bound", *RIVALS, "s")
WIDTHS = (40, 6, 11, 7, 8, 5, 17, *(14 for _ in RIVALS), 9)


def measure(data: DataSet, seeds: range) -> Iterator[dict[str, Any]]:
    """A default fit with each seed, and what it is ahead of its rivals (see `baselines`)."""
    X, truth = data.rows()
    fitted(X[:: max(1, data.n_rows // WARM)], data.likelihood, max_laps=3)
    for seed in seeds:
        began = time.perf_counter()
        fit = fitted(X, data.likelihood, random_state=seed)
        seconds = time.perf_counter() - began
        gaps = {name: fit.lower_bound_ - bound for name, bound in baselines(fit, X, truth).items()}
        about = (data.name, seed, *X.shape, len(np.unique(truth)), fit.n_clusters_, fit.lower_bound_)
        yield dict(zip(COLUMNS, about)) | gaps | {"s": seconds}


def line(row: dict[str, Any]) -> str:
    texts = [
        f"{round(v, 2) + 0.0:,.2f}" if isinstance(v, float) else f"{v:,}" if isinstance(v, int) else v
        for v in row.values()
    ]
    return "".join(t.ljust(w) if i == 0 else t.rjust(w) for i, (t, w) in enumerate(zip(texts, WIDTHS)))


def summary(rows: list[dict[str, Any]]) -> str:
    """How many fits lose to a rival, how far, and how far fits to the same data are from each other."""
    gaps = np.array([min(row[rival] for rival in RIVALS) for row in rows])
    sizes = np.abs([row["bound"] for row in rows])
    worst = np.argmin(gaps / sizes)
    settled = gaps >= -np.maximum(NEAR, TOLERANCE * sizes)
    found = [
        f"within 1 nat of the best rival: {(gaps >= -NEAR).sum()} of {len(rows)} fits ({(gaps >= -NEAR).mean():.0%})",
        f"within 1 nat or a millionth of the bound: {settled.sum()} of {len(rows)} ({settled.mean():.0%})",
        f"largest shortfall: {max(0.0, -gaps[worst] / sizes[worst]):.2e} of the bound ({rows[worst]['name']})",
    ]
    return "\n".join(found + list(spreads(rows)))


def spreads(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Of every data set fitted with several seeds that disagree."""
    for name in dict.fromkeys(row["name"] for row in rows):
        bounds, found = zip(*((row["bound"], row["K"]) for row in rows if row["name"] == name))
        if len(bounds) > 1 and (np.ptp(bounds) > NEAR or np.ptp(found) > 0):
            yield f"between seeds of {name}: bounds {np.ptp(bounds):,.2f} nats, K {min(found)} to {max(found)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sets", nargs="+", choices=DATA_SETS, metavar="NAME", help=", ".join(DATA_SETS).replace("%", "%%")
    )
    parser.add_argument("--small", action="store_true", help="the sets that take a few minutes together")
    parser.add_argument("--most-rows", type=int, default=sys.maxsize, metavar="N", help="leave out larger sets")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="fits to each set")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append a line of JSON for each fit")
    parser.add_argument(
        "--exact", type=int, metavar="N", help="count how often K is exact, on N sets (`exact_number.py`)"
    )
    options = parser.parse_args()
    if options.exact is not None:
        report_exact(options.exact, options.small)
        return
    chosen = [DATA_SETS[name] for name in options.sets or (SMALL if options.small else DATA_SETS)]
    rows = []
    print(line({name: name for name in COLUMNS}))
    for data in (data for data in chosen if data.n_rows <= options.most_rows):
        for row in measure(data, range(options.seeds)):
            rows.append(row)
            print(line(row), flush=True)
            if options.json is not None:
                with options.json.open("a") as file:
                    file.write(json.dumps(row, default=float) + "\n")
    print(summary(rows) if rows else "no data sets are as small as that")


if __name__ == "__main__":
    main()
