"""The tree of merges of the clusters, topics and states of a model."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy.cluster.hierarchy import dendrogram, fcluster, is_monotonic, is_valid_linkage
from sklearn.metrics import adjusted_rand_score

from stickbreak import HMM, Mixture, TopicModel, load
from stickbreak.estimators import Hierarchy

CENTRES = np.array([[0.0, 0.0], [0.0, 6.0], [60.0, 0.0], [60.0, 6.0], [66.0, 0.0]])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    labels = rng.integers(len(CENTRES), size=600)
    return CENTRES[labels] + rng.standard_normal((600, 2)), labels


@pytest.fixture(scope="module")
def models(rows):
    X, labels = rows
    rng = np.random.default_rng(1)
    states = np.repeat(rng.permutation(np.arange(40) % 5), 20)
    steps = CENTRES[states] + rng.standard_normal((800, 2))
    topics = rng.dirichlet(np.full(30, 0.1), 4)
    counts = rng.multinomial(40, rng.dirichlet(np.full(4, 0.5), 200) @ topics)
    return {
        "mixture": Mixture("gaussian", init=labels, moves=(), n_jobs=1).fit(X),
        "hmm": HMM("gaussian", init=states, moves=(), n_jobs=1).fit(steps),
        "topics": TopicModel(n_init_topics=4, moves=(), random_state=0, n_jobs=1).fit(counts),
    }


@pytest.mark.parametrize("name", ["mixture", "hmm", "topics"])
def test_it_is_a_tree_that_scipy_reads(models, name):
    tree, K = models[name].hierarchy_, models[name].summary_.K
    assert K >= 4
    assert tree.losses.shape == (K - 1,)
    assert is_valid_linkage(tree.linkage, throw=True)
    assert is_monotonic(tree.linkage)
    assert len(dendrogram(tree.linkage, no_plot=True)["leaves"]) == K
    np.testing.assert_array_equal(tree.linkage[-1, 3], K)
    assert models[name].hierarchy_ is tree
    assert pickle.loads(pickle.dumps(models[name])).hierarchy_.linkage.tolist() == tree.linkage.tolist()


@pytest.mark.parametrize("name", ["mixture", "hmm", "topics"])
def test_cuts_are_nested_and_numbered_in_order(models, name):
    tree, K = models[name].hierarchy_, models[name].summary_.K
    np.testing.assert_array_equal(tree.cut(K), np.arange(K))
    np.testing.assert_array_equal(tree.cut(1), np.zeros(K))
    for n in range(1, K + 1):
        groups = tree.cut(n)
        assert list(dict.fromkeys(groups)) == list(range(n))
        assert adjusted_rand_score(groups, fcluster(tree.linkage, n, "maxclust")) == 1.0
    for finer, coarser in pairwise(range(K, 0, -1)):
        assert len(set(zip(tree.cut(finer), tree.cut(coarser)))) == finer


def test_close_clusters_merge_first(rows, models):
    model, labels = models["mixture"], rows[1]
    assert adjusted_rand_score(model.hierarchy_.cut(2)[model.labels_], labels >= 2) == 1.0


def test_losses_are_changes_of_the_log_marginals_of_rows_and_assignments(models):
    """Cut by cut, from the sums of each group; no other first merge loses less."""
    model = models["mixture"]
    likelihood, N, S = model.model_.likelihood, model.summary_.N, model.summary_.S

    def value(groups):
        sizes = np.array([N[groups == g].sum() for g in set(groups)])
        sums = np.stack([S[groups == g].sum(axis=0) for g in set(groups)])
        return likelihood.log_marginal(sizes, sums).sum() + (sizes * np.log(sizes)).sum()

    values = [value(model.hierarchy_.cut(n)) for n in range(5, 0, -1)]
    np.testing.assert_allclose(model.hierarchy_.losses, -np.diff(values), rtol=1e-9)
    pairs = [np.where(np.arange(5) == b, a, np.arange(5)) for b in range(5) for a in range(b)]
    assert values[1] == pytest.approx(max(map(value, pairs)), rel=1e-12)


def test_one_cluster_has_no_merges(rows):
    tree = Mixture("gaussian", init=np.zeros(600), moves=(), n_jobs=1).fit(rows[0]).hierarchy_
    assert tree.linkage.shape == (0, 4)
    np.testing.assert_array_equal(tree.cut(1), [0])


@pytest.mark.parametrize("n", [0, 6, 2.0, True, None, "2"])
def test_impossible_cuts_are_refused(models, n):
    with pytest.raises(ValueError, match="n must be a whole number"):
        models["mixture"].hierarchy_.cut(n)


def test_another_fit_has_another_tree(rows, tmp_path):
    X, labels = rows
    model = Mixture("gaussian", init=labels, moves=(), n_jobs=1)
    assert not hasattr(model, "hierarchy_")
    first = model.fit(X).hierarchy_
    model.save(tmp_path / "model")
    np.testing.assert_allclose(load(tmp_path / "model").hierarchy_.linkage, first.linkage)
    assert model.set_params(init=labels // 2).fit(X).hierarchy_.linkage.shape == (2, 4)
    assert isinstance(first, Hierarchy)
