"""Small versions of the proofs of the server, over real sockets; none of them depends on the speed of the machine."""

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.prove import serving_attacks as attacks
from tests.prove.prove_serve import prove_load
from tests.thorough import thorough


def test_every_answer_is_the_right_one():
    assert asyncio.run(prove_load(300, clients=20))


def test_slow_sockets_are_closed():
    async def run() -> list[float]:
        async with attacks.running(receive_seconds=0.5) as server:
            slow = [asyncio.ensure_future(attacks.trickle(server.port, 60)) for _ in range(20)]
            tally = await attacks.load(server.port, 4, 600, 40)
            assert tally.outcomes == Counter(right=40)
            return await asyncio.gather(*slow)

    assert max(asyncio.run(run())) < 55


@thorough
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_loses_no_request_and_leaves_no_file(
    stop: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    outcomes = asyncio.run(attacks.terminate_in_flight(30, stop))
    assert set(outcomes) <= {"right", "refused", "exit 0"}
    assert outcomes["exit 0"] == 1
    assert [*tmp_path.glob("heedful-*")] == []


def test_a_request_of_two_lengths_is_refused_and_the_connection_closed():
    async def run() -> bytes:
        async with attacks.running() as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(
                b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\n\r\n"
            )
            answer = await reader.read()  # up to the end of the connection
            writer.close()
            return answer

    answer = asyncio.run(asyncio.wait_for(run(), 60))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1, "what follows is no request"


def test_who_disconnects_leaves_the_queue():
    async def run() -> None:
        async with attacks.running(sentence_seconds=10) as server:
            await asyncio.gather(*(attacks.vanish(server.port) for _ in range(20)))
            while await server.metric("heedful_waiting_requests") > 0:  # a batch alone would take minutes
                await asyncio.sleep(0.02)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_wrong_answer_is_seen():
    async def run() -> Counter[str]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"}")
            body = b'{"translatedText": "no"}'
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            tally = await attacks.load(server.sockets[0].getsockname()[1], 2, 600, 4)
        return tally.outcomes

    assert asyncio.run(run()) == Counter(wrong=4)
