"""The cache of machine code: read-only installs, damaged files, and several processes at once."""

import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import indent

import pytest

import stickbreak

PACKAGE = Path(stickbreak.__file__).parent
# Root may write anywhere; without these capabilities it may not.
BOUND = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
FIT = """
import warnings
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as seen:
    import numpy as np
    from stickbreak import Mixture
    X = np.concatenate([np.random.default_rng(0).normal(m, 1.0, (100, 2)) for m in (-9, 9)])
    model = Mixture("gaussian", init=np.arange(200) // 100, moves=(), learn=False).fit(X)
for warning in seen:
    if "compiled code" in str(warning.message):
        print(warning.category.__name__, warning.message)
print("fitted", model.n_clusters_)
"""
KERNELS = """
import sys
import numpy as np
from stickbreak.kernels.special import digamma
from stickbreak.kernels.statistics import pack_products
X = np.array([[1.0, 2.0], [3.0, 5.0]], sys.argv[1])
out = np.empty((2, 5), X.dtype)
pack_products(X, np.zeros(2), np.ones(2), True, out)
print(out.tolist(), digamma(1.0))
print({k: sum(f.stats.cache_hits.values()) for k, f in [("d", digamma), ("p", pack_products)]})
"""
WARNED = f"""
import warnings
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as seen:
{indent(KERNELS, "    ")}
for warning in seen:
    if "compiled code" in str(warning.message):
        print(warning.category.__name__, warning.message)
"""
PRODUCTS = "[[1.0, 2.0, 4.0, 1.0, 2.0], [9.0, 15.0, 25.0, 3.0, 5.0]] -0.577215664901"


def copy(source, *ignored):
    """The package in a folder of its own that everybody may enter; times of files, which the cache looks at, stay."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    shutil.copytree(source, folder / "stickbreak", ignore=shutil.ignore_patterns(*ignored))
    return folder


def remove(folder):
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture
def installed():
    """A copy of the package without any machine code."""
    folder = copy(PACKAGE, "__pycache__")
    yield folder
    remove(folder)


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """As `run`, but soon: numba is imported and ready to compile."""
    files = [str(tmp_path_factory.mktemp("ready") / name) for name in ("out", "err")]
    environment = {**environment_of(""), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, str(Path(__file__).with_name("ready.py"))]
    with subprocess.Popen(
        command, env=environment, cwd="/", text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:

        def run_in_fork(code, folder, *arguments):
            print(json.dumps([code, arguments, str(folder), *files]), file=process.stdin, flush=True)
            status = int(process.stdout.readline())
            return subprocess.CompletedProcess(code, status, *(Path(path).read_text() for path in files))

        yield run_in_fork
        process.stdin.close()


@pytest.fixture(scope="module")
def compiled_once(ready):
    folder = copy(PACKAGE, "__pycache__")
    lines(ready(KERNELS, folder, "f8"))
    yield folder
    remove(folder)


@pytest.fixture
def compiled(compiled_once):
    """A copy of the package with machine code of two kernels for float64."""
    folder = copy(compiled_once / "stickbreak")
    yield folder
    remove(folder)


def environment_of(folder):
    known = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "XDG"))}
    return {**known, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_OPT": "1"}


def run(code, folder, *arguments, prefix=(), **environment):
    return subprocess.run(
        [*prefix, sys.executable, "-c", code, *arguments],
        env={**environment_of(folder), **environment},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
    )


def lines(result):
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_an_install_that_cannot_be_written_works_with_one_warning(installed):
    prefix = BOUND if os.getuid() == 0 else []
    if prefix and (shutil.which(prefix[0]) is None or run("import numba", installed, prefix=prefix).returncode):
        pytest.skip("root cannot be kept from writing here")
    for path in [installed, *installed.rglob("*")]:
        if path.is_dir():
            path.chmod(0o555)
    warning, fitted = lines(run(FIT, installed, prefix=prefix, HOME="/proc/nowhere"))
    assert "RuntimeWarning" in warning
    assert "NUMBA_CACHE_DIR" in warning
    assert str(installed / "stickbreak" / "kernels" / "__pycache__") in warning
    assert fitted == "fitted 2"


def test_machine_code_is_kept(compiled):
    assert lines(run(KERNELS, compiled, "f8"))[1] == "{'d': 1, 'p': 1}"


def test_machine_code_of_other_sources_is_not_used(compiled, ready):
    path = compiled / "stickbreak" / "kernels" / "special.py"
    path.write_text(path.read_text() + "\n")  # what other files compile into their own code
    assert lines(ready(KERNELS, compiled, "f8"))[1] == "{'d': 0, 'p': 0}"


DAMAGE = {
    "empty": lambda data: b"",
    "zeroed from the middle": lambda data: data[: len(data) // 2] + bytes(len(data) - len(data) // 2),
    "flipped in the middle": lambda data: (
        data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 255]) + data[len(data) // 2 + 1 :]
    ),
    "something else": lambda data: pickle.dumps(["not", "machine", "code"]),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_compiled_anew(compiled, ready, damage):
    """The index of one kernel, and the code of another."""
    for pattern in ("special.digamma*.nbi", "statistics.pack_products*.nbc"):
        (path,) = compiled.rglob(pattern)
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    for expected in ("{'d': 0, 'p': 0}", "{'d': 1, 'p': 1}"):  # and mended
        values, hits = lines(ready(KERNELS, compiled, "f8"))
        assert values.startswith(PRODUCTS)
        if damage == "flipped in the middle":  # which may be where nothing of the index depends on it
            hits, expected = hits.split(",")[1], expected.split(",")[1]
        assert hits == expected


@pytest.mark.long
def test_processes_that_compile_at_once_do_not_mix_up_types(installed, ready):
    kinds = ["f8", "f4"]
    with ThreadPoolExecutor(len(kinds)) as pool:
        results = list(pool.map(lambda kind: run(KERNELS, installed, kind), kinds))
    results += [ready(KERNELS, installed, kind) for kind in kinds]
    assert all(lines(result)[0].startswith(PRODUCTS) for result in results)


def test_code_for_other_types_is_not_used(compiled, ready):
    """Two processes that write an index at the same time can leave it naming a file that is for other types."""
    index = next(compiled.rglob("statistics.pack_products*.nbi"))
    before = index.read_bytes()
    for path in (index, *compiled.rglob("statistics.pack_products*.nbc")):
        path.unlink()
    lines(ready(KERNELS, compiled, "f4"))
    index.write_bytes(before)
    values, hits = lines(ready(KERNELS, compiled, "f8"))
    assert values.startswith(PRODUCTS)
    assert hits == "{'d': 1, 'p': 0}"


def test_a_full_disk_while_code_is_written_is_told_once(installed, ready):
    full = """
