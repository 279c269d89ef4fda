"""Small thread pool for numba kernels, which release the interpreter lock.

If PyTorch has loaded GNU OpenMP, the pool uses PyTorch's own OpenMP threads: after each operation they spin for
milliseconds, waiting for the next one, so other threads would have to share cores with them. Otherwise, and in a forked
child process, the pool has threads of its own.

Numba's threading layers are not used: its workqueue aborts the process when two Python threads enter it, and its OpenMP
layer loads a second OpenMP library beside PyTorch's.
"""

import ctypes
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread, current_thread, main_thread
from typing import Any, Final, final

import torch

from heedful.cpu.contention import contention_watch


def num_threads() -> int:
    """Return the number of threads that `run_parts` uses at once.

    Returns:
        `torch.get_num_threads()`, so that one setting controls both; at least 1.
    """
    return torch.get_num_threads()


def adapt_threads() -> str:
    """Use fewer PyTorch threads while other programs keep processors busy, and all of them afterwards.

    To be called between two batches by the thread that computes them, because the number belongs to a thread. It does
    nothing unless `heedful.cpu.contention.watch_contention` watches for contention.

    Returns:
        A line for the user when the number falls; otherwise empty.
    """
    watch = contention_watch()
    if watch is None or is_exact() or watch.num_threads == (before := torch.get_num_threads()):
        return ""
    number = watch.num_threads
    torch.set_num_threads(number)
    if number > before:
        return ""
    return (
        f"other programs use {watch.others:.1f} processors: {number} thread{'s' * (number > 1)} instead of {before} "
        "until they end; --threads sets a fixed number"
    )


@contextmanager
def single_threaded() -> Generator[None]:
    """Use one PyTorch thread within a context: several split products by size, which changes the order of sums.

    For exact decoding; `is_exact` holds within the context.

    Yields:
        Nothing.
    """
    number, token = torch.get_num_threads(), _is_exact.set(True)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        _is_exact.reset(token)
        torch.set_num_threads(number)


def is_exact() -> bool:
    """Tell whether the last bits of a row must depend neither on the rows beside it nor on the number of threads.

    Returns:
        Whether this is called within `single_threaded`.
    """
    return _is_exact.get()


_is_exact: Final = ContextVar("is_exact", default=False)


def run_parts(parts: Sequence[Callable[[], None]]) -> None:
    """Run all parts, at most `num_threads()` at once, and return when all have finished.

    The calling thread runs parts too, so a single part needs no other thread, and a part may call this function again.
    Parts are started in order, each as soon as a thread is free: more parts than threads balance the load.

    Args:
        parts: functions that write to separate memory. Only parts that release the interpreter lock run in parallel.

    Raises:
        BaseException: an exception raised by a part; parts that have not started are then skipped.

    Cost: about 25 us for two threads of the pool once they have been started; below 1 us for one part.

    Example:
        >>> squares = [0, 0, 0]
        >>> def fill(i):
        ...     squares[i] = i * i
        >>> run_parts([lambda i=i: fill(i) for i in range(3)])
        >>> squares
        [0, 1, 4]
    """
    num_others = min(len(parts), num_threads()) - 1
    if num_others < 1:
        for part in parts:
            part()
        return
    waiting = deque(parts)
    _LOST.keep()
    if not _POOL.is_forked and (parallel := _openmp()) is not None:
        _drain_together(parallel, num_others + 1, waiting)
    else:
        _drain_with_others(num_others, waiting)
    _LOST.release()


def _drain_with_others(num_others: int, waiting: deque[Callable[[], None]]) -> None:
    """Run parts on the calling thread and threads of the pool."""
    others = _POOL.submit(num_others, lambda: _drain(waiting))
    try:
        _drain(waiting)
    finally:
        # Even after an exception, no part may still be writing when this function returns.
        raised = [other.exception() for other in others if not other.cancel()]
    for exception in raised:
        if exception is not None:
            raise exception


def _drain(waiting: deque[Callable[[], None]]) -> None:
    try:
        while True:
            try:
                part = waiting.popleft()
            except IndexError:
                return
            part()
    except BaseException:
        waiting.clear()
        raise


