"""Checkpoints: fits that are killed go on from their file and end in the same bits."""

import json
import os
import resource
import signal
import time

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from interrupted import Interrupted
from stickbreak import HMM, Mixture, TopicModel, cli, load
from stickbreak.inference import Gibbs, Sequential
from stickbreak.likelihoods import Gaussian
from stickbreak.storage import ModelFileError, checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:not converged")


def rows(n=400):
    rng = np.random.default_rng(0)
    return rng.normal(0, 6, (4, 2))[rng.integers(4, size=n)] + rng.normal(size=(n, 2))


def series():
    rng = np.random.default_rng(1)
    states = np.repeat(rng.integers(3, size=20), 12)
    return np.array([[0.0, 5.0], [5.0, 0.0], [9.0, 9.0]])[states] + rng.normal(size=(len(states), 2))


def counts():
    rng = np.random.default_rng(2)
    topics = rng.dirichlet(np.full(30, 0.1), 3)
    shares = rng.dirichlet(np.full(3, 0.3), 80)
    return np.array([rng.multinomial(40, p) for p in shares @ topics]).astype(float)


CASES = {
    "mixture": lambda **given: Mixture(n_batches=3, random_state=0, n_jobs=1, **given).fit(rows()),
    "mixture from a sample": lambda **given: Mixture(
        "diagonal_gaussian", learn=(), random_state=0, max_laps=16, n_jobs=1, **given
    ).fit(rows(21_000)),
    "topics": lambda **given: TopicModel(random_state=0, n_init_topics=6, max_laps=60, n_jobs=1, **given).fit(counts()),
    "states": lambda **given: HMM("gaussian", random_state=0, max_laps=25, n_jobs=1, **given).fit(series()),
}


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A file that is written after every lap."""
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)
    return tmp_path / "fit.safetensors"


def assert_equal_fits(found, other):
    for a, b in zip(vars(found.summary_).values(), vars(other.summary_).values(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert found.lower_bound_ == other.lower_bound_
    assert found.lower_bounds_ == other.lower_bounds_
    assert [(one.moves, one.origin) for one in found.history_] == [(one.moves, one.origin) for one in other.history_]
    if hasattr(found, "labels_"):
        np.testing.assert_array_equal(found.labels_, other.labels_)


def killed(fit, seconds):
    """Fit in a process of its own, which is killed after so many seconds; whether it was."""
    child = os.fork()
    if child == 0:
        try:
            fit()
        finally:
            os._exit(0)
    ended = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() >= ended:
            os.kill(child, signal.SIGKILL)
            return os.WIFSIGNALED(os.waitpid(child, 0)[1])
        time.sleep(0.002)
    return False


@pytest.mark.parametrize("name", CASES)
def test_a_fit_killed_at_random_moments_ends_in_the_same_bits(name, path):
    whole = CASES[name]()  # this may compile kernels
    began = time.monotonic()
    CASES[name]()
    took = time.monotonic() - began
    rng = np.random.default_rng(len(name))
    kills = 0
    while kills < 3 or not path.exists():
        if killed(lambda: CASES[name](checkpoint=path, checkpoint_seconds=0), took * rng.uniform(0.1, 0.5)):
            kills += 1
            took *= 1.0 if path.exists() else 1.5  # it may begin more slowly than it goes on
        elif kills < 3:
            path.unlink()
            took *= 0.5
    assert_equal_fits(CASES[name](checkpoint=path, checkpoint_seconds=0), whole)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A fit that is over, and its checkpoint."""
    path = tmp_path_factory.mktemp("finished") / "fit.safetensors"
    return Mixture(random_state=0, n_jobs=1, checkpoint=path).fit(rows()), path


def test_a_fit_that_is_over_is_there_at_once(finished, monkeypatch):
    """Without any search, also with other jobs and more laps; the file is as it was."""
    model, path = finished
    before = path.read_bytes()
    monkeypatch.setattr("stickbreak.inference.LearningSearch.run", None)
    again = Mixture(random_state=0, n_jobs=2, max_laps=2000, checkpoint=str(path)).fit(rows())
    assert_equal_fits(again, model)
    assert again.selection_ == model.selection_
    assert path.read_bytes() == before


