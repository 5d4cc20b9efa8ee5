"""The search and its laps: what they may change, when they stop, what they keep."""

import threading
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info

from stickbreak.allocations import DirichletProcess, FiniteDirichlet
from stickbreak.data import ArraySource, SparseSource
from stickbreak.inference import Options, RowSearch, Session, Threads
from stickbreak.inference.bounds import BoundDecreased
from stickbreak.inference.ending import decide_end
from stickbreak.inference.init import from_responsibilities, from_seeds, one_cluster
from stickbreak.inference.laps import Laps
from stickbreak.inference.row_search import TUNING
from stickbreak.inference.sample_sizes import TUNING as SAMPLES
from stickbreak.inference.sample_sizes import sample_rows
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import Gaussian, Multinomial, Sample
from stickbreak.model import Model
from stickbreak.moves import Schedule

MOVES = ("birth", "merge", "delete")


@pytest.fixture(scope="module")
def X():
    """Six clusters, some of which touch."""
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0], [3, 0], [0, 8], [9, 9], [12, 9], [20, 0]], float)
    return np.concatenate([c + rng.standard_normal((n, 2)) for c, n in zip(centers, (30, 40, 50, 60, 70, 80))])


def model_of(X, allocation=None):
    return Model(Gaussian().resolve(Sample.of(X)), allocation or DirichletProcess(1.0))


def run(X, moves=MOVES, start=None, seed=0, model=None, on_lap=lambda lap: None, **options):
    model = model or model_of(X)
    source, rng = ArraySource(X), np.random.default_rng(seed)
    with Threads(1) as threads:
        found = RowSearch(model, source, moves, Session(threads, on_lap), rng, Options(check=True, **options))
        if start is None:
            summary = one_cluster(model)
        elif isinstance(start, int):
            summary = model.ordered(from_seeds(model, source, start, True, np.random.default_rng(1)))
        else:
            R = np.eye(int(start.max()) + 1)[start]
            given = from_responsibilities(model, source, lambda chunk, rows: R[chunk.start : chunk.stop], threads)
            summary = model.ordered(given)
        found.run(summary)
    return found


def explored(found):
    return [lap.explored_clusters for lap in found.history]


def test_the_history_counts_laps(X):
    seen = []
    found = run(X, on_lap=seen.append)
    assert seen == found.history
    assert [lap.number for lap in seen] == list(range(1, len(seen) + 1))
    assert np.all(np.diff([lap.seconds for lap in seen]) >= 0.0)
    assert all(lap.rows_per_second > 0.0 for lap in seen)
    assert all(lap.accepted == sum(len(record.gains) for record in lap.moves) for lap in seen)
    assert all(record.accepted <= record.tried for lap in seen for record in lap.moves)
    assert all(lap.explored_bound <= lap.lower_bound + 1e-9 * abs(lap.lower_bound) for lap in seen)
    assert found.converged
    assert seen[-1].n_clusters == found.total.K == 4
    assert seen[-1].lower_bound == found.outcome.bound == found.model.bound(found.total)


@pytest.mark.parametrize("max_laps", [1, 2, 3, 10, 25])
@pytest.mark.parametrize("moves", [(), MOVES], ids=str)
def test_max_laps_is_the_most_that_are_done(X, moves, max_laps):
    found = run(X, moves, start=4, max_laps=max_laps)
    assert len(found.history) == max_laps or (found.converged and len(found.history) < max_laps)
    assert found.history[-1].lower_bound == found.outcome.bound


def test_moves_do_what_their_names_say(X):
    """Without births K never rises, and without merges and deletes only clusters that lose every row go."""
    for moves in ((), ("merge",), ("delete",), ("merge", "delete")):
        found = run(X, moves, start=12)
        assert max(explored(found)) <= 12
        assert np.all(np.diff([lap.n_clusters for lap in found.history]) <= 0)
        assert {record.kind for lap in found.history for record in lap.moves} == set(moves)
        assert found.total.K == 4 if "merge" in moves else found.total.K <= 12
    born = run(X, ("birth",))
    assert born.total.K >= 4
    assert {record.kind for lap in born.history for record in lap.moves} == {"birth"}


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_the_prior_limits_the_number_of_clusters(X, limit):
    found = run(X, model=model_of(X, FiniteDirichlet(limit, 1.0)))
    assert max(explored(found)) == limit