def _drain_together(parallel: Any, count: int, waiting: deque[Callable[[], None]]) -> None:
    """Run parts on `count` of PyTorch's OpenMP threads, which include the calling thread."""
    raised: list[BaseException] = []

    def drain(_: object) -> None:
        try:
            _drain(waiting)
        except BaseException as error:
            raised.append(error)

    # ctypes releases the interpreter lock for the call, and each thread acquires it to run `drain`.
    parallel(_Work(drain), None, count, 0)
    if raised:
        raise raised[0]


@final
class _Lost:
    """Interruptions that Python would only print, as they arrive while C calls Python or an object is destroyed."""

    def __init__(self) -> None:
        self._errors: Final[list[BaseException]] = []
        self._others = sys.unraisablehook

    def keep(self) -> None:
        """Keep them from now on."""
        if sys.unraisablehook != self._add:
            self._others, sys.unraisablehook = sys.unraisablehook, self._add

    def release(self) -> None:
        """Raise one that was kept, on the main thread.

        Raises:
            BaseException: what was kept.
        """
        if self._errors and current_thread() is main_thread():
            raise self._errors.pop()

    def _add(self, unraisable: Any) -> None:
        if unraisable.exc_value is None or isinstance(unraisable.exc_value, Exception):
            self._others(unraisable)
        else:
            self._errors.append(unraisable.exc_value)


_LOST: Final = _Lost()

_Work: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@cache
def _openmp() -> Any:
    """GOMP_parallel(function, data, number of threads, flags) of the library that PyTorch has loaded, or None."""
    folder = Path(torch.__file__).parent
    only_if_loaded = getattr(os, "RTLD_NOLOAD", None)
    if only_if_loaded is None:
        return None
    for path in (*folder.glob("lib/libgomp*.so*"), *folder.parent.glob("torch.libs/libgomp*.so*")):
        try:
            parallel = ctypes.CDLL(str(path), mode=only_if_loaded | os.RTLD_NOW).GOMP_parallel
        except (OSError, AttributeError):
            continue
        parallel.argtypes = [_Work, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        parallel.restype = None
        return parallel
    return None


@final
class _Task:
    """Call that a thread of the pool makes, unless it is cancelled first."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._claim = Lock()
        self._running = Lock()
        self._running.acquire()
        self._error: BaseException | None = None

    def cancel(self) -> bool:
        """Keep the call from being made; tells whether it had not begun."""
        return self._claim.acquire(blocking=False)

    def exception(self) -> BaseException | None:
        """Wait for the end of the call, and return what it raised."""
        with self._running:
            return self._error

    def run(self) -> None:
        """Make the call, in a thread of the pool."""
        if not self._claim.acquire(blocking=False):
            return
        try:
            self._work()
        except BaseException as error:
            self._error = error
        finally:
            self._running.release()


@final
class _Pool:
    """Pool of persistent threads, started on first use, and again after a fork or when more threads are needed.

    Its locks are those of C, which an interruption leaves either held by a `with` or free. The conditions in
    `concurrent.futures`, which are Python, may stay locked, and the next call would wait for ever.
    """

    def __init__(self) -> None:
        self.is_forked = False
        self._renew()

    def forget(self) -> None:
        """Reset the pool in a forked child, which has none of the threads and may have a lock that stays locked."""
        self.is_forked = True
        self._renew()

    def _renew(self) -> None:
        self._lock = Lock()
        self._tasks: SimpleQueue[_Task] = SimpleQueue()
        self._size = 0

    def submit(self, times: int, work: Callable[[], None]) -> list[_Task]:
        """Submit a call `times` times, or fewer if no more threads can be started (the caller then does the work)."""
        with self._lock:
            while self._size < times:
                try:
                    Thread(target=self._serve, args=(self._tasks,), name=f"heedful_{self._size}", daemon=True).start()
                except RuntimeError:
                    break
                self._size += 1
        tasks = [_Task(work) for _ in range(min(times, self._size))]
        for task in tasks:
            self._tasks.put(task)
        return tasks

    @staticmethod
    def _serve(tasks: "SimpleQueue[_Task]") -> None:
        while True:
            tasks.get().run()


_POOL: Final = _Pool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.forget)
