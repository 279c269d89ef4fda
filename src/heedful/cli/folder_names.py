"""Names of files and folders beside a model's folder."""

from pathlib import Path


def beside(folder: Path, ending: str, keeps_suffix: bool = False) -> Path:
    """Name a file or folder beside a folder, after it.

    Args:
        folder: the folder, also "." or one that does not exist.
        keeps_suffix: whether the suffix of the folder's name, such as .model, stays before the ending.

    Example:
        >>> str(beside(Path("runs/dates.model"), "-attention.png"))
        'runs/dates-attention.png'
    """
    named = folder if folder.name else folder.resolve()
    return named.with_name(f"{named.name if keeps_suffix else named.stem}{ending}")
