"""Threads: limits of linear algebra, the handler of Ctrl-C, and live threads, whatever the order of fits and signals."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from stickbreak import Mixture
from stickbreak.data import ArraySource
from stickbreak.inference import Threads, blas, interrupts
from stickbreak.inference.executor import for_fits

CONTROLLER = ThreadpoolController().select(user_api="blas")


def limits():
    return [library.num_threads for library in CONTROLLER.lib_controllers]


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Two threads for linear algebra, or what there are, before and after; no thread and no handler more."""
    for library in CONTROLLER.lib_controllers:
        blas._set(library, 2)
    before, threads, handler = limits(), set(threading.enumerate()), signal.getsignal(signal.SIGINT)
    if set(before) != {2}:
        pytest.skip("linear algebra has one thread here")
    yield
    assert limits() == before
    assert set(threading.enumerate()) <= threads
    assert signal.getsignal(signal.SIGINT) is handler
    assert not blas._libraries.holders
    assert not interrupts._State.users


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(m, 1.0, (500, 6)) for m in (-2, 0, 2)])


def fit(X):
    return Mixture("gaussian", random_state=0, n_jobs=2, max_laps=6, tol=0.0, n_init_clusters=4, init="k-means++").fit(
        X
    )


@pytest.fixture(scope="module")
def alone(X):
    """The bits of a fit with nothing else going on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(X).lower_bounds_


class Stop(Exception):
    """Something that goes wrong in a fit."""


# How a block with threads ends ------------------------------------------------------------------------------------------


def succeed():
    pass


def fail():
    raise Stop


def interrupt_once():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1.0)


def interrupt_twice():
    try:
        interrupt_once()
    finally:
        interrupt_once()


ENDINGS = {"fine": succeed, "error": fail, "one interrupt": interrupt_once, "two interrupts": interrupt_twice}


def block(ending, inside=succeed, n_jobs=2):
    """A block with threads that looks at the limits, also in tasks, does something inside, and ends as it should."""
    try:
        with Threads(n_jobs) as threads:
            assert set(limits()) == {1}
            assert list(threads.map(lambda _: set(limits()), range(5))) == [{1}] * 5
            inside()
            assert set(limits()) == {1}
            ending()
    except Stop:
        assert ending is fail
    except KeyboardInterrupt:
        assert ending in (interrupt_once, interrupt_twice)
    else:
        assert ending is succeed


def in_thread(task):
    """Do something in another thread, with its errors raised here."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(task).result()


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_in_the_main_thread(ending, n_jobs):
    block(ending, n_jobs=n_jobs)


@pytest.mark.parametrize("ending", [succeed, fail])
def test_in_another_thread(ending):
    in_thread(lambda: block(ending))


@pytest.mark.parametrize("outer", ENDINGS.values(), ids=ENDINGS)
@pytest.mark.parametrize("inner", [succeed, fail, interrupt_once], ids=["fine", "error", "one interrupt"])
def test_one_within_another(inner, outer):
    block(outer, lambda: block(inner))


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_another_thread_within(ending):
    block(ending, lambda: in_thread(lambda: block(succeed)))


@pytest.mark.parametrize("first", ["here", "there"])
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_two_threads_that_overlap(ending, first):
    """Each enters before the other leaves; the first to enter is the first to leave."""
    entered, left = threading.Event(), threading.Event()

    def other():
        if first == "there":
            block(succeed, lambda: (entered.set(), time.sleep(0.3)))
            left.set()
        else:
            entered.wait(10)
            block(succeed, lambda: left.wait(10))

    def own():
        entered.set()
        time.sleep(0.2)

    def follow():
        assert left.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    if first == "there":
        assert entered.wait(10)
        block(ending, follow)
    else:
        block(ending, own)
        assert set(limits()) == {1}  # of the other
        left.set()
    thread.join(10)
    assert not thread.is_alive()


