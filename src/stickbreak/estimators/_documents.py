"""Topic models and documents: what users pass as sources, where fits start, and a fitted model reading documents."""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln
from sklearn.utils.validation import check_is_fitted

from ..data import ArraySource, BagSource, Chunk, GroupSource, SparseSource
from ..data.arrays import as_array, numbers
from ..data.document_files import open_documents
from ..data.frames import Encoded, Levels, as_frame
from ..data.opening import as_data, is_path
from ..inference import Chain, Executor, Options, Session, TopicSearch
from ..inference.init import from_responsibilities, from_seeds
from ..inference.reader import Reader
from ..inference.topics.anchors import anchor_topics
from ..kernels.document_statistics import entry_mass
from ..likelihoods import REGISTRY, Likelihood, Multinomial
from ..likelihoods.features import features
from ..model import BAGS, GROUPS, DocumentSummary, Kind, Model, Summary
from ..model.documents import NOTHING, Entries, Kept, Tables, document_step, same_limit, tables
from ..model.seeding import hard_summary
from . import _choices as choices
from . import _hyperparameters as hyperparameters
from . import _likelihoods as likelihoods
from ._base import Columns, as_source, survey
from ._given import check_columns, whole_numbers
from ._seeds import with_rows, with_words
from ._spread import goes_to_workers, spread_bags
from ._start import OfModel, Translation, label_codes

Array = NDArray[np.floating]

CONCENTRATIONS = "document_concentration", "concentration"  # that can be learnt
WORD_CONCENTRATION = 0.03  # pseudo-count of every word in every topic
FIRST_CONCENTRATION = 5.0  # alpha, where it is learnt
MOST_TOKENS = 1e12  # of a document: the local step divides counts by numbers down to 1e-26 in float32
LEAST_TOKENS = 1e-100  # of all documents: the digamma function of less leaves the range of float64
FIRST = 64  # topics at the start where more can be born
UNIT = 1e-4  # within which rows have the same length
SEARCH_DOCUMENTS = 20_000  # of the sample on which stochastic inference finds its topics
ON_SAMPLE = 0.1  # the least tolerance of that search, in nats for each of them


def as_documents(estimator: Any, X: Any, lengths: Any, reset: bool) -> BagSource | GroupSource:
    """Counts of words as bags, or dense rows with the lengths of their groups, remembering or comparing the columns."""
    if not reset and estimator.grouped_ != (lengths is not None):
        how = "rows in groups: pass lengths=" if estimator.grouped_ else "counts of words: pass no lengths"
        raise ValueError(f"this model was fitted to {how}.")
    if goes_to_workers(estimator, X, reset):
        if lengths is not None:
            raise TypeError(
                "rows in groups cannot be on a cluster; pass counts of words, or X.compute() and executor=None."
            )
        return spread_bags(estimator, X, reset)
    names = None
    if lengths is None and is_path(X):
        table = open_documents(X, n_words=None if reset else estimator.n_features_in_)
        names = table.names
        X = as_data(table)
    if lengths is None:
        _refuse_text(X)
    source = as_source(estimator, X, reset=reset)
    if names is not None:
        check_columns(estimator, names, source.n_columns, reset)
    if lengths is None:
        dense = not isinstance(source, SparseSource)
        return BagSource(sparse.csr_array(np.asarray(source.X, dtype=source.dtype)) if dense else source.X)
    if isinstance(source, SparseSource):
        raise TypeError("rows in groups must be dense; a sparse X holds counts of words, a document in each row.")
    return GroupSource(source.X, whole_numbers("lengths", lengths, 0, source.n_rows))


def kind_of(estimator: Any, source: BagSource | GroupSource) -> Kind:
    """The kind of documents that a source holds, with the settings of an estimator."""
    kind: Kind = estimator._kind(BAGS if isinstance(source, BagSource) else GROUPS)
    return kind


def likelihood(estimator: Any, source: BagSource | GroupSource) -> Likelihood:
    """The likelihood of the words, or of the rows."""
    given = estimator.likelihood
    kind = REGISTRY.get(given, Multinomial) if isinstance(given, str) else type(given)
    if isinstance(source, BagSource) and kind is not Multinomial:
        raise ValueError(
            f"{kind.__name__} describes rows, not counts of words: pass X with the rows of all documents, and lengths=, the "
            "number of rows of each."
        )
    return likelihoods.likelihood(
        estimator, source.flat, Multinomial(WORD_CONCENTRATION) if given == "multinomial" else None
    )


