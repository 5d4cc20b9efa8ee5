"""Damaged and forged model files: loading one gives a ModelFileError, or a model whose answers are finite."""

import json
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from safetensors.numpy import save

import stickbreak
from stickbreak.storage import ModelFileError, container

from .attacker import FINE, REFUSED, Attacker, Outcome
from .cases import LIKELIHOODS, OF_ROWS, Case
from .errors import foreign, judged
from .inputs import build
from .mutations import damaged_bytes, mutated_array, mutated_json, nested
from .verdict import DATA, METHODS, Finding, sound

KINDS = ("bytes", "JSON", "JSON", "arrays", "arrays", "version", "nesting")


@dataclass(frozen=True)
class ModelFile:
    """A saved model and what is done to it."""

    estimator: str = "Mixture"
    likelihood: str = "gaussian"
    kind: str = "JSON"
    times: int = 1
    seed: int = 0


CASES = st.builds(
    ModelFile,
    estimator=st.sampled_from(("Mixture", "TopicModel", "HMM")),
    likelihood=st.sampled_from(LIKELIHOODS),
    kind=st.sampled_from(KINDS),
    times=st.sampled_from((1, 1, 2)),
    seed=st.integers(0, 10**6),
).filter(lambda case: case.estimator == "Mixture" or case.likelihood not in OF_ROWS)


@cache
def saved(estimator: str, likelihood: str) -> tuple[bytes, dict, dict, dict]:
    """The bytes of a small model, its metadata and tensors, and rows to read."""
    groups = estimator == "HMM" or (estimator == "TopicModel" and likelihood != "multinomial")
    lengths = "ragged" if groups else "none given"
    case = Case(estimator, likelihood, n=30, d=4, lengths=lengths, laps=2)
    inputs = build(case)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(prefix="hostile") as folder:
        warnings.simplefilter("ignore")
        path = Path(folder) / "model"
        inputs.estimator.fit(**inputs.fit).save(path)
        metadata, tensors = container.read(path)
        return path.read_bytes(), metadata, tensors, inputs.read


def forged(case: ModelFile) -> bytes:
    """The bytes of the altered file, with a checksum that is right where a forger would have made it so."""
    data, metadata, tensors, _ = saved(case.estimator, case.likelihood)
    rng = np.random.default_rng(case.seed)
    metadata, tensors = dict(metadata), dict(tensors)
    metadata.pop("checksum", None)
    for _ in range(case.times):
        if case.kind == "bytes":
            data = damaged_bytes(data, rng)
        elif case.kind == "JSON":
            record = mutated_json(json.loads(tensors[container.RECORD].tobytes()), rng)
            tensors[container.RECORD] = _bytes(json.dumps(record))
        elif case.kind == "arrays":
            name = sorted(tensors)[rng.integers(len(tensors))]
            tensors[name] = mutated_array(tensors[name], rng)
        elif case.kind == "version":
            wrong = ("9" * 5000, "-1", "1.5", "", "²", "2", "1e3")
            metadata["format_version"] = wrong[rng.integers(len(wrong))]
        else:
            tensors[container.RECORD] = _bytes(nested(int(10 ** rng.integers(2, 6))))
    if case.kind == "bytes":
        return data
    tensors = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    return save(tensors, metadata | {"checksum": container.checksum_of(metadata, tensors)})


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def run(case: ModelFile) -> Outcome:
    with warnings.catch_warnings(record=True) as caught, tempfile.TemporaryDirectory(prefix="hostile") as folder:
        warnings.simplefilter("always")
        path = Path(folder) / "model.safetensors"
        path.write_bytes(forged(case))
        outcome = loaded(case, path)
    if caught and not outcome.is_finding:
        w = caught[0]
        return Outcome("leaked warning", f"{w.category.__name__}: {w.message} [{Path(w.filename).name}:{w.lineno}]")
    return outcome


def loaded(case: ModelFile, path: Path) -> Outcome:
    try:
        fitted = stickbreak.load(path)
    except ModelFileError as error:
        text = str(error)
        if foreign(error) == "raised by others" or path.name not in text:
            return Outcome("foreign error", text)
        return Outcome(REFUSED, text)
    except Exception as error:
        return (
            judged(error, ("model.safetensors",))
            if isinstance(error, OSError)
            else Outcome("foreign error", f"{type(error).__name__}: {str(error)[:300]}")
        )
    read = saved(case.estimator, case.likelihood)[3]
    if type(fitted).__name__ != case.estimator:  # forged well: another kind of estimator
        return Outcome(FINE)
    for name, method in METHODS[case.estimator].items():
        try:
            sound(name, method(fitted, read), fitted)
        except Finding as finding:
            return Outcome("loads and answers wrongly", f"{finding.outcome.kind} [{case.kind}]")
        except Exception as error:
            outcome = judged(error, (*DATA, "likelihood", "expecting"), f"{name}: ")
            if outcome.is_finding:
                return outcome
    return Outcome(FINE)


ATTACKERS = [Attacker("model files", CASES, run, {"ModelFile": ModelFile}, seconds=60.0)]
