"""Small thread pool for numba kernels, which release the interpreter lock.

Where PyTorch brought GNU's OpenMP, its very threads are taken: after each operation they spin for milliseconds, waiting
for the next one, and any other thread would have to share a core with them. Elsewhere, and in the child of a fork,
there are threads of our own.

Numba's own layers are not used: its workqueue aborts the process when two Python threads enter it, and its OpenMP layer
loads a second OpenMP beside PyTorch's.
"""

import ctypes
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Final, final

import torch


def num_threads() -> int:
    """Return the number of threads that `run_parts` uses at once.

    Returns:
        `torch.get_num_threads()`, so that one setting rules both; at least 1.
    """
    return torch.get_num_threads()


def run_parts(parts: Sequence[Callable[[], None]]) -> None:
    """Run all parts, at most `num_threads()` at once, and return when all have finished.

    The calling thread takes parts too, so one part runs without any other thread, and a part may call this function
    again. Threads take the parts in order, each the next one when it is done: more parts than threads even out load.

    Args:
        parts: functions that write to places of their own. To gain anything they release the interpreter lock.

    Raises:
        BaseException: whatever a part raised, the first one known; parts not yet begun are then left out.

    Cost: about 25 us for two threads of our own, once they have been started; below 1 us for one part.

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
    if not _POOL.is_forked and (parallel := _openmp()) is not None:
        _drain_together(parallel, num_others + 1, waiting)
        return
    others = _POOL.submit(num_others, lambda: _drain(waiting))
    try:
        _drain(waiting)
    finally:
        # No part may still be writing when the caller goes on, whatever was raised.
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
    """Run parts by a number of PyTorch's threads, the calling one among them."""
    raised: list[BaseException] = []

    def drain(_: object) -> None:
        try:
            _drain(waiting)
        except BaseException as error:
            raised.append(error)

    # Released by ctypes, the interpreter lock is taken again by each thread in turn.
    parallel(_Work(drain), None, count, 0)
    if raised:
        raise raised[0]


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
class _Pool:
    """Persistent threads, started on first use and again when more are needed or after a fork."""

    def __init__(self) -> None:
        self.is_forked = False
        self._renew()

    def forget(self) -> None:
        """Forget the threads after a fork: the child has none of them, and perhaps a lock that is never released."""
        self.is_forked = True
        self._renew()

    def _renew(self) -> None:
        self._lock = Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._size = 0

    def submit(self, times: int, work: Callable[[], None]) -> list[Future[None]]:
        """Submit a call that many times or fewer: where no thread can be started, the caller does all the work."""
        with self._lock:
            if self._executor is None or self._size < times:
                if self._executor is not None:
                    self._executor.shutdown(wait=False)
                self._executor = ThreadPoolExecutor(times, thread_name_prefix="heedful")
                self._size = times
            futures: list[Future[None]] = []
            try:
                for _ in range(times):
                    futures.append(self._executor.submit(work))
            except RuntimeError:
                pass
            return futures


_POOL: Final = _Pool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.forget)
