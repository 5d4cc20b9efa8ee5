"""Messages of chains on a device, against all paths, against the messages of processors, and in whole fits."""

from itertools import product

import numpy as np
import pytest
from scipy.special import xlogy

from stickbreak import HMM
from stickbreak.allocations import HDPMarkovChain
from stickbreak.data import SequenceSource, sequences
from stickbreak.data.distinct import collapse
from stickbreak.device import OnDevice, chains, segments
from stickbreak.device.chains import DeviceSequences
from stickbreak.device.segments import Segments, segment_length
from stickbreak.inference import Threads
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import AutoregressiveGaussian, Bernoulli, Gaussian, Sample
from stickbreak.model import Model
from stickbreak.model.sequences import SEQUENCES, labelled
from stickbreak.moves import Proposal
from stickbreak.moves.sample import Draw

FIELDS = "N", "S", "H", "base", "M", "begins"
SCANS = {"whole": 1e-9, "scanned": 1e30, "run-ups": 1e-9}  # what a step is taken to cost: sequences are whole, or cut


@pytest.fixture(params=SCANS)
def scan(request, monkeypatch):
    cost = SCANS[request.param]
    monkeypatch.setattr(segments, "TUNING", segments.Tuning(cost, cost))
    monkeypatch.setattr(chains, "SHORT", 60 if request.param == "run-ups" else 10**9)
    monkeypatch.setattr(chains, "LANE", 25)
    return request.param


