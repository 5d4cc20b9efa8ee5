"""Altered model files, their checksums recomputed: each is refused, or loads into a model whose answers are finite."""

import itertools
from collections import Counter

import numpy as np
import pytest

from conftest import FAMILIES
from model_file_mutations import as_version_1, mutations, outcome
from stickbreak import HMM, Mixture, TopicModel
from stickbreak.likelihoods import AutoregressiveGaussian

pytestmark = pytest.mark.filterwarnings("ignore:not converged")

N_MUTATIONS = 25  # of each file
LENGTHS = {"HMM": [50, 30], "TopicModel": [30, 20, 30], "Mixture": None}


def fitted(kind, family):
    """A model of each kind of estimator and its rows."""
    rng = np.random.default_rng(0)
    X = family.rows(rng, 80, 4)
    D, given = X.shape[1], {"max_laps": 3, "random_state": 0, "n_jobs": 1}
    if kind == "Mixture":
        return Mixture(family.make(D, **family.prior(D)), **given).fit(X), X
    if kind == "TopicModel":
        given["n_init_topics"] = 3
        return TopicModel(family.make(D, **family.prior(D)), **given).fit(X, lengths=LENGTHS[kind]), X
    if family.kind is AutoregressiveGaussian:
        X = np.ascontiguousarray(X[:, : D // 2])
    return HMM(family.make(D, **family.prior(D)), **given).fit(X, lengths=LENGTHS[kind]), X


NAMES = [name for name in FAMILIES if name != "gamma-missing"]
KINDS = [(name, ("Mixture", "HMM", "TopicModel")[i % 3]) for i, name in enumerate(NAMES)]
KINDS += [("gaussian-given", "HMM"), ("gaussian-given", "TopicModel"), ("gamma-given", "Mixture")]
KINDS = [(n, "HMM" if n.startswith("autoregressive") and k == "TopicModel" else k) for n, k in dict.fromkeys(KINDS)]
KINDS = [(n, "Mixture" if n in FAMILIES and FAMILIES[n].latent else k) for n, k in KINDS]


@pytest.mark.parametrize(("name", "kind"), dict.fromkeys(KINDS))
def test_altered_files_are_refused_or_give_finite_answers(tmp_path, name, kind):
    model, X = fitted(kind, FAMILIES[name])
    path, whole = tmp_path / "m", tmp_path / "whole"
    model.save(whole)
    assert outcome(whole, X, LENGTHS[kind]) == "answers"
    seed = NAMES.index(name)
    older = tmp_path / "older"
    older.write_bytes(as_version_1(whole.read_bytes(), path))
    found = Counter()
    for source, n in ((whole, N_MUTATIONS), (older, N_MUTATIONS // 5)):
        for content in itertools.islice(mutations(source, np.random.default_rng(seed)), n):
            path.write_bytes(content)
            found[outcome(path, X, LENGTHS[kind])] += 1
    assert found["refused"] > N_MUTATIONS // 2


def test_bags_of_words(tmp_path):
    X = FAMILIES["multinomial-default"].rows(np.random.default_rng(0), 80, 4)
    path, whole = tmp_path / "m", tmp_path / "whole"
    TopicModel(max_laps=2, n_init_topics=3, random_state=0).fit(X).save(whole)
    for content in itertools.islice(mutations(whole, np.random.default_rng(0)), 2 * N_MUTATIONS):
        path.write_bytes(content)
        outcome(path, X)
