"""Micro-batching: one thread computes the items of concurrent requests together, such as sentences to translate.

A batch starts as soon as the thread is free, so an idle server adds no wait; the items that arrive meanwhile form the
next batch. A request with many items takes turns with the others.
"""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar, final

from starlette.exceptions import HTTPException

from heedful.predictors.interface import Predictor
from heedful.serving.metrics import Metrics
from heedful.serving.work import Work

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
_GATHER_SECONDS: Final = 0.002
"""Longest wait for clients that were just answered to ask again, while many ask at once."""
_SMOOTHING: Final = 0.2
_ADMITTED_SHARE: Final = 0.7
"""Share of the time to answer that the queue may take by estimate; the rest is for the estimate's error."""


@final
@dataclass(eq=False)
class Job:
    """Items of one request for one model."""

    work: Work[Any, Any, Any]
    items: Sequence[Any]
    deadline: float
    """Monotonic time in seconds by which the answer is needed."""
    finish: Callable[["Job"], None]
    """Function that is called from the batching thread once every item is done, or one failed."""
    results: list[Any] = field(default_factory=list[Any])
    error: Exception | None = None
    num_started: int = 0
    is_cancelled: bool = False
    cost: int = field(init=False)
    remaining_cost: int = field(init=False)
    """Cost of the items that are not done yet."""

    def __post_init__(self) -> None:
        self.cost = self.remaining_cost = self.work.cost(self.items)

    @property
    def num_turns(self) -> int:
        """Number of batches that the job needs if it shares none of them."""
        return math.ceil(len(self.items) / self.work.most_items)

    def cost_of_turns(self, number: int) -> float:
        """Estimate the cost of the job's next turns, of all that is left at most."""
        return min(self.remaining_cost, number * self.cost / self.num_turns)

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for the result any more."""
        return self.is_cancelled or self.error is not None or time.monotonic() > self.deadline


class _Share(NamedTuple):
    """Part of a job in a batch."""

    job: Job
    items: Sequence[Any]


@final
class Batcher:
    """Queue of jobs, and the thread that does them."""

    def __init__(self, metrics: Metrics, most_waiting: int) -> None:
        """Start the thread.

        Args:
            most_waiting: number of jobs that may wait at a time.
        """
        self._metrics: Final = metrics
        self._most_waiting: Final = most_waiting
        self._waiting: Final[deque[Job]] = deque()
        self._changed: Final = threading.Condition()
        self._is_closed = False
        self._open: Final[set[Job]] = set()
        # Cost per second of each model, smoothed; one that was not measured yet is not there.
        self._speeds: Final[dict[Predictor, float]] = {}
        self._last_size = 1
        self._thread: Final = threading.Thread(target=self._work, name="heedful-batches", daemon=True)
        self._thread.start()

    @property
    def num_open(self) -> int:
        """Number of jobs that wait or are in a batch."""
        return len(self._open)

    def refusal(self, seconds: float) -> HTTPException | None:
        """Say whether a new request would be refused, whatever its size, so that its body need not be read.

        Args:
            seconds: time in which it would have to be answered.

        Returns:
            The refusal; None if there may be room.
        """
        is_late = self._seconds_before(1) > _ADMITTED_SHARE * seconds
        if len(self._open) >= self._most_waiting or is_late:
            return self._too_busy("too many requests are waiting")
        return None

    async def run(self, work: Work[Any, ItemT, ResultT], items: Sequence[ItemT], deadline: float) -> list[ResultT]:
        """Do some work on items, together with those of other requests for the same work.

        Args:
            deadline: monotonic time in seconds by which the answer is needed.

        Returns:
            Result of each item. Cancelling the coroutine takes its items out of the queue, and ends a batch in which
            nobody else waits.

        Raises:
            HTTPException: 503, the server is too busy to answer in time; Retry-After says when to try again.
        """
        if not items:
            return []
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def finish(_: Job) -> None:
            loop.call_soon_threadsafe(lambda: done.done() or done.set_result(None))

        job = Job(work, items, deadline, finish)
        self._admit(job)
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await done
        except TimeoutError:
            raise self._too_busy("the answer took too long") from None
        finally:
            self._leave(job)
        if job.error is not None:
            raise job.error
        return job.results

    def close(self) -> None:
        """End the thread after its current batch."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def _admit(self, job: Job) -> None:
        with self._changed:
            before = self._seconds_before(job.num_turns)
            # The speed of small batches says little about a large job, so an idle server takes any.
            seconds = before + self._seconds(job, job.cost) if before else 0.0
            left = _ADMITTED_SHARE * (job.deadline - time.monotonic())
            if len(self._open) >= self._most_waiting or seconds > left:
                raise self._too_busy("too many requests are waiting")
            self._waiting.append(job)
            self._open.add(job)
            self._metrics.waiting.set(len(self._open))
            self._changed.notify_all()

    def _leave(self, job: Job) -> None:
        with self._changed:
            if job.error is None and len(job.results) < len(job.items):
                job.is_cancelled = True
                self._metrics.cancelled.inc()
                if job in self._waiting:
                    self._waiting.remove(job)
            self._open.remove(job)
            self._metrics.waiting.set(len(self._open))

    def _seconds_before(self, num_turns: int) -> float:
        """Estimate the time of what the open jobs do before the last turn of a new job.

        Each job may have a turn before each turn of the new one, and one more is under way.
        """
        return sum(self._seconds(job, job.cost_of_turns(num_turns + 1)) for job in self._open)

    def _seconds(self, job: Job, cost: float) -> float:
        speed = self._speeds.get(job.work.model)
        return cost / speed if speed else 0.0

    def _too_busy(self, reason: str) -> HTTPException:
        self._metrics.refused.inc()
        wait = math.ceil(sum(self._seconds(job, job.remaining_cost) for job in self._open))
        return HTTPException(503, f"Slowdown: {reason}", {"Retry-After": str(min(60, max(1, wait)))})

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            self._run(batch)

    def _next_batch(self) -> list[_Share] | None:
        """Items of one work, of the first jobs of the queue."""
        with self._changed:
            while not self._waiting and not self._is_closed:
                self._changed.wait()
            if self._is_closed:
                return None
            if self._last_size > 1:
                stop = time.monotonic() + _GATHER_SECONDS
                while len(self._waiting) < self._last_size and (left := stop - time.monotonic()) > 0:
                    self._changed.wait(left)
            return self._take()

    def _take(self) -> list[_Share]:
        batch: list[_Share] = []
        size = 0
        others: list[Job] = []
        unfinished: list[Job] = []
        work: Work[Any, Any, Any] | None = None
        while self._waiting and (work is None or size < work.most_items):
            job = self._waiting.popleft()
            if job.is_over:
                continue
            work = work or job.work
            if job.work != work:
                others.append(job)
                continue
            share = _Share(job, job.items[job.num_started : job.num_started + work.most_items - size])
            job.num_started += len(share.items)
            size += len(share.items)
            batch.append(share)
            if job.num_started < len(job.items):
                unfinished.append(job)
        self._waiting.extendleft(reversed(others))
        self._waiting.extend(unfinished)
        self._last_size = len(batch)
        return batch

    def _run(self, batch: list[_Share]) -> None:
        if not batch:
            return
        started = time.monotonic()
        try:
            self._compute(batch)
        except Exception as error:  # one input must not end the server
            if len(batch) > 1:
                for share in batch:
                    self._run([share])
                return
            batch[0].job.error = error
            batch[0].job.finish(batch[0].job)
            return
        self._measure(batch, time.monotonic() - started)

    def _compute(self, batch: list[_Share]) -> None:
        items = [item for share in batch for item in share.items]
        work = batch[0].job.work
        results = iter(work.run(items, lambda: all(share.job.is_over for share in batch)))
        for job, own in batch:
            job.results += [next(results) for _ in own]
            job.remaining_cost -= work.cost(own)
            if len(job.results) == len(job.items):
                job.finish(job)

    def _measure(self, batch: list[_Share], seconds: float) -> None:
        if all(share.job.is_over for share in batch):
            return
        work, items = batch[0].job.work, [item for share in batch for item in share.items]
        speed = work.cost(items) / max(seconds, 1e-6)
        before = self._speeds.get(work.model, speed)
        self._speeds[work.model] = (1 - _SMOOTHING) * before + _SMOOTHING * speed
        self._metrics.sentences.inc(len(items))
        self._metrics.characters.inc(sum(map(work.size, items)))
        self._metrics.batch.observe(len(items))
