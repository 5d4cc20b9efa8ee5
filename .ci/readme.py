"""Run the Python code of Markdown files, each block after block in one namespace and an empty folder; >>> is compared.

python .ci/readme.py README.md docs/new_likelihood.md
"""

import doctest
import os
import re
import sys
import tempfile
from pathlib import Path


def main(path: Path) -> int:
    """Run every block; an exception or a wrong output fails."""
    text = path.read_text(encoding="utf-8")
    blocks = [match for match in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]
    namespace: dict[str, object] = {"__name__": "__main__"}
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for block in blocks:
            line = text.count("\n", 0, block.start(1))
            code = block.group(1)
            if code.lstrip().startswith(">>>"):
                failures += _compare(code, namespace, path, line)
            else:
                exec(compile("\n" * line + code, str(path), "exec"), namespace)
        os.chdir(path.resolve().anchor)
    print(f"{path}: {len(blocks)} blocks run, {failures} failures")
    return 1 if failures else 0


def _compare(code: str, namespace: dict[str, object], path: Path, line: int) -> int:
    test = doctest.DocTestParser().get_doctest(code, namespace, path.name, str(path), line)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, clear_globs=False)
    namespace.update(test.globs)
    return runner.failures


if __name__ == "__main__":
    sys.exit(max([main(path) for path in [Path(name).resolve() for name in sys.argv[1:]]]))
