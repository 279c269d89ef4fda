import errno
import os

import pytest
import typer

from heedful.cli.failures import Failure, explain
from heedful.errors import (
    DataError,
    EndedElsewhere,
    LostProcess,
    MissingExtra,
    NonFiniteError,
    ResourceError,
    Stopped,
    install_command,
)
from tests.cli.command import heedful


class OutOfMemoryError(RuntimeError):
    """As PyTorch names its own."""


def system_error(number: int, name: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), name) if name else OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (DataError("a.tsv:3: one column"), 2, "error: a.tsv:3: one column"),
        (NonFiniteError("step 7"), 4, "error: step 7"),
        (ResourceError("disk"), 5, "error: disk"),
        (LostProcess("another process ended"), 5, "error: another process ended"),
        (MissingExtra("PyTorch", "train", "training"), 6, install_command("train")),
        (ModuleNotFoundError("No module named 'torch._C'", name="torch._C"), 6, "needs PyTorch: pip install"),
        (MemoryError(), 5, "out of memory"),
        (OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), 5, "smaller batches"),
        (RuntimeError("CUDA error: unspecified launch failure\nCompile with"), 5, "the GPU failed: CUDA error: unspec"),
        (RuntimeError("Triton Error [CUDA]: an illegal memory access"), 5, "or with --device cpu"),
        (RuntimeError("CUDA error: out of memory"), 5, "smaller batches"),
        (RuntimeError("mat1 and mat2: CUDA error"), 1, "this is a bug"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), 5, "out of memory"),
        (system_error(errno.ENOSPC, "a/b"), 5, "error: a/b: no space left on device; free some space"),
        (system_error(errno.EROFS, "a/b"), 5, "error: a/b: read-only file system; write to another disk"),
        (system_error(errno.EDQUOT), 5, "quota"),
        (system_error(errno.EFBIG, "a"), 5, "a: file too large"),
        (system_error(errno.EACCES, "a/b"), 2, "error: a/b: permission denied"),
        (system_error(errno.EISDIR, "a"), 2, "a: is a directory"),
        (typer.BadParameter("is not a number."), 2, "see: heedful --help"),
        (ZeroDivisionError("division by zero"), 1, "ZeroDivisionError: division by zero: this is a bug"),
        (ModuleNotFoundError("No module named 'heedful.nowhere'", name="heedful.nowhere"), 1, "this is a bug"),
    ],
)
def test_code_and_message(error: BaseException, code: int, said: str):
    message, found, _ = explain(error)
    assert found == code
    assert said in message
    assert message.startswith("error: ")


def test_a_stop_is_no_error():
    assert explain(Stopped("stopped at step 4; the same command goes on", 15)) == Failure(
        "stopped at step 4; the same command goes on", 143
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\u2028", "\x85", "\n  \n"])
def test_a_message_is_one_line_whatever_is_in_it(end: str):
    assert explain(DataError(f"a{end}b  c")).message == "error: a b  c"


def test_names_of_files_keep_their_characters():
    hidden = "zä.tsv".encode().decode("ascii", "surrogateescape")
    assert explain(DataError(f"{hidden}: empty")).message == "error: zä.tsv: empty"
    assert explain(DataError("a\udcff.tsv: empty")).message == "error: a\ufffd.tsv: empty"


@pytest.mark.parametrize("code", [0, 4, 143])
def test_one_process_of_several_says_nothing_of_what_another_says(code: int):
    assert explain(EndedElsewhere(code)) == Failure("", code)


def test_half_of_a_surrogate_pair_is_replaced():
    assert explain(DataError("key '\ud800' and '\udfff'")).message == "error: key '\ufffd' and '\ufffd'"


@pytest.mark.parametrize(
    ("value", "words"),
    [("1e30", "expected an integer"), ("1000000", "expected 1024 or less"), ("-1", "expected 0 or more")],
)
def test_a_number_out_of_range_is_refused_in_plain_words(value: str, words: str):
    done = heedful("list", "presets", "--threads", value)
    assert done.code == 2
    assert f"invalid value for '--threads': {words}; see: " in done.err


def test_a_choice_that_there_is_not_is_refused_with_those_that_there_are():
    done = heedful("translate", "m", "text", "--segments", "paragraph")
    assert (done.code, len(done.errors)) == (2, 1)
    assert "'--segments': 'paragraph' is not one of 'auto', 'sentence', 'line'; see" in done.err
