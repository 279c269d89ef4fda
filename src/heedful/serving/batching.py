"""Micro-batching: one thread translates the sentences of concurrent requests together.

A batch starts as soon as the thread is free, so an idle server adds no wait; the sentences that arrive meanwhile form
the next batch. A request with many sentences takes turns with the others.
"""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

from starlette.exceptions import HTTPException

from heedful.predictors.output_links import links_of
from heedful.predictors.translation import Translation
from heedful.predictors.translator import Translator
from heedful.serving.metrics import Metrics
from heedful.text.tag_placement import CharacterLink


class Outputs(NamedTuple):
    """Outputs for one sentence."""

    texts: tuple[str, ...]
    """Texts, best first."""
    links: tuple[CharacterLink, ...] = ()
    """Links between the sentence and the best text; none unless requested."""


_MOST_SENTENCES: Final = 64
_GATHER_SECONDS: Final = 0.002
"""Longest wait for clients that were just answered to ask again, while many ask at once."""
_SMOOTHING: Final = 0.2
_ADMITTED_SHARE: Final = 0.7
"""Share of the time to answer that the queue may take by estimate; the rest is for the estimate's error."""


@final
@dataclass(eq=False)
class Job:
    """Sentences of one request for one model."""

    translator: Translator
    sentences: Sequence[str]
    nbest: int
    deadline: float
    """Monotonic time in seconds by which the answer is needed."""
    finish: Callable[["Job"], None]
    """Function that is called from the batching thread once every sentence is translated, or one failed."""
    needs_links: bool = False
    outputs: list[Outputs] = field(default_factory=list[Outputs])
    error: Exception | None = None
    num_started: int = 0
    is_cancelled: bool = False
    cost: int = field(init=False)
    """Characters to translate, times outputs."""
    remaining_cost: int = field(init=False)
    """Cost of the sentences that are not translated yet."""

    def __post_init__(self) -> None:
        self.cost = self.remaining_cost = self.cost_of(self.sentences)

    @property
    def num_turns(self) -> int:
        """Number of batches that the job needs if it shares none of them."""
        return math.ceil(len(self.sentences) / _MOST_SENTENCES)

    def cost_of(self, sentences: Sequence[str]) -> int:
        """Count the characters of some of the sentences, times outputs."""
        return sum(map(len, sentences)) * self.nbest

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
    sentences: Sequence[str]


