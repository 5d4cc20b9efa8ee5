"""The hidden Markov model estimator."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from ..allocations import Allocation, Duration, GammaConcentration
from ..allocations.markov import ChainPrior
from ..data.labelled_rows import with_classes
from ..data.opening import in_files
from ..inference import Algorithm, Executor, Memoized, Session, StateRenewal, Streaming
from ..inference.memory import Chains, Sizes
from ..likelihoods import Likelihood
from ..model import Model, SequenceSummary, Summary
from . import _allowed as allowed
from . import _chains as chains
from . import _choices as choices
from . import _sequences as sequences
from ._chosen import Choice
from ._devices import warn_of_processors
from ._merged import Again, merged
from ._selection import recalled, remember
from ._sequence_reading import SequenceReading
from ._sequence_setup import classes_of_sequences, sequence_setup
from ._setup import Outcome, Setup
from ._stability import Stability, stability_of_labels
from ._state_selection import decide_family
from ._streams import Continuation, begin_stream, learn_more, renewing

if TYPE_CHECKING:
    from ..plots.accessors import StatePlots


class HMM(ClusterMixin, SequenceReading):
    """Hidden Markov model that finds its own number of states.

    Every row of a sequence has a state, which depends on the state before:

        z_1 ~ pi_0,   z_t ~ pi_{z_{t-1}},   x_t ~ likelihood of state z_t,   pi_j ~ DP(alpha beta + kappa delta_j),

    with shares beta of all states in common, by sticks of Beta(1, concentration), and kappa extra pseudo-counts on
    self-transitions.  Maximises a lower bound on the evidence of all sequences (ELBO), which is exact after every lap and never
    goes down; states are split, merged, deleted and taken from contiguous blocks of rows where that raises it.

    Parameters
    ----------
    likelihood : str or likelihood object, default "auto"
        Family of the rows of a state: a name in `stickbreak.likelihoods.REGISTRY` such as "gaussian", "bernoulli" or
        "autoregressive_gaussian", whose rows follow from those before; or an object.  "auto": by what the columns hold, and for
        columns of numbers "gaussian", "diagonal_gaussian" or "autoregressive_gaussian" of order 1 or 2, whichever has the
        highest bound: of whole fits where rows are not many, else on a sample.  Columns of few different whole numbers
        from 0 may be counts, numbers or codes of categories, by the bound again.  Autoregressive rows have their density given
        those before: the first have none, so that ``lower_bound_`` compares with that of other likelihoods only as
        ``selection_`` does.  With a model as ``init``, the family that it has chosen by itself.
    allocation : {"hdp", "finite"} or allocation object, default "hdp"
        The prior over states: sticky HDP-HMM, or Dirichlet rows over ``n_init_states`` states.
    stickiness : "learn", float >= 0 or `stickbreak.allocations.Duration`, default "learn"
        kappa, the pseudo-count of staying in a state; by default it maximises the ELBO.  ``Duration(20)`` expects states that
        last 20 steps.
    transition_concentration : "learn" or float > 0, default "learn"
        alpha, pseudo-counts of a row of transitions together, without kappa.
    start_concentration : float > 0, default 10.0
        alpha_0, the same of the states that sequences begin in.
    concentration : float > 0, "learn" or `stickbreak.allocations.GammaConcentration`, default 5.0
        gamma, of the sticks; larger values expect more states.  With a prior, such as
        ``GammaConcentration(shape=1.0, rate=0.2)``, the ELBO is that of an unknown concentration, whose posterior is found.
    algorithm : {"memoized", "full", "stochastic"}, `inference.Memoized`, `Stochastic` or `Gibbs`, default "memoized"
        Incremental over batches of sequences, all at once, or noisy steps, for which long sequences are cut and states are
        found on a sample of about 20,000 rows.  ``Gibbs(kind="blocked")`` draws the states of the rows from their posterior;
        the model is that of the states nearest to the draws.  `inference.Streaming` lets states be born, merge and die in
        `partial_fit`, and forgets.
    n_batches : int >= 1, default one per 5,000 rows, at most 10 or one per sequence (stochastic: one per 1,000, at most 100)
        Batches visited per lap.
    init : {"one", "blocks"}, array, fitted HMM or fitted Mixture, default "one"
        One state; ``n_init_states`` contiguous blocks of rows; labels (T,) of rows; or the states of another model.  An HMM
        of the same likelihood also lends what is learnt: on its own sequences the fit ends no lower than it did.
    n_init_states : int >= 1, default 25
        For ``init="blocks"``, and the number of states of ``allocation="finite"``.
    moves : sequence of {"birth", "merge", "delete"}, default all
        Moves that may change the number of states.  States without rows are always removed.
    n_init : int >= 1, default 1
        Number of fits, each with its own random numbers; the one with the highest ELBO is kept.
    max_laps : int >= 1, default 5000
        Maximum number of passes over the data.
    label_error : float from 0 to below 1, or None, default 0.0
        With labels y: the share of them that are wrong, as in `Mixture`; None: learnt.
    learn : bool or sequence of str, default True
        What else to learn between laps, to values that raise the ELBO, once there are several states, and in the last laps.
        True: the hyperparameters of the likelihood that were not given; or names, such as "scale", also of numbers that were
        given above.  Parameters above that are "learn" are learnt in any case.
    tol : float >= 0, default 0.005
        Nats: converged when a lap raises the ELBO by less than this for each state, and no count moves by over 0.1% of rows.
    n_jobs : int or None, default None
        Threads; None and -1 use all processors.  The result does not depend on it.
    executor : `stickbreak.DaskExecutor` or None, default None
        Where `fit` visits sequences.  None: on threads of this process; on the active `distributed.Client` if X is an array
        or a frame of Dask.  With ``DaskExecutor(client)`` X is that, or the path or memory map of files that every worker finds
        there.  A sequence is on one worker as a whole.  Samples are searched in this process, and rows that repeat are not
        looked up by codes; where a local fit does that, its search, and so its states, may differ.
    device : str or None, default None
        Where laps compute: "cuda", or "cuda:1", a graphics card (``pip install "stickbreak[gpu]"``); "cpu", torch on the
        processors.  None: compiled loops on the processors, or the card that X, a tensor of torch, is on.  Scores are in the
        precision of X, best float32, messages and sums in float64; bounds are those of a fit without, up to rounding.
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
    n_states_ : int
        K.
    transition_matrix_ : array (K, K)
        Posterior mean probabilities of the next state, given the one in the row.
    start_probabilities_ : array (K,)
        The same of the first state of a sequence.
    selection_ : list of `Candidate`
        With ``likelihood="auto"`` and several families for the columns: each with its ELBO, states and seconds where the search
        begins, best first.  It is that of a sample, as if of all rows, and only of rows with rows before them where
        autoregressive ones are among the families; of those that were fitted to the end to be compared it is that of all rows.
        Empty where there was nothing to choose.
    labels_ : array (T,)
        The most probable path of states (Viterbi) through the sequences fitted; with ``algorithm=Gibbs(...)`` the drawn states
        nearest to all draws.
    draws_ : `stickbreak.inference.Draws`
        With ``algorithm=Gibbs(...)``: "labels", "n_clusters", "concentration" and "log_joint" of every draw, by name, with
        co-clustering probabilities and the convergence of the chains.
    posterior_ : NamedTuple, or dict of them for a Product
        Posterior means of the parameters of the states, in the units of the data; its fields are attributes too.
    stickiness_, transition_concentration_ : float
        kappa and alpha as given or learnt.
    concentration_, concentration_std_ : float
        Of ``allocation="hdp"``: gamma and 0, or with a prior its posterior mean and standard deviation.
    classes_ : array (C,)
        With labels: the classes, in order.  The next three attributes also exist only after such a fit.
    class_counts_, cluster_classes_ : array (K, C)
        Number of labels of each class among the rows of each state; and the probability of each class in each state, which
        follows from overlapping states where its own labels do not decide.
    label_error_ : float
        The share of labels that are wrong, given or learnt.
    lower_bound_ : float
        The ELBO, in nats, for all sequences.
    lower_bounds_ : list of float
        The ELBO of the best model so far after each lap.
    history_ : list of `stickbreak.inference.Lap`
        Per lap: seconds, ELBO, K, moves tried and accepted with their gains, and what its ascent began with.  Above 120,000
        rows states are first searched for on a sample; its laps come first.
    hierarchy_ : `stickbreak.estimators.Hierarchy`
        The merges of the states down to one, with what each loses.  ``hierarchy_.cut(5)`` has the group of each where five
        are left; ``hierarchy_.linkage`` is for `scipy.cluster.hierarchy.dendrogram`.
    data_check_ : list of `stickbreak.data.check.Finding`
        Findings in the data that will mislead states, such as constant columns, repeated rows and outliers, with remedies;
        `fit` warns of them with a ``DataWarning``.  Empty for sparse rows.
    n_laps_, converged_, n_features_in_ : int, bool, int
        Laps done; whether the fit stopped before ``max_laps``; D.

    Examples
    --------
    >>> import numpy as np
    >>> from stickbreak import HMM
    >>> rng = np.random.default_rng(0)
    >>> states = np.repeat(rng.integers(3, size=40), 25)
    >>> X = rng.normal(10.0 * states[:, None], 1.0, (1000, 2))
    >>> HMM(random_state=0).fit(X, lengths=[600, 400]).n_states_
    3

    References
    ----------
    Hughes, Reliable and scalable variational inference for nonparametric mixtures, topics, and sequences, 2016, chapter 6;
    Fox, Sudderth, Jordan and Willsky, A sticky HDP-HMM with application to speaker diarization, 2011.
    """

    def __init__(
        self,
        likelihood: str | Likelihood = "auto",
        *,
        allocation: str | Allocation = "hdp",
        stickiness: str | float | Duration = "learn",
        transition_concentration: str | float = "learn",
        start_concentration: float = 10.0,
        concentration: str | float | GammaConcentration = 5.0,
        algorithm: str | Algorithm = "memoized",
        n_batches: int | None = None,
        init: Any = "one",
        n_init_states: int = 25,
        moves: Sequence[str] = choices.MOVES,
        n_init: int = 1,
        max_laps: int = 5000,
        label_error: float | None = 0.0,
        learn: bool | Sequence[str] = True,
        tol: float = 0.005,
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
        self.allocation = allocation
        self.stickiness = stickiness
        self.transition_concentration = transition_concentration
        self.start_concentration = start_concentration
        self.concentration = concentration
        self.algorithm = algorithm
        self.n_batches = n_batches
        self.init = init
        self.n_init_states = n_init_states
        self.moves = moves
        self.n_init = n_init
        self.max_laps = max_laps
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

    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> Self:
        """Find the states of sequences.

        Parameters
        ----------
        X : array, frame or memory map (T, D), the rows of all sequences one after another; or a list of arrays, a sequence
            each; or a path.  Values may be missing (NaN) where the likelihood can use such rows, and whole rows of any
            likelihood.  A path names a file, a folder or a pattern, as in `stickbreak.data.sequence_files.read_sequences`:
            each file is a sequence, and ``labels_`` are not set.
        y : array (T,), or a list of arrays, one for each sequence; optional
            Labels of some rows, of any types that can be hashed: -1, None and NaN are unknown.  A row with a label is only in
            states of its class, of which there may be several; states without any labels are found, too.  Where none is known,
            the fit is that without y.  Labels of rows without an observation do not count, and neither do those of the first
            rows of sequences that are autoregressive.  With labels, sequences in files are held in memory.
        lengths : array of int, or of files a str; default one sequence, or one for each file
            The number of consecutive rows of X that belong to each sequence; or the column that says which sequence a row
            belongs to, by its name, or its number from "0" on.

        Returns
        -------
        self
            An interrupted fit (Ctrl-C) keeps the best model so far, with a warning; before the first lap is over it
            leaves the estimator as it was.
        """
        allowed.check_states(self)
        return self._guarded(lambda: self._fit(X, y, lengths))

    def fit_predict(self, X: Any, y: Any = None, lengths: Any = None) -> NDArray[np.integer]:
        """Fit, and return the most probable path of states through each sequence, (T,)."""
        self.fit(X, y, lengths)
        known: NDArray[np.integer] | None = getattr(self, "labels_", None)
        return self.predict(X, lengths, y=y) if known is None else known

    def partial_fit(self, X: Any, y: Any = None, lengths: Any = None) -> Self:
        """Learn from more sequences in one visit each: the first call fits, later ones add what their sequences say.

        The number of states stays that of the first call, and so do their numbers; give it enough sequences to find them.  With
        ``algorithm=Streaming()`` states are born, merge and die; then they have new numbers (`stickbreak.inference.Streaming`).
        ``labels_`` are those of the rows of the last call.
        """
        allowed.check_states(self)
        learn = self._add if hasattr(self, "model_") else self._fit
        return self._guarded(lambda: learn(X, y, lengths))

    def merge_states(self, n: int, X: Any, lengths: Any = None, y: Any = None) -> Self:
        """A model of n states: those of this one, merged as ``hierarchy_.cut(n)`` says and fitted to X.

        Laps without moves refit states, transitions and the concentrations that are learnt, and ``lower_bound_`` is the exact
        bound of n states on X.  Much quicker than another fit, and each new state is near the union of some of these.

        Parameters
        ----------
        n : int from 1 to ``n_states_``
        X, lengths, y : as in `fit`, with the same columns; usually the sequences that this model was fitted to

        Returns
        -------
        HMM
            A new fitted model with the parameters of this one, which stays as it is; its ``history_`` is that of the laps.  The
            states are numbered anew, by decreasing size.  One that is left without any row goes, as in `fit`.

        Raises
        ------
        ValueError
            If n is not from 1 to ``n_states_``, X does not have the columns of the fit, or y is left out after a fit
            with labels.
        sklearn.exceptions.NotFittedError

        Examples
        --------
        >>> import numpy as np
        >>> from stickbreak import HMM
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(10.0 * np.repeat(rng.integers(3, size=40), 25)[:, None], 1.0, (1000, 2))
        >>> HMM(random_state=0).fit(X).merge_states(2, X).transition_matrix_.shape
        (2, 2)
        """
        return merged(self, n, lambda model, executor: model._again(X, y, lengths, executor))

    def stability(self, X: Any, n: int | None = None, n_fits: int = 5, lengths: Any = None, y: Any = None) -> Stability:
        """Whether fits with other seeds find the same states: `stickbreak.estimators.Stability`.

        Fits ``n_fits`` copies of this estimator to X, with seeds of their own that follow from ``random_state``, and compares
        their most probable paths through X (adjusted Rand index), and the rows of each state of this model with those of theirs
        (Jaccard overlap).

        Parameters
        ----------
        X, lengths, y : as in `fit`; usually the data that this model was fitted to
        n : int from 1 to ``n_states_``, default None
            The hierarchies are cut at n states; a fit that found fewer stays as it is.  None: every fit as it is.
        n_fits : int >= 2, default 5
            Each takes as long as `fit`.

        Returns
        -------
        Stability
            ``agreement`` of pairs of fits, near 1 if all find the same; ``twins`` of each state of this model, near 1
            if every fit finds it; ``n_clusters`` and ``lower_bounds`` of the fits.  If ``init`` is an array or a model, fits
            start alike and agree more than others.

        Raises
        ------
        ValueError
            If n is not from 1 to ``n_states_``, n_fits is below 2, X does not have the columns of the fit, or y is left out
            after a fit with labels.
        sklearn.exceptions.NotFittedError
        """
        check_is_fitted(self, "model_")
        self._require_labels(y)
        return stability_of_labels(
            self, X, n, n_fits, lambda model: model.fit(X, y, lengths), lambda model: model.predict(X, lengths, y=y)
        )

    def summary(self, n_states: int = 20, feature_names: Sequence[str] | None = None) -> None:
        """Print a table of the most frequent states and what sets each apart, with the names of columns if known."""
        self._print_summary(n_states, feature_names)

    @property
    def plot(self) -> "StatePlots":
        """Pictures of the fitted model, such as ``model.plot.timeline(X, lengths)``; they need matplotlib."""
        from ..plots.accessors import StatePlots

        check_is_fitted(self)
        return StatePlots(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _name_clusters(self, model: Model, summary: Summary) -> None:
        allocation = model.allocation
        assert isinstance(allocation, ChainPrior)
        assert isinstance(summary, SequenceSummary)
        means = allocation.means(summary)
        self.n_states_ = summary.K
        self.start_probabilities_ = means[0]
        self.transition_matrix_ = means[1:]
        self.stickiness_ = float(allocation.stickiness)
        self.transition_concentration_ = float(allocation.transition_concentration)
        self._name_concentration(allocation, summary)

    def _clusters_of_named_start(self) -> int:
        return 1 if self.init == "one" else int(self.n_init_states)

    def _sized(self, sizes: Sizes, source: Any) -> Sizes:
        distinct = 0 if source.codes is None else sizes.rows
        batches = min(sizes.batches, source.n_sequences)
        return replace(sizes, footprint=Chains(), rows=source.n_rows, distinct=distinct, batches=batches)

    def _fit(self, X: Any, y: Any, lengths: Any) -> str | None:
        """Fit, set the attributes, and say what there is to warn of."""
        source = sequences.as_sequences(self, X, lengths, chains.given_lags(self), reset=True)
        classes = classes_of_sequences(self, X, y, source)
        with self._executor(X) as executor:
            session = self._session(executor, source if classes is None else with_classes(source, classes.codes))
            seed = self._seed(session.journal)
            alike = classes is None and isinstance(choices.algorithm(self), Memoized)
            choice: Choice = recalled(session.journal) or decide_family(self, source, session, seed, alike)
            prepare = partial(sequence_setup, self, X, source, classes, session)
            family, (found, outcome, _) = choice.fit(prepare, partial(self._ascend_from, session, seed))
            remember(session.journal, family)
            self._close(session, outcome)
            self._name_classes(None if classes is None else classes.names)
            self.data_check_ = found.findings
            warn_of_processors(self, X, found.prior, found.source)
            self.selection_ = family.candidates
            self._set_fitted(outcome.model, outcome.total, source.dtype, outcome.history, self._table(0))
            labels = None if in_files(X) else partial(self._paths, found.visited, found.columns, executor)
            trouble = self._set_drawn(outcome.sampled, labels) or outcome.trouble
            begin_stream(self, found.prior, found.source, Streaming.recalled)
        self.converged_ = trouble is None
        return trouble

    def _ascend_from(self, session: Session, seed: int, setup: Setup) -> Outcome:
        """What comes of a setup, with the random numbers of a seed; the fit may go on."""
        return self._ascend(setup, session, np.random.default_rng(seed), last=False)

    def _add(self, X: Any, y: Any, lengths: Any) -> str | None:
        with self._executor(X) as executor:
            source, columns = self._source(X, lengths, executor, y)
            self._refuse_first_labels(sequences.labels_of(y, X), source.n_rows)
            self._widen(columns.missing)
            learn_more(self, source, executor, self._continuation)
            return self._set_labels(None if in_files(X) else partial(self._paths, source, columns, executor))

    def _continuation(self, algorithm: Streaming) -> Continuation:
        """How a stream of sequences goes on."""
        weight = float(self.summary_.N.sum())
        return renewing(self, algorithm, weight, StateRenewal, sequences.collapsed, chains.learnt_again(self))

    def _again(self, X: Any, y: Any, lengths: Any, executor: Executor) -> Again:
        """The rows of X, checked, for the fitted model to be fitted to anew."""
        self._require_labels(y)
        source, columns = self._source(X, lengths, executor, y)
        sequences.check_observed(source)
        labels = None if in_files(X) else partial(self._paths, source, columns, executor)
        return Again(source, columns.missing, chains.learnt_again(self), labels)
