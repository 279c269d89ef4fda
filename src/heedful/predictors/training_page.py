"""Page of a training run with the attention of its samples, as far as the model can be opened."""

from pathlib import Path
from typing import Final

from heedful.errors import HeedfulError
from heedful.pages.attention_map import AttentionMap
from heedful.pages.record import RunRecord, read_run
from heedful.pages.training import samples_of, write_training_page
from heedful.predictors.table import load

_MOST_MAPS: Final = 5


def write_page(model: Path, path: Path, device: str = "cpu") -> None:
    """Write the page of a run.

    Args:
        model: a model folder, finished or still in training.
        path: the file; it is written completely or not at all.
        device: PyTorch device that computes the attention.

    Raises:
        UsageError: the folder holds no training run.
        ResourceError: the file cannot be written.
    """
    write_training_page(model, path, sample_maps(model, read_run(model), device))


def sample_maps(model: Path, run: RunRecord, device: str = "cpu") -> list[AttentionMap]:
    """Compute the attention of the model on the samples of its run.

    Args:
        model: the model folder.
        run: record of its run.
        device: PyTorch device.

    Returns:
        Maps of the first samples; none if there is no model yet, it has no attention, or it cannot be run here.
    """
    sources = [source for source, _ in samples_of(run)][:_MOST_MAPS]
    if not sources or not run.about:
        return []
    try:
        return load(model, device).attention_maps(sources)
    except (HeedfulError, ModuleNotFoundError, OSError):  # the page is worth having without them
        return []
