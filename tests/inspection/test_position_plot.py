"""Plot of position codes."""

from pathlib import Path

import numpy as np
import pytest

from heedful.errors import ResourceError, ShapeError, UsageError
from heedful.inspection.position_plot import save_position_plot


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")])
def test_it_is_drawn_in_every_format(suffix: str, start: bytes, tmp_path: Path):
    path = tmp_path / f"codes{suffix}"
    save_position_plot(path, np.eye(5, 4), "$5 model")  # the last code is zero, so that it has no direction
    assert path.read_bytes().startswith(start)


def test_other_shapes_and_files_are_refused(tmp_path: Path):
    with pytest.raises(ShapeError, match=r"expected codes \[position, size\], got \[4\]"):
        save_position_plot(tmp_path / "a.png", np.ones(4))
    with pytest.raises(UsageError, match=r"cannot draw a \.txt"):
        save_position_plot(tmp_path / "a.txt", np.eye(3))
    with pytest.raises(ResourceError, match="not written"):
        save_position_plot(tmp_path / "missing" / "a.png", np.eye(3))
