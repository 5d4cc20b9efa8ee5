"""Fitted models as tables on the console."""

from typing import Any

from rich.console import Console
from rich.table import Table


def cluster_table(model: Any, n_clusters: int = 20) -> Table:
    """The largest clusters: weight, rows, and the columns in which each differs most from the rest.

    Differences are of cluster means from the mean of the mixture, in standard deviations of the mixture.
    """
    center = model.weights_ @ model.means_
    spread = (model.weights_ @ ((model.means_ - center) ** 2 + _variances(model))) ** 0.5
    names = getattr(model, "feature_names_in_", [f"x{d}" for d in range(model.n_features_in_)])
    table = Table(title=f"{model.n_clusters_} clusters, ELBO {model.lower_bound_:,.1f}", title_justify="left")
    for title in ("cluster", "weight", "rows"):
        table.add_column(title, justify="right")
    table.add_column("most distinctive")
    for k in range(min(n_clusters, model.n_clusters_)):
        z = (model.means_[k] - center) / spread
        top = sorted(range(len(z)), key=lambda d: -abs(z[d]))[:4]
        words = "  ".join(f"{names[d]} {z[d]:+.1f} sd" for d in top)
        table.add_row(str(k), f"{model.weights_[k]:.4f}", f"{model.summary_.N[k]:,.0f}", words)
    if model.n_clusters_ > n_clusters:
        table.add_row("", "", "", f"and {model.n_clusters_ - n_clusters} smaller clusters")
    return table


def print_summary(model: Any, n_clusters: int = 20) -> None:
    """Print `cluster_table` to the console."""
    Console(markup=False, emoji=False).print(cluster_table(model, n_clusters))


def _variances(model: Any) -> Any:
    return model.covariances_.diagonal(axis1=1, axis2=2)
