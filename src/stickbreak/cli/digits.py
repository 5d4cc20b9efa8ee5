"""The demonstration: handwritten digits, clustered from a single cluster without being told how many there are."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import normalized_mutual_info_score

from .. import Mixture
from ..report.figures import plot_fit

N_COMPONENTS = 16  # 85% of the variance
N_STARTS = 3


def run(out: Path) -> None:
    """Cluster the 1,797 digits of scikit-learn, print what was found, and write the picture ``digits.png``.

    Parameters
    ----------
    out : folder for the picture; made if it does not exist

    Raises
    ------
    ImportError : matplotlib is not installed.
    """
    out.mkdir(parents=True, exist_ok=True)
    images, digits = load_digits(return_X_y=True)
    projection = PCA(N_COMPONENTS, random_state=0).fit(images)
    X = projection.transform(images)
    print(f"{len(X):,} images of digits, {images.shape[1]} pixels, projected to {N_COMPONENTS} dimensions")
    model = _best_fit(X)
    Console().print(digits_table(model, digits))
    _print_scores(model, X, digits)
    means = projection.inverse_transform(model.means_).clip(0.0).reshape(-1, 8, 8)
    plot_fit(model.history_, means, out / "digits.png", weights=model.weights_)
    print(f"picture: {out / 'digits.png'}")


def _best_fit(X: NDArray[Any]) -> Mixture:
    """The fit with the highest ELBO of several that start from one cluster each."""
    began = time.perf_counter()
    fits = [Mixture(random_state=seed).fit(X) for seed in range(N_STARTS)]
    bounds = [model.lower_bound_ for model in fits]
    seconds = time.perf_counter() - began
    print(f"{N_STARTS} fits from one cluster in {seconds:.1f} s: ELBO {min(bounds):,.0f} to {max(bounds):,.0f} nats")
    return fits[int(np.argmax(bounds))]


def digits_table(model: Any, digits: NDArray[Any]) -> Table:
    """Each cluster's weight, rows, most common digit and that digit's share."""
    table = Table(title=f"{model.n_clusters_} clusters found", title_justify="left")
    for title in ("cluster", "weight", "rows", "digit", "share"):
        table.add_column(title, justify="right")
    for k, weight in enumerate(model.weights_):
        counts = np.bincount(digits[model.labels_ == k], minlength=10)
        rows = int(counts.sum())
        share = f"{counts.max() / rows:.0%}" if rows else ""
        table.add_row(str(k), f"{weight:.3f}", str(rows), str(counts.argmax()) if rows else "", share)
    return table


def _print_scores(model: Any, X: NDArray[Any], digits: NDArray[Any]) -> None:
    told = KMeans(10, n_init=10, random_state=0).fit_predict(X)
    ours, theirs = (normalized_mutual_info_score(digits, labels) for labels in (model.labels_, told))
    print(f"the best after {model.n_laps_} laps in {model.history_[-1].seconds:.1f} s, the true digits unseen:")
    print(f"  agreement with the true digits (normalized mutual information): {ours:.3f}")
    print(f"  k-means, told that there are 10: {theirs:.3f}")
