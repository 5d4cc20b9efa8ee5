import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import xlogy

from stickbreak.kernels import assign

SEEDS = st.integers(0, 2**32 - 1)
DTYPES = [np.float32, np.float64]


def softmax(C, bias, threshold):
    """The kernel's output: dense responsibilities and the kept entries as (indptr, indices, values)."""
    C = C.copy()
    indptr, indices, values = np.empty(len(C) + 1, np.int64), np.empty(C.size, np.int32), np.empty(C.size, C.dtype)
    kept = assign.softmax_rows(C, bias, threshold, np.inf, indptr, indices, values)
    return C, (indptr, indices[:kept], values[:kept])


def random_sparse(rng, n, K, dtype=np.float64):
    return softmax(rng.normal(0.0, 9.0, (n, K)).astype(dtype), np.zeros(K, dtype), 1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@given(
    n=st.integers(0, 9),
    K=st.integers(1, 7),
    spread=st.sampled_from([0.0, 1.0, 30.0, 1e6, 1e30]),
    threshold=st.sampled_from([1e-12, 1e-8, 0.013, 0.3]),
    ties=st.booleans(),
    seed=SEEDS,
)
def test_softmax_rows_equals_reference(dtype, n, K, spread, threshold, ties, seed):
    rng = np.random.default_rng(seed)
    C, bias = spread * rng.standard_normal((n, K)), rng.standard_normal(K)
    if ties:
        C, bias = np.round(C), np.round(bias)
    C, bias = C.astype(dtype), bias.astype(dtype)
    R, (indptr, indices, values) = softmax(C, bias, threshold)
    tight = 30 * np.finfo(dtype).eps
    np.testing.assert_allclose(R, assign.softmax_rows_reference(C, bias, threshold), rtol=tight, atol=0)
    np.testing.assert_allclose(R.sum(axis=1), 1.0, rtol=tight)
    rows, columns = np.nonzero(R)
    assert np.array_equal(indptr, np.concatenate([[0], np.cumsum((R > 0).sum(axis=1))]))
    assert np.array_equal(indices, columns)
    assert np.array_equal(values, R[rows, columns])


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_rows_by_hand(dtype):
    C = np.array([[0.0, np.log(3.0), -1e30], [5.0, 5.0, 5.0], [0.0, -40.0, -np.inf]], dtype)
    R, (indptr, indices, _) = softmax(C, np.zeros(3, dtype), 1e-8)
    np.testing.assert_allclose(R, [[0.25, 0.75, 0.0], [1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0]], rtol=1e-6)
    assert indptr.tolist() == [0, 2, 5, 6]
    assert indices.tolist() == [0, 1, 0, 1, 2, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@given(n=st.integers(0, 9), K=st.integers(1, 7), ties=st.booleans(), seed=SEEDS)
def test_keep_largest_equals_reference(dtype, n, K, ties, seed):
    rng = np.random.default_rng(seed)
    C = rng.normal(0.0, 2.0, (n, K))
    R, kept = softmax((np.round(C) if ties else C).astype(dtype), np.zeros(K, dtype), 1e-3)
    most = rng.integers(1, K + 2, n)
    want = assign.keep_largest_reference(R, most)
    indptr, indices, values = kept
    count = assign.keep_largest(*kept, most, R)
    np.testing.assert_allclose(R, want, rtol=30 * np.finfo(dtype).eps, atol=0)
    rows, columns = np.nonzero(R)
    assert np.array_equal(np.repeat(np.arange(n), np.diff(indptr)), rows)
    assert np.array_equal(indices[:count], columns)
    assert np.array_equal(values[:count], R[rows, columns])


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_kept_cluster_has_all_of_a_row(dtype):
    C = np.random.default_rng(0).standard_normal((300, 4)).astype(dtype)
    R, kept = softmax(C, np.zeros(4, dtype), 1e-3)
    count = assign.keep_largest(*kept, np.ones(300, int), R)
    assert np.array_equal(kept[2][:count], np.ones(300))
    assert np.array_equal(R.max(axis=1), np.ones(300))


@pytest.mark.parametrize("dtype", DTYPES)
@given(n=st.integers(0, 30), K=st.integers(1, 6), seed=SEEDS)
def test_sums_over_sparse_responsibilities_equal_dense_sums(dtype, n, K, seed):
    rng = np.random.default_rng(seed)
    R, sparse = random_sparse(rng, n, K, dtype)
    R = R.astype(np.float64)
    weights, mass = rng.choice([0.0, 1.0, 2.5], n), rng.choice([0.0, 0.3, 1.0], n)
    T = rng.standard_normal((n, 4)).astype(dtype)
    N, H, S = rng.standard_normal(K), rng.standard_normal(K), rng.standard_normal((K, 4))
    r = mass[:, None] * R
    want_N, want_H = N + weights @ r, H - weights @ xlogy(r, r)
    want_S = S + (weights[:, None] * R).T @ T
    assign.count_and_entropy(*sparse, weights, mass, N, H)
    assign.accumulate(*sparse, weights, T, S)
    for got, want in [(N, want_N), (H, want_H), (S, want_S)]:
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@given(n=st.integers(0, 30), K=st.integers(1, 6), seed=SEEDS)
def test_gather_mass_lists_rows_with_mass_on_the_set(dtype, n, K, seed):
    rng = np.random.default_rng(seed)
    R, sparse = random_sparse(rng, n, K, dtype)
    member = rng.random(K) < 0.4
    rows, mass = np.empty(n, np.int64), np.empty(n)
    count = assign.gather_mass(*sparse, member, rows, mass)
    want = R[:, member].sum(axis=1, dtype=np.float64)
    assert np.array_equal(rows[:count], np.flatnonzero(want))
    np.testing.assert_allclose(mass[:count], want[want > 0], rtol=1e-15)


def draw(sparse, limits, salt, first=0, threshold=0.1, weights=None):
    size, weights = sparse[2].size, np.ones(len(sparse[0]) - 1) if weights is None else weights
    clusters, rows, chosen = np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size)
    count = assign.select_rows(*sparse, weights, threshold, limits, np.uint64(salt), first, clusters, rows, chosen)
    return clusters[:count], rows[:count] + first, chosen[:count]


def split_mix(row, salt):
    """SplitMix64 in whole numbers, as a fraction of one."""
    z = ((row + 1) * 0x9E3779B97F4A7C15 + salt) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return ((z ^ (z >> 31)) >> 11) / 2**53


@pytest.mark.parametrize("salt", [0, 17, 2**63 - 1])
def test_rows_are_drawn_by_their_number_alone(salt):
    rng = np.random.default_rng(3)
    limits, first = np.array([0.0, 0.3, 0.8, 1.0]), 10**10
    R, sparse = random_sparse(rng, 200, 4)
    clusters, rows, chosen = draw(sparse, limits, salt, first)
    uniform = np.array([split_mix(first + i, salt) for i in range(200)])
    want = np.argwhere((R > 0.1) & (uniform[:, None] < limits))
    assert np.array_equal(np.column_stack([rows - first, clusters]), want)
    np.testing.assert_allclose(chosen, R[tuple(want.T)] / limits[clusters], rtol=1e-15)
    pieces = []
    for start, stop in [(0, 1), (1, 60), (60, 60), (60, 200)]:
        i, j = sparse[0][start], sparse[0][stop]
        chunk = sparse[0][start : stop + 1] - i, sparse[1][i:j], sparse[2][i:j]
        pieces.append(draw(chunk, limits, salt, first + start))
    for whole, parts in zip((clusters, rows, chosen), zip(*pieces)):
        assert np.array_equal(whole, np.concatenate(parts))


def test_rows_are_drawn_as_often_as_the_limits_say():
    n, limits = 40_000, np.array([0.01, 0.25, 0.9])
    sparse = np.arange(0, 3 * n + 1, 3), np.tile(np.arange(3, dtype=np.int32), n), np.full(3 * n, 1 / 3)
    both = []
    for salt in (5, 6):
        clusters, rows, _ = draw(sparse, limits, salt)
        frequency = np.bincount(clusters, minlength=3) / n
        assert np.all(np.abs(frequency - limits) < 4.0 * np.sqrt(limits * (1 - limits) / n))
        both.append(np.isin(np.arange(n), rows[clusters == 1]))
    assert abs(np.mean(both[0] & both[1]) - 0.25**2) < 4.0 * np.sqrt(0.25**2 / n)  # salts draw independently
    assert draw(sparse, np.ones(3), 5, threshold=1 / 3)[0].size == 0  # the threshold is exclusive


def test_heavy_rows_are_drawn_in_proportion_to_their_weight():
    n = 40_000
    sparse = np.arange(n + 1), np.zeros(n, np.int32), np.full(n, 0.5)
    weights = np.where(np.arange(n) % 2, 2.0, 50.0)
    _, rows, chosen = draw(sparse, np.array([0.1]), 7, weights=weights)
    assert np.isin(np.flatnonzero(weights == 50.0), rows).all()
    frequency = (weights[rows] == 2.0).sum() / (n / 2)
    assert abs(frequency - 0.2) < 4.0 * np.sqrt(0.2 * 0.8 / (n / 2))
    assert np.dot(weights[rows], chosen) == pytest.approx(0.5 * weights.sum(), rel=0.01)


@given(n=st.integers(0, 30), K=st.integers(1, 8), seed=SEEDS)
def test_merged_entropies_are_those_of_sums(n, K, seed):
    """For every node of a random tree of merges: that of the responsibilities of the clusters below it."""
    rng = np.random.default_rng(seed)
    R, kept = random_sparse(rng, n, K)
    weights, parents, below = rng.random(n), np.full(2 * K - 1, -1), [[k] for k in range(K)]
    alone = list(range(K))
    for node in range(K, 2 * K - 1):
        pair = [alone.pop(int(rng.integers(len(alone)))) for _ in range(2)]
        parents[pair] = node
        below.append(below[pair[0]] + below[pair[1]])
        alone.append(node)
    H = np.zeros(2 * K - 1)
    assign.merged_entropies(*kept, weights, parents, H)
    sums = np.stack([R[:, clusters].sum(axis=1) for clusters in below], axis=1)
    np.testing.assert_allclose(H, -(weights[:, None] * xlogy(sums, sums)).sum(axis=0), atol=1e-9)


@given(n=st.integers(0, 30), K=st.integers(1, 8), seed=SEEDS)
def test_owners_have_the_largest_share(n, K, seed):
    R, kept = random_sparse(np.random.default_rng(seed), n, K)
    owner, share = np.empty(n, np.int64), np.empty(n)
    assign.owners(*kept, owner, share)
    np.testing.assert_array_equal(owner, R.argmax(axis=1) if n else owner)
    np.testing.assert_array_equal(share, R.max(axis=1) if n else share)
