import signal
import threading
from collections.abc import Iterator

import pytest

from heedful.training.signals import StopRequest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_only_remembered(number: signal.Signals):
    before = signal.getsignal(number)
    with StopRequest() as stop:
        assert stop.signal_number == 0
        signal.raise_signal(number)
        assert stop.signal_number == number
    assert signal.getsignal(number) is before


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """A shell lets what it runs in the background ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_the_second_one_does_what_it_does_without_us():
    with StopRequest() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.signal_number == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_come_back_after_an_error():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyError), StopRequest():
        raise KeyError
    assert signal.getsignal(signal.SIGTERM) is before


def test_outside_of_the_main_thread_it_does_nothing():
    before = signal.getsignal(signal.SIGINT)
    numbers: list[int] = []

    def run() -> None:
        with StopRequest() as stop:
            numbers.append(stop.signal_number)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert numbers == [0]
    assert signal.getsignal(signal.SIGINT) is before
