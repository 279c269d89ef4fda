"""Ensembles in one model folder: weights of further seeds beside those of the first, with the same tokenizers.

The manifest names their files, so that they are verified and packed with the others.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from heedful.engines.folder import ModelFolder, commit, open_folder, require_same_tokens
from heedful.engines.ngram_model import SHARE, SHIFTS
from heedful.errors import ResourceError
from heedful.files.atomic_write import sync, write_through
from heedful.files.formats import KEY

MEMBERS: Final = "members"
"""Key of the manifest: names of the files with the weights of further members."""
_OF_ONE: Final = (SHARE, SHIFTS)
"""Keys of the manifest that validation has chosen for the first member alone; an ensemble has others."""


def join_members(folder: Path, others: Sequence[Path]) -> int:
    """Turn a model folder into an ensemble with models that were trained on the same data.

    Args:
        folder: the first member, which becomes the ensemble.
        others: folders of the others, which stay as they are.

    Returns:
        Number of members.

    Raises:
        UsageError: a model has other tokens.
        FileRefused: a file is damaged.
        ResourceError: the disk is full or refuses.
    """
    first = open_folder(folder)
    names: list[str] = []
    temporary = folder / ".member.safetensors"
    try:
        for other in others:
            member = require_same_tokens(open_folder(other), first)
            weights = member.file("weights")
            if weights.name != first.file("weights").name and weights.name not in names:
                temporary.unlink(missing_ok=True)
                write_through(temporary, weights.read_bytes())
                temporary.replace(folder / weights.name)
                names.append(weights.name)
        if names == first.facts.get(MEMBERS):
            return 1 + len(names)
        sync(folder)
        own_files = [name for name in first.facts["files"] if name not in first.facts.get(MEMBERS, ())]
        facts = {key: value for key, value in first.facts.items() if key not in (KEY, "files", *_OF_ONE)}
        commit(folder, {**facts, MEMBERS: names}, [*own_files, *names])
    except OSError as error:
        raise ResourceError(f"{folder}: members not saved: {error}") from None
    return 1 + len(names)


def members_of(folder: ModelFolder) -> list[ModelFolder]:
    """List the further members of an ensemble.

    Returns:
        Each as a folder of its own, with the same files but its own weights; none if the model is no ensemble.
    """
    return [ModelFolder(folder.path, {**folder.facts, "weights": name}) for name in folder.facts.get(MEMBERS, ())]