def with_seeds(
    estimator: Any, model: Model, source: BagSource | GroupSource, columns: Columns, executor: Executor
) -> Model:
    """The model with the topics that the seeds of an estimator name."""
    if isinstance(source, BagSource):
        return with_words(estimator, model, source.n_columns)
    return with_rows(estimator, model, source.flat, columns, executor)


def learnt(estimator: Any, likelihood: Likelihood) -> tuple[str, ...]:
    """The hyperparameters to learn: concentrations that are "learn", and those that ``learn`` names."""
    if estimator.likelihood == "multinomial":
        likelihood = Multinomial()  # its pseudo-count was not given by the user
    names = hyperparameters.without_priors(estimator, CONCENTRATIONS)
    return hyperparameters.with_concentrations(estimator, hyperparameters.learnt(estimator, likelihood, names), names)


def learnt_again(estimator: Any) -> tuple[str, ...]:
    """The same of a fitted model."""
    names = hyperparameters.without_priors(estimator, CONCENTRATIONS)
    return hyperparameters.with_concentrations(estimator, hyperparameters.learnt_again(estimator, names), names)


def checked(estimator: Any, given: Likelihood, source: BagSource | GroupSource, executor: Executor) -> Columns:
    """Refuse values that the likelihood cannot use, and warn of values that are not counts."""
    columns = survey(estimator, given, source.flat, executor)
    check_counts(source)
    return columns


def check_tokens(source: BagSource | GroupSource) -> None:
    """Refuse documents without words, or with too few to tell from none."""
    if not source.total_weight > 0.0:
        raise ValueError("all documents are empty.")
    if source.total_weight < LEAST_TOKENS:
        raise ValueError(
            f"X holds {source.total_weight:.3g} words in all, too few to tell from none; multiply the counts by a "
            "constant first."
        )


def _refuse_text(X: Any) -> None:
    """Refuse texts, with a message that says how to count their words."""
    frame = as_frame(X)
    if frame is not None:
        names = [name for name, column in zip(frame.columns, frame.iter_columns()) if _is_text(column.to_numpy())]
    elif isinstance(X, Encoded):
        names = [str(d) if X.names is None else X.names[d] for d in X.levels]
    else:
        names = ["X"] if _is_text(X) else []
    if names:
        raise ValueError(
            f"{names[0]!r} holds text, and a topic model takes the counts of words, a document in each row: pass counts, e.g. "
            "CountVectorizer().fit_transform(texts)."
        )


def _is_text(X: Any) -> bool:
    """Whether X is text, or an array or a nested list with text in it."""
    if isinstance(X, (list, tuple)):
        return any(isinstance(x, (str, bytes)) or (isinstance(x, (list, tuple, np.ndarray)) and _is_text(x)) for x in X)
    values = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object if hasattr(X, "__array__") else None)
    if values.dtype.kind == "O" and values.ndim:
        return any(isinstance(value, (str, bytes)) for value in values.ravel())
    return values.dtype.kind in "US"


def check_counts(source: BagSource | GroupSource) -> None:
    """Refuse counts of words beyond what documents can be read with, and warn of numbers that are not counts."""
    if not isinstance(source, BagSource):
        return
    row = int(source.sizes.argmax())
    if source.sizes[row] > MOST_TOKENS:
        raise ValueError(
            f"X has {source.sizes[row]:.3g} words in row {row}; a document may have at most {MOST_TOKENS:.0e}. Divide the "
            "counts by a constant first."
        )
    if source.whole:
        return
    what = "numbers that are not whole"
    for name, sizes in (("sum to 1", source.sizes), ("have length 1", source.lengths)):
        if (sizes > 0.0).any() and np.allclose(sizes[sizes > 0.0], 1.0, atol=UNIT):
            what = f"rows that {name}, as TfidfVectorizer makes them"
    warnings.warn(
        f"X holds {what}, and a topic model takes the counts of words: pass CountVectorizer().fit_transform(texts), or ignore "
        "this warning if fractions of words are meant.",
        UserWarning,
        stacklevel=2,
    )


def whole_counts(source: ArraySource) -> bool:
    """Whether a source holds bags, and all counts are whole numbers."""
    return isinstance(source, BagSource) and source.whole


