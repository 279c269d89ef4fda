"""Import of Marian models in Hugging Face's layout as model folders for translation."""

from pathlib import Path

from heedful.engines.pack import CARD
from heedful.errors import ResourceError
from heedful.export.marian import read_marian
from heedful.files.atomic_write import sync, temporary_path
from heedful.models.store import save_model
from heedful.pages.model_card import card_license, own_card
from heedful.search.config import SearchConfig
from heedful.tasks.experiment import Experiment
from heedful.text.tokenizer import TextConfig


def import_marian(source: Path, folder: Path, languages: tuple[str, str] = ("", "")) -> Experiment:
    """Convert a Marian model in Hugging Face's layout to a model folder; see `heedful.export.marian`.

    Args:
        source: folder in Hugging Face's layout; not changed.
        folder: the model folder, which is empty or does not exist; it appears when it is complete.
        languages: codes of source and target; empty = the codes in `source`.

    Returns:
        The model's configuration.

    Raises:
        UsageError: there is no such folder, or it has no model.
        FileRefused: a file in it is missing, damaged, unsafe or does not fit the others.
        ResourceError: the model folder cannot be written.
    """
    read = read_marian(source)
    experiment = Experiment(
        model=read.config,
        text=TextConfig(normalization="none", max_tokens=read.max_tokens, shared=read.config.tie == "all"),
        search=SearchConfig(beam=read.num_beams),
    )
    codes = list(languages if any(languages) else read.languages)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with temporary_path(folder, is_folder=True) as temporary:
            files = {
                "source_tokenizer": read.source_tokenizer.save(temporary, "source"),
                "target_tokenizer": read.target_tokenizer.save(temporary, "target"),
            }
            for name in files.values():
                sync(temporary / name)
            terms = card_license(own_card(source / CARD))
            origin = {"origin": "Marian", **({"license": terms} if terms else {})}
            save_model(temporary, experiment, read.weights, {"languages": codes, **origin, **files})
            temporary.replace(folder)
        sync(folder.parent)
    except OSError as error:
        raise ResourceError(f"{folder}: model not saved: {error}") from None
    return experiment
