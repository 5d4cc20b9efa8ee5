"""Inference: laps over batches, the search for the number of clusters, stochastic steps, initialisation."""

from .adopted_births import AdoptedSearch
from .algorithm import Algorithm, Memoized
from .class_search import ClassSearch
from .executor import Executor, Threads
from .labelled_search import LabelledSearch, by_class
from .learning_search import LearningSearch
from .published_search import PublishedSearch
from .refit import Refit
from .row_search import RowSearch
from .samplers.draws import Convergence, Draws
from .samplers.gibbs import Gibbs
from .search import Search
from .sequential import Sequential
from .session import Journal, Session
from .state import Options
from .states.labelled import states_by_class
from .states.renewal import StateRenewal
from .states.search import StateSearch
from .stochastic import Stochastic
from .streaming import Streaming
from .topics.gibbs import Chain
from .topics.renewal import TopicRenewal
from .topics.search import TopicSearch
from .trace import Lap, ascents
from .truncation_free import TruncationFree

__all__ = [
    "AdoptedSearch",
    "Algorithm",
    "Chain",
    "ClassSearch",
    "Convergence",
    "Draws",
    "Executor",
    "Gibbs",
    "Journal",
    "LabelledSearch",
    "Lap",
    "LearningSearch",
    "Memoized",
    "Options",
    "PublishedSearch",
    "Refit",
    "RowSearch",
    "Search",
    "Sequential",
    "Session",
    "StateRenewal",
    "StateSearch",
    "Stochastic",
    "Streaming",
    "Threads",
    "TopicRenewal",
    "TopicSearch",
    "TruncationFree",
    "ascents",
    "by_class",
    "states_by_class",
]
