"""States of searches as JSON values and tensors, and back: a closed set of classes, each value written once.

Values that several states share, such as the hyperparameters of a likelihood or the total of a single batch, are written where
they come first, and referred to by number afterwards.  Floats come back bit for bit, also infinite ones, and so do generators
of random numbers with what they have spawned.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..allocations._base import GlobalStep, Solved
from ..inference import Lap
from ..inference.laps import Result
from ..inference.session import Leg
from ..inference.state import State
from ..inference.stochastic import StochasticState
from ..model import Drawn, Memo, Model, Parameters, Posterior, Recipe, RowKind
from ..model.answered import AnsweredBagKind
from ..model.bags import BagKind
from ..model.groups import GroupKind
from ..model.sequences import SequenceKind, StateStart
from ..moves import MoveRecord, Proposal, Schedule
from ..moves.schedule import Failures
from .values import Tensors, as_list, as_text, as_whole, decode_array, encode_array, expect_keys, known_classes, made

RECORDS: tuple[type, ...] = (
    AnsweredBagKind,
    BagKind,
    Drawn,
    Failures,
    GlobalStep,
    GroupKind,
    Lap,
    Leg,
    Model,
    MoveRecord,
    Parameters,
    Proposal,
    Recipe,
    Result,
    RowKind,
    Schedule,
    SequenceKind,
    Solved,
    State,
    StateStart,
    StochasticState,
)
CSR = {"csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix}
WORD = 64  # bits of what a generator keeps aside
STATE = 128  # bits of the state of a generator


class Encoder:
    """Writes values of classes by name (`closed_set`); arrays go to ``tensors``."""

    def __init__(self, classes: Mapping[str, type]) -> None:
        self.tensors: Tensors = {}
        self._classes = classes
        self._known: dict[int, int] = {}
        self._held: list[Any] = []  # so that no other value gets the identity of one that was written

    def encode(self, value: Any) -> Any:
        """The JSON value of a value.

        Raises
        ------
        TypeError : it is of a class that cannot be read back.
        """
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if type(value) is float:
            return value if np.isfinite(value) else {"float": repr(value)}
        if type(value) is list:
            return [self.encode(item) for item in value]
        if type(value) is tuple:
            return {"tuple": [self.encode(item) for item in value]}
        if type(value) is dict:
            return {"dict": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
        if id(value) in self._known:
            return {"same": self._known[id(value)]}
        record = self._record(value)
        self._known[id(value)] = len(self._held)
        self._held.append(value)
        return record

    def _record(self, value: Any) -> dict[str, Any]:
        if isinstance(value, (np.ndarray, np.number, np.bool_)):
            return encode_array(value, str(len(self.tensors)), self.tensors)
        if isinstance(value, np.random.Generator):
            return {"generator": _of_generator(value)}
        name = type(value).__name__
        if CSR.get(name) is type(value):
            parts = [self.encode(part) for part in (value.data, value.indices, value.indptr)]
            return {"csr": name, "parts": parts, "shape": list(value.shape)}
        if isinstance(value, Memo):
            return {"memo": [self.encode(batch) for batch in value.batches], "total": self.encode(value.total)}
        if isinstance(value, Posterior):
            return {"posterior": [self.encode(part) for part in _of_posterior(value)]}
        if self._classes.get(name) is not type(value):
            raise TypeError(
                f"a checkpoint cannot hold a {name}. Add a likelihood of your own to stickbreak.likelihoods.REGISTRY, and a "
                "prior of your own to stickbreak.allocations.REGISTRY, before the fit, or fit without checkpoint=."
            )
        return {"class": name, "fields": {name: self.encode(getattr(value, name)) for name in _fields(type(value))}}


class Decoder:
    """Reads what an `Encoder` wrote; nothing is trusted."""

    def __init__(self, tensors: Tensors, classes: Mapping[str, type]) -> None:
        self.tensors = dict(tensors)
        self._classes = classes
        self._values: list[Any] = []

    def decode(self, record: Any) -> Any:
        """The value of a JSON value.

        Raises
        ------
        ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError : it is not consistent.
        """
        if isinstance(record, list):
            return [self.decode(item) for item in record]
        if not isinstance(record, dict):
            return record
        if record.keys() == {"float"}:
            return {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}[as_text("float", record["float"])]
        if record.keys() == {"tuple"}:
            return tuple(self.decode(item) for item in as_list("tuple", record["tuple"]))
        if record.keys() == {"dict"}:
            return {self.decode(key): self.decode(item) for key, item in as_list("dict", record["dict"])}
        if record.keys() == {"same"}:
            return self._values[as_whole("same", record["same"], 0)]
        value = self._value(record)
        self._values.append(value)
        return value

    def _value(self, record: dict[str, Any]) -> Any:
        keys = record.keys()
        if keys == {"tensor", "scalar", "order"}:
            return decode_array(record, self.tensors)
        if keys == {"generator"}:
            return _generator(record["generator"])
        if keys == {"csr", "parts", "shape"}:
            kind = CSR[as_text("csr", record["csr"])]
            data, indices, indptr = self.decode(as_list("parts", record["parts"]))
            matrix = kind((data, indices, indptr), shape=tuple(as_whole("shape", n, 0) for n in record["shape"]))
            matrix.check_format(full_check=True)
            return matrix
        if keys == {"memo", "total"}:
            return _memo(self.decode(as_list("memo", record["memo"])), self.decode(record["total"]))
        if keys == {"posterior"}:
            return _posterior(*self.decode(as_list("posterior", record["posterior"])))
        expect_keys("value", record, {"class", "fields"})
        kind = self._classes[as_text("class", record["class"])]
        values = {name: self.decode(item) for name, item in record["fields"].items()}
        return made(kind, values) if is_dataclass(kind) else _named(kind, values)


def closed_set(more: Iterable[type]) -> dict[str, type]:
    """The classes of states of searches, and more, by name."""
    return known_classes() | {kind.__name__: kind for kind in (*RECORDS, *more)}


def _fields(kind: Any) -> list[str]:
    """The names of what a value is made of."""
    if is_dataclass(kind):
        return [f.name for f in fields(kind) if f.init]
    return list(kind._fields)


def _named(kind: Any, values: dict[str, Any]) -> Any:
    """A named tuple; fields declared as truth values, whole numbers or numbers hold these."""
    checks: dict[Any, Callable[[Any], bool]] = {
        bool: lambda value: isinstance(value, (bool, np.bool_)),
        int: lambda value: isinstance(value, (int, np.integer)) and not isinstance(value, bool),
        float: lambda value: isinstance(value, (int, float, np.number)) and not isinstance(value, bool),
    }
    for name, declared in kind.__annotations__.items():
        if declared in checks and name in values and not checks[declared](values[name]):
            raise ValueError(f"{kind.__name__}.{name} is {values[name]!r:.80}.")
    return kind(**values)


def _of_posterior(posterior: Posterior) -> tuple[Any, ...]:
    """What a posterior is made of, with the solution where that took a search; all else follows from these."""
    known = vars(posterior)
    solution = known.get("solution")
    return posterior.model, posterior.summary, known.get("log_marginal"), solution if type(solution) is Solved else None


def _posterior(model: Any, summary: Any, log_marginal: Any, solution: Any) -> Posterior:
    if not isinstance(model, Model) or type(summary) is not model.kind.summary:
        raise ValueError(f"a posterior has a {type(model).__name__} and a {type(summary).__name__}.")
    return Posterior.known(model, summary, log_marginal, solution)


def _memo(batches: list[Any], total: Any) -> Memo:
    memo = Memo(len(batches))
    memo.batches = batches
    memo._total = total
    return memo


def _of_generator(generator: np.random.Generator) -> dict[str, Any]:
    """The state of a PCG64 and of the seeds it spawns from."""
    bits: Any = generator.bit_generator
    seed = bits.seed_seq
    if type(bits) is not np.random.PCG64 or not isinstance(seed, np.random.SeedSequence):
        raise TypeError(f"a checkpoint cannot hold a generator of {type(bits).__name__}.")
    entropy: Any = seed.entropy
    state = bits.state
    return {
        "state": [state["state"]["state"], state["state"]["inc"], state["has_uint32"], state["uinteger"]],
        "entropy": int(entropy) if np.ndim(entropy) == 0 else [int(word) for word in entropy],
        "spawn_key": [int(key) for key in seed.spawn_key],
        "pool_size": seed.pool_size,
        "spawned": seed.n_children_spawned,
    }


def _generator(record: Any) -> np.random.Generator:
    expect_keys("generator", record, {"state", "entropy", "spawn_key", "pool_size", "spawned"})
    entropy = record["entropy"]
    seed = np.random.SeedSequence(
        [_word(word, STATE) for word in entropy] if isinstance(entropy, list) else _word(entropy, STATE),
        spawn_key=[_word(key, WORD // 2) for key in as_list("spawn_key", record["spawn_key"])],
        pool_size=_word(record["pool_size"], 8),
        n_children_spawned=_word(record["spawned"], WORD // 2),
    )
    state, inc, has, spare = record["state"]
    bits = np.random.PCG64(seed)
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": _word(state, STATE), "inc": _word(inc, STATE)},
        "has_uint32": _word(has, 1),
        "uinteger": _word(spare, WORD // 2),
    }
    return np.random.Generator(bits)


def _word(value: Any, bits: int) -> int:
    """A whole number of so many bits."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << bits:
        raise ValueError(f"a generator holds {value!r:.80}.")
    return value
