"""Plot of position codes: the codes themselves, and how similar those of any two positions are."""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from heedful.errors import ResourceError, ShapeError, UsageError
from heedful.inspection.plot import FAINT_INK, FORMATS, INK, new_figure


def save_position_plot(path: Path, codes: ArrayLike, title: str = "") -> None:
    """Draw position codes into a file: a map of the codes, and one of the cosines of their angles.

    Args:
        path: a .png, .pdf or .svg file.
        codes: [position, size], such as ``model.source_positions.codes(0, 60)`` of a Transformer.
        title: title above the maps; empty = none.

    Raises:
        ShapeError: the codes are not a matrix, or empty.
        UsageError: the suffix is none of `FORMATS`.
        MissingExtra: Matplotlib is not installed.
        ResourceError: the file cannot be written.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import torch
        >>> from heedful.layers import sinusoids
        >>> with TemporaryDirectory() as folder:
        ...     save_position_plot(Path(folder) / "codes.png", sinusoids(torch.arange(60), 32))
    """
    values = np.asarray(codes, dtype=np.float64)
    if values.ndim != 2 or not values.size:
        raise ShapeError(f"position plot: expected codes [position, size], got {list(values.shape)}")
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: cannot draw a {path.suffix or 'file without suffix'}; use {', '.join(FORMATS)}")
    figure = new_figure(7.2, 3.4)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    unit = values / np.where(lengths == 0, 1.0, lengths)
    largest = np.abs(values).max() or 1.0
    panels = ((values / largest, "feature", "codes"), (unit @ unit.T, "position", "cosine of two codes"))
    for axes, (matrix, across, name) in zip(figure.subplots(1, 2), panels, strict=True):
        axes.imshow(matrix, cmap="RdBu", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
        axes.set_xlabel(across, fontsize=9, color=INK)
        axes.set_ylabel("position", fontsize=9, color=INK)
        axes.set_title(name, loc="left", fontsize=9, color=INK)
        axes.tick_params(length=0, labelsize=8, labelcolor=FAINT_INK)
    figure.suptitle(title, fontsize=10, color=INK).set_parse_math(False)
    figure.tight_layout()
    try:
        figure.savefig(path, dpi=160)
    except OSError as error:
        raise ResourceError(f"{path}: not written: {error.strerror or error}") from None
