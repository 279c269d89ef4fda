import ctypes.util
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heedful.cpu import contention as module
from heedful.cpu.contention import CpuContention, contention_watch, stop_watching, watch_contention


class _Reading:
    """Readings of a script: processors that others use, waits per second, and the delay if others give way."""

    def __init__(self, script: Iterator[tuple[float, ...]]) -> None:
        self._others, self._waits, *delay = next(script)
        self._delay = delay[0] if delay else self._others

    def others_since(self, before: "_Reading") -> float:
        return self._others

    def waits_since(self, before: "_Reading") -> float:
        return self._waits

    def delay_since(self, before: "_Reading") -> float:
        return self._delay


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[bool, int]]]:
    """Function that gives, for each look, whether OpenMP sleeps and the number of threads."""

    def watch(
        looks: list[tuple[float, ...]], processors: int = 2, threads: int = 2, may_use_fewer: bool = True
    ) -> list[tuple[bool, int]]:
        states: list[tuple[bool, int]] = []
        asleep: list[bool] = []
        watcher = CpuContention(threads, may_use_fewer)
        script = iter([(0.0, 0.0), *looks])
        monkeypatch.setattr(module, "_Reading", lambda: _Reading(script))
        monkeypatch.setattr(module, "allowed_processors", lambda: set(range(processors)))
        monkeypatch.setattr(watcher, "_let_sleep", asleep.append)
        rounds = itertools.count()

        class Clock:
            def wait(self, seconds: float) -> bool:
                if asleep:
                    states.append((asleep[-1], watcher.num_threads))
                return next(rounds) == len(looks)

        monkeypatch.setattr(watcher, "_is_over", Clock())
        watcher._watch()
        assert not asleep[-1], "OpenMP spins again after the end"
        assert watcher.num_threads == threads
        return states

    return watch


