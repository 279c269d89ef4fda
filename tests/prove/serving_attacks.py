"""Clients that test a running server: a load whose every answer is checked, overload, slow and vanishing clients."""

import asyncio
import json
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Tally:
    """Answers to the requests of a run."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """Time within which this share of the requests was answered, in seconds."""
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(share * len(self.seconds)))] if self.seconds else 0.0

    def summary(self) -> str:
        """Outcomes, and median and 99th percentile of the times."""
        counts = ", ".join(f"{name} {number}" for name, number in sorted(self.outcomes.items()))
        median = statistics.median(self.seconds) if self.seconds else 0.0
        return f"{counts}; median {1000 * median:.1f} ms, p99 {1000 * self.percentile(0.99):.1f} ms"


@dataclass
class Server:
    """Running server."""

    process: asyncio.subprocess.Process
    port: int

    async def metric(self, name: str) -> float:
        """Read a figure of the server."""
        status, _, body = await ask(self.port, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert status == 200
        return next(float(line.split()[-1]) for line in body.decode().split("\n") if line.startswith(name + " "))

    def memory(self) -> int:
        """Resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        return next(1024 * int(line.split()[1]) for line in status.split("\n") if line.startswith("VmRSS"))


@asynccontextmanager
async def running(**options: float | str) -> AsyncGenerator[Server]:
    """Start a server, and kill it at the end if it is still there."""
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.prove.reversing_server", *words, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    line = await process.stdout.readline()
    try:
        yield Server(process, int(line.split()[0]))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def post(text: str, more: str = "") -> bytes:
    """Request for a translation."""
    body = json.dumps({"q": text, "source": "de", "target": "en"}).encode()
    head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return int(head[0].split()[1]), headers, await reader.readexactly(int(headers.get("content-length", 0)))


async def ask(port: int, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send one request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await read_answer(reader)
    finally:
        writer.close()


async def client(port: int, tally: Tally, stop: float, most: int, rng: random.Random) -> None:
    """Ask one request after another on one connection, and check every answer by its content."""
    reader = writer = None
    for _ in range(most):
        if time.monotonic() > stop:
            break
        text = "".join(rng.choices("0123456789", k=rng.randint(1, 40)))
        started = time.monotonic()
        try:
            if writer is None or reader is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(post(text))
            status, headers, body = await read_answer(reader)
        except (OSError, asyncio.IncompleteReadError):
            tally.outcomes["lost"] += 1
            reader = writer = None
            continue
        if status == 200:
            is_right = json.loads(body)["translatedText"] == text[::-1]
            tally.outcomes["right" if is_right else "wrong"] += 1
            tally.seconds.append(time.monotonic() - started)
        elif status in (429, 503):
            tally.outcomes["refused" if "retry-after" in headers else "refused without Retry-After"] += 1
        else:
            tally.outcomes[f"status {status}"] += 1
        if headers.get("connection") == "close":
            writer.close()
            reader = writer = None
    if writer is not None:
        writer.close()


async def load(port: int, clients: int, seconds: float, requests: int = 10**9) -> Tally:
    """Ask with many clients at once."""
    tally = Tally()
    stop = time.monotonic() + seconds
    most = -(-requests // clients)
    await asyncio.gather(*(client(port, tally, stop, most, random.Random(index)) for index in range(clients)))
    return tally


async def flood(port: int, rate: float, seconds: float) -> Tally:
    """Ask at a fixed rate, whether or not answers come."""
    tally = Tally()
    tasks: set[asyncio.Task[None]] = set()
    started = time.monotonic()
    number = 0
    while (elapsed := time.monotonic() - started) < seconds:
        for _ in range(int(elapsed * rate) - number):
            number += 1
            tasks.add(asyncio.ensure_future(client(port, tally, started + seconds + 60, 1, random.Random(number))))
        await asyncio.sleep(0.005)
    _, hanging = await asyncio.wait(tasks, timeout=60)
    tally.outcomes["hanging"] += len(hanging)
    return tally


async def trickle(port: int, seconds: float) -> float:
    """Send a request byte by byte; seconds until the server closed the connection."""
    started = time.monotonic()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        closing = asyncio.ensure_future(reader.read())
        for byte in post("1" * 4000):
            writer.write(bytes([byte]))
            done, _ = await asyncio.wait((closing,), timeout=0.5)
            if done or time.monotonic() - started > seconds:
                break
        writer.close()
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)  # a reset while it read is what the server may do
    except OSError:
        pass
    return time.monotonic() - started


async def vanish(port: int) -> None:
    """Send a request and leave before the answer."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(post("1" * 30))
    await writer.drain()
    writer.transport.abort()


async def terminate_in_flight(number: int, stop: signal.Signals = signal.SIGTERM) -> Counter[str]:
    """Stop a server with requests in flight; outcomes of the requests, and the exit code."""
    outcomes: Counter[str] = Counter()
    async with running(sentence_seconds=0.005) as server:

        async def one(text: str) -> str:
            try:
                status, headers, body = await ask(server.port, post(text))
            except (OSError, asyncio.IncompleteReadError) as error:
                return f"lost: {type(error).__name__}"
            if status == 200:
                return "right" if json.loads(body)["translatedText"] == text[::-1] else "wrong"
            return "refused" if status == 503 and "retry-after" in headers else f"status {status}"

        tasks = [asyncio.ensure_future(one(str(index))) for index in range(number)]
        while await server.metric("heedful_waiting_requests") < number * 0.6:
            if all(task.done() for task in tasks):
                break
        server.process.send_signal(stop)
        outcomes.update(await asyncio.gather(*tasks))
        outcomes[f"exit {await asyncio.wait_for(server.process.wait(), 40)}"] += 1
    return outcomes
