"""The mixture estimator."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, DensityMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..allocations import Allocation, GammaConcentration
from ..allocations.mixture import MixturePrior
from ..data import ArraySource
from ..data.opening import in_files
from ..inference import Algorithm, Executor, Sequential, Session, Streaming
from ..likelihoods import Likelihood
from ..likelihoods.linked import of_rows
from ..model import Kind, Model, RowKind, Summary
from ..moves import AdoptedBirth, BatchBirth
from . import _allowed as allowed
from . import _choices as choices
from . import _hyperparameters as hyperparameters
from . import _likelihoods as likelihoods
from ._base import as_source
from ._chosen import Choice
from ._devices import warn_of_processors
from ._distinct import Distinct
from ._family import decide_family
from ._links import labels_of_groups
from ._merged import Again, merged
from ._row_reading import RowReading
from ._row_setup import distinct_rows, row_setup
from ._selection import recalled, remember
from ._setup import Outcome, Setup
from ._stability import Stability, stability_of_labels
from ._streams import Continuation, begin_stream, learn_more
from ._told import Told

if TYPE_CHECKING:
    from ..plots.accessors import MixturePlots

Array = NDArray[np.floating]


class Mixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, DensityMixin, RowReading):
    """Mixture model that finds its own number of clusters.

    Maximises the evidence lower bound (ELBO) of a Dirichlet-process mixture,

        log p(X) >= ELBO = sum_n log h(x_n) + sum_k [ logZ(posterior_k) - logZ(prior) ] + sum_k H_k + L_alloc(N),

    which is exact for the whole data set after every lap and never goes down.  Births, merges and deletes change the
    number of clusters and are kept only if the ELBO of the whole data set rises.

    Parameters
    ----------
    likelihood : str or likelihood object, default "auto"
        The family of the clusters.  "auto": by what each column holds; for columns of numbers the ELBO of searches of a sample
        chooses between families, and which columns are on the log scale, unless a simpler family needs more than twice as many
        clusters as a fuller one; of no more than 5,000 rows families that come close are fitted to the end, and the best of
        these fits is kept; sparse rows are counts of words, "multinomial"; with a model as ``init``, the family of that.
        Columns that name the rows are left out, with a warning, as if they were not there: draws and missing values of theirs
        stay missing.  Or a name in `stickbreak.likelihoods.REGISTRY` such as "gaussian" or "bernoulli", with a default prior,
        or an object such as ``Gaussian(scale=0.5)``.
    concentration : float > 0 or `allocations.GammaConcentration`, default 1.0
        Of the allocation; larger values expect more clusters.  Not used if ``allocation`` is an object.  With a prior, such as
        ``GammaConcentration(shape=1.0, rate=1.0)``, the ELBO is that of an unknown concentration, whose posterior is found.
    allocation : {"dp", "pitman-yor", "finite"} or allocation object, default "dp"
        The prior over assignments: a Dirichlet process; a Pitman-Yor process with a discount of 0.5, for sizes that follow a
        power law; or a symmetric Dirichlet over ``n_init_clusters`` clusters.  An object such as
        ``PitmanYor(1.0, discount=0.2)`` has other parameters.
    algorithm : {"memoized", "full", "stochastic", "sequential"}, or a value such as `inference.Memoized`, \
