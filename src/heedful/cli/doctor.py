"""Report on this installation and this machine.

Lists package versions and missing packages, PyTorch's devices and number formats, processor, memory and disk.

Examples:
  heedful doctor
"""

import os
import platform
import re
import shutil
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from heedful.cli.messages import aligned
from heedful.cli.options import Debug, IdleDevice, IdleThreads, Quiet
from heedful.cpu.contention import has_steered_waiting, processors_of_others
from heedful.cpu.cores import physical_cores, quota
from heedful.cpu.numba_cache import examine
from heedful.errors import install_command
from heedful.version import __version__

Row = tuple[str, str]
_SLEEPS: Final = "threads spin while they wait, but sleep beside busy programs"
_SPINS: Final = "as the libraries decide; beside busy programs --threads 1 may be faster"

_REQUIREMENT: Final = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[^]]*\])?(?P<floor>>=[\d.]+)?.*?(?:extra == '?\"?(?P<extra>\w+))?['\"]?$"
)
_DEVELOPERS: Final = "dev"


def run(
    device: IdleDevice = "auto",
    threads: IdleThreads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Examine the installation."""
    print(aligned([*_basics(), *_packages(), *_pytorch(), *_machine()]))


def _basics() -> list[Row]:
    return [
        ("heedful", f"{__version__}, {Path(__file__).parents[1]}"),
        ("Python", f"{platform.python_version()}, {sys.executable}"),
        ("system", f"{platform.system()} {platform.release()}, {platform.machine()}"),
    ]


def _packages() -> list[Row]:
    return [row for text in _requirements() if (row := _package(text))]


def _requirements() -> list[str]:
    try:
        return metadata.requires("heedful") or []
    except metadata.PackageNotFoundError:
        pass  # heedful runs from its sources, where pyproject.toml states the same requirements
    project = Path(__file__).parents[3] / "pyproject.toml"
    if not project.is_file():
        return []
    facts = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    extras = facts["optional-dependencies"].items()
    return [*facts["dependencies"], *(f"{text}; extra == '{extra}'" for extra, texts in extras for text in texts)]


def _package(requirement: str) -> Row | None:
    """Version of a required package.

    A requirement reads ``torch>=2.11; extra == 'train'``.
    """
    match = _REQUIREMENT.match(requirement)
    if match is None or match["extra"] == _DEVELOPERS:
        return None
    name, extra, floor = match["name"], match["extra"], (match["floor"] or "").removeprefix(">=")
    install = install_command(extra or "")
    label = f"{name} ({extra})" if extra else name
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return label, f"missing: {install}"
    return label, f"{version}, older than {floor}: {install}" if _is_older(version, floor) else version


def _is_older(version: str, floor: str) -> bool:
    numbers = [[int(part) for part in re.findall(r"\d+", text.partition("+")[0])] for text in (version, floor)]
    return numbers[0][: len(numbers[1])] < numbers[1]


def _pytorch() -> list[Row]:
    try:
        import torch
    except ModuleNotFoundError:
        return [("PyTorch", f"missing: {install_command('train')}; models cannot be trained")]
    from heedful.attention.kernels.devices import UNTIMED, has_triton
    from heedful.training.precision import resolve_precision

    names, problem = _cuda_devices()
    has_mps = torch.backends.mps.is_available()
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "processor only"
    precision = resolve_precision("auto", torch.device("cuda" if names else "cpu"))
    return [
        ("PyTorch", f"{torch.__version__}, built for {build}"),
        ("CUDA devices", "; ".join(names) or f"none{problem}"),
        ("GPU kernels", f"{'installed' if has_triton() else 'not installed'}; {UNTIMED}"),
        ("MPS device", "yes" if has_mps else "no"),
        ("compiled kernels", _kernels()),
        ("trains in", f"{precision}{'' if precision == 'bfloat16' else ': no bfloat16 products here'}"),
        ("trains on", "the faster device for the corpus: --device auto" if names else "the CPU"),
    ]


def _cuda_devices() -> tuple[list[str], str]:
    """Names of the CUDA devices that PyTorch can use, and if there are none, the reason as far as it is known."""
    import torch

    from heedful.models.devices import cuda_problem, has_cuda

    number = torch.cuda.device_count() if has_cuda() else 0
    problem = cuda_problem()
    return [_cuda_device(index) for index in range(number)], f": {problem}" if problem else ""


def _cuda_device(index: int) -> str:
    """Name, compute capability, memory and number format of a CUDA device."""
    import torch

    facts: Any = torch.cuda.get_device_properties(index)
    with torch.cuda.device(index):
        narrow = "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "no bfloat16"
    return f"{facts.name}, {facts.major}.{facts.minor}, {facts.total_memory / 1e9:.0f} GB, {narrow}"


def _kernels() -> str:
    """State of the disk cache of compiled kernels."""
    rows = [
        f"{each.folder} is not used: {each.refusal}"
        if each.refusal
        else f"{each.num_files} in {each.folder}, {each.num_bytes / 1e6:.1f} MB"
        + f"; {each.num_damaged} damaged, compiled again when needed" * bool(each.num_damaged)
        for each in examine()
    ]
    return "; ".join(rows) or "none yet"


def _machine() -> list[Row]:
    chosen, granted = os.environ.get("OMP_NUM_THREADS"), quota()
    threads = f"{chosen} by OMP_NUM_THREADS" if chosen else str(physical_cores())
    others = processors_of_others(0.2)
    disk = shutil.disk_usage(Path.cwd())
    return [
        ("processor", f"{physical_cores()} physical cores, {os.cpu_count()} logical"),
        ("quota", "none" if granted is None else f"{granted:g} processors, of a control group"),
        ("threads", threads),
        ("other programs", "not known" if others is None else f"use {others:.1f} processors now"),
        ("waiting", _SLEEPS if has_steered_waiting() else _SPINS),
        ("memory", _memory()),
        ("disk", f"{disk.free / 1e9:.1f} GB free of {disk.total / 1e9:.1f} GB in {Path.cwd()}"),
    ]


def _memory() -> str:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return "not known"
    facts = {name: 1024 * int(size) for name, size in re.findall(r"^(\w+): +(\d+) kB$", text, flags=re.MULTILINE)}
    return f"{facts['MemAvailable'] / 1e9:.1f} GB available of {facts['MemTotal'] / 1e9:.1f} GB"