import builtins, errno, os
def replace(*args):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
os.replace = replace
"""
    values, _, warning = lines(ready(full + WARNED, installed, "f8"))
    assert "No space left on device" in warning
    assert values.startswith(PRODUCTS)
    assert not list(installed.rglob("*.tmp.*"))


def test_loops_run_uncompiled(installed):
    values, _ = lines(run(KERNELS.split("print({")[0] + "print()", installed, "f8", NUMBA_DISABLE_JIT="1"))
    assert values.startswith(PRODUCTS)


def test_every_kernel_has_the_same_flags():
    """No file of the package but one says how loops are compiled."""
    for path in PACKAGE.rglob("*.py"):
        assert path.name == "_jit.py" or "njit" not in path.read_text(), path


OTHER_NUMBA = """
import sys, types
import numba
from numba.core import caching
other = types.ModuleType("numba.core.caching")
other.__dict__.update(vars(caching))
class File(caching.IndexDataCacheFile):
    pass
{change}
sys.modules["numba.core.caching"] = other
"""
CHANGES = {
    "the module is gone": "from numba.core import ccallback\nother = None",
    "a class is gone": "del other.IndexDataCacheFile",
    "a class is another": "other.FunctionCache = type('FunctionCache', (), {'__init__': lambda self, function: None})",
    "a method is gone": """
class File:
    def __init__(self, *arguments):
        pass
other.IndexDataCacheFile = File
""",
    "a method takes something else": """
File._dump = lambda self, value, protocol: b""
other.IndexDataCacheFile = File
""",
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_numba_keeps_machine_code_in_its_own_way(installed, ready, change):
    """Where the parts that checks are made of are missing, everything works as with ``cache=True``, without a warning."""
    code = "import warnings\nwarnings.simplefilter('error')\n" + OTHER_NUMBA.format(change=CHANGES[change]) + KERNELS
    for hits in (0, 1):
        values, found = lines(ready(code, installed, "f8"))
        assert values.startswith(PRODUCTS)
        assert found == f"{{'d': {hits}, 'p': {hits}}}"


def test_another_numba_and_no_place_for_machine_code(installed, ready):
    """A cache that fails only when it is used is told of once, and done without."""
    code = OTHER_NUMBA.format(
        change="""
def save(self, key):
    pass
File.save = save
other.IndexDataCacheFile = File
"""
    )
    values, _, warning = lines(ready(code + WARNED, installed, "f8"))
    assert "numba" in warning
    assert values.startswith(PRODUCTS)


PARTS = """
from numba import boolean, float64, int32, int64
from stickbreak.kernels.merged_topics import merged_statistics
flat, square, rows = float64[::1], float64[:, ::1], int32[::1]
merged_statistics.compile((rows, rows, flat, square, flat, boolean[::1], square, flat, square, int64[::1], square))
(overload,) = merged_statistics.overloads.values()
names = [f.name for f in overload.library.get_defined_functions() if not f.name.startswith("_ZN7cpython")]
print(sum("stickbreak" in name for name in names), any("single_topic" in name for name in names))
"""


@pytest.mark.long
def test_code_of_parts_is_in_the_kernel_that_calls_them(installed, ready):
    """Else several files have code of the same name, of which that of the first file loaded would run."""
    assert lines(ready(PARTS, installed)) == ["1 False"]
