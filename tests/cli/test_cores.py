import pytest

from heedful.cli import cores

TWO_CORES_FOUR_THREADS = "".join(
    f"processor\t: {number}\nmodel name\t: Some CPU @ 2:1\nphysical id\t: 0\ncore id\t\t: {number % 2}\n\n"
    for number in range(4)
)
NO_TOPOLOGY = "processor\t: 0\nBogoMIPS\t: 50.00\n\nprocessor\t: 1\nBogoMIPS\t: 50.00\n"


@pytest.mark.parametrize(
    ("cpu_info", "quota", "allowed", "expected"),
    [
        (TWO_CORES_FOUR_THREADS, "", {0, 1, 2, 3}, 2),
        (TWO_CORES_FOUR_THREADS, "", {0, 2}, 1),
        (TWO_CORES_FOUR_THREADS, "max 100000\n", {0, 1, 2, 3}, 2),
        (TWO_CORES_FOUR_THREADS, "50000 100000\n", {0, 1, 2, 3}, 1),
        (TWO_CORES_FOUR_THREADS, "150000 100000\n", {0, 1, 2, 3}, 2),
        (NO_TOPOLOGY, "", {0, 1}, 2),
        ("", "", {0, 1, 2}, 3),
        ("", "1000 0", {0}, 1),
    ],
)
def test_cores(monkeypatch: pytest.MonkeyPatch, cpu_info: str, quota: str, allowed: set[int], expected: int):
    texts = {"/proc/cpuinfo": cpu_info, "/sys/fs/cgroup/cpu.max": quota}
    monkeypatch.setattr(cores, "_read", lambda path: texts[str(path)])  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr("os.sched_getaffinity", lambda process: allowed, raising=False)
    assert cores.physical_cores() == expected


def test_this_machine_has_one():
    assert cores.physical_cores() >= 1
