"""The topic model estimator."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..allocations import Allocation, GammaConcentration
from ..allocations.topics import TopicPrior
from ..data import GroupSource
from ..inference import Algorithm, Executor, Streaming, TopicRenewal
from ..inference.memory import Documents, GroupedRows, Sizes
from ..likelihoods import Likelihood
from ..model import Kind, Model, Summary
from ..model.documents import DocumentKind
from . import _allowed as allowed
from . import _choices as choices
from . import _documents as documents
from . import _topics as topics
from ._answers import answers_to, asked, require_answers
from ._continued import known, no_lower
from ._document_setup import document_setup
from ._merged import Again, merged
from ._stability import Stability, stability_of_topics
from ._streams import Continuation, begin_stream, learn_more, renewing
from ._topic_start import first_topics
from ._topic_words import TopicWords

if TYPE_CHECKING:
    from ..plots.accessors import TopicPlots

Array = NDArray[np.floating]


class TopicModel(TopicWords):
    """Topic model that finds its own number of topics.

    Each document d mixes topics that all documents share, in its own proportions:

        pi_d ~ Dirichlet(alpha beta),    z_dt ~ pi_d,    x_dt ~ topic z_dt,    beta ~ sticks of Beta(1, concentration).

    Maximises a lower bound on the evidence of all documents (ELBO).  For counts of words every ascent starts with sweeps of
    Gibbs sampling, which leave poor local optima behind; topics are split while that raises the ELBO by enough, and merged,
    several at once, or deleted where it rises at all.  At the end words begin in other topics where that is better.

    Parameters
    ----------
    likelihood : str or likelihood object, default "multinomial"
        Family of one observation: "multinomial" for words, with a pseudo-count for every word in every topic that is 0.03 at
        first and then learnt; with ``lengths``, any likelihood of dense rows.
    allocation : {"hdp", "lda"} or allocation object, default "hdp"
        The prior over topics: hierarchical Dirichlet process, or latent Dirichlet allocation with ``n_init_topics`` topics
        whose shares are learnt.
    document_concentration : "learn" or float > 0, default "learn"
        alpha, the pseudo-counts of all topics in a document together; by default it maximises the ELBO.
    concentration : float > 0, "learn" or `allocations.GammaConcentration`, default 1.0
        gamma, of the sticks of the hierarchical Dirichlet process; larger values expect more topics.  With a prior, such as
        ``GammaConcentration(shape=1.0, rate=1.0)``, the ELBO is that of an unknown concentration, whose posterior is found.
    algorithm : {"memoized", "full", "stochastic"}, `inference.Memoized` or `inference.Stochastic`, default "memoized"
        Incremental over batches, all documents at once, or noisy steps, for which topics are found on 20,000 documents.
        `inference.Streaming` lets topics be born, merge and die in `partial_fit`, and forgets.
    n_batches : int >= 1, default one per 5,000 documents, at most 10 (stochastic: one per 1,000, at most 100)
        Batches visited per lap.
    init : {"random", "anchor", "k-means++"}, array or fitted TopicModel, default "random"
        Topics at random; from anchor words (Arora et al. 2013); of documents far apart; an array (K, V) of topics, or with
        ``lengths`` of labels of the rows; or those of another model, with the hyperparameters that it has learnt: on its own
        documents, the ELBO is then no lower than its.  A start that is given is not sampled anew.
    n_init_topics : int >= 1, default 64
        Topics at the start, and for ``allocation="lda"`` the most there can be.  Where topics of words may be born and merged,
        a search from ``init="random"`` begins with 64, whatever is given here, and goes on to fewer and more.
    moves : sequence of {"birth", "merge", "delete"}, default all
        Moves that may change the number of topics.
    n_init : int >= 1, default 1
        Number of fits, each with its own random numbers; the one with the highest ELBO is kept.
    max_laps : int >= 1, default 5000
        Maximum number of passes over the data.
    most_kept : int >= 1 or None, default None
        L, the most topics that a document has, in `fit` and `transform` alike (Thesis 7.3, where the limit is for each token);
        1 is hard assignment of documents, None is no limit.  The ELBO is exact for the topics that are kept.
    restarts : int >= 0, default 0
        Topics of each document, the smallest first, that are emptied on trial whenever it is read, in `fit` and `transform`
        alike, and stay so if its part of the ELBO is higher (Thesis Alg. 5.2); 25 is the number of the Thesis.  They raise the
        ELBO, at some cost of time, and make the proportions of documents sparser, which tends to lower held-out completion.
        A few laps of a fit with moves have them in any case.
    seeds : mapping from str, or None, default None
        Topics that are named in advance, each with words in a list, ``{"sport": ["match", "team"], ...}``, or with their
        pseudo-counts, ``{"sport": {"match": 50.0, "team": 20.0}}``.  Words are names, or numbers of columns.  In the prior of
        such a topic, and of no other, its words have these pseudo-counts beside that of all words, so that it forms around
        them; the rest of its words, the other topics and their number are found as usual.  It keeps its name and stays, however
        small; it takes in topics without a name, but never another with one.  The ELBO is that of this model.  With
        ``lengths``: rows like those of each topic, as in `Mixture`.
    seed_weight : float > 0, default 1.0
        Pseudo-counts of a seed word, where they are not given: this many times its number of occurrences in X, and those of a
        word that does not occur; with ``lengths``, the rows that each row of ``seeds`` counts as.
    vocabulary : sequence of V str, or None, default None
        The words of the columns, for ``seeds`` and for tables and pictures, where X does not name them.
    response : {"auto", "gaussian", "categorical"}, an object of `stickbreak.responses`, or None
        What ``y`` of `fit` holds: numbers, whose mean follows from the shares of topics, or classes.  "auto", the default:
        numbers if any is not whole, else classes.  Or a `GaussianResponse` or `MarginResponse` of numbers, or a
        `CategoricalResponse` or `HingeResponse` of classes.  None: y is ignored.
    learn : bool or sequence of str, default True
        What else to learn between laps, to values that raise the ELBO, once there are several topics, and in the last laps.
        True: the hyperparameters of the likelihood and of the response that were not given; or names, such as "concentration"
        of words, also of numbers that were given above, but not of the response; False: nothing.  Parameters above that are
        "learn" are learnt in any case.
    tol : float >= 0, default 0.03
        Nats: converged when a lap raises the ELBO by less than this for each topic.
    n_jobs : int or None, default None
        Threads; None and -1 use all processors.  The result does not depend on it.
    executor : `stickbreak.DaskExecutor` or None, default None
        Where `fit` visits documents.  None: on threads of this process; on the active `distributed.Client` if X is an array,
        a frame or a bag of Dask.  Documents of a bag are lists of words, or mappings of words to counts.  With
        ``DaskExecutor(client)`` X is one of these, or a memory map of counts that every worker finds under its path.  Topics
        are annealed in this process, on a sample where documents are many.
    device : str or None, default None
        Where laps over counts of words compute: "cuda", or "cuda:1", a graphics card (``pip install "stickbreak[gpu]"``);
        "cpu", torch on the processors; None: compiled loops on the processors.  Documents are iterated in float32, as without,
        and their sums are in float64; bounds are those of a fit without, up to rounding.  Annealing, and the fits of births,
        stay on the processors.  Not with ``lengths``, ``most_kept`` or ``restarts``.
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
    n_topics_ : int
        K.
    topics_ : array (K, V)
        Posterior mean probabilities of the words, for counts of words.
    seeded_topics_ : dict from str to int
        The topic of each name in ``seeds``.
    topic_shares_ : array (K,)
        Expected shares of the topics in a new document, summing to one.
    document_concentration_ : float
        alpha.
    concentration_, concentration_std_ : float
        Of the hierarchical Dirichlet process: gamma and 0, or with a prior its posterior mean and standard deviation.
    response_, response_weights_, classes_ : response, array (K, C), array (C,)
        Of a fit with y: the response with what was learnt of it; what a document of one topic answers, for each topic; and of
        classes their names.  See `predict_targets` and `predict_class`.
    posterior_ : NamedTuple, or dict of them for a Product
        Posterior means of the parameters of the topics; its fields are attributes too.
    lower_bound_ : float
        The ELBO, in nats, for all documents.
    lower_bounds_ : list of float
        The ELBO of the best model so far after each lap.
    history_ : list of `stickbreak.inference.Lap`
        Per lap: seconds, ELBO, K, moves tried and accepted with their gains, and what its ascent began with.
    hierarchy_ : `stickbreak.estimators.Hierarchy`
        The merges of the topics down to one, with what each loses.  ``hierarchy_.cut(5)`` has the group of each where five
        are left; ``hierarchy_.linkage`` is for `scipy.cluster.hierarchy.dendrogram`.
    data_check_ : list of `stickbreak.data.check.Finding`
        Findings in the rows of groups that will mislead topics, such as constant columns, repeated rows and outliers, with
        remedies; `fit` warns of them with a ``DataWarning``.
    n_laps_, converged_, n_features_in_ : int, bool, int
        Laps done; whether the fit stopped before ``max_laps``; V.

    Examples
    --------
    >>> import numpy as np
    >>> from stickbreak import TopicModel
    >>> rng = np.random.default_rng(0)
    >>> topics = np.repeat(np.eye(3), 5, axis=1) / 5
    >>> counts = rng.multinomial(50, rng.dirichlet([0.3] * 3, 200) @ topics)
    >>> TopicModel(random_state=0).fit(counts).n_topics_
    3

    References
    ----------
    Hughes, Reliable and scalable variational inference for nonparametric mixtures, topics, and sequences, 2016, chapters
    5 and 7.
    """

    _cluster_axis = 0  # ``init`` holds topics (K, V)
    _fingerprint: str | None = None  # of the documents of the fit, where they are of words and no more were added

    def __init__(
        self,
        likelihood: str | Likelihood = "multinomial",
        *,
        allocation: str | Allocation = "hdp",
        document_concentration: str | float = "learn",
        concentration: str | float | GammaConcentration = 1.0,
        algorithm: str | Algorithm = "memoized",
        n_batches: int | None = None,
        init: Any = "random",
        n_init_topics: int = 64,
        moves: Sequence[str] = choices.MOVES,
        n_init: int = 1,
        max_laps: int = 5000,
        most_kept: int | None = None,
        restarts: int = 0,
        seeds: Any = None,
        seed_weight: float = 1.0,
        vocabulary: Sequence[str] | None = None,
        response: Any = "auto",
        learn: bool | Sequence[str] = True,
        tol: float = 0.03,
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
        self.document_concentration = document_concentration
        self.concentration = concentration
        self.algorithm = algorithm
        self.n_batches = n_batches
        self.init = init
        self.n_init_topics = n_init_topics
        self.moves = moves
        self.n_init = n_init
        self.max_laps = max_laps
        self.most_kept = most_kept
        self.restarts = restarts
        self.seeds = seeds
        self.seed_weight = seed_weight
        self.vocabulary = vocabulary
        self.response = response
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

    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> Self:
        """Find the topics of documents.

        Parameters
        ----------
        X : array, frame or sparse matrix (N, V) of counts, a document in each row; also a corpus of
            `stickbreak.data.corpus.open_corpus`, which stays on disk, or a path: a corpus, bags of words in text, tables, or
            lists of words (`stickbreak.data.document_files.open_documents`).  Numbers that are not whole, such as tf-idf, raise
            a UserWarning.  With ``lengths``: dense rows of all documents.
        y : array (N,), optional
            What documents answer beside their words: numbers, NaN where unknown, or classes, with None, NaN or -1 where
            unknown (see ``response``).  Topics then follow answers as well as words, on one objective (Thesis Eq. 8.3): the
            ELBO of the words and what answers add to it at the expected shares of topics.  Not with ``lengths``,
            ``most_kept``, ``restarts`` or Dask.  Documents without words have no say.
        lengths : array of int, optional
            The number of consecutive rows of X that belong to each document.

        Returns
        -------
        self
            An interrupted fit (Ctrl-C) keeps the best model so far, with a warning; before the first lap is over it
            leaves the estimator as it was.

        Raises
        ------
        ValueError, TypeError
            If X does not hold counts, or y does not hold one answer for each document, or all answers are the same.
        """
        allowed.check_topics(self)
        return self._guarded(lambda: self._fit(X, y, lengths))

    def fit_transform(self, X: Any, y: Any = None, lengths: Any = None) -> Array:
        """Fit, and return `transform` of the same documents."""
        return self.fit(X, y, lengths).transform(X, lengths)

    def partial_fit(self, X: Any, y: Any = None, lengths: Any = None) -> Self:
        """Learn from more documents in one visit each: the first call fits, later ones add what their documents say.

        The number of topics stays that of the first call, and so do their numbers; give it enough documents to find them.  With
        ``algorithm=Streaming()`` topics are born, merge and die; then they have new numbers (`stickbreak.inference.Streaming`).
        """
        allowed.check_topics(self)
        learn = self._add if hasattr(self, "model_") else self._fit
        return self._guarded(lambda: learn(X, y, lengths))

    def merge_topics(self, n: int, X: Any, lengths: Any = None, y: Any = None) -> Self:
        """A model of n topics: those of this one, merged as ``hierarchy_.cut(n)`` says and fitted to X.

        Laps without moves refit topics, shares and the concentrations that are learnt, and ``lower_bound_`` is the exact bound
        of n topics on X.  Much quicker than another fit, and each new topic is near the union of some of these.

        Parameters
        ----------
        n : int from 1 to ``n_topics_``
        X, lengths, y : as in `fit`, with the same words or columns; usually the documents that this model was fitted to

        Returns
        -------
        TopicModel
            A new fitted model with the parameters of this one, which stays as it is; its ``history_`` is that of the laps.  The
            topics are numbered anew, by decreasing share.

        Raises
        ------
        ValueError
            If n is not from 1 to ``n_topics_``, or X does not have the words of the fit.
        sklearn.exceptions.NotFittedError

        Examples
        --------
        >>> import numpy as np
        >>> from stickbreak import TopicModel
        >>> rng = np.random.default_rng(0)
        >>> topics = np.repeat(np.eye(3), 5, axis=1) / 5
        >>> counts = rng.multinomial(50, rng.dirichlet([0.3] * 3, 200) @ topics)
        >>> TopicModel(random_state=0).fit(counts).merge_topics(2, counts).topics_.shape
        (2, 15)
        """
        return merged(self, n, lambda model, executor: model._again(X, y, lengths, executor))

    def stability(self, X: Any, n: int | None = None, n_fits: int = 5, y: Any = None) -> Stability:
        """Whether fits with other seeds find the same topics: `stickbreak.estimators.Stability`.

        Fits ``n_fits`` copies of this estimator to X, with seeds of their own that follow from ``random_state``, and compares
        the probabilities of words: for two fits the mean over the topics of both of the best cosine with a topic of the other.

        Parameters
        ----------
        X : counts of words (N, V), as in `fit`; usually the data that this model was fitted to
        n : int from 1 to ``n_topics_``, default None
            The hierarchies are cut at n topics; a fit that found fewer stays as it is.  None: every fit as it is.
        n_fits : int >= 2, default 5
            Each takes as long as `fit`.
        y : as in `fit`

        Returns
        -------
        Stability
            ``agreement`` of pairs of fits, near 1 if all find the same; ``twins`` of each topic of this model, near 1
            if every fit finds it; ``n_clusters`` and ``lower_bounds`` of the fits.  If ``init`` is an array or a model, fits
            start alike and agree more than others.

        Raises
        ------
        ValueError
            If n is not from 1 to ``n_topics_``, n_fits is below 2, or X does not have the words of the fit.
        TypeError
            If the topics are not of words.
        sklearn.exceptions.NotFittedError
        """
        self._topics()
        require_answers(self, y)
        with self._executor(X) as executor:
            self._source(X, None, executor)  # refuses other words, before anything is fitted
        return stability_of_topics(self, n, n_fits, lambda model: model.fit(X, y))

    def summary(self, n_topics: int = 20, vocabulary: Sequence[str] | None = None) -> None:
        """Print a table of the largest topics and their top words, by name where words are known or given."""
        self._print_summary(n_topics, vocabulary)

    @property
    def plot(self) -> "TopicPlots":
        """Pictures of the fitted model, such as ``model.plot.words()``; they need matplotlib."""
        from ..plots.accessors import TopicPlots

        check_is_fitted(self)
        return TopicPlots(self)

    def _name_clusters(self, model: Model, summary: Summary) -> None:
        self.n_topics_, self.topic_shares_ = summary.K, model.allocation.mean_weights(summary)
        allocation = model.allocation
        assert isinstance(allocation, TopicPrior)
        self.document_concentration_ = float(allocation.document_concentration)
        self._name_concentration(allocation, summary)
        self.seeded_topics_ = model.likelihood.names_of(summary.S)
        self.__dict__.pop("topics_", None)
        if not self.grouped_:
            self.topics_ = self.posterior_.probabilities

    def _clusters_of_named_start(self) -> int:
        return first_topics(self)

    def _kind(self, kind: Kind) -> Kind:
        """Documents of a kind, with the settings of this estimator."""
        assert isinstance(kind, DocumentKind)
        return replace(kind, restarts=self.restarts, most_kept=self.most_kept)

    def _sized(self, sizes: Sizes, source: Any) -> Sizes:
        if isinstance(source, GroupSource):
            return replace(sizes, footprint=GroupedRows())
        annealed = isinstance(self.init, str) and choices.algorithm(self).searches
        tokens = source.n_tokens if annealed else 0.0
        return replace(sizes, footprint=Documents(), tokens=tokens)

    def _fit(self, X: Any, y: Any, lengths: Any) -> str | None:
        """Fit, set the attributes, and say what there is to warn of."""
        source = documents.as_documents(self, X, lengths, reset=True)
        asks = asked(self, y, source)
        if asks is not None:
            source = asks.of(source)
        with self._executor(X) as executor:
            session = self._session(executor, source)
            rng = np.random.default_rng(self._seed(session.journal))
            setup = document_setup(self, X, source, asks, session)
            prior = setup.problem.model
            fingerprint = documents.fingerprint(source)
            before = known(self, prior, fingerprint)
            outcome = no_lower(before, self._ascend(setup, session, rng))
            table = self._table(0, grouped=lengths is not None)
            self._set_fitted(outcome.model, outcome.total, source.dtype, outcome.history, table)
            self._name_classes(None if asks is None else asks.names)
            self._fingerprint = fingerprint
            begin_stream(self, prior, source, Streaming.recalled)
        self.converged_ = outcome.trouble is None
        return outcome.trouble

    def _add(self, X: Any, y: Any, lengths: Any) -> None:
        with self._executor(X) as executor:
            source, columns = self._source(X, lengths, executor)
            self._widen(columns.missing)
            learn_more(self, answers_to(self, y, source), executor, self._continuation)
        self._fingerprint = None

    def _continuation(self, algorithm: Streaming) -> Continuation:
        """How a stream of documents goes on."""
        weight = float(self.summary_.D)
        return renewing(self, algorithm, weight, TopicRenewal, lambda source: source, topics.learnt_again(self))

    def _again(self, X: Any, y: Any, lengths: Any, executor: Executor) -> Again:
        """The documents, checked, for the fitted model to be fitted to anew."""
        require_answers(self, y)
        source, columns = self._source(X, lengths, executor)
        source = answers_to(self, y, source)
        documents.check_tokens(source)
        self._fingerprint = documents.fingerprint(source)
        return Again(source, columns.missing, topics.learnt_again(self))
