"""Firefox for tests of the page, driven by Marionette, a protocol of its own; its network is a closed port."""

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

FIREFOX: Final = shutil.which("firefox-esr") or shutil.which("firefox")
needs_firefox: Final = pytest.mark.skipif(FIREFOX is None, reason="needs Firefox: apt-get install firefox-esr")
PREFERENCES: Final = {
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "toolkit.telemetry.enabled": False,
    "app.update.enabled": False,
    "ui.prefersReducedMotion": 1,
}
SECONDS: Final = 60


class Firefox:
    """A running Firefox with one tab."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._file, self._number = connection, connection.makefile("rb"), 0
        self._read()
        self._ask("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {}}})

    def open(self, address: str) -> None:
        self._ask("WebDriver:Navigate", {"url": address})

    def run(self, script: str, *values: Any) -> Any:
        """Run the body of a function in the page and return what it gives."""
        return self._ask("WebDriver:ExecuteScript", {"script": script, "args": list(values), "sandbox": None})["value"]

    def wait(self, script: str, *values: Any) -> Any:
        """Run a body until what it gives is true.

        Raises:
            AssertionError: it is not after a minute.
        """
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if result := self.run(script, *values):
                return result
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}")

    def _ask(self, name: str, values: Any) -> Any:
        self._number += 1
        request = json.dumps([0, self._number, name, values]).encode()
        self._connection.sendall(b"%d:%s" % (len(request), request))
        _, _, error, result = self._read()
        assert error is None, error
        return result

    def _read(self) -> Any:
        size = b""
        while not size.endswith(b":"):
            size += self._file.read(1) or b":"
        return json.loads(self._file.read(int(size[:-1] or 0)) or "null")


@contextmanager
def firefox() -> Generator[Firefox]:
    """Start Firefox with a profile of its own."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in PREFERENCES.items()]
        Path(folder, "user.js").write_text("\n".join([*lines, f'user_pref("marionette.port", {port});']), "utf-8")
        command = [str(FIREFOX), "--headless", "--marionette", "--no-remote", "--profile", folder]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with _connection(port) as connection:
                yield Firefox(connection)
        finally:
            process.terminate()
            process.wait(30)


def _connection(port: int) -> socket.socket:
    for _ in range(SECONDS * 4):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        except OSError:
            time.sleep(0.25)
    raise AssertionError("Firefox did not start")
