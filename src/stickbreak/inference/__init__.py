"""Inference: laps over batches, the search for the number of clusters, stochastic steps, initialisation."""

from .executor import Threads
from .gibbs import Chain
from .laps import Options
from .learning_search import LearningSearch
from .refit import Refit
from .row_search import RowSearch
from .search import Search
from .state_search import StateSearch
from .stochastic import Stochastic, StochasticLaps
from .topic_search import TopicSearch
from .trace import Lap, ascents

__all__ = [
    "Chain",
    "Lap",
    "LearningSearch",
    "Options",
    "Refit",
    "RowSearch",
    "Search",
    "StateSearch",
    "Stochastic",
    "StochasticLaps",
    "Threads",
    "TopicSearch",
    "ascents",
]
