"""Visits of rows on a device: the same code with strict arrays and with torch on processors, against plain references."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource
from stickbreak.device import Device, OnDevice, devices, staging
from stickbreak.device.rows import DeviceRows, ReturnedRows, uniforms
from stickbreak.device.visits import joined, kind_on, refusal
from stickbreak.inference import Threads
from stickbreak.inference.visit import Piece, visit
from stickbreak.likelihoods.features import prefers_sparse
from stickbreak.model import Batch, Model, Parameters, RowKind
from stickbreak.moves import Proposal
from stickbreak.moves.sample import Draw

N, K, D = 90, 5, 3


def problem(family, naive, dtype=np.float64, seed=0):
    """A model, rows and weights, dense responsibilities under its parameters, and these."""
    rng = np.random.default_rng(seed)
    X = family.rows(rng, N, D)
    weights = rng.choice([1.0, 0.5, 2.0], N)
    model = Model(family.likelihood(X), DirichletProcess(1.0))
    start = naive.summarise(model.likelihood, X, rng.dirichlet(np.full(K, 0.5), N), weights)
    parameters = model.parameters(start, np.dtype(dtype))
    return model, X.astype(dtype), weights, parameters


def portable(family):
    likelihood = family.likelihood(family.rows(np.random.default_rng(0), N, D))
    return refusal(RowKind(), likelihood, False) is None


def visited(device, model, parameters, X, weights, **how):
    source = ArraySource(X, weights)
    chunks = [chunk for batch in source.batches(3) for chunk in batch]
    chunks.sort()
    with OnDevice(device, Threads(2)) as executor:
        return visit(model, parameters, source, chunks, executor, **how)


def test_what_a_visit_says_of_each_family(device, family, naive):
    if not portable(family):
        pytest.skip("visited on processors")
    model, X, weights, parameters = problem(family, naive)
    columns = (1, 3)
    some = Parameters(parameters.W[[0, 2, 4]], parameters.bias[[0, 2, 4]])
    proposals = [Proposal("birth", columns, some, 0.0), Proposal("merge", columns, None, 0.0)]
    seen = visited(device, model, parameters, X, weights, proposals=proposals)

    R = naive.responsibilities(model, parameters, X)
    naive.assert_same(seen.summary, naive.summarise(model.likelihood, X, R, weights), 1e-9)
    mass = R[:, columns].sum(axis=1, keepdims=True)
    split = mass * naive.responsibilities(model, some, X)
    for tracked, shares in zip(seen.tracked, (split, mass)):
        expected = naive.summarise(model.likelihood, X, shares, weights)
        for name in ("N", "S", "H"):
            scale = 1.0 + np.abs(getattr(expected, name)).max()
            np.testing.assert_allclose(getattr(tracked, name), getattr(expected, name), rtol=0, atol=1e-9 * scale)


def test_float32_rows_have_float64_sums(device, known_families, naive):
    model, X, weights, parameters = problem(known_families["gaussian-given"], naive, np.float32)
    assert parameters.W.dtype == np.float32
    seen = visited(device, model, parameters, X, weights).summary
    R = naive.responsibilities(model, Parameters(*(np.float64(a) for a in parameters[:2])), np.float64(X))
    naive.assert_same(seen, naive.summarise(model.likelihood, np.float64(X), R, weights), 2e-5)
    assert {seen.N.dtype, seen.S.dtype, seen.H.dtype} == {np.dtype(np.float64)}
    assert abs(seen.N.sum() / weights.sum() - 1.0) < 1e-7


def test_draws_are_those_of_processors(device, known_families, naive):
    model, X, weights, parameters = problem(known_families["gaussian-given"], naive)
    draw = Draw(np.linspace(0.05, 1.5, K), 2**62 + 12345, np.arange(K) + 10)
    source = ArraySource(X, weights)
    with Threads(1) as executor:
        there = visit(model, parameters, source, source.batches(1)[0], executor, draw=draw).drawn
    here = visited(device, model, parameters, X, weights, draw=draw).drawn
    assert sum(len(part.rows) for part in here) > 20
    for name in ("owners", "rows", "chosen"):
        np.testing.assert_allclose(*(np.concatenate([getattr(p, name) for p in drawn]) for drawn in (here, there)))


@pytest.mark.parametrize("salt", [0, 7, 2**63 - 1, 2**63 + 99])
def test_random_numbers_by_definition(device, salt):
    mask = (1 << 64) - 1

    def split_mix(row):
        z = ((row + 1) * 0x9E3779B97F4A7C15 + salt) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return ((z ^ (z >> 31)) >> 11) * 2.0**-53

    with np.errstate(over="ignore"):
        found = device.host(uniforms(device, 1000, 50, salt))
    assert found.tolist() == [split_mix(row) for row in range(1000, 1050)]


def test_limits_keep_the_largest(device, known_families, naive):
    model, X, weights, parameters = problem(known_families["gaussian-given"], naive)
    model = Model(model.likelihood, model.allocation, RowKind(most_kept=2))
    broad = Parameters(0.05 * parameters.W, 0.05 * parameters.bias)
    R = naive.responsibilities(model, broad, X)
    least = np.sort(R, axis=1)[:, [-2]]
    R = np.where(least <= R, R, 0.0)
    R /= R.sum(axis=1, keepdims=True)
    assert (R > 0.01).sum() > 1.5 * N
    naive.assert_same(
        visited(device, model, broad, X, weights).summary, naive.summarise(model.likelihood, X, R, weights), 1e-9
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_far_from_every_cluster_are_done_exactly(device, known_families, naive, dtype):
    """Their scores are so large that nothing is left of the differences between them, or overflow."""
    model, X, weights, parameters = problem(known_families["gaussian-given"], naive, dtype)
    X[[3, 50]] = [[4e9, -1e9, 2e9], [1e18, 1e18, -1e18]]
    source = ArraySource(X, weights)
    proposals = [Proposal("birth", (0, 1, 2), parameters, 0.0)]
    with Threads(1) as executor:
        there = visit(model, parameters, source, source.batches(1)[0], executor, proposals)
    here = visited(device, model, parameters, X, weights, proposals=proposals)
    for a, b in ((here.summary, there.summary), (here.tracked[0], there.tracked[0])):
        assert np.isfinite(a.S).all()
        naive.assert_same(a, b, 1e-5 if dtype == np.float32 else 1e-9)


def test_blocks_that_are_moved_at_each_visit(device, known_families, naive, blocks_of):
    model, X, weights, parameters = problem(known_families["diagonal_gaussian-missing"], naive)
    whole = visited(device, model, parameters, X, weights).summary
    blocks_of(20_000)
    assert DeviceRows(device=device).block_rows(model.likelihood, parameters) < N / 2
    pieces = visited(device, model, parameters, X, weights).summary
    naive.assert_same(pieces, whole)


def test_pieces_are_joined_to_blocks():
    a, b, c = (np.arange(n) for n in (3, 2, 4))
    pieces = [Piece(staging.Chunk(0, 3), a), Piece(staging.Chunk(3, 5), b), Piece(staging.Chunk(7, 11), c)]
    (first, second) = joined(pieces, 10)
    assert (first.chunk, second.chunk) == ((0, 5), (7, 11))
    assert first.start.tolist() == [0, 1, 2, 0, 1]
    assert [piece.chunk for piece in joined(pieces, 2)] == [piece.chunk for piece in pieces]


def test_staging_copies_every_row_through_two_buffers():
    """A buffer is filled again only when the copy from it is over."""
    log = []

    class Event:
        def __init__(self, number):
            self.number = number

        def synchronize(self):
            log.append(("wait", self.number))

        def record(self):
            log.append(("copied", self.number))

    class Tensor(np.ndarray):
        def copy_(self, other, non_blocking):
            assert non_blocking
            self[...] = other

    made = []

    def make():
        held = np.zeros(64, np.uint8)
        made.append(held)
        return staging.Pinned(held, held, Event(len(made)))

    values = np.arange(45.0).reshape(15, 3)
    target = np.zeros((15, 3)).view(Tensor)
    through = staging.Staging(make)
    through.copy(values[::-1], target)
    np.testing.assert_array_equal(target, values[::-1])
    assert log == [(what, 1 + i % 2) for i in range(8) for what in ("wait", "copied")]
    with pytest.raises(ValueError, match="80 bytes"):
        through.copy(np.zeros((2, 10)), np.zeros((2, 10)).view(Tensor))


def test_a_visit_can_be_pickled_and_holds_no_tensors(plain, known_families, naive, monkeypatch):
    """It names its device; results are NumPy's and as small as summaries."""
    model, X, weights, parameters = problem(known_families["gaussian-given"], naive)
    sent = []

    class Elsewhere(Threads):
        def total(self, source, task, items):
            sent.append(pickle.dumps(task))
            return pickle.loads(pickle.dumps(super().total(source, pickle.loads(sent[-1]), items)))

    source = ArraySource(X, weights)
    with OnDevice(plain, Elsewhere(1)) as executor:
        seen = visit(model, parameters, source, source.batches(1)[0], executor).summary
    assert b"numpy" in sent[0]
    assert len(sent[0]) < 3 * parameters.W.nbytes + 5000
    naive.assert_same(seen, visited(plain, model, parameters, X, weights).summary)


