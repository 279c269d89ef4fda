"""Tables read as lines of JSON: Parquet, Arrow, folders that `datasets` saves, TMX, JSON documents, folders of texts.

Every reader of JSONL thus reads them too, with the same keys, messages and row numbers. Parquet and Arrow need pyarrow,
from the extra `parquet`.
"""

import hashlib
import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, cast, final

from heedful.data.folders import folder_files, folder_parts, folder_rows, is_folder_table
from heedful.data.json_documents import document_rows, is_json_document
from heedful.data.tmx import is_tmx, tmx_rows
from heedful.errors import DamagedFile, DataError, MissingExtra
from heedful.files.atomic_write import recorded_name
from heedful.files.bounded_read import open_regular, read_json_object
from heedful.text.lines import Lines, read_lines
from heedful.text.text_files import Fingerprint, check_file, file_identity, fingerprint_file

SUFFIXES: Final = (".parquet", ".arrow")
_MAGIC: Final = (b"PAR1", b"ARROW1")
_STATE: Final = "state.json"
"""File in a folder saved by `Dataset.save_to_disk`."""
_PARTS: Final = "dataset_dict.json"
"""File in a folder saved by `DatasetDict.save_to_disk`."""
_BATCH_ROWS: Final = 1024
_CONTINUATION: Final = b"\xff\xff\xff\xff"
"""First bytes of an Arrow stream."""


def is_table(path: Path) -> bool:
    """Tell whether a path is a table, by its content and, for Arrow streams, TMX and JSON documents, its name.

    Args:
        path: a data file or folder.

    Returns:
        Whether it is a Parquet or Arrow table, a translation memory, a JSON document, or a folder saved by
        `Dataset.save_to_disk`, of texts by label, or of pictures and their captions.
    """
    if is_tmx(path) or (path / _STATE).is_file() or is_json_document(path) or is_folder_table(path):
        return True
    try:
        with open_regular(path) as file:
            head = file.read(8)
    except (OSError, DamagedFile):
        return False
    return head.startswith(_MAGIC) or (head.startswith(_CONTINUATION) and path.suffix.lower() in SUFFIXES)


def check_data_file(path: Path) -> None:
    """Refuse a file that is neither text nor a table.

    Raises:
        DataError: the file does not exist, or is a folder, a pipe, empty or binary.
    """
    if (path / _PARTS).is_file():
        parts = sorted(child.name for child in path.iterdir() if (child / _STATE).is_file())
        advice = f"such as {path / parts[0]}, and others with --dev and --test" if parts else "but none is there"
        raise DataError(f"{path}: several parts saved by Hugging Face's datasets; give one, {advice}")
    if parts := folder_parts(path):
        raise DataError(f"{path}: a folder of several parts; give one, such as {[*parts.values()][-1]}")
    if not is_table(path):
        check_file(path)


def fingerprint_table(path: Path) -> Fingerprint:
    """Compute the fingerprint of a data file or folder, which changes with any byte of its content.

    Args:
        path: a data file or folder.

    Returns:
        As from `fingerprint_file`; for a folder the sums over its files, and the hash of their hashes.

    Raises:
        DataError: a file cannot be read.
    """
    if not path.is_dir():
        return fingerprint_file(path)
    parts = [fingerprint_file(part) for part in _files(path)]
    digest = hashlib.sha256("".join(str(part["sha256"]) for part in parts).encode()).hexdigest()
    sums = {key: sum(int(part[key]) for part in parts) for key in ("size", "lines")}
    return {"name": recorded_name(path), "sha256": digest, **sums}


def table_identity(path: Path) -> tuple[Any, ...]:
    """Return values that change whenever the content of a data file or folder changes; cheaper than a fingerprint.

    Args:
        path: a data file or folder.

    Returns:
        As from `file_identity`; for a folder those of its files.

    Raises:
        DataError: a file cannot be read.
    """
    return tuple(file_identity(part) for part in _files(path))


def data_lines(
    path: Path, bad_bytes: Literal["refuse", "replace"] = "refuse", nul: Literal["keep", "refuse"] = "keep"
) -> Lines:
    """Read a data file line by line, a table as lines of JSON.

    Args:
        bad_bytes: as for `read_lines`.
        nul: as for `read_lines`.

    Returns:
        The lines; line n of a table is row n. Reading them raises `DataError` for a damaged file, and `MissingExtra`
        for a table if pyarrow is not installed.
    """
    if not is_table(path):
        return read_lines(path, bad_bytes=bad_bytes, nul=nul)
    return read_lines(cast(BinaryIO, io.BufferedReader(_Rows(path))), str(path), bad_bytes, nul)


