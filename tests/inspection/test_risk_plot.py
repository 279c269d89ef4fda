"""Plot of risk by coverage."""

from pathlib import Path

import pytest

from heedful.errors import ResourceError, ShapeError, UsageError
from heedful.inspection.risk_plot import save_risk_plot


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")])
def test_it_is_drawn_in_every_format(suffix: str, start: bytes, tmp_path: Path):
    path = tmp_path / f"risk{suffix}"
    save_risk_plot(path, [0.0, 0.5, 1 / 3], "$5 model")
    assert path.read_bytes().startswith(start)


def test_nothing_and_other_files_are_refused(tmp_path: Path):
    with pytest.raises(ShapeError, match="nothing to draw"):
        save_risk_plot(tmp_path / "a.png", [])
    with pytest.raises(UsageError, match=r"cannot draw a \.txt"):
        save_risk_plot(tmp_path / "a.txt", [0.5])
    with pytest.raises(ResourceError, match="not written"):
        save_risk_plot(tmp_path / "missing" / "a.png", [0.5])
