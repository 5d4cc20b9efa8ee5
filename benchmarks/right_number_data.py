"""Data sets with known clusters, drawn anew from their definitions.

S1 to S4, A1 to A3, Birch1 and Birch2, Unbalance, Dim32 to Dim1024 and G2 imitate the sets of Fränti and Sieranoja, *K-means
properties on six clustering benchmark datasets* (2018), in number of clusters, sizes, columns and overlap; the grid and the
sine of Birch are those of Zhang, Ramakrishnan and Livny, *BIRCH* (1996).  Four are real tables whose clusters overlap.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.spatial import KDTree
from sklearn import datasets

from clustered_rows import FAMILIES, bits, categories, clusters, points

Rows = Any  # (N, D): an array, CSR or a frame


@dataclass(frozen=True)
class DataSet:
    """Rows with known clusters.

    n_rows : N
    draw(rng) : the rows (N, D), and the cluster of each, (N,)
    likelihood : a name, or an object
    """

    name: str
    n_rows: int
    draw: Callable[[np.random.Generator], tuple[Rows, np.ndarray]]
    likelihood: Any = "gaussian"

    def rows(self) -> tuple[Rows, np.ndarray]:
        """The same rows every time."""
        return self.draw(np.random.default_rng(0))


# Sizes ------------------------------------------------------------------------------------------------------------------


def labels(N: int, shares: np.ndarray) -> np.ndarray:
    """Labels (N,), in order, of clusters with the given shares of the rows (K,)."""
    ends = np.round(np.cumsum(shares) / np.sum(shares) * N)
    return np.searchsorted(ends, np.arange(N), side="right")


def shares(K: int, sizes: str) -> np.ndarray:
    """Shares (K,) of the clusters: "equal", "unequal" (1, 1/2, 1/3, ...), or equal but for a rare one, such as "1%"."""
    if sizes == "equal":
        return np.ones(K)
    if sizes == "unequal":
        return 1.0 / np.arange(1, K + 1)
    rare = float(sizes.rstrip("%")) / 100.0
    return np.append(np.full(K - 1, (1.0 - rare) / (K - 1)), rare)


# Gaussian clusters ------------------------------------------------------------------------------------------------------


def apart(rng: np.random.Generator, K: int, D: int, distance: float) -> np.ndarray:
    """K centers (K, D) with at least the given distance between each two, drawn from a cube that grows until they fit."""
    side, centers = distance / np.sqrt(D), np.zeros((1, D))
    while len(centers) < K:
        center = rng.uniform(-side, side, D)
        if ((centers - center) ** 2).sum(axis=1).min() >= distance**2:
            centers = np.vstack([centers, center])
        else:
            side *= 1.01
    return centers


def gaussians(
    name: str, z: np.ndarray, centers: np.ndarray, widths: Any = 1.0, likelihood: Any = "gaussian"
) -> DataSet:
    """Spherical clusters about centers (K, D), with standard deviations widths (K,)."""
    widths = np.broadcast_to(widths, len(centers))

    def draw(rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
        return centers[z] + widths[z, None] * rng.standard_normal((len(z), centers.shape[1])), z

    return DataSet(name, len(z), draw, likelihood)


def grown(D: int, K: int, N: int, distance: float, sizes: str, likelihood: str = "gaussian") -> DataSet:
    """Clusters of unit standard deviation, at least so many of these apart."""
    family = "" if likelihood == "gaussian" else f"{likelihood}-"

    def draw(rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
        z, centers = rng.permutation(labels(N, shares(K, sizes))), apart(rng, K, D, distance)
        return centers[z] + rng.standard_normal((N, D)), z

    return DataSet(f"{family}d{D}-k{K}-n{N}-{distance:g}sd-{sizes}", N, draw, likelihood)


def overlap(X: np.ndarray, z: np.ndarray, centers: np.ndarray) -> float:
    """Share of rows that are nearer to a row of another cluster than to their own center."""
    reach = np.linalg.norm(X - centers[z], axis=1)
    near = KDTree(X).query_ball_point(X, reach, return_length=True)
    for k in range(len(centers)):
        own = z == k
        near[own] -= KDTree(X[own]).query_ball_point(X[own], reach[own], return_length=True)
    return float((near > 0).mean())


def overlapping(name: str, N: int, K: int, wanted: float) -> DataSet:
    """K clusters of equal size in two dimensions, as wide as the overlap that is published for them."""

    def draw(rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
        z, centers = labels(N, shares(K, "equal")), apart(rng, K, 2, 1.0)
        noise, narrow, wide = rng.standard_normal((N, 2)), 0.0, 1.0
        for _ in range(10):
            width = 0.5 * (narrow + wide)
            if overlap(centers[z] + width * noise, z, centers) < wanted:
                narrow = width
            else:
                wide = width
        return centers[z] + width * noise, z

    return DataSet(name, N, draw)


def birch(name: str, x: np.ndarray, y: np.ndarray) -> DataSet:
    """100 clusters of 1,000 rows with radius sqrt(2)."""
    return gaussians(name, np.repeat(np.arange(100), 1000), np.column_stack([x, y]))


def published() -> Iterator[DataSet]:
    """The sets of Fränti and Sieranoja."""
    for i, wanted in enumerate((0.09, 0.22, 0.41, 0.44), 1):
        yield overlapping(f"s{i}", 5000, 15, wanted)
    for i, K in enumerate((20, 35, 50), 1):
        yield overlapping(f"a{i}", 150 * K, K, 0.20)
    i = np.arange(100.0)
    yield birch("birch1", 4.0 * np.sqrt(2.0) * (i % 10), 4.0 * np.sqrt(2.0) * (i // 10))
    yield birch("birch2", 2.0 * np.pi * i, 25.0 * np.sin(2.0 * np.pi * i / 25.0))
    dense, spread = [(15, 35), (21, 35), (18, 38)], [(44, 30), (44, 40), (49, 35), (54, 30), (54, 40)]
    sizes = np.repeat([2000, 100], [3, 5])
    yield gaussians(
        "unbalance", np.repeat(np.arange(8), sizes), np.array(dense + spread, float), np.repeat([0.3, 1.0], [3, 5])
    )
    for D, likelihood in ((32, "gaussian"), (128, "gaussian"), (1024, "diagonal_gaussian")):
        centers = np.random.default_rng(D).uniform(0.0, 255.0, (16, D))
        yield gaussians(f"dim{D}", np.repeat(np.arange(16), 64), centers, 8.0, likelihood)
    for D, width in ((2, 30), (2, 50), (16, 50), (64, 100), (256, 50)):
        centers = np.array([[500.0], [600.0]]) * np.ones(D)
        yield gaussians(f"g2-{D}-{width}", np.repeat([0, 1], 1024), centers, float(width))


# Other rows -------------------------------------------------------------------------------------------------------------


def of_family(name: str, N: int, K: int, sizes: str = "equal") -> DataSet:
    """Rows of one of the families of `clustered_rows`."""
    likelihood, generate = FAMILIES[name]

    def draw(rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
        z = rng.permutation(labels(N, shares(K, sizes)))
        return generate(rng, z), z

    return DataSet(f"{name.split()[0].lower()}-k{K}-n{N}-{sizes}", N, draw, likelihood)


def tables(N: int, K: int) -> DataSet:
    """Frames of measurements, text, counts and bits."""

    def draw(rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
        z = rng.permutation(labels(N, shares(K, "equal")))
        measurements = pd.DataFrame(points(rng, z, np.ones((K, 1)))[:, :2])
        text = pd.DataFrame(np.array(list("abcde"))[categories(rng, z)[:, :6].astype(int)])
        counts = pd.DataFrame(rng.poisson(rng.gamma(0.7, 10.0, (clusters(z), 3))[z]))
        parts = {"measurement": measurements, "text": text, "count": counts, "bit": pd.DataFrame(bits(rng, z)[:, :8])}
        named = [part.rename(columns=lambda d, kind=kind: f"{kind}{d}") for kind, part in parts.items()]
        return pd.concat(named, axis=1), z

    return DataSet(f"auto-k{K}-n{N}-equal", N, draw, "auto")


def far(name: str, D: int, distance: float, sizes: str) -> DataSet:
    """One Gaussian, and few of 100,000 rows far from it."""
    centers = np.zeros((2, D))
    centers[1, 0] = distance
    return gaussians(name, labels(100_000, shares(2, sizes)), centers)


def factors(D: int, q: int, N: int) -> DataSet:
    """One cluster: D columns that follow q factors, and noise of their own."""

    def draw(rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
        return rng.normal(size=(N, q)) @ rng.normal(size=(q, D)) + rng.normal(size=(N, D)), np.zeros(N, int)

    return DataSet(f"auto-factors-d{D}-q{q}-n{N}", N, draw, "auto")


def heavy_tails(D: int, N: int) -> DataSet:
    """One cluster: a Student-t of 4 degrees of freedom."""

    def draw(rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
        return rng.normal(size=(N, D)) / np.sqrt(rng.chisquare(4.0, size=(N, 1)) / 4.0), np.zeros(N, int)

    return DataSet(f"auto-student-d{D}-n{N}", N, draw, "auto")


def noise_columns(D: int, K: int, noise: int, N: int) -> DataSet:
    """Clusters of unit standard deviation in D columns, and columns that know nothing of them."""

    def draw(rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
        z = rng.permutation(labels(N, shares(K, "equal")))
        centers = rng.normal(0.0, 6.0, (K, D))
        return np.column_stack([centers[z] + rng.normal(size=(N, D)), rng.normal(size=(N, noise))]), z

    return DataSet(f"auto-k{K}-d{D}+{noise}-n{N}", N, draw, "auto")


def noise_values(kind: str, K: int, told: int, noise: int, N: int) -> DataSet:
    """Clusters of bits, counts, durations or levels in some columns, and columns that know nothing of them."""

    def draw(rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
        z = rng.permutation(labels(N, shares(K, "equal")))
        high = (np.arange(told) % K == np.arange(K)[:, None])[z]
        everywhere = rng.beta(1.0, 3.0, noise)
        if kind == "bits":
            p = np.hstack([np.where(high, 0.9, 0.1), np.tile(everywhere, (N, 1))])
            return (rng.random(p.shape) < p).astype(float), z
        if kind == "counts":
            return rng.poisson(np.hstack([np.where(high, 8.0, 2.0), np.tile(10.0 * everywhere, (N, 1))])), z
        if kind == "durations":
            scale = np.hstack([np.where(high, 20.0, 1.0), np.tile(10.0 * everywhere + 0.1, (N, 1))])
            return rng.exponential(scale), z
        level = np.where(rng.random((N, told)) < 0.7, z[:, None], rng.integers(4, size=(N, told)))
        return pd.DataFrame(np.array(list("abcd"))[np.hstack([level, rng.integers(4, size=(N, noise))])]), z

    likelihood = "exponential" if kind == "durations" else "auto"
    return DataSet(f"{kind}-k{K}-d{told}+{noise}-n{N}", N, draw, likelihood)


def with_noise() -> Iterator[DataSet]:
    """Sets with columns that know nothing of the clusters."""
    for noise in (60, 200):
        for N in (150, 900):
            yield noise_columns(3, 3, noise, N)
    for kind in ("bits", "counts", "durations", "levels"):
        for noise in (60, 600):
            yield noise_values(kind, 3, 6, noise, 300)


def many_levels(K: int, D: int, L: int, N: int) -> DataSet:
    """Clusters of unequal sizes in columns of many levels, of which each cluster has few: rows seldom share any."""

    def draw(rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
        z = rng.choice(K, N, p=rng.dirichlet(np.full(K, 2.0)))
        edges = rng.dirichlet(np.full(L, 0.1), (K, D)).cumsum(axis=-1)
        return np.minimum((rng.random((N, D, 1)) > edges[z]).sum(axis=-1), L - 1).astype(float), z

    return DataSet(f"levels{L}-k{K}-d{D}-n{N}", N, draw, "categorical")


def short_documents(K: int, words: int, V: int, N: int) -> DataSet:
    """Documents of so few words (CSR), each of one cluster, that seldom share any: of V words each cluster has few."""

    def draw(rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
        z = rng.integers(K, size=N)
        chances = rng.dirichlet(np.full(V, 0.1 if V < 1000 else 0.05), K)
        return sparse.csr_array(rng.multinomial(words, chances[z])), z

    return DataSet(f"words{words}-k{K}-n{N}", N, draw, "multinomial")


def close_pairs(D: int, N: int, distance: float) -> DataSet:
    """Nine Gaussians of unit standard deviation: three far from all others, and three pairs so far apart."""
    far_apart = apart(np.random.default_rng(5), 6, D, 10.0)
    centers = np.vstack([far_apart, far_apart[:3] + distance * np.eye(1, D)])
    return gaussians(f"close-pairs-d{D}-n{N}-{distance:g}sd", labels(N, shares(9, "equal")), centers)


def bundled(name: str, load: Callable[..., tuple[np.ndarray, np.ndarray]], n_rows: int) -> DataSet:
    """A table that scikit-learn brings along, with its classes; of a target in numbers, its quarters."""

    def draw(rng: np.random.Generator) -> tuple[Rows, np.ndarray]:
        X, y = load(return_X_y=True)
        return X, y if y.dtype.kind == "i" else np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75]))

    return DataSet(name, n_rows, draw, "auto")


def data_sets() -> Iterator[DataSet]:
    """All of them."""
    for N in (200, 2000, 20_000, 200_000, 2_000_000):
        yield grown(2, 1, N, 1.0, "equal")
    yield grown(16, 1, 2000, 1.0, "equal")
    yield gaussians("readme", np.repeat(np.arange(4), 50_000), np.array([[-9.0], [-3.0], [3.0], [9.0]]) * np.ones(2))
    yield far("few-far", 2, 8.0, "1%")
    yield far("very-few-far", 8, 12.0, "0.1%")
    for D, N, distance in CLOSE_PAIRS:
        yield close_pairs(D, N, distance)
    for D, K, N, distance, sizes in GAUSSIAN:
        yield grown(D, K, N, distance, sizes)
    for D, K, N, distance, sizes in DIAGONAL:
        yield grown(D, K, N, distance, sizes, "diagonal_gaussian")
    yield from published()
    for name in ("Bernoulli", "categorical", "Poisson", "multinomial (CSR)"):
        yield of_family(name, 2000, 1)
        yield of_family(name, 2000, 4)
        yield of_family(name, 20_000, 30, "unequal")
    for K, D, N in ((1, 2, 6000), (12, 2, 6000), (6, 3, 2000)):
        yield many_levels(K, D, 200, N)
    for K, words, V, N in ((1, 6, 500, 2000), (5, 4, 500, 1000), (20, 6, 2000, 5000)):
        yield short_documents(K, words, V, N)
    yield of_family("product", 5000, 10)
    yield tables(2000, 4)
    yield tables(20_000, 10)
    for D in (150, 250):
        yield factors(D, 5, 300)
        yield heavy_tails(D, 500)
    yield from with_noise()
    yield bundled("iris", datasets.load_iris, 150)
    yield bundled("wine", datasets.load_wine, 178)
    yield bundled("breast-cancer", datasets.load_breast_cancer, 569)
    yield bundled("diabetes", datasets.load_diabetes, 442)


CLOSE_PAIRS = ((4, 10_000, 2.2), (2, 20_000, 1.8), (2, 100_000, 1.5), (2, 1_000_000, 1.3))
GAUSSIAN = (
    (1, 2, 200, 6.0, "equal"),
    (1, 2, 20_000, 3.0, "equal"),
    (1, 4, 2000, 6.0, "unequal"),
    (1, 10, 20_000, 6.0, "equal"),
    (1, 30, 200_000, 8.0, "equal"),
    (2, 4, 2000, 4.0, "equal"),
    (2, 4, 2000, 8.0, "1%"),
    (2, 4, 2_000_000, 6.0, "unequal"),
    (2, 10, 5000, 5.0, "unequal"),
    (2, 30, 20_000, 6.0, "unequal"),
    (2, 100, 100_000, 6.0, "equal"),
    (2, 300, 300_000, 8.0, "equal"),
    (4, 4, 1000, 3.0, "equal"),
    (4, 10, 20_000, 4.0, "1%"),
    (4, 100, 200_000, 5.0, "equal"),
    (8, 2, 200, 4.0, "equal"),
    (8, 10, 20_000, 4.0, "unequal"),
    (8, 30, 200_000, 8.0, "0.1%"),
    (8, 300, 300_000, 6.0, "equal"),
    (16, 4, 2000, 6.0, "equal"),
    (16, 10, 100_000, 3.0, "equal"),
    (16, 30, 2_000_000, 8.0, "unequal"),
    (64, 2, 2000, 8.0, "equal"),
    (64, 4, 20_000, 16.0, "0.1%"),
    (64, 10, 20_000, 6.0, "unequal"),
    (64, 100, 100_000, 8.0, "equal"),
)
DIAGONAL = (
    (2, 1, 5000, 1.0, "equal"),
    (4, 10, 5000, 5.0, "unequal"),
    (16, 30, 20_000, 6.0, "equal"),
    (64, 100, 100_000, 8.0, "equal"),
)
DATA_SETS = {data.name: data for data in data_sets()}
