"""Number of threads for this machine: one per physical core that the process may use."""

import os
import re
from pathlib import Path
from typing import Final

_CPU_INFO: Final = Path("/proc/cpuinfo")
_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")


def physical_cores() -> int:
    """Count the physical cores that this process may use, within its container's quota.

    Returns:
        At least 1; the number of logical processors if the system does not say which of them share a core.
    """
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores = _cores(_read(_CPU_INFO), allowed) or len(allowed)
    return max(1, min(cores, _quota(_read(_QUOTA)) or cores))


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


def _quota(cpu_max: str) -> int:
    """Number of processors that the control group grants, rounded up; 0 = no limit."""
    quota, _, period = cpu_max.strip().partition(" ")
    return -(-int(quota) // int(period)) if quota.isdecimal() and period.isdecimal() and int(period) else 0
