"""CPU contention: other programs that keep processors busy, and how the threads of this process work beside them.

After each operation, threads of GNU OpenMP spin for milliseconds and wait for the next one. Alone on a machine that is
the fastest way to wait. Beside a busy program it is the slowest: a thread that spins holds the processor that another
thread of the same operation needs. So while there is company, OpenMP's threads sleep as they wait, which changes no
result. Where operations are so short that waking a thread takes longer than the operation, fewer threads do more.
"""

import os
import re
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Final, final

try:
    import resource
except ImportError:  # not on Windows
    resource = None

INTERVAL: Final = 0.5
"""Seconds between two looks at the processors."""
BUSY: Final = 0.25
"""Processors that are missing for our threads from which on there may be company."""
DELAYED: Final = 0.1
"""Seconds per second that our threads together wait for a processor, from which on others are in the way; programs of
low priority keep processors busy too, but give way."""
FREE: Final = 0.1
"""Missing processors up to which there is none."""
MANY_WAITS: Final = 3000
"""Waits per second and thread from which on fewer threads do more work."""
QUIET: Final = 3
"""Looks in a row without company after which it is gone."""

_STAT: Final = Path("/proc/stat")
_MAPS: Final = Path("/proc/self/maps")
_TASKS: Final = Path("/proc/self/task")


@final
class CpuContention:
    """Watch over the processors, in a thread of its own."""

    def __init__(self, num_threads: int, may_use_fewer: bool) -> None:
        """Set up the watch; `start` begins it.

        Args:
            num_threads: number of threads that work at once when there is no company.
            may_use_fewer: whether `num_threads` may fall in company; False where the user has set it, because the last
                bits of results depend on it.
        """
        self.num_threads = num_threads
        """Number of threads to use now."""
        self.others = 0.0
        """Number of processors that other programs used when the number of threads last fell."""
        self.is_met = False
        """Whether other programs are in the way of our threads now."""
        self._most = num_threads
        self._may_use_fewer = may_use_fewer
        self._openmp: dict[str, _IdleTeam] = {}
        self._is_over = threading.Event()

    def start(self) -> None:
        """Watch until `stop`; does nothing where the system does not say how busy its processors are."""
        if _busy_seconds() is not None:
            threading.Thread(target=self._watch, name="heedful-contention", daemon=True).start()

    @property
    def asks_for_one(self) -> bool:
        """Whether threads that cannot be made to sleep, as those of CTranslate2, should be one now."""
        return self.is_met and self._may_use_fewer

    def stop(self) -> None:
        """End the watch; OpenMP spins again."""
        self._is_over.set()

    def _watch(self) -> None:
        before, is_company, num_quiet = _Reading(), False, 0
        while not self._is_over.wait(INTERVAL):
            now = _Reading()
            others, waits = now.others_since(before), now.waits_since(before)
            missing = self._most - (len(allowed_processors()) - others)
            num_quiet = num_quiet + 1 if missing <= FREE else 0
            is_met = missing >= BUSY and now.delay_since(before) >= DELAYED
            is_company = is_met or (is_company and num_quiet < QUIET)
            before, self.is_met = now, is_company
            self._let_sleep(is_company)
            if not is_company:
                self.num_threads = self._most
            elif self._may_use_fewer and missing >= BUSY and waits > MANY_WAITS * self.num_threads:
                self.others = others
                self.num_threads = max(1, min(self.num_threads - 1, round(len(allowed_processors()) - others)))
        self._let_sleep(False)
        self.num_threads, self.is_met = self._most, False

    def _let_sleep(self, is_asleep: bool) -> None:
        """Let threads of OpenMP sleep or spin while they wait."""
        if is_asleep:
            for path in _loaded_openmp() - self._openmp.keys():
                self._openmp[path] = _IdleTeam(path, len(allowed_processors()) + 1)
        else:
            for team in self._openmp.values():
                team.end()
            self._openmp.clear()


_current: CpuContention | None = None


def watch_contention(num_threads: int, may_use_fewer: bool) -> None:
    """Watch for company until `stop_watching`, instead of any earlier watch.

    Args:
        num_threads: as for `CpuContention`.
        may_use_fewer: as for `CpuContention`.
    """
    global _current
    stop_watching()
    _current = CpuContention(num_threads, may_use_fewer)
    _current.start()


