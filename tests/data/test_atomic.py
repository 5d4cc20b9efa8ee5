"""Files and folders that are written whole or not at all, whatever stops the process that writes them."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy import sparse

from stickbreak import Mixture, load
from stickbreak.cli.files import write_labels
from stickbreak.data import atomic
from stickbreak.data.atomic import remove_leftovers, replacing, replacing_folder
from stickbreak.data.bed_files import write_bed
from stickbreak.data.corpus import open_corpus, write_corpus
from stickbreak.report.figures import plot_fit

pytestmark = pytest.mark.filterwarnings("ignore:not converged")

WRITE = {
    "file": "with atomic.replacing(target) as file:\n    file.write(b'half'); file.flush(); {stop}",
    "folder": "with atomic.replacing_folder(target) as new:\n    (new / 'a').write_text('half'); {stop}",
}
KILL = "os.kill(os.getpid(), 9)"
WAIT = "print('here', flush=True); sys.stdin.read()"
COUNTS = sparse.csr_array([[1.0, 2.0]])


def run(code, *arguments, **options):
    code = "import os, sys, pathlib\nfrom stickbreak.data import atomic\ntarget = pathlib.Path(sys.argv[1])\n" + code
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], **options)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write_and_fail(target):
    with replacing(target) as file:
        file.write(b"half")
        raise RuntimeError


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with pytest.raises(RuntimeError):
        write_and_fail(target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
    with replacing(target) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"


def test_links_are_followed_and_devices_are_not_replaced(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"
    with replacing(os.devnull) as file:
        file.write(b"gone")
    assert not os.path.isfile(os.devnull)


@pytest.mark.parametrize("kind", WRITE)
@pytest.mark.parametrize("old", [False, True])
def test_the_next_write_removes_what_a_killed_process_left(tmp_path, kind, old):
    target = tmp_path / "target"
    if old:
        target.write_bytes(b"old") if kind == "file" else write_corpus(target, [COUNTS])
    assert run(WRITE[kind].format(stop=KILL), target).wait() == -signal.SIGKILL
    assert len(names(tmp_path)) == 1 + old
    if old and kind == "file":
        assert target.read_bytes() == b"old"
    with replacing(tmp_path / "another") as file:
        file.write(b"new")
    assert names(tmp_path) == ["another", *["target"] * old]


@pytest.mark.parametrize("kind", WRITE)
def test_what_a_living_process_writes_is_left_alone(tmp_path, kind):
    target = tmp_path / "target"
    process = run(WRITE[kind].format(stop=WAIT), target, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"here\n"
    with replacing(tmp_path / "another") as file:
        file.write(b"new")
    assert len(names(tmp_path)) == 2
    process.communicate(b"", timeout=60)
    assert process.returncode == 0
    assert names(tmp_path) == ["another", "target"]


def test_only_what_is_certainly_ours_is_removed(tmp_path):
    token = "0123456789abcdef"
    others = [
        f".{token}.tmp",
        f".stickbreak-00000000-{token}.tmp",
        f".stickbreak-{atomic.HOST}-{token}.tmp.bak",
        "a.tmp",
    ]
    for name in others:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / "precious").write_bytes(b"mine")
    link = tmp_path / f".stickbreak-{atomic.HOST}-{token}.tmp"
    link.symlink_to(tmp_path / "precious")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == sorted([*others, "precious", link.name])
    link.unlink()
    os.mkfifo(link)  # opening it to read would wait for a writer
    remove_leftovers(tmp_path)
    link.unlink()
    link.write_bytes(b"left")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == sorted([*others, "precious"])
    remove_leftovers(tmp_path / "missing")


@pytest.mark.parametrize("cleaned", [False, True])
def test_an_old_folder_that_was_moved_away_comes_back(tmp_path, cleaned):
    """The process was killed before the new one was in its place."""
    write_corpus(tmp_path / "corpus", [COUNTS])
    code = (
        "rename = pathlib.Path.rename\n"
        "def second_kills(self, to):\n"
        "    os.kill(os.getpid(), 9) if to == target else rename(self, to)\n"
        "pathlib.Path.rename = second_kills\n"
        "with atomic.replacing_folder(target) as new:\n    (new / 'a').write_text('new')"
    )
    assert run(code, tmp_path / "corpus").wait() == -signal.SIGKILL
    assert not (tmp_path / "corpus").exists()
    if cleaned:
        remove_leftovers(tmp_path)
        assert names(tmp_path) == ["corpus"]
    np.testing.assert_array_equal(open_corpus(tmp_path / "corpus").toarray(), COUNTS.toarray())
    assert names(tmp_path) == ["corpus"]


def test_many_processes_and_threads_write_into_one_folder(tmp_path):
    """Each write removes leftovers, and never what another is writing."""
    code = (
        "for i in range(60):\n"
        "    with atomic.replacing(target / sys.argv[2]) as file:\n        file.write(bytes([65 + i % 26]) * 5000)\n"
        "    with atomic.replacing_folder(target / ('f' + sys.argv[2])) as new:\n        (new / 'a').write_text('x')\n"
    )
    processes = [run(code, tmp_path, str(i % 2), stderr=subprocess.PIPE) for i in range(3)]
    failed = []

    def write():
        try:
            for i in range(100):
                with replacing(tmp_path / "0") as file:
                    file.write(bytes([97 + i % 26]) * 5000)
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(process.poll() is None for process in processes):
        for name in ("0", "1"):
            if (tmp_path / name).exists():
                content = (tmp_path / name).read_bytes()
                assert content == content[:1] * 5000
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    errors = [process.communicate()[1].decode() for process in processes]
    assert not failed
    assert [process.returncode for process in processes[:2]] == [0, 0], errors
    assert set(names(tmp_path)) == {"0", "1", "f0", "f1"}


def save(path):
    Mixture("gaussian", max_laps=1, n_jobs=1).fit(np.random.default_rng(0).normal(size=(50, 60))).save(path)


def labels(path):
    write_labels(path, np.arange(100_000), "cluster")


def chances(path):
    write_labels(path, np.full((20_000, 4), 0.25), "cluster")


def states(path):
    write_bed(path, np.arange(100_000) % 7, [100_000], ["chr1"], 200)


def corpus(path):
    write_corpus(path, [sparse.csr_array(np.ones((300, 300)))])


def picture(path):
    plot_fit(
        Mixture("gaussian", max_laps=2, n_jobs=1).fit(np.random.default_rng(0).normal(size=(50, 2))).history_, path=path
    )


WRITERS = {"m": save, "a.npy": labels, "a.csv": labels, "b.csv": chances, "b.npy": chances, "a.bed": states}
WRITERS |= {"corpus": corpus, "a.png": picture}


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_named_with_the_file(tmp_path, name):
    """Files may not become larger than 16 kB here, which fails as a full disk does."""
    resource = pytest.importorskip("resource")
    if WRITERS[name] is picture:
        pytest.importorskip("matplotlib")
    (tmp_path / "whole").mkdir()
    WRITERS[name](tmp_path / "whole" / name)  # so that no compiled code is written within the limit
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, before[1]))
    try:
        with pytest.raises(OSError, match="free some space or write to another disk") as caught:
            WRITERS[name](tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert caught.value.filename == str(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    if WRITERS[name] is not picture:
        assert names(tmp_path) == ["whole"]


def test_a_disk_that_is_really_full(tmp_path):
    """One of its own for each of three kinds of files."""
    disks, files = {name: tmp_path / f"disk of {name}" for name in ("m", "a.npy", "corpus")}, os.path.abspath(__file__)
    code = f"import importlib.util, pathlib, sys\nspec = importlib.util.spec_from_file_location('writers', {files!r})\n"
    code += "module = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(module)\n"
    code += "for path in map(pathlib.Path, sys.argv[1:]):\n"
    code += "    try:\n        module.WRITERS[path.name](path)\n"
    code += "    except OSError as error:\n        print(error.errno, error.filename)"
    mount = 'for path; do mount -t tmpfs -o size=16k none "${path%/*}" || exit; done; exec "$PYTHON" -c "$CODE" "$@"'
    for disk in disks.values():
        disk.mkdir()
    paths = [str(disk / name) for name, disk in disks.items()]
    found = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount, "sh", *paths],
        env=os.environ | {"CODE": code, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in found.stderr or "mount" in found.stderr:
        pytest.skip("no disk can be mounted here")
    assert found.stdout.splitlines() == [f"{errno.ENOSPC} {path}" for path in paths], found.stderr


def test_a_full_device_is_named(tmp_path):
    with pytest.raises(OSError, match="/dev/full"), replacing("/dev/full") as file:
        file.write(b"x" * 100_000)


def test_other_errors_keep_the_files_that_they_name(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "a"):
        (tmp_path / "no" / "such").read_bytes()
    assert caught.value.filename == str(tmp_path / "no" / "such")
    with pytest.raises(OSError, match=r"^trouble$"), replacing_folder(tmp_path / "a"):
        raise OSError("trouble")
    assert names(tmp_path) == []


def test_a_process_killed_while_it_saves_leaves_a_model_or_none(tmp_path):
    """At random moments, many times; the next save leaves no trace of them."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    model, path = Mixture("gaussian", max_laps=2, random_state=0, n_jobs=1).fit(X), tmp_path / "m"
    model.save(path)
    code = (
        "from stickbreak import load\nmodel = load(target)\n"
        "for _ in sys.stdin:\n"
        "    child = os.fork()\n"
        "    while child == 0:\n        model.save(target)\n"
        "    print(child, flush=True)\n"
        "    print(os.waitpid(child, 0)[1], flush=True)\n"
    )
    process, rng = run(code, path, stdin=subprocess.PIPE, stdout=subprocess.PIPE), np.random.default_rng(0)
    for _ in range(6):
        process.stdin.write(b"begin\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        time.sleep(rng.uniform(0.0, 0.05))
        os.kill(child, signal.SIGKILL)
        assert int(process.stdout.readline()) == signal.SIGKILL
        np.testing.assert_array_equal(load(path).predict_proba(X), model.predict_proba(X))
    process.communicate(timeout=60)
    model.save(path)
    assert names(tmp_path) == ["m"]
