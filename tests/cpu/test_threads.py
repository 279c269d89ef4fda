import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest
import torch

from heedful.cpu import threads as module
from heedful.cpu.contention import CpuContention
from heedful.cpu.threads import num_threads, run_parts
from tests.thorough import thorough


@pytest.fixture(autouse=True, params=["PyTorch's", "our own"])
def restored_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = torch.get_num_threads()
    if request.param == "our own":
        monkeypatch.setattr(module, "_openmp", lambda: None)
    yield
    torch.set_num_threads(before)


def all_meet(count: int) -> None:
    """Parts that end only when all are running at once."""
    barrier = threading.Barrier(count, timeout=10.0)
    run_parts([lambda: [barrier.wait()] and None] * count)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_every_part_runs_once_before_the_call_returns(threads: int, count: int):
    torch.set_num_threads(threads)
    assert num_threads() == threads
    runs = [0] * count

    def part(i: int) -> None:
        time.sleep(0.001)
        runs[i] += 1

    run_parts([partial(part, i) for i in range(count)])
    assert runs == [1] * count


def test_parts_run_at_once_and_as_many_as_threads():
    for threads in (2, 3, 5, 2):
        torch.set_num_threads(threads)
        all_meet(threads)
    running = [0]
    most = [0]
    lock = threading.Lock()

    def part() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.002)
        with lock:
            running[0] -= 1

    run_parts([part] * 20)
    assert most[0] == 2


def test_one_part_or_one_thread_stays_in_the_calling_thread():
    torch.set_num_threads(4)
    seen: list[threading.Thread] = []
    run_parts([lambda: seen.append(threading.current_thread())])
    torch.set_num_threads(1)
    run_parts([lambda: seen.append(threading.current_thread())] * 5)
    assert seen == [threading.current_thread()] * 6


def test_the_calling_thread_takes_parts_too():
    torch.set_num_threads(2)
    seen: set[str] = set()
    barrier = threading.Barrier(2, timeout=10.0)

    def part() -> None:
        barrier.wait()
        seen.add(threading.current_thread().name)

    run_parts([part, part])
    assert threading.current_thread().name in seen
    assert len(seen) == 2


def test_a_part_may_run_parts():
    torch.set_num_threads(2)
    counts: list[int] = []

    def outer() -> None:
        run_parts([lambda: counts.append(1)] * 3)

    for _ in range(20):
        run_parts([outer] * 4)
    assert len(counts) == 20 * 4 * 3