def stop_watching() -> None:
    """End the watch that `watch_contention` began, if any."""
    global _current
    if _current is not None:
        _current.stop()
        _current = None


@contextmanager
def watching_contention(num_threads: int) -> Generator[None]:
    """Watch for company within a context, unless a watch has begun already; the number of threads stays.

    Args:
        num_threads: as for `CpuContention`.

    Yields:
        Nothing.
    """
    if _current is not None:
        yield
        return
    watch_contention(num_threads, may_use_fewer=False)
    try:
        yield
    finally:
        stop_watching()


def contention_watch() -> CpuContention | None:
    """Return the watch that `watch_contention` began.

    Returns:
        The watch; None if there is none.
    """
    return _current


@final
class _IdleTeam:
    """Idle threads of an OpenMP library, which lets threads wait asleep once it has more of them than processors."""

    def __init__(self, path: str, count: int) -> None:
        self._is_over = threading.Event()
        threading.Thread(target=self._run, args=(path, count), name="heedful-idle", daemon=True).start()

    def end(self) -> None:
        """End the threads: OpenMP ends the team of a thread that ends."""
        self._is_over.set()

    def _run(self, path: str, count: int) -> None:
        import ctypes

        work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        nothing = work(lambda _: None)
        with suppress(OSError, AttributeError):
            parallel = ctypes.CDLL(path, mode=getattr(os, "RTLD_NOLOAD", 0) | os.RTLD_NOW).GOMP_parallel
            parallel.argtypes = [work, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
            parallel.restype = None
            parallel(nothing, None, count, 0)
            self._is_over.wait()


@final
class _Reading:
    """Counters of the system and of this process at a moment."""

    def __init__(self) -> None:
        self._time = time.monotonic()
        self._busy = _busy_seconds() or 0.0
        self._ours = time.process_time()
        self._waits = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw if resource else 0
        self._delay = _delay_seconds()

    def others_since(self, before: "_Reading") -> float:
        """Processors in use by other programs since an earlier moment."""
        passed = max(1e-3, self._time - before._time)
        return max(0.0, (self._busy - before._busy - (self._ours - before._ours)) / passed)

    def waits_since(self, before: "_Reading") -> float:
        """Times per second that threads of ours slept."""
        return (self._waits - before._waits) / max(1e-3, self._time - before._time)

    def delay_since(self, before: "_Reading") -> float:
        """Seconds per second that our threads waited for a processor, added up; infinite if not known."""
        if self._delay is None or before._delay is None:
            return inf
        return max(0.0, self._delay - before._delay) / max(1e-3, self._time - before._time)


def processors_of_others(seconds: float) -> float | None:
    """Measure how many processors other programs use.

    Returns:
        Number of processors that this process may use and others do use; None if the system does not say.
    """
    if _busy_seconds() is None:
        return None
    before = _Reading()
    time.sleep(seconds)
    return _Reading().others_since(before)


def has_steered_waiting() -> bool:
    """Tell whether threads of this process can sleep beside busy programs; PyTorch or an engine must be loaded.

    Returns:
        Whether there is a GNU OpenMP library, and the system says how busy its processors are.
    """
    return _busy_seconds() is not None and bool(_loaded_openmp())


def allowed_processors() -> set[int]:
    """List the logical processors that this process may use.

    Returns:
        Their numbers.
    """
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def _busy_seconds() -> float | None:
    """Seconds that the processors of this process have been busy since the system started; None if not known."""
    try:
        lines = _STAT.read_text(encoding="ascii").split("\n")
    except (OSError, UnicodeDecodeError):
        return None
    allowed, ticks = allowed_processors(), 0
    for line in lines:
        if match := re.match(r"cpu(\d+) (.*)", line):
            user, nice, system, _, _, irq, softirq, steal = map(int, match[2].split()[:8])
            if int(match[1]) in allowed:
                ticks += user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def _delay_seconds() -> float | None:
    """Seconds that the threads of this process have been ready to run without a processor; None if not known."""
    total = 0
    try:
        for path in _TASKS.iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # the thread has just ended
                total += int((path / "schedstat").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return total / 1e9 if total else None


def _loaded_openmp() -> set[str]:
    """Files of GNU's OpenMP libraries that this process has loaded."""
    try:
        text = _MAPS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return set(re.findall(r" (/\S*libgomp\S*)$", text, flags=re.MULTILINE))