def name_of(device):
    return device.name if device.library == "torch" else device.library


def three(seed=0, n=250, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(m, 1.0, (n, 2)) for m in (-8, 0, 8)])
    return rng.permutation(X).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_whole_fit_finds_the_same_clusters(device, dtype):
    X = three(dtype=dtype)
    calls = []
    model = Mixture("gaussian", random_state=0, device=name_of(device))
    original = DeviceRows.local_step
    DeviceRows.local_step = lambda *arguments: calls.append(0) or original(*arguments)
    try:
        there = model.fit(X)
    finally:
        DeviceRows.local_step = original
    here = Mixture("gaussian", random_state=0).fit(X)
    assert len(calls) > 5
    assert there.n_clusters_ == here.n_clusters_ == 3
    assert abs(there.lower_bound_ / here.lower_bound_ - 1.0) < 1e-6
    assert (np.diff(there.lower_bounds_) > -1e-6 * abs(there.lower_bound_)).all()
    agree = (there.labels_[:, None] == there.labels_) == (here.labels_[:, None] == here.labels_)
    assert agree.mean() > 0.999


def test_more_batches_weights_and_partial_fit():
    X = three(1)
    weights = np.random.default_rng(2).choice([1.0, 2.0], len(X))
    fits = [
        Mixture("diagonal_gaussian", n_batches=3, random_state=0, device=device).fit(X[:600], None, weights[:600])
        for device in (None, "numpy")
    ]
    for model in fits:
        model.partial_fit(X[600:])
    assert fits[0].n_clusters_ == fits[1].n_clusters_
    np.testing.assert_allclose(*(model.lower_bound_ for model in fits), rtol=1e-6)


