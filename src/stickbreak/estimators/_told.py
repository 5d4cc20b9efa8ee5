"""What users pass to a mixture beside the values of rows: labels of some, and groups of rows that are in one cluster."""

from typing import Any, NamedTuple, Self

from ..cluster.sources import is_spread
from ..data import ArraySource
from ..data.labelled_rows import with_classes
from . import _likelihoods as likelihoods
from ._classes import Classes, classes_of, require_rows
from ._links import Links, classes_of_groups, links_of


class Told(NamedTuple):
    """Classes of rows, or of their groups, and the groups; None where there are none."""

    classes: Classes | None
    links: Links | None

    @classmethod
    def of(cls, estimator: Any, source: ArraySource, y: Any, groups: Any) -> Self:
        """The labels and groups of the rows of a source.

        Raises
        ------
        ValueError, TypeError : they do not suit these rows, or contradict each other.
        """
        classes = None if likelihoods.takes_targets(estimator) else classes_of(y, source.n_rows)
        if estimator.seeds is not None and (classes is not None or source.n_columns != estimator.n_features_in_):
            raise ValueError("seeds cannot be used together with y: pass labels, or prototypes of clusters.")
        if classes is not None and is_spread(source):
            raise TypeError(
                "rows on a cluster cannot have classes; leave out y, or pass X.compute() and executor=None."
            )
        if classes is not None:
            require_rows(classes, source.weights)
        links = None if groups is None else links_of(groups, source.n_rows)
        if links is not None and classes is not None:
            classes = classes_of_groups(classes, links)
        return cls(classes, links)

    @property
    def latent(self) -> bool:
        """Whether families with latent variables of rows may be chosen: sums of groups have none."""
        return self.links is None

    def labelled(self, rows: ArraySource) -> ArraySource:
        """Rows, or groups, with their classes."""
        return rows if self.classes is None else with_classes(rows, self.classes.codes)

    def known_by(self, source: ArraySource) -> Any:
        """All data of a fit to these rows, by which a checkpoint knows it."""
        return self.labelled(source) if self.links is None else (source, self.links.codes, self.classes)