def first_lines(path: Path, most: int) -> list[str]:
    """Read the first lines that are not empty, wherever the first of them stands.

    Args:
        path: as for `data_lines`; bytes that are no UTF-8 are replaced.
        most: most lines to read.

    Raises:
        DataError: the file is unusable.
    """
    return [*itertools.islice(filter(None, data_lines(path, bad_bytes="replace")), most)]


@final
class _Rows(io.RawIOBase):
    """Stream of JSON lines, one per row; the file is opened when the first byte is read."""

    def __init__(self, path: Path) -> None:
        self._lines: Final = _json_rows(path)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        if not self._rest:
            self._rest = next(self._lines, b"")
        view = memoryview(buffer)
        size = min(len(view), len(self._rest))
        view[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _json_rows(path: Path) -> Iterator[bytes]:
    """Rows of a table as JSON lines, batch by batch; columns that hold neither text nor numbers are null.

    Raises:
        MissingExtra: pyarrow is not installed.
        DataError: the file is damaged.
    """
    if is_tmx(path) or is_json_document(path):
        rows = tmx_rows(path) if is_tmx(path) else document_rows(path)
        yield from (f"{json.dumps(row, ensure_ascii=False)}\n".encode("utf-8", "surrogatepass") for row in rows)
        return
    if path.is_dir() and not (path / _STATE).is_file():
        yield from folder_rows(path)
        return
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", f"{path}: a table in Parquet or Arrow") from None
    try:
        for batch in table_batches(path):
            plain = batch.select(_plain_columns(batch.schema))
            rows = plain.to_pylist()
            names = batch.schema.names
            lines = (json.dumps({name: row.get(name) for name in names}, ensure_ascii=False) for row in rows)
            yield "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    except (pyarrow.ArrowException, OSError, TypeError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise DataError(f"{path}: cannot be read as a table: {reason}; fetch or write the file again") from None


def _files(path: Path) -> list[Path]:
    """Files of a table, in the order of their rows."""
    if not path.is_dir():
        return [path]
    return _saved_files(path) if (path / _STATE).is_file() else folder_files(path)


def is_columnar(path: Path) -> bool:
    """Tell whether a path is a table in Parquet or Arrow, whose columns have types."""
    return is_table(path) and not (is_tmx(path) or is_json_document(path) or is_folder_table(path))


def table_batches(path: Path) -> Iterator[Any]:
    """Read the batches of rows of a table in Parquet or Arrow, with the types of its columns.

    Args:
        path: a table for which `is_columnar` is true.
    """
    for batch in itertools.chain.from_iterable(map(_batches, _files(path))):
        batch.validate(full=True)  # offsets of a damaged file may point anywhere
        yield batch


def _saved_files(folder: Path) -> list[Path]:
    """Arrow files of a folder saved by `Dataset.save_to_disk`, in the order of their rows.

    Raises:
        DataError: its list of files is damaged.
    """
    try:
        listed = read_json_object(folder / _STATE)["_data_files"]
        names = [str(each["filename"]) for each in listed]
    except (DamagedFile, OSError, KeyError, TypeError) as error:
        raise DataError(f"{folder / _STATE}: lists no data files: {error}; save the folder again") from None
    if any(Path(name).name != name for name in names):
        raise DataError(f"{folder / _STATE}: lists files in other folders; save the folder again")
    return [folder / name for name in names]


def _batches(path: Path) -> Iterator[Any]:
    # pyarrow is optional, so its types are not used here.
    with path.open("rb") as file:
        head = file.read(len(_CONTINUATION))
    if head == _MAGIC[0]:
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]

        with parquet.ParquetFile(path) as table:
            yield from table.iter_batches(_BATCH_ROWS)
        return
    from pyarrow import ipc  # pyright: ignore[reportMissingImports]

    if head == _CONTINUATION:
        with ipc.open_stream(path) as stream:
            yield from stream
        return
    with ipc.open_file(path) as table:
        for index in range(table.num_record_batches):
            yield table.get_batch(index)


def _plain_columns(schema: Any) -> list[str]:
    from pyarrow import types  # pyright: ignore[reportMissingImports]

    texts = (types.is_string, types.is_large_string, types.is_string_view)

    def is_text(kind: Any) -> bool:
        return any(is_kind(kind.value_type if types.is_dictionary(kind) else kind) for is_kind in texts)

    def is_listed(kind: Any) -> bool:
        is_list = types.is_list(kind) or types.is_large_list(kind)
        return is_list and (is_text(kind.value_type) or types.is_integer(kind.value_type))

    def is_plain(kind: Any) -> bool:
        if types.is_struct(kind):  # {"de": ..., "en": ...}, {"text": [...], "answer_start": [...]}
            return all(is_text(field.type) or is_listed(field.type) for field in kind)
        return is_text(kind) or is_listed(kind) or types.is_integer(kind) or types.is_floating(kind)

    return [field.name for field in schema if is_plain(field.type)]