def test_labels(device):
    """A last column of the rows says their classes."""
    X = three()
    y = np.full(len(X), None)
    y[:12] = np.where(X[:12, 0] < -4.0, "low", "high")
    fits = [Mixture("gaussian", random_state=0, device=d).fit(X, y) for d in (None, name_of(device))]
    assert fits[0].n_clusters_ == fits[1].n_clusters_
    np.testing.assert_allclose(*(model.lower_bound_ for model in fits), rtol=1e-6)
    family = fits[1].model_.likelihood
    codes = np.arange(len(X)) % 3
    for rows in (X, np.column_stack([X, codes])):
        found = family.features(device.array(rows), device.empty((len(X), family.n_statistics), np.float64))
        expected = family.features(rows, np.empty((len(X), family.n_statistics)))
        np.testing.assert_allclose(device.host(found), expected, rtol=1e-12)


def test_responsibilities_that_come_back(device, known_families, naive, monkeypatch):
    """Predictions, and the survey at the end of an ascent, are read on the device, some rows at a time."""
    model, X, _, parameters = problem(known_families["gaussian-given"], naive)
    kind = ReturnedRows(device=device)
    monkeypatch.setattr(ReturnedRows, "block_rows", lambda *_: 37)
    summary, kept = kind.local_step(model.likelihood, parameters, Batch(X, np.ones(N)), True, True)
    R = naive.responsibilities(model, parameters, X)
    np.testing.assert_allclose(naive.dense(kept, K), R, atol=1e-10)
    naive.assert_same(summary, naive.summarise(model.likelihood, X, R), 1e-9)


def test_predictions_are_read_on_the_device(monkeypatch):
    X = three()
    model = Mixture("gaussian", random_state=0, device="numpy").fit(X)
    known = model.labels_, model.predict_proba(X)
    seen = []
    original = ReturnedRows.local_step
    monkeypatch.setattr(ReturnedRows, "local_step", lambda *a: seen.append(0) or original(*a))
    np.testing.assert_array_equal(model.predict(X), known[0])
    assert seen
    model.set_params(device=None)
    np.testing.assert_array_equal(model.predict(X), known[0])
    np.testing.assert_allclose(model.predict_proba(X), known[1], atol=1e-9)


def test_model_files_do_not_have_the_device(tmp_path):
    from stickbreak import load

    model = Mixture("gaussian", random_state=0, max_laps=5, device="numpy")
    with warnings.catch_warnings(action="ignore"):
        model.fit(three())
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.device is None
    np.testing.assert_array_equal(again.predict(three()), model.labels_)