def test_another_fit_is_refused_with_what_differs(finished):
    _, path = finished
    before = path.read_bytes()
    X = rows()
    others = {
        "other data": Mixture(random_state=0, checkpoint=path),
        "other random_state": Mixture(random_state=1, checkpoint=path),
        "other concentration, tol": Mixture(random_state=0, tol=0.1, concentration=2.0, checkpoint=path),
        "other likelihood": Mixture(Gaussian(), random_state=0, checkpoint=path),
    }
    for differs, estimator in others.items():
        with pytest.raises(ValueError, match=f"fit.safetensors is that of another fit: {differs}"):
            estimator.fit(X + 1.0 if differs == "other data" else X)
        assert not hasattr(estimator, "model_")
    with pytest.raises(ValueError, match="estimator"):
        HMM(random_state=0, checkpoint=path).fit(X)
    assert path.read_bytes() == before


def test_another_version_is_refused(finished, monkeypatch):
    monkeypatch.setattr("stickbreak.__version__", "99.0")
    with pytest.raises(ValueError, match="other version of stickbreak"):
        Mixture(random_state=0, checkpoint=finished[1]).fit(rows())


class Stop(Exception):
    """In place of a crash."""


@pytest.fixture
def stopped(path, monkeypatch):
    """Run fits that stop after some writes."""

    def run(fit, after):
        write = checkpoint.Checkpoint._write
        writes = []

        def counted(self):
            write(self)
            writes.append(self.legs)
            if len(writes) == after:
                raise Stop

        with monkeypatch.context() as patch:
            patch.setattr(checkpoint.Checkpoint, "_write", counted)
            with pytest.raises(Stop):
                fit()

    return run


def test_without_a_seed_the_fit_goes_on_with_its_own(path, stopped):
    def fit():
        return Mixture("gaussian", learn=(), n_jobs=1, checkpoint=path, checkpoint_seconds=0).fit(rows(100))

    stopped(fit, 3)
    seed = Mixture(checkpoint=path)._journal().seed
    found = fit()
    assert Mixture(checkpoint=path)._journal().seed == seed
    assert_equal_fits(found, fit())


def test_several_inits_and_more_laps(path, stopped):
    """Each of several fits is taken up; one that ran out of laps goes on with more."""

    def fit(max_laps=100, **given):
        model = Mixture(
            "gaussian", n_init=2, init="k-means++", moves=(), tol=1e-9, random_state=0, n_jobs=1, n_init_clusters=3
        )
        return model.set_params(max_laps=max_laps, **given).fit(rows(100))

    whole = fit()
    given = {"checkpoint": path, "checkpoint_seconds": 0}
    stopped(lambda: fit(**given), 2)
    assert_equal_fits(fit(**given), whole)
    path.unlink()
    fit(max_laps=2, **given)
    assert_equal_fits(fit(**given), whole)


@pytest.mark.filterwarnings("ignore:interrupted")
@pytest.mark.parametrize("lap", [47, 141])
def test_an_interrupted_fit_goes_on_from_its_best_ascent(path, lap):
    """The laps of that were over, but the search comes back to it, and needs the summaries of its batches."""

    def fit(**given):
        return Interrupted("gaussian", random_state=0, n_jobs=1, **given).fit(series())

    given = {"checkpoint": path, "checkpoint_seconds": 100}
    assert fit(verbose=lap, **given).n_laps_ == lap
    assert_equal_fits(fit(**given), fit())


def test_a_full_disk_is_a_warning_and_the_last_checkpoint_stays(path, stopped):
    def fit():
        return Mixture("gaussian", random_state=0, n_jobs=1, checkpoint=path, checkpoint_seconds=0).fit(rows())

    whole = Mixture("gaussian", random_state=0, n_jobs=1).fit(rows())
    stopped(fit, 3)
    before = path.read_bytes()
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.warns(UserWarning, match="the checkpoint was not written.*fit.safetensors") as caught:
            assert_equal_fits(fit(), whole)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert sum("the checkpoint was not written" in str(one.message) for one in caught) == 1
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert_equal_fits(fit(), whole)


class Own(Gaussian):
    """A family that files know nothing of."""


