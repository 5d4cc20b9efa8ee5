"""Small versions of all experiments, one after the other in one process, with the CPU seconds of each.

python benchmarks/papers/small.py
"""

import time
from importlib import import_module
from pathlib import Path

NOT_EXPERIMENTS = ("__init__", "frame", "small")


def main() -> None:
    seconds = {}
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if file.stem in NOT_EXPERIMENTS:
            continue
        began = time.process_time()
        import_module(file.stem).EXPERIMENT.main(["--small"])
        seconds[file.stem] = time.process_time() - began
        print()
    for name, spent in seconds.items():
        print(f"{name}: {spent:.0f} CPU seconds")
    print(f"all: {sum(seconds.values()):.0f} CPU seconds")


if __name__ == "__main__":
    main()