def test_tensors_are_rows():
    torch = pytest.importorskip("torch")
    X = three(dtype=np.float32)
    found = Mixture("gaussian", random_state=0, n_jobs=1).fit(torch.tensor(X, requires_grad=True))
    known = Mixture("gaussian", random_state=0, n_jobs=1).fit(X)
    assert found.lower_bound_ == known.lower_bound_
    assert found.dtype_ == np.float32
    np.testing.assert_array_equal(found.predict(torch.tensor(X)), known.labels_)
    half = torch.tensor(np.round(X), dtype=torch.bfloat16)
    assert known.predict(half).shape == (len(X),)


def test_the_device_of_a_tensor():
    """A tensor on a card is visited there, unless another device is named; one on processors is an array."""

    class Tensor:
        __module__ = "torch"
        detach = None

        def __init__(self, device):
            self.device = device

    assert devices.device_of(None, Tensor("cuda:1")) == Device("torch", "cuda:1")
    assert devices.device_of(None, Tensor("cuda")) == Device("torch", "cuda:0")
    assert devices.device_of("cpu", Tensor("cuda:1")) == Device("torch", "cpu")
    assert devices.device_of(None, Tensor("cpu")) is None
    assert devices.device_of(None, np.zeros(3)) is None


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:1", "", 0, ["cuda"]])
def test_names_of_no_device(name):
    with pytest.raises(ValueError, match="device must be None or"):
        Mixture(device=name).fit(three())


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    for module in ("array_api_compat", "array_api_compat.torch"):
        monkeypatch.setitem(sys.modules, module, None)
    devices._namespace.cache_clear()
    with pytest.raises(ImportError, match=r'needs torch and array-api-compat: pip install "stickbreak\[gpu\]"'):
        Mixture(device="cuda").fit(three())
    devices._namespace.cache_clear()


def test_a_card_that_is_not_there():
    torch = pytest.importorskip("torch")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    with pytest.raises(RuntimeError, match=f"finds no device 'cuda:{count}'; leave out device="):
        Mixture(device=f"cuda:{count}").fit(three())


def test_fewer_digits_than_float32_are_refused():
    torch = pytest.importorskip("torch")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with pytest.raises(RuntimeError, match="set_float32_matmul_precision"):
            Mixture(device="cpu").fit(three())
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_network_that_is_trained_around_a_fit_takes_no_digits(known_families, naive):
    torch = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    model, X, weights, parameters = problem(known_families["gaussian-given"], naive, np.float32)
    known = visited(Device.parse("cpu"), model, parameters, X, weights).summary
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
        found = visited(Device.parse("cpu"), model, parameters, X, weights).summary
    naive.assert_same(found, known)


def test_what_devices_do_not_compute_is_refused():
    from scipy import sparse

    with pytest.raises(TypeError, match=r"StudentT has a latent variable for each row, .* use Gaussian"):
        Mixture("student_t", device="numpy").fit(three())
    counts = sparse.csr_array(np.random.default_rng(0).poisson(1.0, (50, 4)).astype(float))
    with pytest.raises(TypeError, match=r"sparse rows .* X.toarray"):
        Mixture("multinomial", device="numpy").fit(counts)


def test_every_family_is_computed_or_refused(known_families, strict):
    """Features of strict arrays are those of NumPy, also of families whose features are made as CSR on processors."""
    rng = np.random.default_rng(0)
    computed = set()
    for name, family in known_families.items():
        X = family.rows(rng, 40, D)
        likelihood = family.likelihood(X)
        trouble = refusal(RowKind(), likelihood, False)
        if trouble is not None:
            assert "leave out device=" in trouble
            assert kind_on(strict, RowKind(), likelihood, ArraySource(X)) is None
            continue
        computed.add(name.partition("-")[0])
        shape = 40, likelihood.n_statistics
        if prefers_sparse(likelihood):
            expected = likelihood.features(X, None).toarray()
        else:
            expected = likelihood.features(X, np.empty(shape))
        found = likelihood.features(strict.array(X), strict.empty(shape, np.float64))
        np.testing.assert_allclose(strict.host(found), expected, rtol=1e-12, atol=1e-12, err_msg=name)
    assert {"gaussian", "bernoulli", "poisson", "categorical", "multinomial", "product", "exponential"} <= computed


def test_nothing_is_imported_before_it_is_needed():
    code = "import sys, stickbreak; print([m for m in ('torch', 'array_api_compat', 'cupy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
