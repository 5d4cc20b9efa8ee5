"""What an attacker is: a name, a strategy that draws cases, and a function that runs one; and how a run may end."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

FINE, REFUSED = "fine", "refused"


@dataclass(frozen=True)
class Outcome:
    """How one run ended: ``fine``, ``refused``, or the name of a finding."""

    kind: str
    detail: str = ""

    @property
    def is_finding(self) -> bool:
        return self.kind not in (FINE, REFUSED)


@dataclass(frozen=True)
class Attacker:
    """One way to attack.

    cases : draws plain values whose repr, evaluated with ``names``, gives the value again
    run : runs one case and says how it ended; in a process of its own, which it may crash or hang
    seconds : how long one case may take before it counts as a hang
    """

    name: str
    cases: SearchStrategy[Any]
    run: Callable[[Any], Outcome]
    names: dict[str, Any] = field(default_factory=dict)
    seconds: float = 60.0

    def replay(self, text: str) -> Outcome:
        return self.run(eval(text, {"inf": float("inf"), "nan": float("nan"), **self.names}))


def drawn(strategy: SearchStrategy[Any], start: int, n: int) -> Iterator[Any]:
    """About n values of a strategy, without the simplest, which is always the first; a start gives the same values again."""
    values: list[Any] = []

    @seed(start)
    @settings(
        max_examples=n + 1,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Any) -> None:
        values.append(value)

    collect()
    return iter(values[1:] or values)