@pytest.mark.parametrize("seed", range(3))
def test_excursions_are_kept_only_if_they_pay(X, seed):
    """The search starts with an ascent of its own, which it ends no lower than."""
    X = X + np.random.default_rng(seed).standard_t(2, X.shape)
    model, source, options = model_of(X), ArraySource(X), Options(tol=TUNING.coarse * 0.01)
    with Threads(1) as threads:
        rng = np.random.default_rng(seed).spawn(1)[0]
        alone = Laps(model, source, Schedule(MOVES), Session(threads), rng, options)
        alone.run(one_cluster(model))
    found = run(X, seed=seed, tol=0.01)
    same = [lap.lower_bound for lap in found.history[: len(alone.history)]]
    assert same == [lap.lower_bound for lap in alone.history]
    assert found.outcome.bound >= alone.bound
    assert len(found.history) > len(alone.history)


def test_tolerance_is_the_gain_at_which_laps_stop(X):
    loose, tight = (run(X, (), start=7, tol=tol, accelerate=False) for tol in (1e-2, 1e-6))
    assert len(loose.history) < len(tight.history)
    for found, tol in ((loose, 1e-2), (tight, 1e-6)):
        gains = np.diff([lap.lower_bound for lap in found.history])
        assert gains[-1] <= tol * found.total.K
        assert np.all(gains[:-1] > 0.0)


def test_extrapolation_saves_laps(X):
    laps = np.zeros(2)
    for start in (4, 7, 10):
        fast, plain = (run(X, (), start=start, tol=1e-9, accelerate=accelerate) for accelerate in (True, False))
        assert fast.outcome.bound == pytest.approx(plain.outcome.bound, rel=1e-4)
        laps += len(fast.history), len(plain.history)
    assert laps[0] < 0.7 * laps[1]


@pytest.mark.parametrize("name", ["weights", "log_marginal"])
def test_the_check_finds_a_likelihood_that_is_wrong(X, name):
    """A factor of 1.3 in either of two functions that must agree."""

    class Wrong(Gaussian):
        def weights(self, N, S):
            W, b = super().weights(N, S)
            return (1.3 * W, 0.7 * b) if name == "weights" else (W, b)

        def log_marginal(self, N, S):
            return super().log_marginal(N, S) * (-1.0 if name == "log_marginal" else 1.0)

    model = Model(Wrong().resolve(Sample.of(X)), DirichletProcess(1.0))
    with pytest.raises(BoundDecreased, match=r"the bound fell from .* to .* after"):
        run(X, (), start=5, model=model, accelerate=False, tol=0.0, max_laps=60)


@pytest.mark.parametrize("lap", [1, 2, 5, 9, 12])
def test_an_interrupted_search_has_the_best_model(X, lap):
    """Wherever it is stopped, also during an excursion."""
    state = {}

    def stop(record):
        state["last"] = record
        if record.number == lap:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted(X, stop, state)
    found = state["search"]
    assert found.outcome.bound == state["last"].lower_bound
    assert state["last"].n_clusters == found.total.K
    assert found.model.bound(found.total) == found.outcome.bound
    assert found.total.N.sum() == pytest.approx(len(X), rel=1e-12)


def interrupted(X, stop, state):
    model = model_of(X)
    with Threads(1) as threads:
        rng = np.random.default_rng(0)
        state["search"] = RowSearch(model, ArraySource(X), MOVES, Session(threads, stop), rng, Options())
        state["search"].run(one_cluster(model))


def test_options_are_values():
    options = Options(n_batches=3)
    assert replace(options, tol=0.5).n_batches == 3
    with pytest.raises(AttributeError):
        options.tol = 1.0


def pools():
    return [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()]


def stop_after_five():
    with Threads(3) as workers:
        for result in workers.map(lambda i: i, range(100)):
            if result == 5:
                raise RuntimeError("stop")


def test_no_thread_or_limit_is_left_behind():
    before = threading.active_count(), pools()
    with pytest.raises(RuntimeError, match="stop"):
        stop_after_five()
    assert (threading.active_count(), pools()) == before


@pytest.mark.parametrize("n", [1, 2, 5])
def test_threads_keep_the_order_and_raise_what_tasks_raise(n):
    with Threads(n) as workers:
        assert list(workers.map(lambda i: i * i, range(50))) == [i * i for i in range(50)]
        assert list(workers.map(str, [])) == []
        with pytest.raises(ZeroDivisionError):
            list(workers.map(lambda i: 1 / (i - 7), range(50)))


