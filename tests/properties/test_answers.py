"""Topics that follow answers: one objective, exact for any responsibilities, that neither laps nor moves ever lower."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from stickbreak.allocations import HierarchicalDirichletProcess, LatentDirichlet
from stickbreak.data import AnsweredBags, BagSource
from stickbreak.inference import Options, Session, Threads
from stickbreak.inference.laps import Laps
from stickbreak.inference.topics.survey import document_survey
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import Multinomial, Sample
from stickbreak.model import BAGS, AnsweredBagKind, Batch, Model, Summary
from stickbreak.model.edits import side_by_side
from stickbreak.moves import Schedule
from stickbreak.moves.agglomeration import ancestry, level_start, levels_of, merges
from stickbreak.responses import CategoricalResponse, ClassResponse, GaussianResponse, HingeResponse, MarginResponse

FLOAT = np.dtype(float)
K, C = 5, 3
RESPONSES = {
    "numbers": GaussianResponse(1.0, 0.1, 0.0, 1.0),
    "numbers, heavy": GaussianResponse(1e5, 1e-5, 0.0, 1.0),
    "margin": MarginResponse(10.0, 0.1, 0.1, 0.0, 1.0),
    "classes": CategoricalResponse(C, 1.0, 0.1),
    "classes, heavy": CategoricalResponse(C, 100.0, 0.1),
    "hinge": HingeResponse(C, 20.0, 0.1),
}
every = pytest.mark.parametrize("name", list(RESPONSES))


def problem(name, seed, D=60, V=15):
    """A model, documents of which some have no answer and some no words, and a start."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(V, 0.2), 3)
    shares = rng.dirichlet(np.full(3, 0.4), D)
    X = rng.multinomial(rng.poisson(rng.choice([3.0, 30.0], D)), shares @ topics).astype(float)
    X[0] = 0.0
    X[1] = np.eye(V)[0]
    response = RESPONSES[name]
    y = shares @ [-1.0, 0.0, 2.0] + rng.normal(0.0, 0.1, D)
    if isinstance(response, ClassResponse):
        y = shares.argmax(axis=1).astype(float)
    y[2::4] = np.nan
    allocation = (HierarchicalDirichletProcess(0.7, 1.5), LatentDirichlet(8, 2.0))[seed % 2]
    kind = AnsweredBagKind(n_outputs=response.n_outputs)
    model = Model(Multinomial(0.3).resolve(Sample.of(X)), allocation, kind, response=response)
    S = rng.exponential(1.0, (K, V)) * X.sum() / (K * V)
    return model, AnsweredBags(BagSource(sparse.csr_array(X)), y), model.start(S.sum(axis=1), S)


def weight_of(model):
    return getattr(model.response, "weight", 1.0)


def laps(model, source, start, moves=(), n_batches=1, max_laps=10, learn=(), seed=0):
    with Threads(1) as threads:
        options = Options(n_batches, max_laps, 1e-9, True, learn, check=True)
        schedule = Schedule(moves, model.kind.recipe)
        found = Laps(model, source, schedule, Session(threads), np.random.default_rng(seed), options)
        found.run(start)
    return found


def read(model, source, start, laps_before=2):
    """A chunk of all documents, visited after some laps: summary, what is kept, the batch, and that model."""
    found = laps(model, source, start, max_laps=laps_before)
    model = found.model
    chunk = source.batches(1)[0][0]
    batch = Batch(*source.read(chunk), answers=source.answers(chunk))
    prepared = model.kind.prepare(model.likelihood, model.parameters(found.total, FLOAT), source)
    summary, kept = model.kind.local_step(model.likelihood, prepared, batch, True, True)
    return summary, kept, batch, model


@every
def test_the_objective_never_falls(name, turn):
    """`check` compares it after every batch, lap and move."""
    learn = ("document_concentration", "likelihood.concentration", "response.precision")
    accepted = set()
    for seed in range(2):
        model, source, start = problem(name, seed)
        n_batches = (1, 3)[(turn + seed) % 2]
        found = laps(model, source, start, ("birth", "merge", "delete"), n_batches, learn=learn, seed=seed)
        bounds = np.array([lap.lower_bound for lap in found.history])
        assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
        assert found.model.bound(found.total) == found.bound
        assert pytest.approx(weight_of(model) * ((~np.isnan(source.y)) & (source.sizes > 0)).sum()) == found.total.A
        accepted |= {record.kind for lap in found.history for record in lap.moves if record.gains}
    assert accepted


@every
def test_sums_are_those_of_the_responsibilities(name):
    """Written out document by document."""
    summary, kept, batch, model = read(*problem(name, 1))
    indptr, rows, counts = model.kind.entries(batch.X)
    reading = model.response.reading(summary)
    M = np.zeros((K, K))
    m = np.zeros((len(indptr) - 1, K))
    words = []
    for d in range(len(m)):
        some = slice(*indptr[d : d + 2])
        n = counts[some].sum()
        if n == 0.0 or np.isnan(batch.answers[d]):
            continue
        assert not kept.single[d]
        r = kept.tables.E[rows[some]] * kept.p[d] / np.exp(kept.log_Z[some])[:, None]
        np.testing.assert_allclose(r.sum(axis=1), 1.0, atol=1e-9)
        m[d] = counts[some] @ r / n
        words.append(d)
        M += kept.answers.terms.weights[len(words) - 1] * np.outer(m[d], m[d])
    np.testing.assert_allclose(summary.M, M, atol=1e-9 * M.max())
    assert weight_of(model) * len(words) == summary.A
    answers = kept.answers
    np.testing.assert_array_equal(answers.documents, words)
    np.testing.assert_allclose(answers.m, m[words], atol=1e-9)
    np.testing.assert_allclose(summary.B, m[words].T @ answers.terms.targets, atol=1e-7)
    assert reading.means.shape == (K, model.response.n_outputs)


