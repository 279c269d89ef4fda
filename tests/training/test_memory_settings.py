"""Memory settings of a training process, each measured in a new process: the C library forgets no setting."""

import gc
import os
import platform
import subprocess
import sys

import pytest

from heedful.training.memory_settings import tuned_process
from tests.thorough import thorough

PAGES = """
import resource, sys
import torch
from ctypes import CDLL
from contextlib import nullcontext
from heedful.training.memory_settings import tuned_process
if sys.argv[1] != "settled":
    CDLL(None).mallopt(-3, 1 << 17)  # each array is taken from the system, and given back
with tuned_process() if sys.argv[1] == "settled" else nullcontext():
    def step():
        held = [torch.ones(1_000_000 + 20_000 * i) for i in range(40)]
        while held:
            held.pop()
    step()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        step()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def new_pages(how: str) -> int:
    command = [sys.executable, "-c", PAGES, how]
    # Pages of 2 MB, which a test of the command may have asked for, would be few in any case.
    environment = {name: value for name, value in os.environ.items() if name != "THP_MEM_ALLOC_ENABLE"}
    return int(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


@thorough
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs GNU's C library")
def test_memory_of_a_step_serves_the_next():
    # Ten steps of 222 MB are 540,000 pages of 4 KB.
    assert new_pages("settled") <= 100_000
    assert new_pages("given back") >= 300_000


@thorough
def test_old_objects_are_left_alone_while_it_lasts():
    gc.unfreeze()  # conftest.py froze them
    try:
        with tuned_process():
            assert gc.get_freeze_count() > 10_000
            with tuned_process():
                pass
            assert gc.get_freeze_count() > 10_000
        assert gc.get_freeze_count() == 0
    finally:
        gc.freeze()
    with tuned_process():
        pass
    assert gc.get_freeze_count() > 10_000  # what others froze stays so
