"""Micro-batching: right answers to the right requests, refusals, cancelling, faults."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from heedful.serving import batching
from heedful.serving.batching import Batcher
from heedful.serving.metrics import Metrics
from heedful.serving.work import Outputs, Sentence, Translating
from tests.serving.reversing import Reverser


def translate(batcher: Batcher, model: Reverser, *texts: str, seconds: float = 30.0) -> Coroutine[Any, Any, Any]:
    return batcher.run(Translating(model), [Sentence(text) for text in texts], time.monotonic() + seconds)  # type: ignore[arg-type]


async def wait_for(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 20)


def test_every_request_gets_its_own_answer():
    model, batcher = Reverser(), Batcher(Metrics(), 1000)

    async def ask(number: int) -> bool:
        texts = [f"{number} {index}" for index in range(number % 7)]
        return await translate(batcher, model, *texts) == [Outputs((text[::-1],)) for text in texts]

    async def all_ask() -> list[bool]:
        return await asyncio.gather(*map(ask, range(300)))

    assert all(asyncio.run(all_ask()))
    assert max(map(len, model.batches)) > 1
    assert batcher.num_open == 0
    batcher.close()


def test_a_large_request_takes_turns():
    gate = threading.Event()
    model, batcher = Reverser(gate=gate), Batcher(Metrics(), 1000)

    async def run() -> None:
        large = asyncio.ensure_future(translate(batcher, model, *["a"] * 500))
        await wait_for(model.started)
        small = asyncio.ensure_future(translate(batcher, model, "b"))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(large, small)

    asyncio.run(run())
    assert next(index for index, batch in enumerate(model.batches) if "b" in batch) <= 2
    batcher.close()


class Turns(threading.Event):
    """Gate that a batch passes for each turn given."""

    def __init__(self) -> None:
        super().__init__()
        self._turns = threading.Semaphore(0)

    def give(self, number: int) -> None:
        self._turns.release(number)

    def wait(self, timeout: float | None = None) -> bool:
        return self._turns.acquire(timeout=timeout)


def test_a_large_request_counts_as_its_turns(monkeypatch: pytest.MonkeyPatch):
    gate, seconds = Turns(), 85.0
    model, batcher = Reverser(gate=gate), Batcher(Metrics(), 1000)
    monkeypatch.setattr(batching, "_SMOOTHING", 0.0)  # the speed stays that of the first batch

    async def run() -> None:
        first = asyncio.ensure_future(translate(batcher, model, "a" * 200))
        await wait_for(model.started)
        await asyncio.sleep(0.2)
        gate.give(1)
        await first  # at most 1,000 characters a second
        large = asyncio.ensure_future(translate(batcher, model, *["a" * 100] * 64 * 20, seconds=1000))
        await until_batches(model, 2)
        # The whole takes 128 seconds, but a short request waits for two batches of 6.4 seconds.
        assert batcher.refusal(seconds) is None
        short = asyncio.ensure_future(translate(batcher, model, "b", seconds=seconds))
        await asyncio.sleep(0)
        assert not short.done()
        # A request of nine batches waits for ten of them, until few are left.
        with pytest.raises(HTTPException):
            await translate(batcher, model, *["c"] * 64 * 9, seconds=seconds)
        gate.give(19)
        await until_batches(model, 21)
        middle = asyncio.ensure_future(translate(batcher, model, *["c"] * 64 * 9, seconds=seconds))
        await asyncio.sleep(0)
        assert not middle.done()
        gate.give(100)
        assert [len(outputs) for outputs in await asyncio.gather(large, short, middle)] == [64 * 20, 1, 64 * 9]

    asyncio.run(run())
    assert batcher.refusal(0.0) is None
    batcher.close()


async def until_batches(model: Reverser, number: int) -> None:
    async with asyncio.timeout(20):
        while len(model.batches) < number:
            await asyncio.sleep(0.01)


def test_a_full_queue_refuses_at_once():
    gate = threading.Event()
    model, batcher = Reverser(gate=gate), Batcher(Metrics(), 2)

    async def run() -> None:
        waiting = [asyncio.ensure_future(translate(batcher, model, "a")) for _ in range(2)]
        await wait_for(model.started)
        with pytest.raises(HTTPException) as refusal:
            await translate(batcher, model, "a")
        assert refusal.value.status_code == 503
        assert batcher.refusal(30) is not None
        assert int((refusal.value.headers or {})["Retry-After"]) >= 1
        gate.set()
        assert await asyncio.gather(*waiting) == [[Outputs(("a",))], [Outputs(("a",))]]
        assert batcher.refusal(30) is None

    asyncio.run(run())
    batcher.close()


def test_a_request_that_takes_too_long_is_answered_in_time():
    model, batcher = Reverser(gate=threading.Event()), Batcher(Metrics(), 2)

    async def run() -> None:
        with pytest.raises(HTTPException) as refusal:
            await translate(batcher, model, "a", seconds=0.05)
        assert refusal.value.status_code == 503
        await wait_for(model.was_cancelled)

    asyncio.run(run())
    assert batcher.num_open == 0
    batcher.close()


def test_who_leaves_is_forgotten():
    model, batcher = Reverser(gate=threading.Event()), Batcher(Metrics(), 1000)

    async def run() -> None:
        running = [asyncio.ensure_future(translate(batcher, model, "a"))]
        await wait_for(model.started)
        running += [asyncio.ensure_future(translate(batcher, model, f"b{index}")) for index in range(50)]
        await asyncio.sleep(0)
        assert batcher.num_open == 51
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await wait_for(model.was_cancelled)

    asyncio.run(run())
    assert batcher.num_open == 0
    batcher.close()
    assert [batch for batch in model.batches if "b" in batch[0]] == []


def test_one_input_that_fails_fails_alone():
    gate = threading.Event()
    model, batcher = Reverser(poison="x", gate=gate), Batcher(Metrics(), 1000)

    async def run() -> list[Any]:
        first = asyncio.ensure_future(translate(batcher, model, "a"))
        await wait_for(model.started)
        others = [asyncio.ensure_future(translate(batcher, model, text)) for text in ("b", "x", "c")]
        await asyncio.sleep(0)
        gate.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    first, second, poisoned, third = asyncio.run(run())
    assert (first, second, third) == ([Outputs(("a",))], [Outputs(("b",))], [Outputs(("c",))])
    assert isinstance(poisoned, ValueError)
    batcher.close()
