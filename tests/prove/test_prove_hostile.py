"""A small part of the hostile cases, in every run of the tests, and faults that they must find."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from heedful.cli import main as command_line
from tests.prove import prove_hostile as proofs
from tests.prove.hostile_cases import BY_NAME, Case, all_cases
from tests.prove.hostile_files import make_tiny
from tests.prove.hostile_process import Surroundings
from tests.thorough import sampled, thorough

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="forks, and watches memory in /proc")

FAMILIES = {
    "read/translate/*": 13,
    "read/info/*": 13,
    "read/score/*": 5,
    "read/pack-zip/*": 3,
    "read/translate-corrected/*": 5,
    "read/correct*/*": 10,
    "read/translate-confident/*": 5,
    "value/translate-confident/*": 5,
    "write/calibrate/*": 3,
    "read/translate-terms/*": 5,
    "value/correct/*": 5,
    "write/correct/*": 5,
    "value/info/*": 13,
    "value/translate/*": 5,
    "option/translate/*": 13,
    "option/check/*": 5,
    "option/info/*": 3,
    "stream/info/*": 6,
    "stream/translate/*": 3,
    "write/translate-file/*": 2,
    "usage/data-*/check": 3,
    "usage/set-*": 2,
}
"""Number of cases of each family that are run."""


@pytest.fixture(scope="module")
def server() -> Iterator[proofs.Server]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)  # a forked child has one
    root = Path(tempfile.mkdtemp(prefix="hostile-"))
    made = proofs.Server(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        made.make(make_tiny)
        yield made
    torch.set_num_threads(before)
    shutil.rmtree(root)


@thorough
def test_hostile_cases_end_as_they_should(server: proofs.Server):
    every = all_cases(server.files, server.full, server.null)
    made = {path.name for path in server.files.iterdir()}
    cases = [case for case in every if {*case.command.needs} <= made and not case.is_real]
    tally = proofs.Tally()
    for pattern, number in FAMILIES.items():
        proofs.sweep(server, proofs.chosen(cases, (pattern,), number, "1/1", 1), tally)
    assert tally.cases.total() > 100
    assert [(case.name, fault) for case, fault in tally.failures] == []


def tell(text: str) -> None:
    os.write(2, text.encode())


def divide_by_zero() -> int:
    return 1 // 0


def allocate() -> int:
    return (len(bytearray(os.urandom(1 << 16)) * (1 << 15)) and time.sleep(5)) or 0


FAULTS: dict[str, tuple[Callable[[], int], str]] = {
    "bug": (lambda: 1, "exit 1"),
    "uncaught error": (divide_by_zero, "traceback"),
    "printed traceback": (lambda: tell("Traceback (most recent call last):\n") or 2, "traceback"),
    "crash": (lambda: os.kill(os.getpid(), signal.SIGUSR1) or 0, "exit -10"),
    "no reason": (lambda: 3, "exit 3 without a line that says why"),
    "hang": (lambda: time.sleep(20) or 0, "more than 30 s"),
    "memory": (allocate, "more than 1024 MiB"),
    "another result": (lambda: os.write(1, b"other\n") and 0, "silent difference of standard output"),
}
"""Commands that go wrong, and what is said of each."""


@sampled(2)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, server: proofs.Server, monkeypatch: pytest.MonkeyPatch):
    command = BY_NAME["translate"]
    server.usual(command)
    fault, words = FAULTS[name]

    def main(arguments: Sequence[str]) -> int:
        return fault()

    monkeypatch.setattr(command_line, "main", main)
    about = Surroundings(most_seconds=0.5 if name == "hang" else 30.0)
    found, _ = server.judge(Case(f"planted/{name}", command, about=about, is_compared=True))
    assert found.startswith(words)


def test_a_told_difference_is_no_silent_one(server: proofs.Server, monkeypatch: pytest.MonkeyPatch):
    command = BY_NAME["translate"]
    server.usual(command)
    monkeypatch.setattr(command_line, "main", lambda arguments: tell("heedful: warning: damaged\n") or 0)
    assert server.judge(Case("planted/told", command, is_compared=True))[0] == ""


@thorough
def test_memory_of_the_server_is_not_the_commands(server: proofs.Server, monkeypatch: pytest.MonkeyPatch):
    held = np.ones(1 << 27)  # 1 GiB, as after a thousand tests
    monkeypatch.setattr(command_line, "main", lambda arguments: 0)
    found, outcome = server.judge(Case("planted/server", BY_NAME["info"]))
    assert held[0] == 1
    assert not found
    assert outcome is not None
    assert outcome.most_bytes < 1 << 29
