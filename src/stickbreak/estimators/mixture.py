"""The mixture estimator."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, DensityMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..allocations import Allocation
from ..data import ArraySource, Chunk
from ..inference import Lap, Options, Search, Stochastic, StochasticLaps, Threads
from ..likelihoods import Likelihood
from ..model import Model, Parameters, Summary, local_step
from . import _choices as choices
from ._base import as_source, check_finite
from ._start import choose_start

Array = NDArray[np.floating]


class Mixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, DensityMixin, BaseEstimator):
    """Mixture model that finds its own number of clusters.

    Maximises the evidence lower bound (ELBO) of a Dirichlet-process mixture,

        log p(X) >= ELBO = sum_n log h(x_n) + sum_k [ logZ(posterior_k) - logZ(prior) ] + sum_k H_k + L_alloc(N),

    which is exact for the whole data set after every lap and never goes down.  Births, merges and deletes change the
    number of clusters and are kept only if the ELBO of the whole data set rises.

    Parameters
    ----------
    likelihood : {"gaussian", "zero_mean_gaussian"} or likelihood object, default "gaussian"
        The family of the clusters, with default priors or those of the object, such as ``Gaussian(scale=0.5)``.
    concentration : float > 0, default 1.0
        Of the Dirichlet process; larger values expect more clusters.  Not used if ``allocation`` is an object.
    allocation : {"dp", "finite"} or allocation object, default "dp"
        The prior over assignments; "finite" is a symmetric Dirichlet over ``n_init_clusters`` clusters.
    algorithm : {"memoized", "full", "stochastic"} or `stickbreak.inference.Stochastic`, default "memoized"
        Incremental over batches, all data at once, or noisy steps.  Stochastic inference has no exact bound to verify
        moves with: the number of clusters is that of the start, which for ``init="one"`` is found on a sample.
    n_batches : int >= 1, default one per 5,000 rows, at most 10 (stochastic: one per 1,000 rows, at most 100)
        Batches visited per lap.
    init : {"one", "k-means++", "random"}, array or fitted Mixture, default "one"
        One cluster, which births then split; ``n_init_clusters`` rows as seeds, far apart or at random; an array of
        labels (N,) or responsibilities (N, K); or the clusters of another model.
    n_init_clusters : int >= 1, default 10
        For ``init="k-means++"`` and ``"random"``, and the number of clusters of ``allocation="finite"``.
    moves : sequence of {"birth", "merge", "delete"}, default all
        What may change the number of clusters.  With ``()`` only clusters left without any row go.
    max_laps : int >= 1, default 1000
        Most passes over the data.
    tol : float >= 0, default 1e-6
        Converged when a lap raises the ELBO by less than this share of its size, and no count moves by over 0.1% of rows.
    n_jobs : int or None, default None
        Threads; None and -1 use all processors.  The result does not depend on it.
    random_state : int, RandomState or None, default None
        Seed of everything random.
    verbose : bool, default False
        Show a progress line on a terminal.

    Attributes
    ----------
    n_clusters_ : int
        K.
    weights_ : array (K,)
        Posterior mean weights, in decreasing order of size, summing to one.
    means_ : array (K, D)
        Posterior means of the cluster means.
    covariances_ : array (K, D, D)
        Posterior means of the cluster covariances.
    labels_ : array (N,)
        The most probable cluster of each row.
    lower_bound_ : float
        The ELBO, in nats, for the whole data set.
    lower_bounds_ : list of float
        The ELBO of the best model so far after each lap.
    history_ : list of `stickbreak.inference.Lap`
        Per lap: seconds, ELBO, K, moves tried and accepted with their gains.
    n_laps_ : int
        Laps done.
    converged_ : bool
        Whether the fit stopped before ``max_laps``.
    n_features_in_ : int
        D.

    Examples
    --------
    >>> import numpy as np
    >>> from stickbreak import Mixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1.0, (200, 2)) for m in (-8, 0, 8)])
    >>> Mixture(random_state=0).fit(X).n_clusters_
    3

    References
    ----------
    Hughes, Reliable and scalable variational inference for nonparametric mixtures, topics, and sequences, 2016, chapters
    2 to 4; Hughes and Sudderth, Memoized online variational inference for Dirichlet process mixture models, 2013.
    """

    def __init__(
        self,
        likelihood: str | Likelihood = "gaussian",
        *,
        concentration: float = 1.0,
        allocation: str | Allocation = "dp",
        algorithm: str | Stochastic = "memoized",
        n_batches: int | None = None,
        init: Any = "one",
        n_init_clusters: int = 10,
        moves: Sequence[str] = choices.MOVES,
        max_laps: int = 1000,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.likelihood = likelihood
        self.concentration = concentration
        self.allocation = allocation
        self.algorithm = algorithm
        self.n_batches = n_batches
        self.init = init
        self.n_init_clusters = n_init_clusters
        self.moves = moves
        self.max_laps = max_laps
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of X.

        Parameters
        ----------
        X : array, frame or memory map (N, D)
        y : ignored
        sample_weight : array (N,), optional
            A row of weight 2 counts as the row twice.

        Returns
        -------
        self
            An interrupted fit (Ctrl-C) keeps the best model so far, with a warning; before the first lap is over it
            leaves the estimator as it was.
        """
        choices.check(self)
        before = dict(self.__dict__)
        try:
            trouble = self._fit(X, sample_weight)
        except BaseException:
            self.__dict__ = before
            raise
        if trouble is not None:
            warnings.warn(trouble, ConvergenceWarning, stacklevel=2)
        return self

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The most probable cluster of each row, (n,)."""
        with Threads(self.n_jobs) as threads:
            return self._predict(self._checked(X, threads), threads)

    def predict_proba(self, X: Any) -> Array:
        """Responsibilities (n, K): the probability of each cluster for each row."""
        with Threads(self.n_jobs) as threads:
            source = self._checked(X, threads)
            return np.concatenate(list(self._map_rows(source, threads, self._responsibilities)))

    def transform(self, X: Any) -> Array:
        """Responsibilities as features, (n, K); the same as `predict_proba`."""
        return self.predict_proba(X)

    def score_samples(self, X: Any) -> Array:
        """Log posterior-predictive density of each row, (n,): a mixture of Student-t densities for Gaussian clusters."""
        with Threads(self.n_jobs) as threads:
            source = self._checked(X, threads)
            return np.concatenate(list(self._map_rows(source, threads, self._log_density)))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log posterior-predictive density per row."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[Array, NDArray[np.intp]]:
        """Draw rows from the posterior predictive: X (n_samples, D) and their clusters (n_samples,), sorted by cluster."""
        check_is_fitted(self)
        if not choices.whole(n_samples):
            raise ValueError(f"n_samples must be a whole number of at least 1; got {n_samples!r}.")
        rng = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        labels = np.sort(rng.choice(self.n_clusters_, size=n_samples, p=self.weights_))
        N, S = self.summary_.N, self.summary_.S
        sizes = np.bincount(labels, minlength=self.n_clusters_)
        draws = [self.model_.likelihood.sample(N[k], S[k], rng, size) for k, size in enumerate(sizes) if size]
        return np.concatenate(draws), labels

    def save(self, path: Any) -> None:
        """Write the fitted model to a file that `stickbreak.load` reads; no pickle is involved."""
        from ..storage import save_model

        check_is_fitted(self)
        save_model(self, path)

    def summary(self, n_clusters: int = 20) -> None:
        """Print a table of the largest clusters."""
        from ..report.tables import print_summary

        check_is_fitted(self)
        print_summary(self, n_clusters)

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    def _set_fitted(
        self,
        model: Model,
        summary: Summary,
        dtype: np.dtype[np.floating],
        history: list[Lap],
        feature_names: Sequence[str] | None,
        n_features: int,
    ) -> None:
        """Derive every fitted attribute but ``labels_`` and ``converged_`` from the state of a fit."""
        self.model_, self.summary_, self.dtype_, self.history_ = model, summary, dtype, history
        self.n_features_in_ = n_features
        if feature_names is not None:
            self.feature_names_in_ = np.asarray(feature_names, dtype=object)
        self.n_clusters_ = summary.K
        self.weights_ = model.allocation.mean_weights(summary)
        self.means_, self.covariances_ = model.likelihood.posterior(summary.N, summary.S)
        self.lower_bound_ = model.bound(summary)
        self.lower_bounds_ = [lap.lower_bound for lap in history]
        self.n_laps_ = len(history)

    def _fit(self, X: Any, sample_weight: Any) -> str | None:
        """Fit, set the attributes, and say what there is to warn of."""
        source = as_source(self, X, sample_weight, reset=True)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        with Threads(self.n_jobs) as threads:
            check_finite(self, source, threads)
            model = choices.model(self, source)
            total, history, trouble = self._infer(model, source, threads, np.random.default_rng(seed))
            names = getattr(self, "feature_names_in_", None)
            self._set_fitted(model, total, source.dtype, history, names, source.n_columns)
            try:
                self.labels_ = self._predict(source, threads)
            except KeyboardInterrupt:
                self.__dict__.pop("labels_", None)
                trouble = "interrupted while labelling the rows: the model is complete, but labels_ is not set."
        self.converged_ = trouble is None
        return trouble

    def _infer(
        self, model: Model, source: ArraySource, threads: Threads, rng: np.random.Generator
    ) -> tuple[Summary, list[Lap], str | None]:
        """The summary found, the history, and what there is to warn of."""
        history: list[Lap] = []
        options = Options(choices.n_batches(self, source), self.max_laps, self.tol)
        with self._progress(source) as on_lap:
            start = choose_start(self, model, source, threads, rng)
            steps = choices.stochastic(self.algorithm)
            ascent: Search | StochasticLaps
            if steps is None:
                ascent = Search(model, source, tuple(dict.fromkeys(self.moves)), threads, rng, options, on_lap, history)
            else:
                ascent = StochasticLaps(model, source, steps, threads, rng, options, on_lap, history)
            trouble = None
            try:
                ascent.run(start)
                if not ascent.converged:
                    trouble = (
                        f"not converged after max_laps={self.max_laps}; raise max_laps or tol for a settled bound."
                    )
            except KeyboardInterrupt:
                if not history:
                    raise
                trouble = f"interrupted after {len(history)} laps; the best model so far is kept."
        return ascent.total, history, trouble

    def _checked(self, X: Any, threads: Threads) -> ArraySource:
        check_is_fitted(self)
        source = as_source(self, X)
        check_finite(self, source, threads)
        return source

    def _parameters(self, dtype: np.dtype[np.floating]) -> Parameters:
        return self.model_.parameters(self.summary_, dtype)

    def _predict(self, source: ArraySource, threads: Threads) -> NDArray[np.intp]:
        parts = self._map_rows(source, threads, lambda *rows: self._responsibilities(*rows).argmax(axis=1))
        return np.concatenate(list(parts))

    def _map_rows(self, source: ArraySource, threads: Threads, task: Callable[..., Array]) -> Any:
        parameters = self._parameters(source.dtype)

        def rows(chunk: Chunk) -> Array:
            result = task(*source.read(chunk), parameters)
            source.release()
            return result

        return threads.map(rows, source.batches(1)[0])

    def _responsibilities(self, X: Array, weights: Array, parameters: Parameters) -> Array:
        _, kept = local_step(self.model_, parameters, X, weights)
        R = np.zeros((len(X), len(parameters.bias)), dtype=X.dtype)
        R[np.repeat(np.arange(len(X)), np.diff(kept.indptr)), kept.indices] = kept.values
        return R

    def _log_density(self, X: Array, weights: Array, parameters: Parameters) -> Array:
        log_densities = self.model_.likelihood.log_predictive(X.astype(np.float64), self.summary_.N, self.summary_.S)
        return np.asarray(logsumexp(log_densities + np.log(self.weights_), axis=1))

    def _progress(self, source: ArraySource) -> Any:
        if not self.verbose:
            return nullcontext(lambda lap: None)
        from ..report.progress import Progress

        return Progress(source.n_rows, self.max_laps, enabled="auto")
