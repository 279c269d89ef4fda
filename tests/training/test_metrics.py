"""Lines of metrics.jsonl: there once each, whatever the disk does."""

import errno
import io
import json
from pathlib import Path

import pytest

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


def test_nothing_is_cut_where_nothing_is(tmp_path: Path):
    MetricsLog(tmp_path / "metrics.jsonl").cut(3)
    assert list(tmp_path.iterdir()) == []