def series(rng, n, K=3, D=2):
    labels = np.repeat(rng.integers(K, size=n // 6 + 1), 6)[:n]
    return rng.normal(size=(n, D)) + 2.0 * labels[:, None], labels


def problem(lengths, seed=0, dtype=np.float64, likelihood=None, lags=0, K=3, D=2):
    """A model, a source and parameters: of another labelling than the best."""
    rng = np.random.default_rng(seed)
    X, labels = series(rng, sum(lengths), K, D)
    if len(X) > 40:
        X[[5, 6, 30]] = np.nan  # nothing observed
    source = SequenceSource(X.astype(dtype), np.array(lengths), lags)
    rows = source.take(source.present())[0]
    family = (likelihood or Gaussian()).resolve(Sample.of(rows.astype(np.float64)))
    model = Model(family, HDPMarkovChain(stickiness=5.0), SEQUENCES)
    labels = np.where(rng.random(len(labels)) < 0.2, rng.integers(K, size=len(labels)), labels)
    labels[:K] = np.arange(K)
    return model, source, model.parameters(labelled(family, source, labels), source.dtype)


def visited(executor, model, source, parameters, **how):
    chunks = [chunk for batch in source.batches(1) for chunk in batch]
    with executor:
        return visit(model, parameters, source, chunks, executor, **how)


def assert_same(one, other, rtol):
    for name in FIELDS:
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * (1.0 + np.abs(b).max()), err_msg=name)


def over_all_paths(model, source, parameters):
    """N, M, first states and entropy of q(z), proportional to the product of potentials, by all paths of each sequence."""
    K = len(parameters.bias)
    T = np.empty((source.n_rows, model.likelihood.n_statistics))
    model.likelihood.features(source.X, T)
    scores = T @ parameters.W.T + parameters.bias
    logs = np.log(parameters.prior)
    N, M, begins, entropy = np.zeros(K), np.zeros((K, K)), np.zeros(K), 0.0
    for a, b in zip(source.edges, source.edges[1:]):
        paths = np.array(list(product(range(K), repeat=b - a)))
        value = logs[0][paths[:, 0]] + scores[np.arange(a, b), paths].sum(axis=1)
        value += sum(logs[1 + paths[:, t], paths[:, t + 1]] for t in range(b - a - 1))
        q = np.exp(value - np.logaddexp.reduce(value))
        entropy -= xlogy(q, q).sum()
        np.add.at(begins, paths[:, 0], q)
        for t in range(b - a):
            np.add.at(N, paths[:, t], q)
            if t:
                np.add.at(M, (paths[:, t - 1], paths[:, t]), q)
    return N, M, begins, entropy


def test_against_all_paths(device, scan):
    model, source, parameters = problem([7, 1, 6, 2])
    seen = visited(OnDevice(device, Threads(1)), model, source, parameters).summary
    N, M, begins, entropy = over_all_paths(model, source, parameters)
    np.testing.assert_allclose(seen.N, N, atol=1e-12)
    np.testing.assert_allclose(seen.M, M, atol=1e-12)
    np.testing.assert_allclose(seen.begins, begins, atol=1e-12)
    np.testing.assert_allclose(seen.H.sum(), entropy, atol=1e-11)


@pytest.mark.parametrize("lengths", [[400, 1, 30, 3, 250, 46], [700]], ids=["several", "one"])
def test_as_on_processors(device, scan, lengths):
    """Also proposals, draws, and rows that are not observed."""
    model, source, parameters = problem(lengths)
    other = problem(lengths, seed=1)[2]
    how = {
        "proposals": [Proposal("birth", (0, 1, 2), other, 0.0, whole=True)],
        "draw": Draw(np.full(3, 0.2), 99, np.arange(3)),
    }
    there = visited(Threads(1), model, source, parameters, **how)
    here = visited(OnDevice(device, Threads(1)), model, source, parameters, **how)
    assert_same(here.summary, there.summary, 1e-11)
    assert_same(here.tracked[0], there.tracked[0], 1e-11)
    rows, chosen = (
        [np.concatenate([getattr(p, n) for p in v.drawn]) for v in (here, there)] for n in ("rows", "chosen")
    )
    np.testing.assert_array_equal(*rows)
    np.testing.assert_allclose(*chosen)


def test_blocks_within_sequences(device, scan, blocks_of, monkeypatch):
    """Messages to a block from the rows before it, and from those after it."""
    monkeypatch.setattr(sequences, "STEPS", 150)
    model, source, parameters = problem([500, 400])
    there = visited(Threads(1), model, source, parameters).summary
    blocks_of(150_000)
    kind = DeviceSequences(device=device)
    rows = kind.block_rows(model.likelihood, kind.prepare(model.likelihood, parameters, source))
    assert rows < 400
    assert_same(visited(OnDevice(device, Threads(2)), model, source, parameters).summary, there, 1e-11)


@pytest.mark.parametrize("forgets", [True, False])
def test_run_ups_are_longer_where_they_must_be(device, scan, forgets, monkeypatch):
    """A chain that stays long in its states needs several segments; one that needs more has a scan, or whole sequences."""
    asked = []
    original = chains.RunUps.backward
    monkeypatch.setattr(chains.RunUps, "backward", lambda *a: asked.append(original(*a)) or asked[-1])
    model, source, parameters = problem([600], D=1)
    leaving = 0.2 if forgets else 1e-4
    prior = np.vstack([np.full((1, 3), 1 / 3), np.full((3, 3), leaving / 2) + (1.0 - 1.5 * leaving) * np.eye(3)])
    parameters = parameters._replace(prior=prior, W=1e-2 * parameters.W, bias=1e-2 * parameters.bias)
    there = visited(Threads(1), model, source, parameters).summary
    assert_same(visited(OnDevice(device, Threads(1)), model, source, parameters).summary, there, 1e-10)
    assert [found is not None for found in asked] == ([True] if scan == "run-ups" and forgets else [])


def test_chains_that_forget_nothing(device, scan):
    """Two cycles that are never left: which of them a sequence is in, only the far end tells."""
    model, source, parameters = problem([600])
    cycles = np.full((4, 3), 1e-120)
    cycles[0] = [0.5, 0.5, 1e-120]
    cycles[[1, 2, 3], [0, 1, 2]] = 1.0
    parameters = parameters._replace(prior=cycles, W=1e-3 * parameters.W, bias=1e-3 * parameters.bias)
    there = visited(Threads(1), model, source, parameters).summary
    assert_same(visited(OnDevice(device, Threads(1)), model, source, parameters).summary, there, 1e-9)


@pytest.mark.parametrize("case", ["lags", "far", "codes"])
def test_rows_of_other_kinds(device, case):
    if case == "lags":
        model, source, parameters = problem([200, 80], likelihood=AutoregressiveGaussian(), lags=1)
    elif case == "far":
        model, source, parameters = problem([200, 80], dtype=np.float32)
        X = source.X.copy()
        X[[3, 150]] = [[3e9, -1e9], [1e18, -1e18]]
        source = source.like(X, np.diff(source.edges))
    else:
        rng = np.random.default_rng(0)
        bits = (rng.random((300, 4)) < 0.3 + 0.4 * np.repeat([0, 1, 0], 100)[:, None]).astype(float)
        bits[7] = np.nan
        found = collapse(SequenceSource(bits, np.array([180, 120])).flat)
        source = SequenceSource(found.source.X, np.array([180, 120]), codes=found.inverse)
        family = Bernoulli().resolve(Sample.of(bits))
        model = Model(family, HDPMarkovChain(stickiness=5.0), SEQUENCES)
        start = labelled(family, source, np.repeat([0, 1, 0], 100))
        parameters = model.parameters(start, source.dtype)
    there = visited(Threads(1), model, source, parameters).summary
    here = visited(OnDevice(device, Threads(1)), model, source, parameters).summary
    assert np.isfinite(here.S).all()
    assert_same(here, there, 1e-6 if case == "far" else 1e-11)


@pytest.mark.parametrize("longest", [1, 4, 7, 100])
def test_segments_hold_each_row_once(longest):
    begins = np.array([0, 9, 10, 30])
    cut = Segments.of(begins, 43, longest)
    assert sorted(cut.order.tolist()) == list(range(43))
    assert cut.lengths.max() <= longest
    assert cut.edges[-1] == 43
    for part, (a, b) in zip(cut.parts, zip(begins, [*begins[1:], 43])):
        rows = [row for s in part for row in range(cut.starts[s], cut.starts[s] + cut.lengths[s])]
        assert rows == list(range(a, b))
    place = np.argsort(cut.order)
    inside = np.setdiff1d(np.arange(43), cut.starts)
    found = np.concatenate([np.full(len(cut.starts), -1), cut.before])
    np.testing.assert_array_equal(found[place[inside]], place[inside - 1])


def test_long_sequences_are_cut_where_that_is_quicker():
    one = np.array([0])
    assert segment_length(one, 10_000, 10, True, 10**6) < 200
    assert segment_length(one, 10_000, 2000, True, 10**6) == 10_000  # products of large matrices cost more than steps
    assert segment_length(one, 10_000, 10, True, 20) > 500  # there is memory for few matrices
    assert segment_length(np.arange(100), 100, 10, True, 10**6) == 1


def test_a_whole_fit_finds_the_same_states(device):
    rng = np.random.default_rng(3)
    labels = np.repeat(rng.integers(3, size=15), 20)
    X = rng.normal(6.0 * labels[:, None], 1.0, (300, 2)).astype(np.float32)
    name = device.name if device.library == "torch" else device.library
    how = (
        {} if name != "array_api_strict" else {"init": "blocks", "n_init_states": 3, "moves": ()}
    )  # strict arrays take long
    here, there = (HMM("gaussian", random_state=0, device=d, **how).fit(X, lengths=[170, 130]) for d in (None, name))
    assert here.n_states_ == there.n_states_ == 3
    assert abs(there.lower_bound_ / here.lower_bound_ - 1.0) < 1e-6
    np.testing.assert_array_equal(there.predict(X, [170, 130]), there.labels_)
