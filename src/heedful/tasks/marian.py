"""A Marian model in Hugging Face's layout as a model folder for translation."""

from pathlib import Path

from heedful.errors import ResourceError
from heedful.experiment import Experiment
from heedful.export.marian import read_marian
from heedful.models.store import save_model
from heedful.search.config import SearchConfig
from heedful.text.tokenizer import TextConfig


def import_marian(source: Path, folder: Path, languages: tuple[str, str] = ("", "")) -> Experiment:
    """Make a model folder of a Marian model in Hugging Face's layout; see `heedful.export.marian`.

    Args:
        source: their folder; left as it is.
        folder: where the model goes; made if need be.
        languages: codes of source and target; empty = what their folder says.

    Returns:
        The model's configuration.

    Raises:
        UsageError: there is no such folder, or it holds no model.
        FileRefused: a file of it is missing, damaged, unsafe or does not fit the others.
        ResourceError: the disk is full or refuses.
    """
    read = read_marian(source)
    experiment = Experiment(
        model=read.config,
        text=TextConfig(normalization="none", max_tokens=read.max_tokens, shared=read.config.tie == "all"),
        search=SearchConfig(beam=read.num_beams),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = {
            "source_tokenizer": read.source_tokenizer.save(folder, "source"),
            "target_tokenizer": read.target_tokenizer.save(folder, "target"),
        }
    except OSError as error:
        raise ResourceError(f"{folder}: model not saved: {error}") from None
    save_model(
        folder, experiment, read.weights, {"languages": list(languages if any(languages) else read.languages), **files}
    )
    return experiment
