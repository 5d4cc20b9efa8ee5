"""The setup of a fit to documents: likelihood, seeds and answers, where it begins and how it searches."""

from functools import partial
from typing import Any

from ..data import BagSource, GroupSource
from ..inference import Options, Session, TopicSearch
from . import _documents as documents
from . import _hyperparameters as hyperparameters
from . import _likelihoods as likelihoods
from . import _memory as memory
from . import _topics as topics
from ._answers import Asked
from ._check import checked
from ._continued import continued
from ._devices import check_visits
from ._setup import SearchProblem, Setup
from ._topic_start import choose_start, make_chain


def document_setup(
    estimator: Any, X: Any, source: BagSource | GroupSource, asks: Asked | None, session: Session
) -> Setup:
    """The setup of a fit to the documents of a source, as X has them; sets ``data_check_`` of the estimator.

    asks : what documents are asked, if the source has their answers
    """
    executor = session.executor
    likelihood = topics.likelihood(estimator, source)
    learn = topics.learnt(estimator, likelihood)
    columns, estimator.data_check_ = checked(estimator, likelihood, source.flat, executor)
    documents.check_counts(source)
    documents.check_tokens(source)
    room = memory.room(estimator, likelihood, source, columns)
    kind = topics.kind_of(estimator, source)
    allocation = topics.allocation(estimator)
    model = likelihoods.model(estimator, likelihood, source.flat, columns, allocation, kind, room)
    check_visits(estimator, X, model, source)
    model = continued(estimator, model, source, learn)
    model = topics.with_seeds(estimator, model, source, columns, executor)
    if asks is not None:
        model = asks.model(model)
        learn += asks.learn
    batches = memory.n_batches(estimator, model.likelihood, source)
    options = hyperparameters.learning(Options(batches, estimator.max_laps, estimator.tol), learn)
    start = partial(choose_start, estimator, model, source, session, learn=learn)
    search = partial(TopicSearch, make_chain=partial(make_chain, estimator, model, source, learn))
    return Setup(SearchProblem(model, source, options), start, search)
