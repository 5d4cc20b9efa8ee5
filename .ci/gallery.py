"""Run the scripts of the gallery, each in an interpreter of its own, and keep their pictures.

python .ci/gallery.py FOLDER [NAME ...]        # of some scripts only; ends with an error if a script fails or makes no picture
"""

import os
import subprocess
import sys
import time
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1] / "examples" / "gallery"
KEEP = """
import runpy, sys
import matplotlib.pyplot as plt
plt.show = lambda *args, **kwargs: None
runpy.run_path(sys.argv[1], run_name="__main__")
for i in plt.get_fignums():
    plt.figure(i).savefig(f"{sys.argv[2]}-{i}.png", dpi=100)
"""


def main(folder: Path, names: list[str]) -> int:
    """Run one script after the other; what fails is shown at once."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for script in [SCRIPTS / f"{name}.py" for name in names] or sorted(SCRIPTS.glob("*.py")):
        for old in folder.glob(f"{script.stem}-*.png"):
            old.unlink()
        began = time.perf_counter()
        command = [sys.executable, "-c", KEEP, script, folder / script.stem]
        done = subprocess.run(command, env=os.environ | {"MPLBACKEND": "Agg"}, check=False)
        pictures = sorted(path.name for path in folder.glob(f"{script.stem}-*.png"))
        print(
            f"== {script.name}: {time.perf_counter() - began:.0f} s, {', '.join(pictures) or 'no picture'}", flush=True
        )
        if done.returncode or not pictures:
            failed.append(script.name)
    if failed:
        print(f"error: {', '.join(failed)} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
