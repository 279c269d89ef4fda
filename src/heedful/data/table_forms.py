"""Forms of tables by the names of their files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

Form = Literal["csv", "tsv", "jsonl", "parquet"]
SUFFIXES: Final[Mapping[str, Form]] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".arrow": "parquet",
}
"""Forms of tables by the suffix of a file."""


def table_form(path: Path | None) -> Form | None:
    """Tell the form of a table by the name of its file.

    Returns:
        The form; None = the file is no table.
    """
    return None if path is None else SUFFIXES.get(Path(path.name.removesuffix(".gz")).suffix.lower())