def choose_start(
    estimator: Any,
    model: Model,
    source: BagSource | GroupSource,
    session: Session,
    rng: np.random.Generator,
    learn: tuple[str, ...],
) -> Summary:
    """The summary that ``estimator.init`` stands for; ``learn`` names the hyperparameters to learn."""
    init = estimator.init
    K = estimator.n_init_topics
    if whole_counts(source):
        K = first_topics(estimator)
    K = min(K, model.allocation.max_clusters)
    if isinstance(init, type(estimator)):
        check_is_fitted(init)
        same = init.n_features_in_ == source.n_columns and init.grouped_ == isinstance(source, GroupSource)
        if not same or type(init.model_.likelihood.plain) is not type(model.likelihood.plain):
            raise ValueError(f"init is a model of other data: {init.n_features_in_} columns; X has {source.n_columns}.")
        return _from_model(init, estimator.levels_, model, source, session.executor)
    if not isinstance(init, str):
        if not isinstance(init, (list, tuple)) and not hasattr(init, "__array__"):
            raise ValueError(f"init must be a name, an array or a fitted {type(estimator).__name__}; got {init!r}.")
        return _from_array(as_array(init, "init"), model, source)
    if not choices.algorithm(estimator).searches and "birth" in choices.moves(estimator):
        sample = source.sample(SEARCH_DOCUMENTS, rng)
        options = hyperparameters.learning(Options(1, estimator.max_laps, max(estimator.tol, ON_SAMPLE)), learn)
        search = TopicSearch(
            model,
            sample,
            choices.MOVES,
            session.aside(),
            rng,
            options,
            make_chain=partial(make_chain, estimator, model, sample, learn),
        )
        search.run(_by_name(init, model, sample, K, rng))
        return search.total.without_local() * (source.total_weight / sample.total_weight)
    return _by_name(init, model, source, K, rng)


def first_topics(estimator: Any) -> int:
    """Topics of words at the start: the same whatever number is given, where growth and merges can leave it either way."""
    K = int(estimator.n_init_topics)
    moves = choices.moves(estimator)
    if "birth" not in moves:
        return K
    init = estimator.init
    return FIRST if "merge" in moves and isinstance(init, str) and init == "random" else min(K, FIRST)


def fingerprint(source: BagSource | GroupSource) -> str | None:
    """A hash of counts of words, by which they are known again; None for rows in groups."""
    return source.fingerprint() if isinstance(source, BagSource) else None


def make_chain(
    estimator: Any, model: Model, source: ArraySource, learn: tuple[str, ...], rng: np.random.Generator
) -> Chain | None:
    """The sampler that finds the first topics of words before laps.

    None if ``init`` is not a name or the data are not whole counts.
    """
    if isinstance(estimator.init, str) and whole_counts(source):
        return Chain(model, source, rng, "document_concentration" in learn)
    return None


def _by_name(init: str, model: Model, source: BagSource | GroupSource, K: int, rng: np.random.Generator) -> Summary:
    if init == "anchor":
        if not isinstance(source, BagSource):
            raise ValueError('init="anchor" takes counts of words; use "k-means++" for rows in groups.')
        topics = anchor_topics(source.X, K, rng)
        return _from_array(topics, model, source)
    if init == "random" and whole_counts(source):
        return model.start(np.ones(K), np.zeros((K, source.n_columns)))
    return from_seeds(model, source.flat, K, init == "k-means++", rng)


def _from_model(
    other: Any, levels: Levels, model: Model, source: BagSource | GroupSource, executor: Executor
) -> Summary:
    """From another topic model: its counts of words, or the rows of groups as a mixture of its topics explains them."""
    summary: DocumentSummary = other.summary_
    if isinstance(source, BagSource):
        return model.start(summary.N, summary.S[:, : source.n_columns])
    translate = Translation.between(levels, other)
    mixture = other.model_.flat
    rows = mixture.start(summary.N, summary.S)
    reader = Reader.of(mixture, rows, mixture.likelihood.may_miss(source.n_columns), source.dtype)
    given = OfModel(reader, translate, mixture.likelihood.may_miss(source.n_columns))
    return from_responsibilities(model, source.flat, given, executor)


