"""The local step by phrases against the one by rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stickbreak.allocations import HDPMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.data import phrases as data
from stickbreak.estimators._sequences import collapsed
from stickbreak.inference import Threads
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import Categorical, Sample
from stickbreak.model import SEQUENCES, Batch, Model, SequenceSummary, Summary, potentials
from stickbreak.model import phrases as model_phrases
from stickbreak.model.messages import log_normaliser
from stickbreak.model.paths import viterbi

FIELDS = ("N", "S", "base", "M", "begins")


def problem(seed, K=3, missing=0.0, extreme=False):
    """A model, a source in which rows repeat, and parameters; extreme ones are hundreds of nats apart."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.integers(4, size=80), rng.integers(1, 15, 80)).astype(float)[:, None]
    lengths = np.diff(np.unique(np.append(rng.integers(1, len(X), size=3), [0, len(X)])))
    family = Categorical().resolve(Sample.of(X))
    X[rng.random(len(X)) < missing] = np.nan
    source = collapsed(SequenceSource(X, lengths))
    size = 1e-3 if extreme else 0.5
    rows = Summary(
        np.full(K, 50.0), 50.0 * rng.dirichlet(np.full(family.n_statistics, size), K), np.zeros(K), np.zeros(())
    )
    M = rng.gamma(size, 50.0, (K, K)) + (0.0 if extreme else 5.0) * np.eye(K)
    model = Model(family, HDPMarkovChain(1.0, 5.0, 2.0, 1.5), SEQUENCES)
    start = SequenceSummary.of(rows, M, rng.gamma(0.5, 2.0, K))
    return model, source, model.parameters(start, np.dtype(float))


def short_phrases(patch):
    """Few occurrences make a phrase, and each is of use."""
    patch.setattr(data, "OFTEN", 4)
    patch.setattr(model_phrases, "MADE", 0)


def visited(model, source, parameters):
    with Threads(1) as threads:
        return visit(model, parameters, source, source.batches(1)[0], threads).summary


def normaliser(model, source, parameters):
    prepared = model.kind.prepare(model.likelihood, parameters, source)
    return sum(log_normaliser(model.likelihood, prepared, source.read(chunk)[0]) for chunk in source.batches(1)[0])


def score_of_path(model, source, parameters):
    """The log potential of the best path found; paths that only differ in where equal rows change their state tie."""
    prepared = model.kind.prepare(model.likelihood, parameters, source)
    z = np.concatenate([viterbi(model.likelihood, prepared, source.read(chunk)[0]) for chunk in source.whole()])
    first = np.isin(np.arange(len(z)), source.edges[:-1])
    moves = np.flatnonzero(~first)
    score = prepared.table.C[source.codes, z].sum() + prepared.log_start[z[first]].sum()
    return score + prepared.log_A[z[moves - 1], z[moves]].sum()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.sampled_from([50, 200, 1 << 15]))
def test_phrases_change_nothing(seed, some_missing, extreme, steps):
    with pytest.MonkeyPatch.context() as patch:
        short_phrases(patch)
        patch.setattr("stickbreak.data.sequences.STEPS", steps)
        model, source, parameters = problem(seed, missing=0.1 * some_missing, extreme=extreme)
        if source.phrases is None:
            return
        assert model.kind.prepare(model.likelihood, parameters, source).phrases is not None
        found = visited(model, source, parameters)
        log_Z = normaliser(model, source, parameters)
        score = score_of_path(model, source, parameters)
        patch.setattr(potentials, "matrices", lambda source, A, L: None)
        want = visited(model, source, parameters)
        want_log_Z = normaliser(model, source, parameters)
        want_score = score_of_path(model, source, parameters)
    assert score == pytest.approx(want_score, rel=1e-12, abs=1e-9)
    for name in FIELDS:
        np.testing.assert_allclose(getattr(found, name), getattr(want, name), rtol=0, atol=1e-8, err_msg=name)
    assert found.H.sum() == pytest.approx(want.H.sum(), abs=1e-8)
    assert log_Z == pytest.approx(want_log_Z, rel=1e-12, abs=1e-9)


def test_phrases_are_left_out_where_they_save_nothing():
    model, source, parameters = problem(0)
    assert model.kind.prepare(model.likelihood, parameters, source).phrases is None


def test_rows_drawn_stand_for_all_rows_like_them():
    model, source, parameters = problem(1)
    prepared = model.kind.prepare(model.likelihood, parameters, source)
    batch = Batch(*source.read(source.batches(1)[0][0]))
    summary, kept = model.kind.local_step(model.likelihood, prepared, batch, False, True)
    whole = model.kind.draw(batch, kept, summary, np.full(3, 1e300), 7)
    np.testing.assert_allclose(np.bincount(whole.owners, whole.chosen, 3), summary.N)
    X, _ = source.take(whole.rows)
    for state in range(3):
        here = whole.owners == state
        T = model.likelihood.features(X[here], np.empty((here.sum(), model.likelihood.n_statistics)))
        T = T.toarray() if hasattr(T, "toarray") else T
        np.testing.assert_allclose(whole.chosen[here] @ T, summary.S[state])
    some = [model.kind.draw(batch, kept, summary, np.full(3, 0.01), salt) for salt in range(2000)]
    mean = sum(np.bincount(drawn.owners, drawn.chosen, 3) for drawn in some) / len(some)
    np.testing.assert_allclose(mean, summary.N, rtol=0.15)