def test_threads_that_die_within():
    """An exception that nobody catches leaves nothing behind, nor does an object that is never left."""
    entered = Threads(2).__enter__()
    assert set(limits()) == {1}
    del entered
    assert set(limits()) == {2}
    thread = threading.Thread(target=lambda: Threads(2).__enter__())
    thread.start()
    thread.join()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_limits_of_the_caller_come_back(n):
    with threadpool_limits(n, user_api="blas"):
        before = limits()
        block(succeed, lambda: in_thread(lambda: block(succeed)))
        assert limits() == before


def test_limits_set_within_are_put_back():
    with Threads(2) as threads:
        with threadpool_limits(2, user_api="blas"):
            assert list(threads.map(lambda _: set(limits()), range(5))) == [{1}] * 5
        assert set(limits()) == {1}


def test_a_limit_that_is_lifted_within_stays_lifted():
    limiter = threadpool_limits(1, user_api="blas")
    with Threads(2) as threads:
        limiter.restore_original_limits()
        assert list(threads.map(lambda _: set(limits()), range(5))) == [{1}] * 5
    assert set(limits()) == {2}


def test_tasks_after_an_error_are_not_begun():
    done = []

    def task(i):
        if i == 0:
            raise Stop
        time.sleep(0.05)
        done.append(i)

    with Threads(2) as threads:
        with pytest.raises(Stop):
            list(threads.map(task, range(100)))
        time.sleep(0.3)
        assert len(done) <= 4


def test_results_are_in_order():
    with Threads(3) as threads:
        assert list(threads.map(lambda i: -i, iter(range(50)))) == list(range(0, -50, -1))
        assert list(threads.map(lambda i: -i, [7])) == [-7]
        assert list(threads.map(lambda i: -i, [])) == []


def test_handlers_of_others_are_respected():
    """A handler that raises nothing is called all the same; one that was set within stays."""
    seen, before = [], signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        with Threads(2):
            os.kill(os.getpid(), signal.SIGINT)
        assert seen == [1]

        def mine(*_):
            pass

        with Threads(2):
            signal.signal(signal.SIGINT, mine)
        assert signal.getsignal(signal.SIGINT) is mine
        for other in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(signal.SIGINT, other)
            with Threads(2):
                assert signal.getsignal(signal.SIGINT) is other
    finally:
        signal.signal(signal.SIGINT, before)


# Whole fits --------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:not converged")
def test_fits_have_the_same_bits_in_every_thread(X, alone):
    assert fit(X).lower_bounds_ == alone
    with ThreadPoolExecutor(2) as pool:
        assert [model.lower_bounds_ for model in pool.map(fit, [X] * 3)] == [alone] * 3
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(fit, X)
        assert fit(X).lower_bounds_ == alone
        assert beside.result().lower_bounds_ == alone


def child(connection, X):
    """What a process that was forked in the middle of a fit sees, and the bits of a fit in it."""
    before = limits()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bounds = fit(X).lower_bounds_
    connection.send((before, bounds, limits()))


@pytest.mark.parametrize(
    ("method", "where"), [("fork", "here"), ("fork", "there"), ("fork", "nowhere"), ("spawn", "here")]
)
def test_processes_begun_in_the_middle_of_a_fit(method, where, X, alone):
    """The thread that starts the process is in the middle of a fit, or another one is, or none."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    context = multiprocessing.get_context(method)
    entered, stop = threading.Event(), threading.Event()

    def other():
        with Threads(2) as threads:
            list(threads.map(time.sleep, [0.0] * 4))
            entered.set()
            stop.wait(60)

    def start():
        here, there = context.Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks in processes with threads
            process = context.Process(target=child, args=(there, X))
            process.start()
        there.close()
        assert here.poll(100)
        before, bounds, after = here.recv()
        process.join()
        assert process.exitcode == 0
        assert bounds == alone
        assert before == after
        assert method == "spawn" or set(after) == {2}

    if where == "here":
        block(succeed, start)
        return
    thread = threading.Thread(target=other)
    if where == "there":
        thread.start()
        assert entered.wait(10)
    try:
        start()
    finally:
        stop.set()
        if where == "there":
            thread.join()


SIGNALS = """
import os, random, signal, sys, threading, time, warnings
import numpy as np
from threadpoolctl import threadpool_info
from stickbreak import Mixture

