from pathlib import Path

import pytest

from heedful.cpu import cores

TWO_CORES_FOUR_THREADS = "".join(
    f"processor\t: {number}\nmodel name\t: Some CPU @ 2:1\nphysical id\t: 0\ncore id\t\t: {number % 2}\n\n"
    for number in range(4)
)
NO_TOPOLOGY = "processor\t: 0\nBogoMIPS\t: 50.00\n\nprocessor\t: 1\nBogoMIPS\t: 50.00\n"
V2 = "0::/user.slice/job\n"
V1 = "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/\n"


@pytest.mark.parametrize(
    ("cpu_info", "groups", "files", "allowed", "expected"),
    [
        (TWO_CORES_FOUR_THREADS, "", {}, {0, 1, 2, 3}, 2),
        (TWO_CORES_FOUR_THREADS, "", {}, {0, 2}, 1),
        (TWO_CORES_FOUR_THREADS, V2, {"cpu.max": "max 100000\n"}, {0, 1, 2, 3}, 2),
        (TWO_CORES_FOUR_THREADS, V2, {"cpu.max": "50000 100000\n"}, {0, 1, 2, 3}, 1),
        (TWO_CORES_FOUR_THREADS, V2, {"user.slice/cpu.max": "50000 100000\n"}, {0, 1, 2, 3}, 1),
        (TWO_CORES_FOUR_THREADS, V2, {"user.slice/job/cpu.max": "150000 100000\n"}, {0, 1, 2, 3}, 2),
        (TWO_CORES_FOUR_THREADS, V2, {"other/cpu.max": "50000 100000\n"}, {0, 1, 2, 3}, 2),
        (NO_TOPOLOGY, "", {}, {0, 1}, 2),
        (NO_TOPOLOGY, "", {"cpu.max": "100000 100000\n"}, {0, 1}, 1),
        ("", "", {}, {0, 1, 2}, 3),
        ("", "", {"cpu.max": "1000 0"}, {0}, 1),
        (NO_TOPOLOGY, V1, {"cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "-1\n"}, {0, 1}, 2),
        (NO_TOPOLOGY, V1, {"cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "100000\n"}, {0, 1}, 1),
        (NO_TOPOLOGY, V1, {"cpu,cpuacct/cpu.cfs_quota_us": "100000\n"}, {0, 1}, 1),
        (NO_TOPOLOGY, V1, {"cpu/docker/abc/cpu.cfs_quota_us": "100000\n"}, {0, 1}, 1),
    ],
)
def test_cores(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    cpu_info: str,
    groups: str,
    files: dict[str, str],
    allowed: set[int],
    expected: int,
):
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
        if name.endswith("quota_us"):
            (path.parent / "cpu.cfs_period_us").write_text("100000\n", encoding="ascii")
    (tmp_path / "cpuinfo").write_text(cpu_info, encoding="ascii")
    (tmp_path / "groups").write_text(groups, encoding="ascii")
    monkeypatch.setattr(cores, "_CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(cores, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(cores, "_GROUP_ROOT", tmp_path / "cgroup")
    monkeypatch.setattr("os.sched_getaffinity", lambda process: allowed, raising=False)
    assert cores.physical_cores() == expected


def test_this_machine_has_one():
    assert cores.physical_cores() >= 1
