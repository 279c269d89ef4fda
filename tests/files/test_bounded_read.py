"""Bounded reads: only regular files, only up to a size, and every damage is one error with one line."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.config.base import read_toml
from heedful.errors import ConfigError, DamagedFile
from heedful.files.bounded_read import (
    open_regular,
    parse_json,
    parse_toml,
    read_bytes,
    read_json,
    read_json_object,
    read_text,
)

posix = pytest.mark.skipif(os.name == "nt", reason="pipes and devices are those of POSIX")
READERS: list[Callable[[Path], Any]] = [open_regular, read_bytes, read_text, read_json, read_json_object]


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@posix
@pytest.mark.parametrize("make", [make_pipe, link_to_endless_device, make_socket, Path.mkdir])
@pytest.mark.parametrize("read", READERS)
def test_what_is_no_regular_file_is_refused_without_reading_it(
    tmp_path: Path, read: Callable[[Path], Any], make: Callable[[Path], None]
):
    path = tmp_path / "x.json"
    make(path)
    with pytest.raises(DamagedFile, match=r"x\.json: a (pipe|device|socket|folder), not a file"):
        read(path)


@posix
def test_a_configuration_that_is_a_pipe_is_refused(tmp_path: Path):
    path = tmp_path / "x.toml"
    make_pipe(path)
    with pytest.raises(ConfigError, match="a pipe, not a file"):
        read_toml(path)


@pytest.mark.parametrize("read", READERS)
def test_a_missing_file_stays_a_missing_file(tmp_path: Path, read: Callable[[Path], Any]):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "x.json")


def test_a_file_above_the_limit_is_refused_by_its_size(tmp_path: Path):
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a terabyte of zeros, which takes no disk
    with pytest.raises(DamagedFile, match="larger than the 64 MiB"):
        read_json(path)
    path.write_bytes(b"123")
    assert read_bytes(path, most_bytes=3) == b"123"
    with pytest.raises(DamagedFile):
        read_bytes(path, most_bytes=2)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"a": "\xff"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 5000,
        b'{"\\ud800": 1}',
        b'["\\udc00"]',
        b"{} {}",
    ],
    ids=repr,
)
def test_damaged_json_is_one_error(tmp_path: Path, content: bytes):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    for read in (read_json, read_json_object):
        with pytest.raises(DamagedFile, match=r"x\.json: damaged"):
            read(path)
    with pytest.raises(ValueError, match=r"."):
        parse_json(content)


def test_json_is_parsed(tmp_path: Path):
    path = tmp_path / "x.json"
    path.write_bytes(b'{"a": ["\\ud83d\\ude00", 1]}')
    assert read_json_object(path) == read_json(path) == {"a": ["\U0001f600", 1]}
    path.write_bytes(b"[1]")
    assert read_json(path) == [1]
    with pytest.raises(DamagedFile, match="not a JSON object"):
        read_json_object(path)


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 5000 + "]" * 5000, "a = " + "9" * 5000, "a =", "a = " + "{a=" * 3000 + "1" + "}" * 3000]
)
def test_damaged_toml_is_one_error(tmp_path: Path, text: str):
    with pytest.raises(ValueError, match=r"."):
        parse_toml(text)
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8", newline="\n")
    with pytest.raises(ConfigError, match=r"x\.toml: not valid TOML"):
        read_toml(path)
