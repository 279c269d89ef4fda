"""Small versions of the proofs of the server, over real sockets; none of them depends on the speed of the machine."""

import asyncio
from collections import Counter

from tests.prove import serving_attacks as attacks
from tests.prove.prove_serve import prove_load


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


def test_a_signal_loses_no_request():
    outcomes = asyncio.run(attacks.terminate_in_flight(30))
    assert set(outcomes) <= {"right", "refused", "exit 0"}
    assert outcomes["exit 0"] == 1


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