warnings.simplefilter("ignore")
seed, count = int(sys.argv[1]), int(sys.argv[2])
random.seed(seed)
rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(m, 1.0, (200, 4)) for m in (-2, 0, 2)])


def look():
    return [(l["filepath"], l["num_threads"]) for l in threadpool_info() if l["user_api"] == "blas"], signal.getsignal(2)


def new():
    return Mixture("gaussian", random_state=0, n_jobs=2, init="k-means++", max_laps=5)


before = look()
whole = new().fit(X)
began = time.perf_counter()
whole = new().fit(X)
took = time.perf_counter() - began
fitted = finished = unfitted = 0


def attack(wait, gaps):
    time.sleep(wait)
    for gap in gaps:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(gap)


for i in range(count):
    model = new()
    gaps = [random.choice([0.0, 1e-5, 1e-4, 1e-3]) * random.random() for _ in range(1 + i % 3)]
    attacker = threading.Thread(target=attack, args=(random.random() * 1.1 * took, gaps))
    outcome = None
    while True:  # the signals may reach any of these lines
        try:
            if outcome is None:
                attacker.start()
                model.fit(X)
                outcome = "fitted"
            attacker.join()
            time.sleep(0.05)
            break
        except KeyboardInterrupt:
            outcome = outcome or "interrupted"
    assert look() == before, (i, look(), before)
    alive = [t.name for t in threading.enumerate() if t is not threading.main_thread()]
    assert not alive, (i, alive)
    state = vars(model)
    if "summary_" not in state:
        assert set(state) == set(vars(new())), (i, sorted(state))
        unfitted += 1
        continue
    assert np.isfinite(model.lower_bounds_).all()
    assert model.predict(X).shape == (len(X),)
    if model.converged_:
        assert model.lower_bounds_ == whole.lower_bounds_, i
        finished += 1
    else:
        fitted += 1
assert new().fit(X).lower_bounds_ == whole.lower_bounds_
print("unfitted", unfitted, "cut short", fitted, "finished", finished)
"""


def test_signals_at_random_moments():
    """One, two or three interrupts in quick succession, 10 times: limits, threads, handler and estimator afterwards."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    found = subprocess.run(
        [sys.executable, "-c", SIGNALS, "0", "10"], env=environment, capture_output=True, text=True, timeout=500
    )
    assert found.returncode == 0, found.stderr
    assert "unfitted" in found.stdout


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # where the library's own callbacks are hit
def test_signals_while_threads_are_entered_and_left():
    """Every moment of entry, submission and exit, one after another, by an interrupt at the nth event of the interpreter."""
    handler = signal.getsignal(signal.SIGINT)
    others = set(threading.enumerate())  # libraries may keep threads of their own
    moments = 0
    for n in range(1, 10_000):
        left = n

        def trace(frame, event, argument):
            nonlocal left
            left -= 1
            if left == 0:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
            return trace

        done = False
        try:
            sys.settrace(trace)
            with Threads(2) as threads:
                list(threads.map(abs, range(3)))
            sys.settrace(None)
            done = True
        except KeyboardInterrupt:
            moments += 1
        finally:
            sys.settrace(None)
        assert set(limits()) == {2}, n
        assert set(threading.enumerate()) <= others, n
        assert signal.getsignal(signal.SIGINT) is handler, n
        if done and left > 0:
            break
    assert moments > 30


@pytest.mark.parametrize(("rows", "here"), [(300, True), (20_000, False)])
def test_births_of_few_rows_are_fitted_on_one_thread(rows, here):
    """They are mostly the interpreter's, for which threads would wait in turn; others are shared out."""
    source = ArraySource(np.zeros((rows, 10)))
    with Threads(2) as threads:
        used = set(for_fits(threads, source)(lambda item: threading.get_ident(), range(8)))
    assert (used == {threading.get_ident()}) == here
