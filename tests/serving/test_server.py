"""Socket of the server, where what cannot be bound is refused in one line, and the signals that stop it."""

import logging
import os
import signal
import socket

import pytest
from starlette.applications import Starlette

from heedful.errors import UsageError
from heedful.serving.limits import Limits
from heedful.serving.server import listen, make_server


@pytest.mark.parametrize("host", ["256.0.0.1", "a" * 10_000, os.fsdecode(b"\xff"), "no such host"])
def test_an_odd_host_is_refused(host: str):
    with pytest.raises(UsageError, match="--host"):
        listen(host, 0)


def test_a_port_in_use_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(UsageError, match="choose another port"):
        listen("127.0.0.1", other.getsockname()[1])


@pytest.fixture(autouse=True)
def _logger_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of this process takes over the logger of uvicorn for good."""
    logger = logging.getLogger("uvicorn.error")
    for name in ("handlers", "propagate", "level"):
        monkeypatch.setattr(logger, name, getattr(logger, name))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_requests_end_and_a_second_does_not(number: signal.Signals):
    own = signal.default_int_handler
    before = signal.signal(number, own)  # under nohup a hangup is ignored
    try:
        server = make_server(Starlette(), Limits())
        with server.capture_signals():
            os.kill(os.getpid(), number)
            assert (server.should_exit, server.force_exit) == (True, False)
            os.kill(os.getpid(), number)
            assert server.force_exit
        assert signal.getsignal(number) is own
    finally:
        signal.signal(number, before)


def test_a_hangup_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        server = make_server(Starlette(), Limits())
        with server.capture_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            assert not server.should_exit
    finally:
        signal.signal(signal.SIGHUP, before)
