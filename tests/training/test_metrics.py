"""Lines of metrics.jsonl: there once each, whatever the disk does."""

import errno
import io
import json
from pathlib import Path

import pytest

from heedful.pages.record import METRICS, damaged_parts, read_validations
from heedful.training.metrics import MetricsLog


def steps(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in path.read_bytes().decode().split("\n")[:-1]]


def test_lines_are_written_when_flushed_and_once(tmp_path: Path):
    path = tmp_path / "run" / "metrics.jsonl"
    log = MetricsLog(path)
    log.flush()
    assert not path.exists()
    log.add({"step": 1, "sample": "é\n"})
    assert not path.exists()
    log.flush()
    log.flush()
    log.add({"step": 2})
    log.flush()
    assert steps(path) == [1, 2]
    assert "é" in path.read_bytes().decode()


def test_what_a_full_disk_kept_out_comes_with_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path)
    log.add({"step": 1})
    log.flush()

    class Full(io.FileIO):
        def write(self, content: object) -> int:
            super().write(bytes(content)[:4])  # type: ignore[call-overload]
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        known = Path.open
        patch.setattr(Path, "open", lambda self, mode, **more: Full(self, "a") if mode == "ab" else known(self, mode))
        for step in (2, 3):
            log.add({"step": step})
            with pytest.raises(OSError, match="No space"):
                log.flush()
            assert path.read_bytes().endswith(b'{"fo')
    log.flush()
    assert steps(path) == [1, 2, 3]
    log.add({"step": 4})
    log.flush()
    assert steps(path) == [1, 2, 3, 4]


@pytest.mark.parametrize("torn", [b"", b'{"st', b'{"step": 9}\n{"s', b"null\n", b"\xff\n"])
def test_what_came_after_a_checkpoint_is_forgotten(torn: bytes, tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 4}\n{"step": 8}\n' + torn)
    log = MetricsLog(path)
    log.cut(8)
    log.add({"step": 9})
    log.flush()
    assert steps(path) == [4, 8, 9]
    log.cut(4)
    log.add({"step": 5})
    log.flush()
    assert steps(path) == [4, 5]


def test_a_bit_that_flips_costs_its_line_and_is_told(tmp_path: Path):
    path = tmp_path / METRICS
    log = MetricsLog(path)
    for step in (1, 2, 3):
        log.add({"step": step, "scores": {"loss": 0.25 * step}, "sample": ["é", "b", "c"]})
    log.flush()
    whole, lines = path.read_bytes(), read_validations(tmp_path)
    start, end = (place + 1 for place, byte in enumerate(whole[:-1]) if byte == ord("\n"))
    for place in range(start, end):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        found, log = read_validations(tmp_path), MetricsLog(path)
        if b'"sha256"' in whole[place - 7 : place + 8] and len(found) == 3:
            assert found[::2] == lines[::2]  # the name of the checksum itself: all else is as it was written
            continue
        assert 1 <= len(found) < 3, place
        assert found == [line for line in lines if line in found], place
        assert damaged_parts(tmp_path) == [METRICS]
        assert log.cut(3) in (1, 2)
        assert damaged_parts(tmp_path) == []
        assert read_validations(tmp_path) == found


def test_nothing_is_cut_where_nothing_is(tmp_path: Path):
    MetricsLog(tmp_path / "metrics.jsonl").cut(3)
    assert list(tmp_path.iterdir()) == []
