"""Runs programs in forks of a process in which numba is ready to compile, which else takes a second each time.

Each line that is read is a program, its arguments, the folder of the package and files for what it prints; the answer is
its exit status.
"""

import json
import os
import sys
import traceback

import numba
import numpy as np


def run(code, arguments, folder):
    """As ``python -c code arguments``, without what is written beside sources."""
    sys.argv = ["-c", *arguments]
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    try:
        exec(code, {"__name__": "__main__"})
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def fork(code, arguments, folder, out, err):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        for path, stream in ((out, sys.stdout), (err, sys.stderr)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream.fileno())
        os.close(0)
        status = run(code, arguments, folder)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


numba.njit(lambda x: x[1:].sum())(np.ones(2))
for line in sys.stdin:
    print(fork(*json.loads(line)), flush=True)
