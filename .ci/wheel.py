"""Build the wheel and try it, core alone, in an empty environment of every Python at hand.

python .ci/wheel.py            # in an environment with stickbreak[release]; wheel and sdist are left in dist/
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
OLDEST = (3, 11)
VERSION = "import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"


def main() -> int:
    """Build, check the metadata, and try the wheel; a step that fails ends the run with its output."""
    wheel = build()
    pythons = installed_pythons()
    for version, python in pythons.items():
        began = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="stickbreak-wheel-") as folder:
            try_wheel(python, wheel, Path(folder))
        print(f"{wheel.name} works on Python {version} ({time.perf_counter() - began:.0f} s)", flush=True)
    return 0 if pythons else 1


def build() -> Path:
    """The wheel, made from the sdist; the metadata of both are fit for an index."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    run(sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.iterdir()))
    (wheel,) = DIST.glob("*.whl")
    return wheel


def installed_pythons() -> dict[str, str]:
    """The first interpreter of each version from 3.11, by version: of the search path, then of pyenv."""
    names = ["python3", *(f"python3.{minor}" for minor in range(OLDEST[1], 30))]
    places = [str(Path(folder) / name) for name in names for folder in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places += [str(path) for path in pyenv.glob("versions/*/bin/python3")]
    found: dict[str, str] = {}
    for place in filter(shutil.which, [sys.executable, *places]):
        answer = subprocess.run([place, "-c", VERSION], capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            major, minor, free_threaded = map(int, answer.stdout.split())
            if (major, minor) >= OLDEST and not free_threaded:
                found.setdefault(f"{major}.{minor}", place)
    return dict(sorted(found.items(), key=lambda item: int(item[0].split(".")[1])))


def try_wheel(python: str, wheel: Path, folder: Path) -> None:
    """Install the wheel and nothing else beside what it needs; fit, save and load from Python and from a shell."""
    run(python, "-m", "venv", folder / "env")
    programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    work = folder / "work"
    work.mkdir()
    run(programs / "python", "-I", ROOT / ".ci" / "smoke.py", cwd=work)
    command = programs / "stickbreak"
    run(command, "--version", cwd=work)
    run(command, "fit", "rows.npy", "--out", "model.safetensors", "--seed", "0", "--quiet", cwd=work)
    run(command, "predict", "model.safetensors", "rows.npy", "--out", "labels.npy", cwd=work)
    run(command, "info", "model.safetensors", cwd=work)
    if not (work / "labels.npy").exists():
        raise SystemExit("error: stickbreak predict wrote no labels.npy")


def run(*command: str | Path, cwd: Path | None = None) -> None:
    """Run a command; where it fails, show what it said and end."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        words = " ".join(map(str, command))
        raise SystemExit(f"error: {words} ended with {done.returncode}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
