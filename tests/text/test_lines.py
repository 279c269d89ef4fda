"""Lines are cut at 0x0A only, and what is not UTF-8 is located."""

import gzip
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heedful.errors import DataError
from heedful.text import lines as lines_module
from heedful.text.lines import read_chunks, read_lines
from heedful.text.text_files import count_lines
from tests.thorough import thinned, thorough

SEPARATORS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\ufeff\t "
TEXTS = st.text(
    st.one_of(st.sampled_from(SEPARATORS), st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
)


def expected_lines(data: bytes) -> list[str]:
    """The definition, in terms of bytes."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    parts = data.split(b"\n")
    if parts[-1] == b"":
        parts.pop()
    return [part.removesuffix(b"\r").decode() for part in parts]


@given(TEXTS)
def test_a_stream_is_cut_at_line_feeds_only(text: str):
    data = text.encode()
    # A file of nothing but a byte order mark is one empty line, which the definition above cannot tell from no line.
    if data != b"\xef\xbb\xbf":
        assert list(read_lines(io.BytesIO(data))) == expected_lines(data)


def test_the_reference_case_has_nine_lines():
    line = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh"
    assert list(read_lines(io.BytesIO((line + "\n").encode() * 9))) == [line] * 9


@pytest.mark.parametrize("data", [b"a\nb\n", b"a\nb", b"\xef\xbb\xbfa\r\nb\r\n", b"a\r\nb\r"])
def test_equivalent_files_read_alike(tmp_path: Path, data: bytes):
    plain, packed = tmp_path / "plain", tmp_path / "named.txt"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data[:2], mtime=0) + gzip.compress(data[2:], mtime=0))
    for source in (plain, packed, io.BytesIO(data), io.BytesIO(packed.read_bytes())):
        assert list(read_lines(source)) == ["a", "b"]
    with packed.open("rb") as stream:
        assert list(read_lines(stream)) == ["a", "b"]


def test_what_is_put_right_is_counted():
    lines = read_lines(io.BytesIO(b"\xef\xbb\xbfa\r\n\r\r\nb\n\xef\xbb\xbfc"))
    assert list(lines) == ["a", "\r", "b", "\ufeffc"]
    assert (lines.num_lines, lines.num_carriage_returns, lines.had_byte_order_mark) == (4, 2, True)
    plain = read_lines(io.BytesIO(b"a\n"))
    assert list(plain) == ["a"]
    assert (plain.num_carriage_returns, plain.had_byte_order_mark) == (0, False)


def test_lines_come_as_they_arrive():
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as sink:
        lines = read_lines(source)
        sink.write(b"first\n")
        assert next(lines) == "first"
        sink.write(b"second\n")
        assert next(lines) == "second"


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"ok\nf\xfcr\n", "2:2"),
        (b"\xef\xbb\xbff\xfcr\n", "1:5"),
        (b"a\n\xc0\x80\n", "2:1"),  # overlong NUL
        (b"a\xed\xa0\x80\n", "1:2"),  # a surrogate
        (b"ok\ncut \xe4\xbd", "2:5"),
    ],
)
def test_bad_bytes_are_located(tmp_path: Path, data: bytes, place: str):
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    with pytest.raises(DataError, match=rf"bad\.txt:{place}: byte 0x.. is not UTF-8.*iconv") as caught:
        list(read_lines(path))
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match=rf"^stdin:{place}: .*iconv -f \S+ -t UTF-8$|^stdin:{place}: .*iconv -c"):
        list(read_lines(io.BytesIO(data), "stdin"))


def test_bad_bytes_can_be_replaced():
    lines = read_lines(io.BytesIO(b"\xef\xbb\xbfa\xff\nok\n\xfe\xff\n"), bad_bytes="replace")
    assert list(lines) == ["a\ufffd", "ok", "\ufffd\ufffd"]
    assert lines.num_replaced == 2
    assert lines.first_replaced.startswith("input:1:5: ")


@given(st.lists(st.binary(max_size=6).filter(lambda line: b"\n" not in line and b"\0" not in line), min_size=2))
def test_replacing_keeps_the_number_of_lines(raw: list[bytes]):
    data = b"first line\n" + b"".join(line + b"\n" for line in raw)
    assert len(list(read_lines(io.BytesIO(data), bad_bytes="replace"))) == len(raw) + 1


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("packed", [bytes, gzip.compress])
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_utf16_with_a_byte_order_mark_is_the_same_text(
    encoding: str, packed: Callable[[bytes], bytes], text: str, tmp_path: Path
):
    text = f"ja\u4e2d😀{text}\n"
    path = tmp_path / "a.txt"
    path.write_bytes(packed(f"\ufeff{text}".encode(encoding)))
    expected = list(read_lines(io.BytesIO(text.encode())))
    for source in (path, io.BytesIO(path.read_bytes()), io.BufferedReader(io.BytesIO(path.read_bytes()))):
        lines = read_lines(source)
        assert list(lines) == expected
        assert lines.had_byte_order_mark
    assert count_lines(path) == len(expected)


@pytest.mark.parametrize(("cut", "message"), [(b"\x00\xd8a\0", ":2:1: byte 0xED"), (b"a", ":2:1: byte 0xFF")])
def test_damaged_utf16_is_refused(cut: bytes, message: str):
    data = io.BytesIO("\ufeffok\n".encode("utf-16-le") + cut)
    with pytest.raises(DataError, match=message):
        list(read_lines(data))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_utf16_without_a_mark_is_refused_even_where_bytes_are_replaced(encoding: str):
    data = io.BytesIO("two words\nand two\n".encode(encoding))
    with pytest.raises(DataError, match=r"^input:1:1: the file is UTF-(16|16LE|16BE|32), not UTF-8; .*iconv -f UTF-"):
        list(read_lines(data, bad_bytes="replace"))


def test_nul_is_a_character_unless_refused():
    assert list(read_lines(io.BytesIO(b"ab\tc\0d\n\0a\0b\0c\n"))) == ["ab\tc\0d", "\0a\0b\0c"]
    assert list(read_lines(io.BytesIO(b"some text\na\0b\n"))) == ["some text", "a\0b"]
    with pytest.raises(DataError, match=r"^input:2:2: NUL character; remove it$"):
        list(read_lines(io.BytesIO(b"some text\na\0b\n"), nul="refuse"))


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lines_module, "MAX_LINE_BYTES", 1 << 20)
    assert len(list(read_lines(io.BytesIO(b"a" * (1 << 20))))) == 1
    with pytest.raises(DataError, match=r"^input:2: line longer than 1 MiB"):
        list(read_lines(io.BytesIO(b"a\n" + b"b" * ((1 << 20) + 1))))


@pytest.mark.parametrize("reader", [read_lines, read_chunks])
def test_damaged_gzip_is_refused(tmp_path: Path, reader: type[object]):
    path = tmp_path / "cut.gz"
    packed = gzip.compress(os.urandom(4000).hex().encode())
    path.write_bytes(packed[:-20])
    with pytest.raises(DataError, match=r"cut\.gz: damaged gzip data.*fetch or compress the file again"):
        list(reader(path))  # type: ignore[call-overload]
    path.write_bytes(packed[:-8] + b"\0\0\0\0" + packed[-4:])
    with pytest.raises(DataError, match=r"cut\.gz: damaged gzip data.*CRC"):
        list(reader(path))  # type: ignore[call-overload]


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"gone: cannot be read: No such file"):
        next(read_lines(tmp_path / "gone"))


def _bomb(path: Path, line: bytes) -> Path:
    with gzip.open(path, "wb", compresslevel=9) as packed:
        for _ in range(20):
            packed.write(line * ((1 << 20) // len(line)))
    return path


@thorough
@pytest.mark.parametrize("line", thinned([b"\n", b"\0", b"a\tb\n"], 3), ids=repr)
def test_gzip_that_unpacks_to_far_more_than_text_is_refused(line: bytes, tmp_path: Path):
    path = _bomb(tmp_path / "bomb.gz", line)
    with pytest.raises(DataError, match=r"bomb\.gz: damaged gzip data.*unpacks to more than 100 times its size"):
        for _ in read_chunks(path):
            pass
    with path.open("rb") as stream, pytest.raises(DataError, match="100 times"):
        for _ in read_lines(stream, "standard input"):
            pass


def test_gzip_of_repeated_text_is_no_bomb(tmp_path: Path):
    text = b"".join(b"%d the same sentence again and again\n" % number for number in range(10_000)) * 60
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(text, mtime=0))
    assert len(text) > 1 << 24
    assert b"".join(read_chunks(path)) == text


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_pipe_in_the_place_of_a_file_is_refused_without_waiting(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="a pipe, not a file"):
        list(read_lines(tmp_path / "pipe"))
