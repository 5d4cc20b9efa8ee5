"""A fitted mixture reading rows: labels, probabilities, densities and what is missing, of rows that users pass."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_boolean, check_count
from ..data import ArraySource
from ..data.frames import Encoded, as_frame, decode, values_of
from ..data.label_files import check_labels, write_labels
from ..data.labelled_rows import with_classes
from ..inference import Executor
from ..inference.reader import Reader, by_chunk
from ..likelihoods import Dust, Linked
from ..likelihoods.features import Rows
from ..likelihoods.linked import family_of, of_rows
from . import _likelihoods as likelihoods
from ._base import Columns, as_source, survey
from ._classes import Classified, classes_of, with_known_classes
from ._devices import reading_kind
from ._distinct import Distinct
from ._estimator import Estimator, seed_of
from ._links import check_rows, classes_of_groups, linked_source, links_of, refuse_gaps

Array = NDArray[np.floating]


class RowReading(Classified, Estimator):
    """What a fitted mixture says of rows."""

    random_state: Any
    n_clusters_: int
    weights_: Array

    def predict(self, X: Any, y: Any = None, *, groups: Any = None, out: Any = None) -> NDArray[np.integer]:
        """The most probable cluster of each row, (n,), given the values that are not missing.

        Parameters
        ----------
        X, y : as in `fit`, with the same columns
        groups : (n,) of a model that was fitted with groups: rows of the same cluster, as in `fit`
        out : path of a .npy file, optional
            Where to write the labels as int32, some at a time; the file appears when all are written.  What is returned is
            mapped from it.  So neither rows nor labels need to fit memory.

        Raises
        ------
        ValueError
            If ``out`` does not end with .npy, or is the file X.
        FileNotFoundError
            If the folder of ``out`` does not exist.
        """
        if groups is not None:
            if out is not None:
                raise ValueError("out is for rows without groups; leave out one of them.")
            labels: NDArray[np.integer] = self._of_groups(X, y, groups, Reader.labels)
            return labels
        path = None if out is None else check_labels(out, X)
        with self._executor(X) as executor:
            source, reader = self._checked(X, y, executor)
            pieces = by_chunk(source, executor, reader.labels)
            return np.concatenate(list(pieces)) if path is None else write_labels(path, source.n_rows, pieces)

    def predict_proba(self, X: Any, y: Any = None, *, groups: Any = None) -> Array:
        """Responsibilities (n, K): the probability of each cluster for each row, given the values that are not missing.

        groups : (n,) of a model that was fitted with groups: rows of the same cluster, as in `fit`
        """
        if groups is not None:
            R: Array = self._of_groups(X, y, groups, Reader.responsibilities)
            return R
        with self._executor(X) as executor:
            source, reader = self._checked(X, y, executor)
            return np.concatenate(list(by_chunk(source, executor, reader.responsibilities)))

    def predict_class(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row, (n,), one of ``classes_``; of a model that was fitted with labels.

        Examples
        --------
        >>> import numpy as np
        >>> from stickbreak import Mixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(m, 1.0, (100, 2)) for m in (-20, -7, 7, 20)])
        >>> y = np.full(400, None)
        >>> y[[0, 300]] = "far"
        >>> y[[100, 200]] = "near"
        >>> Mixture(random_state=0).fit(X, y).predict_class([[-19.0, -21.0], [6.0, 8.0]])
        array(['far', 'near'], dtype='<U4')
        """
        return self._most_probable(self.predict_class_proba(X))

    def predict_class_proba(self, X: Any) -> Array:
        """The probability of each of ``classes_`` for each row, (n, C): of its clusters by ``cluster_classes_``.

        Raises
        ------
        ValueError
            If the model was fitted without labels: use ``fit(X, y)``.
        sklearn.exceptions.NotFittedError
        """
        self._require_classes()
        return self._class_chances(self.predict_proba(X))

    def class_accuracy(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the labels y (n,) whose class `predict_class` finds; rows with unknown labels do not count."""
        return self._accuracy(self.predict_class_proba(X), y, sample_weight)

    def background_proba(self, X: Any) -> Array:
        """Probability that each row belongs to no cluster, but to the background of a `Background` likelihood, (n,).

        `predict` and `predict_proba` share out such rows, too: as background is the same in all clusters, by their weights.

        Raises
        ------
        ValueError
            If the likelihood has no background: use ``Mixture(Background())``.
        sklearn.exceptions.NotFittedError

        Examples
        --------
        >>> import numpy as np
        >>> from stickbreak import Mixture
        >>> from stickbreak.likelihoods import Background
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([*(rng.normal(m, 1.0, (200, 2)) for m in (-8, 8)), rng.uniform(-40, 40, (40, 2))])
        >>> model = Mixture(Background(), random_state=0).fit(X)
        >>> model.background_proba([[-8.0, -8.0], [30.0, -20.0]]).round(2)
        array([0., 1.])
        """
        check_is_fitted(self)
        bits = self.model_.likelihood.latent
        if not isinstance(bits, Dust):
            raise ValueError("this model was fitted without a background: use Mixture(Background()).")
        with self._executor(X) as executor:
            source, reader = self._checked(X, None, executor)
            return np.concatenate(list(by_chunk(source, executor, partial(reader.background, bits))))

    def score_samples(self, X: Any, y: Any = None, *, unseen: bool = False) -> Array:
        """Log posterior-predictive density of each row, (n,): that of its observed values where some are missing.

        Parameters
        ----------
        X, y : as in `fit`, with the same columns
        unseen : bool, default False
            Whether a row may also be of a cluster that had no row in the fit.  False: the weights of the clusters that were
            found add up to one, and outliers score under the nearest (BJ Eq. 23, its sum truncated).  True: clusters have the
            chances of a next row, N_k / (N + concentration) for a Dirichlet process, and what they lack is the chance of a
            new one, whose density is the prior's predictive (SVA Eq. 12); so an outlier scores by that.

        Examples
        --------
        >>> import numpy as np
        >>> from stickbreak import Mixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(m, 1.0, (100, 1)) for m in (-30, -10, 10, 30)])
        >>> model = Mixture("gaussian", random_state=0).fit(X)
        >>> model.score_samples([[80.0]]).round(), model.score_samples([[80.0]], unseen=True).round()
        (array([-678.]), array([-16.]))
        """
        check_boolean(unseen, "unseen")
        with self._executor(X) as executor:
            source, reader = self._checked(X, y, executor)
            density = reader.log_density_with_unseen if unseen else reader.log_density
            return np.concatenate(list(by_chunk(source, executor, density)))

    def impute(self, X: Any) -> Any:
        """Fill in the missing values of X: each by its posterior-predictive mean, or mode for categories and yes/no columns.

        Returns an array, or for a frame a frame like it.  Arrays hold the levels of categories; for `Encoded` tables, codes.
        Sparse rows have no missing values and come back as CSR.
        """
        with self._executor(X) as executor:
            source, reader = self._checked(X, None, executor)
            if sparse.issparse(source.X):
                return source.X.copy()
            filled = np.concatenate(list(by_chunk(source, executor, reader.impute)))
        frame = as_frame(X)
        if frame is not None:
            return decode(filled, frame, self.levels_)
        return filled if isinstance(X, Encoded) else values_of(filled, self.levels_)

    def predict_targets(self, X: Any) -> Array:
        """Posterior-predictive mean of the targets y that the model was fitted to, given X: (n,), or (n, q) of several.

        The clusters have their prior weights, unless other columns of a Product tell them apart.
        """
        check_is_fitted(self)
        if not self.n_targets_:
            raise ValueError("this model was fitted without targets: use a LinearRegression and fit(X, y).")
        with self._executor(X) as executor:
            source, reader = self._checked(X, None, executor)
            filled = np.concatenate(list(by_chunk(source, executor, reader.impute)))
        return filled[:, -1] if self.n_targets_ == 1 else filled[:, -self.n_targets_ :]

    def sample(self, n_samples: int = 1) -> tuple[Array, NDArray[np.intp]]:
        """Draw rows from the posterior predictive: X (n_samples, D) and their clusters (n_samples,), sorted by cluster.

        Categories are levels: with text among them X is an array of objects.
        """
        check_is_fitted(self)
        check_count(n_samples, "n_samples")
        rng = np.random.default_rng(seed_of(self))
        labels = np.sort(rng.choice(self.n_clusters_, size=n_samples, p=self.weights_))
        N = self.summary_.N
        S = self.summary_.S
        sizes = np.bincount(labels, minlength=self.n_clusters_)
        draws = [self.model_.likelihood.sample(N[k], S[k], rng, size) for k, size in enumerate(sizes) if size]
        return values_of(np.concatenate(draws), self.levels_), labels

    @property
    def _has_groups(self) -> bool:
        """Whether it was fitted with groups of rows."""
        check_is_fitted(self, "model_")
        return isinstance(family_of(self.model_.likelihood), Linked)

    def _of_groups(self, X: Any, y: Any, groups: Any, task: Callable[[Reader, Rows], Any]) -> Any:
        """What a reader says of the group of each row."""
        if not self._has_groups:
            raise ValueError("this model was fitted without groups; leave out groups, or fit(X, groups=groups).")
        with self._executor(X) as executor:
            source, columns = self._known(X, y if self.n_targets_ else None, executor)
            check_rows(X, source)
            links = links_of(groups, source.n_rows)
            reader = Reader.of(self.model_, self.summary_, columns.missing, np.dtype(np.float64))
            linked = family_of(reader.model.likelihood)
            assert isinstance(linked, Linked)
            refuse_gaps(linked.family)
            rows = linked_source(linked.family, source, links, executor)
            names = getattr(self, "classes_", None)
            classes = None if names is None else classes_of(y, source.n_rows, names.tolist())
            if classes is not None:
                rows = with_classes(rows, classes_of_groups(classes, links).codes)
            model = replace(reader.model, likelihood=of_rows(reader.model.likelihood, True))
            found = by_chunk(rows, executor, partial(task, replace(reader, model=model)))
            return np.concatenate(list(found))[links.codes]

    def _labels_of(self, distinct: Distinct, columns: Columns, executor: Executor) -> NDArray[np.intp]:
        """The most probable cluster of each row, repeated ones labelled once."""
        rows = distinct.rows
        return distinct.expanded(np.concatenate(list(by_chunk(rows, executor, self._reader(columns, rows).labels))))

    def _checked(self, X: Any, y: Any, executor: Executor) -> tuple[ArraySource, Reader]:
        """The rows of X, checked, and a reader for them."""
        source, columns = self._known(X, y, executor)
        return source, self._reader(columns, source)

    def _known(self, X: Any, y: Any, executor: Executor, sample_weight: Any = None) -> tuple[ArraySource, Columns]:
        """The rows of X, checked against the columns of the fit, and what they say of each column."""
        check_is_fitted(self)
        source = as_source(self, X, sample_weight, y=y if self.n_targets_ else None)
        likelihoods.check_sparse(self.model_.likelihood, source)
        columns = survey(self, self.model_.likelihood, source, executor)
        return with_known_classes(self, source, y), columns

    def _reader(self, columns: Columns, source: ArraySource) -> Reader:
        reader = Reader.of(self.model_, self.summary_, columns.missing, source.dtype)
        return replace(reader, kind=reading_kind(self, reader.model.likelihood, source))
