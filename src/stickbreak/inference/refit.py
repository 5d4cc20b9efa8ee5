"""Laps that only refit: the number of clusters, topics or states stays."""

from dataclasses import dataclass

from ..model import Summary
from .search import Search


@dataclass
class Refit(Search):
    """One ascent without moves; clusters that are left without any row go."""

    draws: bool = False

    def run(self, start: Summary) -> None:
        """Lap from the parameters that ``start`` implies; the outcome is ``best``."""
        self.best = self._laps(self.model, (), self.options)
        self.best.run(start)