@final
class Batcher:
    """Queue of jobs, and the thread that translates them."""

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
        self._speed = 0.0  # characters times outputs per second, smoothed; 0 = not measured yet
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
        is_late = bool(self._speed) and self._cost_before(1) / self._speed > _ADMITTED_SHARE * seconds
        if len(self._open) >= self._most_waiting or is_late:
            return self._too_busy("too many requests are waiting")
        return None

    async def translate(
        self,
        translator: Translator,
        sentences: Sequence[str],
        nbest: int,
        deadline: float,
        needs_links: bool = False,
    ) -> list[Outputs]:
        """Translate sentences together with those of other requests.

        Args:
            sentences: sentences, none of them blank.
            nbest: outputs for each sentence.
            deadline: monotonic time in seconds by which the answer is needed.
            needs_links: whether to link the words of the best outputs to those of the sentences.

        Returns:
            Outputs of each sentence. Cancelling the coroutine takes its sentences out of the queue, and ends the search
            of a batch in which nobody else waits.

        Raises:
            HTTPException: 503, the server is too busy to answer in time; Retry-After says when to try again.
        """
        if not sentences:
            return []
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def finish(_: Job) -> None:
            loop.call_soon_threadsafe(lambda: done.done() or done.set_result(None))

        job = Job(translator, sentences, nbest, deadline, finish, needs_links)
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
        return job.outputs

    def close(self) -> None:
        """End the thread after its current batch."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def _admit(self, job: Job) -> None:
        with self._changed:
            before = self._cost_before(job.num_turns)
            # The speed of small batches says little about a large job, so an idle server takes any.
            seconds = (before + job.cost) / self._speed if self._speed and before else 0.0
            left = _ADMITTED_SHARE * (job.deadline - time.monotonic())
            if len(self._open) >= self._most_waiting or seconds > left:
                raise self._too_busy("too many requests are waiting")
            self._waiting.append(job)
            self._open.add(job)
            self._metrics.waiting.set(len(self._open))
            self._changed.notify_all()

    def _leave(self, job: Job) -> None:
        with self._changed:
            if job.error is None and len(job.outputs) < len(job.sentences):
                job.is_cancelled = True
                self._metrics.cancelled.inc()
                if job in self._waiting:
                    self._waiting.remove(job)
            self._open.remove(job)
            self._metrics.waiting.set(len(self._open))

    def _cost_before(self, num_turns: int) -> float:
        """Estimate the cost of what the open jobs have translated before the last turn of a new job.

        Each job may have a turn before each turn of the new one, and one more is under way.
        """
        return sum(job.cost_of_turns(num_turns + 1) for job in self._open)

    def _too_busy(self, reason: str) -> HTTPException:
        self._metrics.refused.inc()
        cost = sum(job.remaining_cost for job in self._open)
        wait = math.ceil(cost / self._speed) if self._speed else 1
        return HTTPException(503, f"Slowdown: {reason}", {"Retry-After": str(min(60, max(1, wait)))})

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            self._run(batch)

    def _next_batch(self) -> list[_Share] | None:
        """Sentences that share a model and a number of outputs, of the first jobs of the queue."""
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
        first: Job | None = None
        while self._waiting and size < _MOST_SENTENCES:
            job = self._waiting.popleft()
            if job.is_over:
                continue
            first = first or job
            if (job.translator, job.nbest, job.needs_links) != (first.translator, first.nbest, first.needs_links):
                others.append(job)
                continue
            share = _Share(job, job.sentences[job.num_started : job.num_started + _MOST_SENTENCES - size])
            job.num_started += len(share.sentences)
            size += len(share.sentences)
            batch.append(share)
            if job.num_started < len(job.sentences):
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
            self._translate(batch)
        except Exception as error:  # one input must not end the server
            if len(batch) > 1:
                for share in batch:
                    self._run([share])
                return
            batch[0].job.error = error
            batch[0].job.finish(batch[0].job)
            return
        self._measure(batch, time.monotonic() - started)

    def _translate(self, batch: list[_Share]) -> None:
        sentences = [sentence for share in batch for sentence in share.sentences]
        first = batch[0].job
        translations = first.translator.translate(
            sentences,
            nbest=first.nbest,
            attention=first.needs_links,
            cancelled=lambda: all(share.job.is_over for share in batch),
            segments="line",
        )
        results = iter(translations)
        for job, sources in batch:
            job.outputs += [_outputs(next(results), first) for _ in sources]
            job.remaining_cost -= job.cost_of(sources)
            if len(job.outputs) == len(job.sentences):
                job.finish(job)

    def _measure(self, batch: list[_Share], seconds: float) -> None:
        if all(share.job.is_over for share in batch):
            return
        num_characters = sum(len(sentence) for share in batch for sentence in share.sentences)
        speed = num_characters * batch[0].job.nbest / max(seconds, 1e-6)
        self._speed = speed if not self._speed else (1 - _SMOOTHING) * self._speed + _SMOOTHING * speed
        self._metrics.sentences.inc(sum(len(share.sentences) for share in batch))
        self._metrics.characters.inc(num_characters)
        self._metrics.batch.observe(sum(len(share.sentences) for share in batch))


def _outputs(translation: Translation, job: Job) -> Outputs:
    translator = job.translator
    links = (
        tuple(links_of(translation, translator.alignment_shift, translator.tables.lexicon)) if job.needs_links else ()
    )
    return Outputs(tuple(one.text for one in translation.alternatives), links)
