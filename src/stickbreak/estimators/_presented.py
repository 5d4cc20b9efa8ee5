"""How fitted models present themselves: in notebooks, as frames and as pages."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from pandas import DataFrame


class Presented(BaseEstimator):
    """An estimator that shows what it found once it is fitted, and scikit-learn's diagram before."""

    def summary_frame(self, n: int | None = None, names: Sequence[str] | None = None) -> "DataFrame":
        """The table that `summary` prints as a pandas DataFrame, one row for each cluster, topic or state.

        Parameters
        ----------
        n : int of at least 1, optional
            So many of the largest, by default all.
        names : of the columns or words, by default those at `fit`

        Raises
        ------
        ImportError
            If pandas is missing (``pip install stickbreak[frames]``).
        """
        from ..report.tables import summary_frame

        check_is_fitted(self)
        return summary_frame(self, n, names)

    def report(self, path: Any, X: Any, lengths: Any = None, names: Sequence[str] | None = None) -> None:
        """Write a page of HTML that shows what was found in X and why; it holds all it needs and opens without a network.

        Parameters
        ----------
        path : file to write, such as "page.html"
        X, lengths : data as in `fit`; mixtures have no lengths
        names : of the columns or words in the table, and of words in pictures, by default those at `fit`

        Raises
        ------
        ImportError
            If jinja2 or matplotlib is missing (``pip install stickbreak[report]``).
        """
        from ..report.page import write_page

        check_is_fitted(self)
        write_page(self, path, X, lengths, names)

    def _print_summary(self, n: int, names: Sequence[str] | None) -> None:
        """Print the table of the n largest clusters, with the names of columns or words."""
        from ..report.tables import print_table, summary_table

        check_is_fitted(self)
        print_table(summary_table(self, n, names))

    def _repr_html_inner(self) -> str:
        if not hasattr(self, "model_"):
            return str(super()._repr_html_inner())
        from ..report.notebook import fitted_html

        return fitted_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown:
            shown["text/html"] = self._repr_html_inner()
        return shown
