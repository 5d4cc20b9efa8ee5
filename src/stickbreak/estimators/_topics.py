"""What the parameters of a topic model mean: its likelihood, its allocation and what is learnt of them."""

from typing import Any

from ..allocations import Allocation, HierarchicalDirichletProcess, LatentDirichlet
from ..data import BagSource, GroupSource
from ..inference import Executor
from ..likelihoods import REGISTRY, Likelihood, Multinomial
from ..model import BAGS, GROUPS, Kind, Model
from . import _choices as choices
from . import _hyperparameters as hyperparameters
from . import _likelihoods as likelihoods
from ._base import Columns
from ._seeds import with_rows, with_words

CONCENTRATIONS = "document_concentration", "concentration"  # that can be learnt
WORD_CONCENTRATION = 0.03  # pseudo-count of every word in every topic
FIRST_CONCENTRATION = 5.0  # alpha, where it is learnt


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


def allocation(estimator: Any) -> Allocation:
    """The allocation of a topic model."""
    choice = estimator.allocation
    if not isinstance(choice, str):
        given: Allocation = choice
        return given
    learn = isinstance(estimator.document_concentration, str)
    alpha = FIRST_CONCENTRATION if learn else float(estimator.document_concentration)
    if choice == "hdp":
        return HierarchicalDirichletProcess(alpha, choices.of_shares(estimator))
    return LatentDirichlet(estimator.n_init_topics, alpha)


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