def becomes(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Whether a condition comes true, however busy the machine is."""
    stop = time.monotonic() + seconds
    return any(condition() or time.sleep(0.01) for _ in iter(lambda: time.monotonic() < stop, False))


def threads_of(name: str) -> set[int | None]:
    """Identifiers of the running threads of a name."""
    return {thread.ident for thread in threading.enumerate() if thread.name == name}


def test_alone_nothing_changes(watched: Callable[..., list[tuple[bool, int]]]):
    assert watched([(0.05, 90_000.0)] * 3) == [(False, 2)] * 3


def test_long_operations_keep_their_threads(watched: Callable[..., list[tuple[bool, int]]]):
    assert watched([(1.3, 900.0)] * 3) == [(True, 2)] * 3


def test_short_operations_get_fewer_threads_until_the_others_are_gone(
    watched: Callable[..., list[tuple[bool, int]]],
):
    looks = [(1.3, 90_000.0), (1.4, 5.0), (0.2, 5.0), (0.0, 5.0), (0.0, 5.0), (1.0, 5.0), *[(0.0, 5.0)] * 3]
    assert watched(looks) == [(True, 1)] * 8 + [(False, 2)]


def test_programs_that_give_way_are_no_company(watched: Callable[..., list[tuple[bool, int]]]):
    assert watched([(1.9, 90_000.0, 0.03)] * 3) == [(False, 2)] * 3
    assert watched([(1.9, 90_000.0, 0.9), (1.9, 90_000.0, 0.03)]) == [(True, 1)] * 2, "threads that sleep wait less"


def test_the_number_does_not_fall_when_the_others_are_gone(watched: Callable[..., list[tuple[bool, int]]]):
    assert watched([(1.3, 5.0), (0.0, 90_000.0), (0.2, 90_000.0)]) == [(True, 2)] * 3


def test_a_number_that_the_user_has_set_is_kept(watched: Callable[..., list[tuple[bool, int]]]):
    assert watched([(1.3, 90_000.0)], may_use_fewer=False) == [(True, 2)]


def test_processors_that_nobody_needs_are_no_loss(watched: Callable[..., list[tuple[bool, int]]]):
    assert watched([(4.0, 90_000.0)], processors=8, threads=4) == [(False, 4)]
    assert watched([(5.0, 90_000.0)], processors=8, threads=4) == [(True, 3)]
    assert watched([(7.9, 90_000.0)], processors=8, threads=4) == [(True, 1)]


@pytest.mark.parametrize(("ours", "expected"), [(0.0, 1.5), (1.0, 0.5), (1.5, 0.0), (3.0, 0.0)])
def test_our_own_work_is_not_that_of_others(monkeypatch: pytest.MonkeyPatch, ours: float, expected: float):
    times, busy, own = iter([10.0, 12.0]), iter([100.0, 103.0]), iter([5.0, 5.0 + 2 * ours])
    ours_thread = threading.current_thread()

    def here(values: Iterator[float], usual: Callable[[], float | None]) -> Callable[[], float | None]:
        """The next value in this thread; a thread that watches since an earlier test gets the usual one."""
        return lambda: next(values) if threading.current_thread() is ours_thread else usual()

    monkeypatch.setattr(time, "monotonic", here(times, time.monotonic))
    monkeypatch.setattr(time, "process_time", here(own, time.process_time))
    monkeypatch.setattr(module, "_busy_seconds", here(busy, module._busy_seconds))
    before, now = module._Reading(), module._Reading()
    assert now.others_since(before) == expected


def test_busy_processors_are_those_that_may_be_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    lines = [
        "cpu 9 9 9 9 9 9 9 9 9 9",
        "cpu0 100 20 30 5000 400 5 6 7 50 60",
        "cpu1 1 1 1 1 1 1 1 1 0 0",
        "intr 5",
    ]
    (tmp_path / "stat").write_text("\n".join(lines) + "\n", encoding="ascii")
    monkeypatch.setattr(module, "_STAT", tmp_path / "stat")
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    monkeypatch.setattr(module, "allowed_processors", lambda: {0})
    assert module._busy_seconds() == 1.68
    monkeypatch.setattr(module, "_STAT", tmp_path / "none")
    assert module._busy_seconds() is None


def test_the_delay_is_that_of_all_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name, text in (("7", "5000000000 250000000 9\n"), ("8", "1 1250000000 3\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "schedstat").write_text(text, encoding="ascii")
    (tmp_path / "9").mkdir()  # a thread that has just ended
    monkeypatch.setattr(module, "_TASKS", tmp_path)
    assert module._delay_seconds() == 1.5
    before = module._Reading()
    (tmp_path / "8" / "schedstat").write_text("1 3250000000 3\n", encoding="ascii")
    now = module._Reading()
    assert now.delay_since(before) == pytest.approx(2.0 / max(1e-3, now._time - before._time))


@pytest.mark.parametrize("content", [None, "", "0 0 0\n", "no numbers here\n"])
def test_an_unknown_delay_counts_as_one(content: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    if content is not None:
        (tmp_path / "tasks" / "7").mkdir(parents=True)
        (tmp_path / "tasks" / "7" / "schedstat").write_text(content, encoding="ascii")
    monkeypatch.setattr(module, "_TASKS", tmp_path / "tasks")
    assert module._delay_seconds() is None
    assert module._Reading().delay_since(module._Reading()) == float("inf")


def test_without_figures_of_the_system_there_is_no_watch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_busy_seconds", lambda: None)
    before = threads_of("heedful-contention")
    CpuContention(2, may_use_fewer=True).start()
    assert threads_of("heedful-contention") <= before


def test_one_watch_at_a_time():
    stop_watching()
    assert contention_watch() is None
    watch_contention(2, may_use_fewer=True)
    first = contention_watch()
    watch_contention(3, may_use_fewer=False)
    second = contention_watch()
    assert first is not None
    assert second is not None
    assert first._is_over.is_set()
    assert not second._is_over.is_set()
    stop_watching()
    assert second._is_over.is_set()
    assert contention_watch() is None


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted by files of Linux")
def test_idle_threads_come_and_go():
    pytest.importorskip("torch")
    libraries = module._loaded_openmp()
    if not libraries:
        pytest.skip("PyTorch has no GNU OpenMP here")

    def threads() -> set[str]:
        return {path.name for path in Path("/proc/self/task").iterdir()}

    before = threads()  # some of them may end meanwhile, as those of earlier tests
    team = module._IdleTeam(libraries.pop(), 4)
    assert becomes(lambda: len(threads() - before) >= 4)
    idle = threads() - before
    team.end()
    assert becomes(lambda: not idle & threads())


def test_a_library_without_openmp_is_left_alone():
    path = ctypes.util.find_library("c") or "libc.so.6"
    before = threads_of("heedful-idle")
    module._IdleTeam(path, 4)
    assert becomes(lambda: not threads_of("heedful-idle") - before)


def test_a_watch_of_its_own_only_where_there_is_none():
    stop_watching()
    with module.watching_contention(2):
        inner = contention_watch()
        assert inner is not None
    assert contention_watch() is None
    watch_contention(3, may_use_fewer=True)
    outer = contention_watch()
    with module.watching_contention(2):
        assert contention_watch() is outer
    assert contention_watch() is outer
    stop_watching()


def test_others_are_measured(monkeypatch: pytest.MonkeyPatch):
    busy = iter([0.0, 0.0, 1000.0])
    monkeypatch.setattr(module, "_busy_seconds", lambda: next(busy))
    others = module.processors_of_others(0.001)
    assert others is not None
    assert others > 1.0
    monkeypatch.setattr(module, "_busy_seconds", lambda: None)
    assert module.processors_of_others(0.001) is None
