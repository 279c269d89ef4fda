"""Folders as tables: one with a folder of texts for each label, or one of pictures, each beside a text of its name."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from heedful.files.bounded_read import open_regular

PICTURES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff"})
"""Suffixes of pictures."""
_TEXT: Final = ".txt"
_TEXTS: Final = (_TEXT, ".md")
"""Suffixes of texts in folders of labels."""
_LOOKED_AT: Final = 100
_PARTS: Final = {"train": ("train",), "dev": ("dev", "valid", "val", "validation"), "test": ("test",)}
"""Names of folders of the parts of a corpus."""
UNLABELLED: Final = "unsup"
"""Folder of texts without a label, in aclImdb."""


def is_folder_table(path: Path) -> bool:
    """Tell whether a folder is a table of texts with labels, or of pictures with captions.

    Returns:
        Whether it has two folders or more, of which one has files of text; or a picture beside a text of its name.
    """
    if not path.is_dir():
        return False
    if _has_captions(path):
        return True
    folders = _label_folders(path)
    return len(folders) > 1 and any(map(_has_texts, folders)) and not folder_parts(path)


def folder_parts(path: Path) -> dict[str, Path]:
    """Find the parts of a corpus in a folder, each a folder with a folder of texts for each label.

    Args:
        path: a file, or a folder such as aclImdb.

    Returns:
        Folders by "train", "dev" and "test"; none without "train".
    """
    if not path.is_dir():
        return {}
    parts = {
        part: next((each for name in names if is_folder_table(each := path / name)), None)
        for part, names in _PARTS.items()
    }
    return {part: each for part, each in parts.items() if each} if parts["train"] else {}


def text_files(path: Path) -> list[Path]:
    """List the files of texts in a folder and those in it, in alphabetical order."""
    files = (child for child in path.rglob("*") if child.suffix.lower() in _TEXTS and child.is_file())
    return sorted(file for file in files if all(map(_is_shown, map(Path, file.relative_to(path).parts))))


def folder_files(path: Path) -> list[Path]:
    """List the files of a folder that is a table, whose content its rows are.

    Args:
        path: a folder for which `is_folder_table` is true.

    Returns:
        In the order of the rows.
    """
    if _has_captions(path):
        return [text for text in map(_caption_file, _pictures(path)) if text.is_file()]
    return [file for folder in _label_folders(path) for file in _texts(folder)]


def folder_rows(path: Path) -> Iterator[bytes]:
    """Read the rows of a folder that is a table as lines of JSON.

    Args:
        path: a folder for which `is_folder_table` is true.

    Yields:
        "text" and "label" of each text; or "image" and "caption" for each line of a picture's text, and an empty
        caption for a picture without one. Bytes that are not UTF-8 stay as they are.
    """
    if _has_captions(path):
        for picture in _pictures(path):
            text = _caption_file(picture)
            captions = [line for line in _content(text).split("\n") if line.strip()] if text.is_file() else []
            for caption in captions or [""]:
                yield _line({"image": picture.relative_to(path).as_posix(), "caption": caption})
        return
    for folder in _label_folders(path):
        for file in _texts(folder):
            yield _line({"text": _content(file), "label": folder.name})


def _line(row: dict[str, Any]) -> bytes:
    return f"{json.dumps(row, ensure_ascii=False)}\n".encode("utf-8", "surrogateescape")


def text_of_file(path: Path) -> str:
    """Read a file of one text.

    Returns:
        Its content; bytes that are not UTF-8 are replaced by U+FFFD.
    """
    return _content(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _content(path: Path) -> str:
    with open_regular(path) as stream:
        return stream.read().removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")


def _is_shown(path: Path) -> bool:
    return not path.name.startswith((".", "__"))


def _label_folders(path: Path) -> list[Path]:
    folders = (child for child in path.iterdir() if child.is_dir() and child.name != UNLABELLED)
    return sorted(filter(_is_shown, folders))


def _has_texts(folder: Path) -> bool:
    """Whether the first files of a folder are texts: by their names, or where names have no suffix, by their bytes."""
    files = [child for child in islice(folder.iterdir(), _LOOKED_AT) if child.is_file() and _is_shown(child)]
    return any(map(_is_text, files))


def _texts(folder: Path) -> list[Path]:
    return sorted(child for child in folder.iterdir() if child.is_file() and _is_shown(child) and _is_text(child))


def _is_text(path: Path) -> bool:
    # The 20 newsgroups are files whose names are numbers.
    if path.suffix.lower() in _TEXTS:
        return True
    if path.suffix and not path.suffix[1:].isdecimal():
        return False
    with path.open("rb") as stream:
        return b"\0" not in stream.read(1024)


def _pictures(path: Path) -> list[Path]:
    return sorted(child for child in path.rglob("*") if child.suffix.lower() in PICTURES and child.is_file())


def _caption_file(picture: Path) -> Path:
    return picture.with_suffix(_TEXT)


def _has_captions(path: Path) -> bool:
    pictures = (child for child in islice(path.iterdir(), 10 * _LOOKED_AT) if child.suffix.lower() in PICTURES)
    return any(_caption_file(picture).is_file() for picture in pictures)