def _from_array(given: NDArray[Any], model: Model, source: BagSource | GroupSource) -> Summary:
    """From topics (K, V), or labels (n,) of the rows of groups."""
    if isinstance(source, GroupSource):
        if given.shape != (len(source.X),):
            raise ValueError(f"init must be labels ({len(source.X)},) of the rows; got shape {given.shape}.")
        labels = label_codes(given)
        T = features(model.likelihood, source.flat.take(np.arange(len(labels)))[0])
        return model.kind.start(hard_summary(T, np.ones(len(labels)), labels))
    topics = numbers(given, "init").astype(np.float64)
    good = topics.ndim == 2 and topics.shape[1] == source.n_columns and np.isfinite(topics).all()
    if not good or not len(topics) or (topics < 0.0).any() or not (topics.sum(axis=1) > 1e-200).all():
        raise ValueError(
            f"init must be topics (K, {source.n_columns}), non-negative, with a positive entry in each row; "
            f"got shape {topics.shape}."
        )
    S = topics * (source.total_weight / len(topics) / topics.sum(axis=1, keepdims=True))
    return model.start(S.sum(axis=1), S)


@dataclass(frozen=True)
class DocumentReader:
    """A fitted topic model: predictive likelihoods of the words, and the pseudo-counts of topics in a document.

    log_words : (V, K) of words, or None for rows in groups;  prior : (K,);  rest : of topics not in use
    restarts : topics of each document that are emptied on trial
    most_kept : the most topics that a document has
    """

    model: Model
    summary: Summary
    log_words: Array | None
    prior: Array
    rest: float
    restarts: int = 0
    most_kept: int | None = None

    @classmethod
    def of(cls, model: Model, summary: Summary, bags: bool, restarts: int = 0, most_kept: int | None = None) -> Self:
        """A reader of bags of words, or of groups of rows."""
        a = model.posterior(summary).step.prior
        assert a is not None
        words = None
        if bags:
            words = np.log(model.likelihood.posterior(summary.N, summary.S).probabilities).T
        return cls(model, summary, words, a[: summary.K], float(a[summary.K]), restarts, most_kept)

    def proportions(self, X: Any) -> Array:
        """E[pi_d] of every document over the topics in use, (n, K)."""
        theta = self._read(X)[1].counts + self.prior
        return np.asarray(theta / theta.sum(axis=1, keepdims=True))

    def shares(self, X: Any) -> Array:
        """The shares of topics among the tokens of every document, (n, K); without tokens E[pi_d]."""
        counts = self._read(X)[1].counts
        sizes = counts.sum(axis=1, keepdims=True)
        expected = self.prior / self.prior.sum()
        return np.where(sizes > 0.0, counts / np.where(sizes > 0.0, sizes, 1.0), expected)

    def bound(self, X: Any) -> float:
        """A lower bound on log p(X | topics, prior), summed over documents (Thesis Eq. 5.27, topics fixed)."""
        s, kept = self._read(X)
        entries = self._entries(X)
        n = float(s.D)
        data = (s.S.T * kept.tables.scores).sum() + entries.counts @ kept.tables.shift[entries.rows]
        a = np.append(self.prior, self.rest)[: len(self.prior) + (self.rest > 0.0)]
        P = np.append(s.P, s.P_rest)[: len(a)]
        normaliser = n * (gammaln(a.sum()) - gammaln(a).sum())
        return float(data + s.H.sum() + s.Q.sum() + s.Q_rest + a @ P + normaliser)

    def completion(self, A: Any, B: Any) -> float:
        """The sum of log p(b | E[pi_d]) over the observations b of documents B, with proportions estimated from A."""
        pi = self.proportions(A)
        own = self._tables(B)
        entries = self._entries(B)
        mass = np.empty(len(entries.rows))
        columns = np.arange(len(self.prior))
        none = np.zeros(len(pi), np.bool_)
        entry_mass(entries.indptr, entries.rows, own.E, none, pi, np.zeros(len(mass)), columns, mass)
        return float(entries.counts @ (np.log(mass) + own.shift[entries.rows]))

    def _read(self, X: Any) -> tuple[DocumentSummary, Kept]:
        entries = self._entries(X)
        limits = same_limit(self.most_kept, len(entries.indptr) - 1)
        return document_step(self._tables(X), entries, NOTHING, None, restarts=self.restarts, limits=limits)

    def _entries(self, X: Any) -> Entries:
        return (GROUPS if self.log_words is None else BAGS).entries(X)

    def _tables(self, X: Any) -> Tables:
        words = self.log_words
        if words is None:
            words = self.model.likelihood.log_predictive(X.X.astype(np.float64), self.summary.N, self.summary.S)
        return tables(words, np.append(self.prior, self.rest), words=self.log_words is not None)


def completion_of(reader: DocumentReader, second: BagSource, first: BagSource, chunk: Chunk) -> float:
    """`DocumentReader.completion` of the documents of a chunk, of which one source has one half, one the other."""
    return reader.completion(first.read(chunk)[0], second.read(chunk)[0])