`inference.Stochastic`, `inference.Sequential` or `inference.Gibbs`, default "memoized"
        Incremental over batches, all data at once, or noisy steps.  Stochastic inference has no exact bound to verify
        moves with: the number of clusters is that of the start, which for ``init="one"`` is found on a sample.
        Sequential inference begins clusters in a single pass over the rows, `inference.TruncationFree` in stochastic steps.
        `inference.Streaming` lets clusters be born, merge and die in `partial_fit`, and forgets.
        `inference.Gibbs` draws partitions of the rows from their posterior; the model is the one nearest to the draws.
    n_batches : int >= 1, default one per 5,000 rows, at most 10 (stochastic: one per 1,000 rows, at most 100)
        Batches visited per lap.
    init : {"one", "k-means++", "k-means", "random", "permutation"}, array or fitted Mixture, default "one"
        One cluster, which births then split; ``n_init_clusters`` rows as seeds, far apart ("k-means++"), followed by hard
        assignments ("k-means"), or drawn at random; one pass over rows in random order ("permutation"); an array of labels (N,)
        or responsibilities (N, K); or the clusters of another model.
    n_init_clusters : int >= 1, default 10
        For the names other than "one", and the number of clusters of ``allocation="finite"``.
    moves : sequence of {"birth", "merge", "delete"}, or with published births in place of "birth"; default all three
        Moves that may change the number of clusters.  With ``()`` only clusters without rows are removed.  With
        ``BatchBirth(n_new=10)`` births are those of Thesis 4.2, decided on after single batches, and the fit is one ascent.
        With ``AdoptedBirth(n_new=10)`` they are those of 2013 (`stickbreak.moves`).
    label_error : float from 0 to below 1, or None, default 0.0
        With labels y: the share of them that are wrong.  0: labels are facts, and a row with one is in clusters of its class
        alone.  Above 0: a label says which class a row's cluster has, but may be wrong.  None: the share is learnt.
    seeds : mapping from str, or None, default None
        Clusters that are named in advance, each with rows like its own: ``{"small": rows, "large": other_rows}``, arrays or
        frames with the columns of X.  In the prior of such a cluster, and of no other, these rows count beside that of all
        clusters, so that it forms around them; the other clusters and their number are found as usual.  It keeps its name and
        stays, however few rows it has; it takes in clusters without a name, but never another with one.  The ELBO is that of
        this model, in which rows of ``seeds`` are no data.  Not together with labels y.
    seed_weight : float > 0, default 1.0
        The rows of X that each row of ``seeds`` counts as; all together no more than X has, or 10,000.
    n_init : int >= 1, default 1
        Number of fits, each with its own random numbers; the one with the highest ELBO is kept.
    max_laps : int >= 1, default 5000
        Maximum number of passes over the data.
    most_kept : int >= 1 or None, default None
        L, the most clusters that a row has responsibilities for while fitting (Thesis 7.1); 1 is hard assignment, None is no
        limit.  The ELBO is exact for the responsibilities that are kept.  Predictions have no limit.
    candidates : int >= 2 or None, default 16
        C, the clusters nearest to its own that a row chooses among in most laps of a large fit with 3 C clusters or more, while
        clusters overlap so little that it would cost the ELBO less than a lap must gain for another; None: always all clusters.
        The ELBO is exact in every lap, a lap that lowers it is undone, and a fit ends by itself only after a lap that looks at
        all clusters.
    learn : bool or sequence of str, default True
        The hyperparameters to learn between laps, to values that raise the ELBO (empirical Bayes).  True: those of the
        likelihood that are not given.  False: none.  Names, such as "scale", "mean_precision" or "degrees_of_freedom": those,
        given or not; "concentration" is that of the allocation, "discount" that of a Pitman-Yor process,
        "likelihood.concentration" that of a `Multinomial`, and "part.scale" is that of one part of a `Product`.
    tol : float >= 0, default 0.01
        Nats: converged when a lap raises the ELBO by less than this for each cluster, and no count moves by over 0.1% of rows.
        In a search where laps take long, also when it is raised by less than 0.01% of what the parameters of all clusters cost.
    n_jobs : int or None, default None
        Threads; None and -1 use all processors.  The result does not depend on it.
    executor : `stickbreak.DaskExecutor` or None, default None
        Where `fit` visits X.  None: on threads of this process; on the active `distributed.Client` if X is an array or a frame
        of Dask.  With ``DaskExecutor(client)`` X is that, or the path or memory map of files that every worker finds there.
        Samples are searched in this process.  The result is that of a local fit, up to the rounding of sums.  Rows that
        repeat are not collapsed.
    device : str or None, default None
        Where laps compute: "cuda", or "cuda:1", a graphics card (``pip install "stickbreak[gpu]"``); "cpu", torch on the
        processors.  None: compiled loops on the processors, or the card that X, a tensor of torch, is on.  Features, scores
        and responsibilities are in the precision of X, best float32, and sums in float64; bounds are those of a fit without,
        up to rounding.  Not for sparse rows and likelihoods with latent variables, such as `StudentT`.
    random_state : int, RandomState or None, default None
        Seed of all random numbers.
    checkpoint : path or None, default None
        A file, usually ``*.safetensors``, to which the state of a fit is written atomically from time to time.  After a crash
        or Ctrl-C the same call resumes there, and its result is the same to the bit as without the interruption.  When the fit
        is over, the file holds its outcome, which the same call then returns at once.  Data and parameters must be those of
        the first call, except ``max_laps``, ``n_jobs``, ``executor`` and ``verbose``; remove the file to begin anew.  If it
        cannot be written, a UserWarning says so, and the fit goes on.
    checkpoint_seconds : float >= 0, default 30
        Minimum time between two writes; longer if a write takes more than a hundredth of it.
    max_memory : float > 0 or None, default None
        Bytes that a fit may use in addition to the data; None: those that are free according to the system, its control groups
        and the limits of the process.  If they are few, the fit uses fewer batches and clusters; if they do not suffice, `fit`
        raises a MemoryError that says what to change.
    verbose : bool, default False
        Show a progress line on a terminal.

    Attributes
    ----------
    n_clusters_ : int
        K.
    weights_ : array (K,)
        Posterior mean weights, in decreasing order of size, summing to one.
    posterior_ : NamedTuple, or dict of them for a Product
        Posterior means of the parameters of the clusters, in the units of the data; of a `LogScale` those of the logarithms.
    means_, covariances_, variances_, probabilities_, rates_, coefficients_, intercepts_ : array (K, ...)
        The fields of ``posterior_``: those that the likelihood has.
    concentration_, concentration_std_ : float
        Posterior mean and standard deviation of the concentration: without a prior, its value, learnt or given, and 0.
    levels_ : dict
        The names of the levels of columns that held categories, by the number of the column; none of columns left out.
    selection_ : list of Candidate
        With ``likelihood="auto"`` and several families or scales for the columns of numbers: each, such as "gaussian, log
        scale: income", with its ELBO, less what learning costs, clusters and seconds: on a sample (all rows, where they are
        few), or of a fit to the end, where several were compared; the one chosen first, then the others, best first.  Empty
        where there was nothing to choose.
    labels_ : array (N,)
        The most probable cluster of each row; of a sampler that in the partition nearest to its draws.  Not of a fit to files.
    draws_ : `stickbreak.inference.Draws`
        With ``algorithm=Gibbs(...)``: "labels", "n_clusters", "concentration" and "log_joint" of every draw, by name, in
        arrays with axes (chains, draws, ...), co-clustering probabilities and convergence.  A model file does not keep them.
    seeded_clusters_ : dict from str to int
        The cluster of each name in ``seeds``.
    classes_ : array (C,)
        With labels: the classes, in order.  The next three attributes also exist only after such a fit.
    class_counts_, cluster_classes_ : array (K, C)
        Number of labels of each class among the rows of each cluster; and the probability of each class in each cluster, which
        follows from overlapping clusters where its own labels do not decide.
    label_error_ : float
        The share of labels that are wrong, given or learnt.
    lower_bound_ : float
        The ELBO, in nats, for the whole data set; with labels that of rows and labels together.
    lower_bounds_ : list of float
        The ELBO of the best model so far after each lap.
    history_ : list of `stickbreak.inference.Lap`
        Per lap: seconds, ELBO, K, moves tried and accepted with their gains, and what its ascent began with.
    n_laps_ : int
        Laps done.
    converged_ : bool
        Whether the fit stopped before ``max_laps``.
    hierarchy_ : `stickbreak.estimators.Hierarchy`
        The merges of the clusters down to one, with what each loses.  ``hierarchy_.cut(5)`` has the group of each where five
        are left; ``hierarchy_.linkage`` is for `scipy.cluster.hierarchy.dendrogram`.
    data_check_ : list of `stickbreak.data.check.Finding`
        Findings in the data that will mislead clusters, such as constant columns, repeated rows and outliers, with remedies;
        `fit` warns of them with a ``DataWarning``.  Empty for sparse rows.
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

    _takes_latent: ClassVar[bool] = True

    def __init__(
        self,
        likelihood: str | Likelihood = "auto",
        *,
        concentration: float | GammaConcentration = 1.0,
        allocation: str | Allocation = "dp",
        algorithm: str | Algorithm = "memoized",
        n_batches: int | None = None,
        init: Any = "one",
        n_init_clusters: int = 10,
        moves: Sequence[str | BatchBirth | AdoptedBirth] = choices.MOVES,
        n_init: int = 1,
        max_laps: int = 5000,
        most_kept: int | None = None,
        candidates: int | None = 16,
        label_error: float | None = 0.0,
        seeds: Any = None,
        seed_weight: float = 1.0,
        learn: bool | Sequence[str] = True,
        tol: float = 0.01,
        n_jobs: int | None = None,
        executor: Any = None,
        device: str | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        checkpoint_seconds: float = 30.0,
        max_memory: float | None = None,
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
        self.n_init = n_init
        self.max_laps = max_laps
        self.most_kept = most_kept
        self.candidates = candidates
        self.learn = learn
        self.tol = tol
        self.n_jobs = n_jobs
        self.executor = executor
        self.device = device
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.max_memory = max_memory
        self.verbose = verbose
        self.label_error = label_error
        self.seeds = seeds
        self.seed_weight = seed_weight

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Find the clusters of X.

        Parameters
        ----------
        X : array, frame, sparse matrix or memory map (N, D), or a path
            Missing values, where the likelihood can use them, are NaN, masked, or missing in a frame.  A path names a file, a
            folder, or a pattern such as ``"data/*.parquet"`` (`stickbreak.data.opening.open_table`); what is large is read
            while rows are visited, and ``labels_`` are not set: write them with `predict`.
        y : array (N,) or (N, q), optional
            Labels of some rows, of any types that can be hashed: -1, None and NaN are unknown.  A row with a label is only in
            clusters of its class, of which there may be several; clusters without any labels are found, too.  Where none is
            known, the fit is that without y.  For a likelihood of targets, such as `LinearRegression`, its targets instead,
            where they are not columns of X.
        sample_weight : array (N,), optional
            A row of weight 2 counts as the row twice.
        groups : array (N,), optional
            The group of each row, of any types that can be hashed; rows with -1, None or NaN are in none.  All rows of a group
            are in one cluster: each group draws a cluster, and its rows are independent given that.  So weights and the prior
            over clusters count groups, and the ELBO is that of this model.  A label of one of its rows is one of the group.

        Returns
        -------
        self
            An interrupted fit (Ctrl-C) keeps the best model so far, with a warning; before the first lap is over it
            leaves the estimator as it was.
        """
        allowed.check_mixture(self)
        return self._guarded(lambda: self._fit(X, y, sample_weight, groups))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows in one visit each: the first call fits, later ones add what their rows say.

        The number of clusters stays that of the first call, and so do their numbers; give it enough rows to find them.  With
        ``algorithm="sequential"`` rows may also begin clusters, which are numbered after those that there are.  With
        ``algorithm=Streaming(forgetting=0.99)`` clusters are born, merge and die; then they have new numbers, by size.
        ``labels_`` are those of the rows of the last call.
        """
        allowed.check_mixture(self)
        learn = self._add if hasattr(self, "model_") else self._fit
        return self._guarded(lambda: learn(X, y, sample_weight))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> NDArray[np.integer]:
        """Fit, and return the most probable cluster of each row, (n,)."""
        self.fit(X, y, sample_weight, groups)
        known: NDArray[np.integer] | None = getattr(self, "labels_", None)
        return self.predict(X) if known is None else known

    def transform(self, X: Any) -> Array:
        """Responsibilities as features, (n, K); the same as `predict_proba`."""
        return self.predict_proba(X)

    def score(self, X: Any, y: Any = None, *, unseen: bool = False) -> float:
        """Mean log posterior-predictive density per row; ``unseen`` as in `score_samples`."""
        return float(self.score_samples(X, y, unseen=unseen).mean())

    def merge_clusters(self, n: int, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """A model of n clusters: those of this one, merged as ``hierarchy_.cut(n)`` says and fitted to X.

        Laps without moves refit clusters, weights and the hyperparameters that are learnt, and ``lower_bound_`` is the exact
        bound of n clusters on X.  Much quicker than another fit, and each new cluster is near the union of some of these.

        Parameters
        ----------
        n : int from 1 to ``n_clusters_``
        X, y, sample_weight : as in `fit`, with the same columns; usually the data that this model was fitted to

        Returns
        -------
        Mixture
            A new fitted model with the parameters of this one, which stays as it is; its ``history_`` is that of the laps.  The
            clusters are numbered anew, by decreasing size.  One that is left without any row goes, as in `fit`.

        Raises
        ------
        ValueError
            If n is not from 1 to ``n_clusters_``, X does not have the columns of the fit, or y is left out after a fit
            with labels.
        sklearn.exceptions.NotFittedError

        Examples
        --------
        >>> import numpy as np
        >>> from stickbreak import Mixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(m, 1.0, (200, 2)) for m in (-40, -30, 30)])
        >>> Mixture(random_state=0).fit(X).merge_clusters(2, X).weights_.round(2)
        array([0.67, 0.33])
        """
        if self._has_groups:
            raise ValueError("clusters of groups of rows cannot be refitted; look at hierarchy_.cut(n), or fit again.")
        return merged(self, n, lambda model, executor: model._again(X, y, sample_weight, executor))

    def stability(
        self,
        X: Any,
        n: int | None = None,
        n_fits: int = 5,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Stability:
        """Whether fits with other seeds find the same clusters: `stickbreak.estimators.Stability`.

        Fits ``n_fits`` copies of this estimator to X, with seeds of their own that follow from ``random_state``, and compares
        their labels of X (adjusted Rand index), and the rows of each cluster of this model with those of theirs (Jaccard
        overlap).  Every row counts once, whatever its weight.

        Parameters
        ----------
        X, y, sample_weight, groups : as in `fit`; usually the data that this model was fitted to
        n : int from 1 to ``n_clusters_``, default None
            The hierarchies are cut at n clusters; a fit that found fewer stays as it is.  None: every fit as it is.
        n_fits : int >= 2, default 5
            Each takes as long as `fit`.

        Returns
        -------
        Stability
            ``agreement`` of pairs of fits, near 1 if all find the same; ``twins`` of each cluster of this model, near 1
            if every fit finds it; ``n_clusters`` and ``lower_bounds`` of the fits.  If ``init`` is an array or a model, fits
            start alike and agree more than others.

        Raises
        ------
        ValueError
            If n is not from 1 to ``n_clusters_``, n_fits is below 2, X does not have the columns of the fit, or y is left out
            after a fit with labels.
        sklearn.exceptions.NotFittedError
        """
        check_is_fitted(self, "model_")
        self._require_labels(y)
        return stability_of_labels(
            self,
            X,
            n,
            n_fits,
            lambda model: model.fit(X, y, sample_weight, groups),
            lambda model: model.predict(X, y),
        )

    def summary(self, n_clusters: int = 20, feature_names: Sequence[str] | None = None) -> None:
        """Print a table of the largest clusters and what sets each apart; columns by name where names are known or given."""
        self._print_summary(n_clusters, feature_names)

    @property
    def plot(self) -> "MixturePlots":
        """Pictures of the fitted model, such as ``model.plot.clusters(X)``; they need matplotlib."""
        from ..plots.accessors import MixturePlots

        check_is_fitted(self)
        return MixturePlots(self)

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    def _name_clusters(self, model: Model, summary: Summary) -> None:
        self.n_clusters_, self.weights_ = summary.K, model.allocation.mean_weights(summary)
        assert isinstance(model.allocation, MixturePrior)
        self.concentration_, self.concentration_std_ = model.allocation.concentration_moments(summary)
        self.seeded_clusters_ = model.likelihood.names_of(summary.S)

    def _clusters_of_named_start(self) -> int:
        return 1 if self.init == "one" else int(self.n_init_clusters)

    def _kind(self, kind: Kind) -> Kind:
        """The kind of rows, with the settings of this estimator."""
        return RowKind(self.most_kept, self.candidates)

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> str | None:
        """Fit, set the attributes, and say what there is to warn of."""
        targets = likelihoods.takes_targets(self)
        source = as_source(self, X, sample_weight, reset=True, y=y if targets else None)
        told = Told.of(self, source, y, groups)
        with self._executor(X) as executor:
            session = self._session(executor, told.known_by(source))
            rng = np.random.default_rng(self._seed(session.journal))
            plain = distinct_rows(self, source)
            choice: Choice = recalled(session.journal) or decide_family(self, source, plain.rows, told, session, rng)
            prepare = partial(row_setup, self, X, source, plain, told, session, rng)
            family, (found, outcome, _) = choice.fit(prepare, partial(self._ascend_from, session, rng))
            remember(session.journal, family)
            self._close(session, outcome)
            self.data_check_ = found.findings
            if told.links is None:
                warn_of_processors(self, X, found.prior, source)
            model = outcome.model
            labels = partial(self._labels_of, found.distinct, found.columns, executor)
            if told.links is not None:
                labels = partial(labels_of_groups, model, outcome.total, found.distinct.rows, told.links, executor)
                model = replace(model, likelihood=of_rows(model.likelihood))
            self._name_classes(None if told.classes is None else told.classes.names)
            self.selection_ = family.candidates
            table = self._table(source.n_columns - self.n_features_in_)
            self._set_fitted(model, outcome.total, source.dtype, outcome.history, table)
            trouble = self._set_drawn(outcome.sampled, None if in_files(X) else labels) or outcome.trouble
            begin_stream(self, found.prior, source, Streaming.remembered)
        self.converged_ = trouble is None
        return trouble

    def _ascend_from(self, session: Session, rng: np.random.Generator, setup: Setup) -> Outcome:
        """What comes of a setup; the fit may go on."""
        return self._ascend(setup, session, rng, last=False)

    def _add(self, X: Any, y: Any, sample_weight: Any) -> str | None:
        with self._executor(X) as executor:
            source, columns = self._known(X, y, executor, sample_weight)
            if not self.n_targets_:
                self._refuse_first_labels(y, source.n_rows)
            self._widen(columns.missing)
            algorithm = choices.algorithm(self)
            known = self.summary_
            if isinstance(algorithm, Sequential):
                known = algorithm.grown(self.model_, known, source, executor)
            learn_more(self, source, executor, partial(self._continuation, source), known)
            labels = partial(self._labels_of, Distinct(source), columns, executor)
            return self._set_labels(None if in_files(X) else labels)

    def _continuation(self, source: ArraySource, algorithm: Streaming) -> Continuation:
        """How a stream of rows like those of a source goes on."""
        learn = hyperparameters.learnt_again(self)
        moves = choices.moves(self)
        return Continuation(
            partial(algorithm.nothing, source), lambda prior: algorithm.of(moves, prior.likelihood, learn)
        )

    def _again(self, X: Any, y: Any, sample_weight: Any, executor: Executor) -> Again:
        """The rows of X, checked, for the fitted model to be fitted to anew."""
        self._require_labels(y)
        source, columns = self._known(X, y, executor, sample_weight)
        distinct = Distinct.of(source)
        learn = hyperparameters.learnt_again(self)
        labels = None if in_files(X) else partial(self._labels_of, distinct, columns, executor)
        return Again(distinct.rows, columns.missing, learn, labels)
