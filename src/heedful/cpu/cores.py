"""Number of threads for this machine: one per physical core that the process may use, within its container's quota."""

import math
import re
from pathlib import Path
from typing import Final

from heedful.cpu.contention import allowed_processors

_CPU_INFO: Final = Path("/proc/cpuinfo")
_GROUPS: Final = Path("/proc/self/cgroup")
_GROUP_ROOT: Final = Path("/sys/fs/cgroup")


def physical_cores() -> int:
    """Count the physical cores that this process may use, within the quota of its control groups.

    Returns:
        At least 1; the number of logical processors if the system does not say which of them share a core.
    """
    allowed = allowed_processors()
    cores = _cores(_read(_CPU_INFO), allowed) or len(allowed)
    granted = quota()
    return max(1, cores if granted is None else min(cores, math.ceil(granted)))


def processors() -> int:
    """Count the logical processors that this process may use, within the quota of its control groups.

    Returns:
        At least 1.
    """
    number, granted = len(allowed_processors()), quota()
    return max(1, number if granted is None else min(number, math.ceil(granted)))


def quota() -> float | None:
    """Return the number of processors that the control groups of this process grant, those of a container among them.

    Both versions of control groups are read, the group of the process and all groups above it.

    Returns:
        The smallest grant, such as 1.5; None if there is no limit.
    """
    grants = [grant for folder in _group_folders(_read(_GROUPS)) if (grant := _grant_of(folder)) is not None]
    return min(grants, default=None)


def _group_folders(groups: str) -> list[Path]:
    """Folders of the groups that /proc/self/cgroup lists, and of all groups above them.

    Within a container the listed path may be that of the host, which is not visible there; the root always is.
    """
    folders: list[Path] = []
    for _, controllers, path in (line.split(":", 2) for line in groups.split("\n") if line.count(":") >= 2):
        if controllers == "":
            root = _GROUP_ROOT
        elif "cpu" in controllers.split(","):
            root = _GROUP_ROOT / controllers
            root = root if root.is_dir() else _GROUP_ROOT / "cpu"
        else:
            continue
        parts = [part for part in path.split("/") if part not in {"", ".."}]
        folders += [root.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]
    return folders or [_GROUP_ROOT, _GROUP_ROOT / "cpu"]


def _grant_of(folder: Path) -> float | None:
    """Number of processors that one group grants; None = no limit."""
    granted, _, period = _read(folder / "cpu.max").strip().partition(" ")
    if not granted:
        granted, period = (_read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
    if not (granted.isdecimal() and period.isdecimal() and int(granted) and int(period)):
        return None
    return int(granted) / int(period)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _cores(cpu_info: str, allowed: set[int]) -> int:
    """Count distinct (socket, core) pairs among the allowed processors; 0 if the system does not list them."""
    cores: set[tuple[str, str]] = set()
    for block in cpu_info.split("\n\n"):
        facts = dict(re.findall(r"^([\w ]+?)\s*: *(.*)$", block, flags=re.MULTILINE))
        if int(facts.get("processor", -1)) in allowed and "core id" in facts:
            cores.add((facts.get("physical id", "0"), facts["core id"]))
    return len(cores)