def test_two_callers_do_not_wait_for_each_other():
    torch.set_num_threads(2)
    counts = [0, 0]

    def caller(which: int) -> None:
        def part() -> None:
            time.sleep(0.0005)

        for _ in range(20):
            run_parts([part] * 4)
            counts[which] += 1

    callers = [threading.Thread(target=caller, args=(which,)) for which in (0, 1)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(30.0)
    assert counts == [20, 20]


@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_part_raises_arrives_when_nothing_runs_any_more(threads: int):
    torch.set_num_threads(threads)
    for wrong in range(6):
        running: list[int] = []
        ended: list[int] = []

        def part(i: int, wrong: int = wrong, running: list[int] = running, ended: list[int] = ended) -> None:
            running.append(i)
            time.sleep(0.001)
            ended.append(i)
            if i == wrong:
                raise ValueError(f"part {i}")

        with pytest.raises(ValueError, match=f"part {wrong}"):
            run_parts([partial(part, i) for i in range(6)])
        assert sorted(running) == sorted(ended)
        assert threads > 1 or running == list(range(wrong + 1))
    all_meet(threads)


def test_parts_not_begun_are_left_out_once_one_has_raised():
    torch.set_num_threads(2)
    begun: list[int] = []

    def part(i: int) -> None:
        begun.append(i)
        time.sleep(0.001)
        if i == 0:
            raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        run_parts([partial(part, i) for i in range(500)])
    assert len(begun) < 250


def test_an_interrupt_of_the_caller_leaves_nothing_running():
    torch.set_num_threads(2)
    main = threading.current_thread()
    ended: list[bool] = []

    def part() -> None:
        if threading.current_thread() is main:
            raise KeyboardInterrupt
        time.sleep(0.05)
        ended.append(True)

    barrier = threading.Barrier(2, timeout=10.0)

    def both() -> None:
        barrier.wait()
        part()

    with pytest.raises(KeyboardInterrupt):
        run_parts([both, both])
    assert ended == [True]


class Interrupting:
    """Object that an interruption finds while it is destroyed."""

    def __del__(self) -> None:
        raise KeyboardInterrupt


def test_an_interrupt_while_an_object_is_destroyed_is_raised_at_the_end():
    """Python can only print it there: no `try` is left in which it could be caught."""
    torch.set_num_threads(2)
    ended: list[int] = []

    def part(i: int) -> None:
        if i == 0:
            Interrupting()
        ended.append(i)

    with pytest.raises(KeyboardInterrupt):
        run_parts([partial(part, i) for i in range(4)])
    assert sorted(ended) == [0, 1, 2, 3]
    run_parts([lambda: None] * 2)


@thorough  # an interrupt that comes late would end the process that runs the other tests
@pytest.mark.skipif(os.name == "nt", reason="no signals of this kind there")
def test_no_interrupt_is_lost_between_c_and_python():
    """A signal that arrives in C is handled at the first instruction of the callback, before any `try`."""
    torch.set_num_threads(2)
    is_handled, is_armed, caught = threading.Event(), threading.Event(), 0

    def handle(number: int, frame: object) -> None:
        is_handled.set()
        raise KeyboardInterrupt

    def send() -> None:
        for _ in range(500):
            is_armed.wait()
            is_armed.clear()
            os.kill(os.getpid(), signal.SIGUSR1)

    run_parts([lambda: None] * 2)  # finds PyTorch's threads, which is not what is interrupted here
    before = signal.signal(signal.SIGUSR1, handle)
    sender = threading.Thread(target=send)
    sender.start()
    for _ in range(500):
        is_handled.clear()
        try:
            is_armed.set()
            while not is_handled.is_set():
                run_parts([lambda: None] * 2)
            run_parts([lambda: None] * 2)  # an interrupt of the last call comes with the next
        except KeyboardInterrupt:
            caught += 1
    sender.join()
    signal.signal(signal.SIGUSR1, before)
    assert caught == 500


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_child_of_a_fork_has_threads_of_its_own():
    torch.set_num_threads(2)
    all_meet(2)
    child = os.fork()
    if child == 0:
        # An alarm, for a child without threads would wait for ever.
        threading.Timer(20.0, partial(os._exit, 3)).start()
        try:
            all_meet(2)
            os._exit(0)
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(4)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    all_meet(2)


class TestCompany:
    @pytest.fixture
    def watch(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[CpuContention]:
        before = torch.get_num_threads()
        torch.set_num_threads(3)
        watch = CpuContention(3, may_use_fewer=True)
        monkeypatch.setattr(module, "contention_watch", lambda: watch)
        yield watch
        torch.set_num_threads(before)

    def test_threads_fall_and_rise(self, watch: CpuContention):
        assert module.adapt_threads() == ""
        watch.num_threads, watch.others = 1, 1.26
        assert module.adapt_threads() == (
            "other programs use 1.3 processors: 1 thread instead of 3 until they end; --threads sets a fixed number"
        )
        assert torch.get_num_threads() == 1
        assert module.adapt_threads() == ""
        watch.num_threads = 3
        assert module.adapt_threads() == ""
        assert torch.get_num_threads() == 3

    def test_one_thread_for_exact_results_stays_one(self, watch: CpuContention):
        with module.single_threaded():
            module.adapt_threads()
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3

    def test_without_a_watch_nothing_changes(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(module, "contention_watch", lambda: None)
        before = torch.get_num_threads()
        torch.set_num_threads(before + 1)
        assert module.adapt_threads() == ""
        assert torch.get_num_threads() == before + 1
        torch.set_num_threads(before)