@every
def test_moves_have_exact_sums_of_pairs(name):
    """Two merges and a delete of one lap together, against the shares of topics as they then are."""
    model, source, start = problem(name, 0)
    summary, kept, batch, model = read(model, source, start)
    first = model.kind.track(model.likelihood, None, (0, 3), batch, kept, summary)
    second = model.kind.track(model.likelihood, None, (1, 4), batch, kept, summary)
    both = summary.exchange((0, 1, 3, 4), side_by_side([first, second]))
    m = kept.answers.m
    weights = kept.answers.terms.weights
    after = np.column_stack([m[:, 2], m[:, 0] + m[:, 3], m[:, 1] + m[:, 4]])
    np.testing.assert_allclose(both.M, (after * weights[:, None]).T @ after, atol=1e-9 * both.M.max())
    np.testing.assert_allclose(both.B, after.T @ kept.answers.terms.targets, atol=1e-7)
    one_by_one = summary.merge(0, 3).merge(1, 3)  # what was 4 is 3 then
    np.testing.assert_allclose(both.M[:, [1, 2, 0]][[1, 2, 0]], one_by_one.M, atol=1e-9 * both.M.max())
    assert both.Y == summary.Y
    assert both.A == summary.A
    parameters = model.parameters(summary, FLOAT)
    two = parameters._replace(W=parameters.W[:2], bias=parameters.bias[:2], prior=np.append(parameters.prior[:2], 0.0))
    prepared = model.kind.prepare(model.likelihood, two, source)
    split = model.kind.track(model.likelihood, prepared, (0, 1, 2), batch, kept, summary)
    assert split.excludes_others
    assert not first.excludes_others
    mixed = summary.exchange(
        (0, 1, 2, 3, 4), side_by_side([split, replace(first, **moved(first, second, m, kept, 3, 4))])
    )
    counts = np.linalg.cholesky(mixed.M[:2, :2] + 1e-12 * np.eye(2))  # what two topics share is a sum of squares
    assert np.isfinite(counts).all()
    np.testing.assert_allclose(mixed.M.sum(), (weights * m.sum(axis=1) ** 2).sum(), rtol=1e-8)
    np.testing.assert_allclose(
        mixed.M[2, :2].sum(), (weights * (m[:, 3] + m[:, 4]) * m[:, :3].sum(axis=1)).sum(), rtol=1e-8
    )


def moved(first, second, m, kept, a, b):
    """A merge of topics a and b, from sums."""
    merged = (m[:, a] + m[:, b])[:, None]
    weighted = merged * kept.answers.terms.weights[:, None]
    members = np.zeros((1, m.shape[1]))
    members[0, [a, b]] = 1.0
    targets = kept.answers.terms.targets
    return {"M": weighted.T @ merged, "B": merged.T @ targets, "cross": weighted.T @ m, "members": members}


@every
def test_a_visit_does_not_depend_on_batches_or_threads(name):
    model, source, start = problem(name, 1)
    parameters = model.parameters(laps(model, source, start, max_laps=2).total, FLOAT)
    with Threads(2) as threads:
        one = visit(model, parameters, source, source.batches(1)[0], threads).summary
        total, *others = [visit(model, parameters, source, chunks, threads).summary for chunks in source.batches(4)]
    for other in others:
        total = total + other
    for field in ("N", "S", "H", "P", "Q", "P_rest", "Q_rest", "D", "M", "B", "Y", "A"):
        np.testing.assert_allclose(getattr(total, field), getattr(one, field), rtol=1e-9, atol=1e-7, err_msg=field)


@every
def test_fewer_topics_are_known_from_one_survey(name):
    """The sums of pairs of a level are those of the topics added; its bound is that of its summary."""
    model, source, start = problem(name, 1)
    total = laps(model, source, start, max_laps=3).total
    steps = list(merges(model.posterior(total)))
    with Threads(1) as threads:
        seen = document_survey(model, total, source, threads, ancestry(steps, K), None)
    levels = levels_of(model, seen.total, steps, seen.nodes)
    for level in levels:
        found, groups = level_start(model, seen.total, seen.nodes, level)
        of = np.array([[k in group for k in range(K)] for group in groups], float)
        np.testing.assert_allclose(found.M, of @ seen.total.M @ of.T, atol=1e-9 * found.M.max())
        np.testing.assert_allclose(found.B, of @ seen.total.B, atol=1e-9 * np.abs(found.B).max() + 1e-12)
        assert level.bound <= model.bound(found) + 1e-6


def test_without_answers_all_is_as_without_a_response():
    """Bit for bit, but for what is zero."""
    model, source, start = problem("numbers", 1)
    asked = laps(model, AnsweredBags(BagSource(source.X), np.full(source.n_rows, np.nan)), start, ("merge",))
    plain = replace(model, kind=BAGS, response=Model.__dataclass_fields__["response"].default)
    rows = Summary(start.N, start.S, start.H, start.base)
    never = laps(plain, BagSource(source.X), plain.kind.start(rows), ("merge",))
    assert asked.bound == never.bound
    np.testing.assert_array_equal(asked.total.S, never.total.S)
    assert not asked.total.M.any()