def test_enough_quiet_laps_end_an_ascent_though_moves_are_left(X):
    model, rng = model_of(X), np.random.default_rng(0)
    with Threads(1) as threads:
        laps = Laps(model, ArraySource(X), Schedule(MOVES), Session(threads), rng, Options(), most_quiet=3)
        laps.run(model.ordered(from_seeds(model, laps.source, 4, True, rng)))
    problem, after = laps.problem, laps.state._replace(proposals=[object()], settle=-1)
    quiet, states = after._replace(quiet=0), []
    for _ in range(4):
        states.append(decide_end(problem, quiet, after))
        quiet = states[-1]
    assert [state.done for state in states] == [False, False, True, True]
    assert decide_end(problem, quiet._replace(bound=after.bound - 1.0), after).quiet == 0  # a lap that gained
    fewer = after.posterior.model.posterior(after.total.take(np.arange(1, after.total.K)))
    assert decide_end(problem, quiet._replace(posterior=fewer), after).quiet == 0  # a cluster that is new
    assert decide_end(problem, after._replace(quiet=0), after._replace(proposals=[])).done


@pytest.mark.parametrize("seed", range(3))
def test_one_cluster_does_not_end_in_pieces(seed):
    """Four clusters of many rows: where three pieces of one are left, no merge of two of them pays at once."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(center, 1.0, (20_000, 2)) for center in ((-6, 0), (6, 0), (0, 8), (0, -8))])
    assert run(X, seed=seed).total.K == 4


@pytest.mark.parametrize("seed", range(3))
def test_a_cluster_too_rare_for_a_sample_is_found(seed):
    """Twenty of 20,000 rows, of which a sample has three."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20_000, 4))
    X[:20, 0] += 12.0
    found = run(X, seed=seed)
    assert found.total.K == 2
    assert found.total.N.min() == pytest.approx(20.0, abs=0.5)


@pytest.mark.parametrize("seed", range(2))
def test_a_search_from_its_own_result_gains_nothing(X, seed):
    found = run(X, seed=seed)
    model, source = found.found, ArraySource(X)
    with Threads(1) as threads:
        rng = np.random.default_rng(seed + 10)
        again = RowSearch(model, source, MOVES, Session(threads), rng, Options(check=True))
        again.run(found.total)
    assert again.outcome.bound <= found.outcome.bound + 1.0


def test_samples_fit_into_memory_and_tell_clusters_apart():
    """An eighth of the rows, but no more than 512 MiB, and none where few rows would stand for many statistics."""
    assert sample_rows(100_000, 2, 5) == 12_500
    assert sample_rows(25_000, 2, 5) == 5000
    assert sample_rows(20_000, 2, 5) == 0
    assert sample_rows(10**9, 32, 560) * 32 == SAMPLES.most_numbers
    assert sample_rows(100_000, 50, 1325) == 0
    assert sample_rows(10**8, 300, 45_450) == 0


def test_laps_over_sparse_rows_take_as_long_as_what_they_store():
    """40,000 rows of six words of 3,000: not the dense rows, of which a lap looks at every number."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array((np.ones(240_000), rng.integers(3000, size=240_000), np.arange(0, 240_001, 6)), (40_000, 3000))
    X.sum_duplicates()
    model = Model(Multinomial(1.0).resolve(Sample.of(X[:100])), DirichletProcess(1.0))
    with Threads(1) as threads:
        given = (("birth",), Session(threads), rng, Options())
        assert not RowSearch(model, SparseSource(X), *given)._takes_long(32)
        assert RowSearch(model, ArraySource(X[:12_000].toarray()), *given)._takes_long(32)


@pytest.mark.long
def test_splits_that_chance_explains_are_no_excursion():
    """Any split of few rows has a chance; a tail of ten rows may still pass."""
    hopeful = 0
    left = 0
    for seed, n in product(range(8), (800, 1200, 1600)):
        X = np.random.default_rng(seed).standard_normal((n, 16))
        found = run(X, moves=("birth",), start=np.zeros(n, np.intp), seed=seed, max_laps=1)
        hopeful += len(found._fitted_splits(found.best, found.best.drawn, thorough=True))
        left += len(found._promising_splits(found.best))
    assert hopeful >= 16
    assert left <= 0.7 * hopeful


def test_an_extrapolated_lap_takes_a_step_with_every_batch(X, monkeypatch):
    seen = []

    def recording(model, parameters, *rest, **more):
        seen.append(parameters.W)
        return visit(model, parameters, *rest, **more)

    monkeypatch.setattr("stickbreak.inference.lap.visit", recording)
    run(X, moves=(), start=6, n_batches=3, max_laps=4)
    laps = [seen[i : i + 3] for i in range(0, len(seen), 3)]
    assert len(laps) == 4
    assert all((laps[0][0] == W).all() for W in laps[0])
    for lap in laps[1:]:
        assert not (lap[0] == lap[1]).all()
        assert not (lap[1] == lap[2]).all()
