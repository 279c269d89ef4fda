"""Socket of the server: what cannot be bound is refused in one line."""

import os
import socket

import pytest

from heedful.errors import UsageError
from heedful.serving.server import listen


@pytest.mark.parametrize("host", ["256.0.0.1", "a" * 10_000, os.fsdecode(b"\xff"), "no such host"])
def test_an_odd_host_is_refused(host: str):
    with pytest.raises(UsageError, match="--host"):
        listen(host, 0)


def test_a_port_in_use_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(UsageError, match="choose another port"):
        listen("127.0.0.1", other.getsockname()[1])
