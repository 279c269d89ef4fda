"""Page of a training run with the attention of its samples, as far as the model can be opened."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from heedful.errors import HeedfulError
from heedful.pages.attention_view import AttentionView
from heedful.pages.record import RunRecord, read_run
from heedful.pages.training import samples_of, write_training_page
from heedful.predictors.table import load

_MOST_VIEWS: Final = 5


def _ignore(line: str) -> None:
    """Warn nobody."""


def write_page(model: Path, path: Path, device: str = "cpu", warn: Callable[[str], None] = _ignore) -> None:
    """Write the page of a run.

    Args:
        model: a model folder, finished or still in training.
        path: the file; it is written completely or not at all.
        device: PyTorch device that computes the attention.
        warn: called with a line if the attention is left out because the model cannot be opened.

    Raises:
        UsageError: the folder holds no training run.
        ResourceError: the file cannot be written.
    """
    write_training_page(model, path, sample_views(model, read_run(model), device, warn))


def sample_views(
    model: Path, run: RunRecord, device: str = "cpu", warn: Callable[[str], None] = _ignore
) -> list[AttentionView]:
    """Compute the attention of the model on the samples of its run.

    Args:
        device: PyTorch device.
        warn: called with a line if the model cannot be opened.

    Returns:
        Drawings of the first samples; none if there is no model yet, it has no attention, or it cannot be run here.
    """
    sources = [source for source, _ in samples_of(run)][:_MOST_VIEWS]
    if not sources or not run.about:
        return []
    try:
        return load(model, device).attention_views(sources)
    except (HeedfulError, ModuleNotFoundError, OSError) as error:  # the page is worth having without them
        warn(f"no attention on the page: {error}")
        return []
