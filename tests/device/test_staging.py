"""The way of rows to a card, with torch on processors in the place of one: streams, events and pinned buffers are stand-ins."""

import gc
from contextlib import nullcontext

import numpy as np
import pytest

from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource, SequenceSource
from stickbreak.device import Device, OnDevice, devices, staging
from stickbreak.inference import Threads
from stickbreak.inference.visit import visit
from stickbreak.model import Model

torch = pytest.importorskip("torch")
pytest.importorskip("array_api_compat")


class Card(Device):
    """A card whose memory is that of the computer."""

    @property
    def _place(self):
        return "cpu"


class Event:
    """Counts copies that are under way, and those that were waited for."""

    def __init__(self):
        self.recorded = 0
        self.waited = 0

    def record(self):
        assert self.waited > self.recorded  # nobody writes to a buffer from which a copy may be under way
        self.recorded += 1

    def synchronize(self):
        self.waited += 1


class Stream:
    finished = 0

    def synchronize(self):
        Stream.finished += 1


@pytest.fixture
def card(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device", lambda number: nullcontext())
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1 << 23, 1 << 24))
    monkeypatch.setattr(staging, "_pinned", lambda device: pinned(400))
    monkeypatch.setattr(Card, "check", lambda self: None)
    devices._block_bytes.cache_clear()
    staging._lanes.cache_clear()
    yield Card("torch", "cuda:0")
    devices._block_bytes.cache_clear()
    staging._lanes.cache_clear()
    staging._HELD.clear()


def pinned(size):
    tensor = torch.empty(size, dtype=torch.uint8)
    return staging.Pinned(tensor.numpy(), tensor, Event())


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_tensors_are_filled_piece_by_piece(dtype):
    values = np.arange(45).reshape(15, 3)[::-1].astype(dtype)
    target = torch.zeros(15, 3, dtype=getattr(torch, np.dtype(dtype).name))
    staging.Staging(lambda: pinned(64)).copy(values, target)
    np.testing.assert_array_equal(target.numpy(), values)


def test_blocks_and_what_stays_are_sized_by_free_memory(card):
    assert card.block_bytes == 1 << 20  # the largest power of two in a fifth
    X = np.zeros((1000, 5))
    assert staging.Held(card, ArraySource(X)).fits
    assert not staging.Held(card, ArraySource(np.zeros((50_000, 5)))).fits


@pytest.mark.parametrize("stays", [True, False])
def test_visits_of_rows_through_lanes(card, known_families, naive, monkeypatch, stays):
    family = known_families["gaussian-given"]
    rng = np.random.default_rng(0)
    X = family.rows(rng, 90, 3)
    weights = rng.choice([1.0, 0.5, 2.0], 90)
    model = Model(family.likelihood(X), DirichletProcess(1.0))
    start = naive.summarise(model.likelihood, X, rng.dirichlet(np.full(4, 0.5), 90), weights)
    parameters = model.parameters(start, np.dtype(np.float64))
    monkeypatch.setattr(staging, "STAYING", 2 if stays else 0)
    source = ArraySource(X, weights)
    chunks = sorted(chunk for batch in source.batches(5) for chunk in batch)
    for _ in range(2):
        with OnDevice(card, Threads(2)) as executor:
            seen = visit(model, parameters, source, chunks, executor).summary
        R = naive.responsibilities(model, parameters, X)
        naive.assert_same(seen, naive.summarise(model.likelihood, X, R, weights), 1e-9)
    assert staging.held(card, source).fits == stays
    assert Stream.finished >= stays


def test_what_stays_of_sequences(card):
    X = np.arange(40.0).reshape(20, 2)
    X[3] = np.nan
    source = SequenceSource(X, np.array([12, 8]))
    with staging.lane_of(card) as lane:
        rows, weights = staging.held(card, source).read(source, staging.Chunk(2, 9), lane)
    np.testing.assert_array_equal(rows.numpy(), source.rows(staging.Chunk(2, 9)))
    np.testing.assert_array_equal(weights.numpy(), [1, 0, 1, 1, 1, 1, 1])
    del source
    gc.collect()
    assert not staging._HELD  # the card forgets rows with their source