def test_what_cannot_be_kept_is_refused_before_the_fit(tmp_path):
    X = rows(50)
    path = tmp_path / "fit.safetensors"
    for algorithm in (Gibbs(n_chains=1), Sequential()):
        with pytest.raises(ValueError, match=f"does not cover the algorithm {type(algorithm).__name__}"):
            Mixture("gaussian", algorithm=algorithm, checkpoint=path).fit(X)
    mistakes = [
        (tmp_path, 30.0, IsADirectoryError, "is a directory"),
        (tmp_path / "no" / "fit", 30.0, FileNotFoundError, "does not exist"),
        (7, 30.0, TypeError, "checkpoint must be"),
        (path, -1.0, ValueError, "checkpoint_seconds must be"),
    ]
    for given, seconds, error, words in mistakes:
        with pytest.raises(error, match=words):
            Mixture("gaussian", checkpoint=given, checkpoint_seconds=seconds).fit(X)

    with pytest.raises(TypeError, match=r"cannot hold a Own.*REGISTRY"):
        Mixture(Own(), checkpoint=path).fit(X)
    assert not path.exists()


def changed(path, other, change):
    """A copy of a checkpoint with another record or other tensors, and the checksum of these."""
    tensors = load_file(path)
    record = json.loads(tensors["record"].tobytes())
    change(record, tensors)
    del tensors["record"]
    checkpoint.write(json.dumps(record), tensors, other, checkpoint.CHECKPOINT)


def test_damaged_and_foreign_files_are_refused(path, stopped, finished, tmp_path):
    def fit(given=path):
        return Mixture("gaussian", random_state=0, n_jobs=1, checkpoint=given, checkpoint_seconds=0).fit(rows(100))

    stopped(fit, 4)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(len(whole), size=30):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            fit()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelFileError):
        fit()
    path.write_bytes(whole)
    other = tmp_path / "other"
    model, _ = finished
    model.save(other)
    with pytest.raises(ModelFileError, match="not a checkpoint"):
        fit(other)
    with pytest.raises(ModelFileError, match="not a model file"):
        load(path)

    def unknown(record, tensors):
        record["legs"][0]["fields"]["state"] = {"class": "Popen", "fields": {"args": "ls"}}

    def fewer(record, tensors):
        name = next(name for name, array in tensors.items() if array.ndim == 2 and array.dtype == np.float64)
        tensors[name] = tensors[name][:, :-1].copy()

    def spare(record, tensors):
        tensors["spare"] = np.zeros(3)

    for change in (unknown, fewer, spare):
        changed(path, other, change)
        with pytest.raises(ValueError, match="is damaged"):
            fit(other)


def test_the_command_goes_on_from_its_checkpoint(path, stopped, tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "X.npy", rows())
    command = ["fit", tmp_path / "X.npy", "--out", tmp_path / "model", "--seed", 0, "--quiet", "--checkpoint", path]

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["stickbreak", *map(str, arguments)])
        cli.main()

    begin = checkpoint.Checkpoint.__init__
    monkeypatch.setattr(checkpoint.Checkpoint, "__init__", lambda self, path, _, *rest: begin(self, path, 0.0, *rest))
    stopped(lambda: run(*command), 5)
    assert not (tmp_path / "model").exists()
    run(*command)
    assert_equal_fits(load(tmp_path / "model"), Mixture(random_state=0).fit(rows()))
    with pytest.raises(SystemExit):
        run(*command[:-1], tmp_path / "model")
    assert "--checkpoint" in capsys.readouterr().err


def test_neither_copies_nor_model_files_have_the_checkpoint(finished, tmp_path):
    model, path = finished
    before = path.read_bytes()
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").checkpoint is None
    assert model.stability(rows(), n_fits=2).n_clusters
    model.merge_clusters(2, rows())
    assert path.read_bytes() == before


def test_a_plain_safetensors_file_is_no_checkpoint(tmp_path):
    save_file({"x": np.zeros(2)}, tmp_path / "x")
    with pytest.raises(ModelFileError, match="not a checkpoint"):
        Mixture("gaussian", checkpoint=tmp_path / "x").fit(rows(50))


def test_writing_takes_a_small_share_of_the_time(tmp_path, monkeypatch):
    """However long it takes: the next one waits a hundred times as long."""
    writes = []

    def slow(*given):
        writes.append(time.monotonic())
        time.sleep(0.02)

    monkeypatch.setattr(checkpoint, "write", slow)
    began = time.monotonic()
    TopicModel(random_state=0, n_init_topics=6, n_jobs=1, checkpoint=tmp_path / "x", checkpoint_seconds=0).fit(counts())
    took = time.monotonic() - began
    assert len(writes) <= 2 + took / 2.0
