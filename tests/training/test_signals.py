import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from queue import Queue

import pytest

from heedful.training.signals import Interrupted, StopRequest


class Said:
    """Lines said by another thread."""

    def __init__(self) -> None:
        self._lines: Queue[str] = Queue()
        self.append = self._lines.put

    def first(self) -> str:
        return self._lines.get(timeout=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_remembered_and_acknowledged_in_a_line(number: signal.Signals):
    before, said = signal.getsignal(number), Said()
    with StopRequest(said.append) as stop:
        assert stop.signal_number == 0
        signal.raise_signal(number)
        assert stop.signal_number == number
        assert (
            said.first() == f"{number.name} received: saving and stopping; a second one stops at once, without saving"
        )
    assert signal.getsignal(number) is before


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """A shell lets what it runs in the background ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_the_second_one_does_what_it_does_without_us():
    said = Said()
    with StopRequest(said.append) as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.signal_number == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_come_back_after_an_error():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyError), StopRequest(print):
        raise KeyError
    assert signal.getsignal(signal.SIGTERM) is before


def test_outside_of_the_main_thread_it_does_nothing():
    before = signal.getsignal(signal.SIGINT)
    numbers: list[int] = []
    said = Said()

    def run() -> None:
        with StopRequest(said.append) as stop:
            numbers.append(stop.signal_number)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert numbers == [0]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("_interruptible")
def test_a_block_that_may_be_repeated_ends_at_once():
    said, reached = Said(), list[str]()
    with StopRequest(said.append) as stop:

        def work() -> None:
            reached.append("before")
            signal.raise_signal(signal.SIGINT)
            reached.append("after")

        with pytest.raises(Interrupted), stop.interruptible():
            work()
        assert stop.signal_number == signal.SIGINT
        with pytest.raises(Interrupted), stop.interruptible():
            reached.append("a block after the signal")
    assert reached == ["before"]


@pytest.mark.usefixtures("_interruptible")
def test_outside_of_such_a_block_work_goes_on():
    said, reached = Said(), list[str]()
    with StopRequest(said.append) as stop:
        with stop.interruptible():
            pass
        signal.raise_signal(signal.SIGINT)
        reached.append("after")
    assert reached == ["after"]


CHILD = """
import sys, time
from heedful.training.signals import WorkingTime
with WorkingTime() as clock:
    before = time.monotonic()
    clock.restart()
    print("begun", flush=True)
    sys.stdin.readline()
    while time.process_time() < float(sys.argv[1]):
        pass
    print(clock.seconds, time.monotonic() - before)
    clock.restart()
    print(clock.seconds)
"""


@pytest.mark.skipif(os.name == "nt", reason="no process is stopped there")
def test_a_process_that_stands_still_does_not_train():
    command = [sys.executable, "-c", CHILD, "0.2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        time.sleep(1.0)
        child.send_signal(signal.SIGCONT)
        said, _ = child.communicate("\n")
    first, second = said.splitlines()
    working, elapsed = map(float, first.split())
    assert elapsed > 1.0
    assert working <= elapsed - 1.0 + 0.5
    assert float(second) < 0.5
