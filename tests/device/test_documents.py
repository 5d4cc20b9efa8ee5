"""Documents on a device, against plain formulas, against the loops of processors, and in whole fits."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma, gammaln, psi

from stickbreak import TopicModel
from stickbreak.allocations import HierarchicalDirichletProcess
from stickbreak.data import BagSource
from stickbreak.device import OnDevice, special
from stickbreak.device.documents import DeviceBags
from stickbreak.device.groups import Groups
from stickbreak.inference import Threads
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import Multinomial, Sample
from stickbreak.model import Batch, Model, Parameters, Summary
from stickbreak.model.bags import BAGS
from stickbreak.moves import Proposal
from stickbreak.moves.sample import Draw

FIELDS = "N", "S", "H", "P", "Q", "P_rest", "Q_rest", "D", "counts"
K, V, N = 6, 40, 130


@pytest.fixture(scope="module")
def problem():
    """A model, documents of several lengths, of which some have one topic and one none, parameters, and proposals.

    The iterations of all these documents converge fast, so that it hardly matters which is the last.
    """
    rng = np.random.default_rng(2)
    topics = rng.dirichlet(np.full(V, 0.2), K)
    shares = rng.dirichlet(np.full(K, 0.3), N)
    shares[:40] = np.eye(K)[rng.integers(K, size=40)]
    counts = np.array([rng.multinomial(rng.integers(1, 60), share @ topics) for share in shares]).astype(float)
    counts[5] = 0.0
    counts[:, 17] = 0.0  # a word that nobody uses
    counts[9] *= 0.25  # counts need not be whole
    source = BagSource(sparse.csr_array(counts))
    model = Model(Multinomial(0.1).resolve(Sample.of(counts)), HierarchicalDirichletProcess(0.5), BAGS)
    total = counts.sum()
    start = model.kind.start(Summary(np.full(K, total / K), topics * total / K + 0.1, np.zeros(K), np.zeros(())))
    parameters = model.parameters(start, source.dtype)
    pair = Parameters(parameters.W[[0, 2]] + [[0.3], [0.0]], parameters.bias[[0, 2]], parameters.prior[[0, 2]])
    proposals = [
        Proposal("birth", (0,), pair, 0.0),
        Proposal("merge", (1, 3), None, 0.0),
        Proposal("delete", (1, 0, 2), pair, 0.0),
    ]
    return model, source, parameters, {"proposals": proposals, "draw": Draw(np.full(K, 0.1), 7, np.arange(K))}


def visited(executor, problem, starts=None):
    model, source, parameters, how = problem
    chunks = [chunk for batch in source.batches(1) for chunk in batch]
    with executor:
        return visit(model, parameters, source, chunks, executor, starts=starts, **how)


@pytest.fixture(scope="module")
def known(problem):
    """What processors find, from a cold start and from there."""
    cold = visited(Threads(1), problem)
    return cold, visited(Threads(1), problem, cold.summary.counts)


def assert_same(one, other, rtol):
    for name in FIELDS:
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * (1.0 + np.abs(b).max(initial=0.0)), err_msg=name)


@pytest.mark.parametrize("size", [1 << 28, 1_200_000], ids=["at once", "in small groups"])
def test_as_on_processors(device, problem, known, blocks_of, size):
    """From a cold start and a warm one; iterations are in float32, so that fixed points differ by its rounding."""
    blocks_of(size)
    for start, there in zip((None, known[0].summary.counts), known):
        here = visited(OnDevice(device, Threads(1)), problem, start)
        assert_same(here.summary, there.summary, 1e-6)
        for a, b in zip(here.tracked, there.tracked):
            assert_same(a, b, 1e-6)
        for name in ("rows", "owners"):
            drawn = (np.concatenate([getattr(part, name) for part in seen.drawn]) for seen in (here, there))
            np.testing.assert_array_equal(*drawn)
        parts = (sparse.vstack([part.parts for part in seen.drawn]).toarray() for seen in (here, there))
        np.testing.assert_allclose(*parts, rtol=2e-5, atol=1e-5)


def test_sums_by_definition(device, problem):
    """What a visit says of its documents follows from their factors p, for which any would give a valid bound."""
    model, source, parameters, _ = problem
    kind = DeviceBags(device=device)
    prepared = kind.prepare(model.likelihood, parameters, source)
    chunk = source.batches(1)[0][0]
    X, weights = kind.read(source, chunk, None)
    with np.errstate(all="ignore"):
        summary, kept = kind.local_step(model.likelihood, prepared, Batch(X, weights), False, True)
    counts = X.X.toarray()
    n = len(counts)
    single, p, log_Z = (device.host(values) for values in (kept.counted.single, kept.counted.p, kept.counted.log_Z))
    assert 10 < single.sum() < 100
    E = prepared.tables.E
    R = np.zeros((n, V, K))
    for d in range(n):
        mixed = E * p[d] / (E @ p[d])[:, None]
        R[d] = counts[d][:, None] * (p[d] if single[d] else mixed)
    rows, columns = counts.nonzero()
    np.testing.assert_allclose(log_Z, np.where(single[rows], 0.0, np.log((E[columns] * p[rows]).sum(axis=1))))
    docs = R.sum(axis=1)
    np.testing.assert_allclose(summary.S, R.sum(axis=0).T, atol=1e-9)
    np.testing.assert_allclose(summary.N, docs.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(summary.S.sum(axis=0), counts.sum(axis=0), atol=1e-9)  # every token once
    theta = docs + prepared.tables.prior
    tokens = counts.sum(axis=1, keepdims=True)
    alone = prepared.tables.prior + tokens
    both = [(f(theta), p * f(alone) + (1.0 - p) * f(prepared.tables.prior)) for f in (digamma, gammaln)]
    expected = [np.where(single[:, None], one, mixed).sum(axis=0) for mixed, one in both]
    total = psi(tokens.sum(axis=1) + prepared.tables.prior.sum() + prepared.tables.rest).sum()
    np.testing.assert_allclose(summary.P, expected[0] - total, rtol=1e-10)
    np.testing.assert_allclose(summary.Q, expected[1] - prepared.tables.prior * summary.P, rtol=1e-9)
    share = R / np.maximum(counts, 1e-300)[:, :, None]
    entropy = -(R * np.log(np.where(share > 0.0, share, 1.0)))[~single].sum()
    entropy -= (p * np.log(np.where(p > 0.0, p, 1.0)))[single].sum()
    np.testing.assert_allclose(summary.H.sum(), entropy, rtol=1e-9)


@pytest.mark.parametrize("most", [1, 8, 100])
def test_groups_hold_each_entry_once(most):
    rng = np.random.default_rng(0)
    sizes = np.concatenate([[0, 1, 17, 0], rng.integers(0, 9, 30)])
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    groups = Groups.of(indptr, most)
    entries = np.concatenate([group.entries.ravel() for group in groups.groups])
    assert sorted(entries[entries < indptr[-1]]) == list(range(indptr[-1]))
    for group in groups.groups:
        assert len(group.members) == 1 or group.entries.size <= most
        assert 2 * sizes[group.members].min() >= group.entries.shape[1] - 1
        for member, own in zip(group.members, group.entries):
            assert own[own < indptr[-1]].tolist() == list(range(indptr[member], indptr[member + 1]))
    np.testing.assert_array_equal(entries[groups.entry_place], np.arange(indptr[-1]))


def test_special_functions(device):
    xp = device.xp
    x = np.concatenate([10.0 ** np.linspace(-8, 12, 400), [1.0, 2.0, 0.5]])
    here = device.array(x)
    np.testing.assert_allclose(device.host(special.digamma(xp, here)), digamma(x), rtol=2e-14, atol=2e-14)
    np.testing.assert_allclose(device.host(special.log_gamma(xp, here)), gammaln(x), rtol=2e-14, atol=3e-13)
    some = np.linspace(0.11, 50.0, 300)
    rough = special.exp_digamma(xp, device.array(some, np.float32), 1e-26)
    np.testing.assert_allclose(device.host(rough), np.exp(digamma(some.astype(np.float32))), rtol=5e-6)


def test_a_whole_fit_finds_as_many_topics(device):
    rng = np.random.default_rng(1)
    topics = np.repeat(np.eye(4), 5, axis=1) / 5
    counts = rng.multinomial(40, rng.dirichlet([0.3] * 4, 100) @ topics)
    name = device.name if device.library == "torch" else device.library
    how = {"n_init_topics": 8} if device.library == "torch" else {"n_init_topics": 4, "moves": (), "tol": 1.0}
    fits = [TopicModel(random_state=0, device=d, **how).fit(counts) for d in (None, name)]
    assert fits[0].n_topics_ == fits[1].n_topics_ == 4
    assert abs(fits[1].lower_bound_ / fits[0].lower_bound_ - 1.0) < 1e-5


def test_seeds():
    """Named topics have statistics that are no words."""
    rng = np.random.default_rng(1)
    topics = np.repeat(np.eye(3), 4, axis=1) / 4
    counts = rng.multinomial(20, rng.dirichlet([0.3] * 3, 30) @ topics)
    how = {"seeds": {"first": [0, 1], "last": [10, 11]}, "n_init_topics": 3, "moves": (), "tol": 1.0}
    fits = [TopicModel(random_state=0, device=d, **how).fit(counts) for d in (None, "numpy")]
    assert abs(fits[1].lower_bound_ / fits[0].lower_bound_ - 1.0) < 1e-5


@pytest.mark.parametrize("how", [{"most_kept": 2}, {"restarts": 5}])
def test_what_devices_do_not_compute_is_refused(how):
    counts = np.random.default_rng(0).poisson(1.0, (30, 8))
    with pytest.raises(TypeError, match="restarts and most_kept are for processors alone"):
        TopicModel(device="numpy", **how).fit(counts)
    with pytest.raises(TypeError, match="groups of rows, and documents with answers, are visited on processors alone"):
        TopicModel("gaussian", device="numpy").fit(np.random.default_rng(0).normal(size=(30, 2)), lengths=[15, 15])
