"""Documents on the command line: a file is translated into a file of the same format."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heedful.cli.answered_tables import is_table_file
from heedful.cli.lines import refuse_overwriting
from heedful.cli.messages import Messages
from heedful.cli.translated_tables import source_table
from heedful.documents.table import FORMATS, format_of
from heedful.errors import DataError, UsageError
from heedful.files.atomic_write import sync, temporary_path
from heedful.files.bounded_read import read_bytes
from heedful.text.counts import counted

if TYPE_CHECKING:
    from heedful.predictors.translator import Translator

MOST_BYTES: Final = 1 << 28
"""Largest size of a document, and of its unpacked content."""
_WINDOW: Final = 256
"""Number of passages that are translated together."""
_UNREAD: Final = frozenset((".pdf", ".doc", ".xls", ".xlsx", ".ppt", ".rtf", ".ods", ".tex", ".zip", ".ass"))
"""Endings of formats that people bring, and that are not read."""


def document_among(texts: Sequence[str] | None, source: Path | None, target: Path | None) -> Path | None:
    """Find the document that a command is to translate: a file whose name has the ending of a format.

    Returns:
        The file; None if the command is about texts. Lines of a text file are texts, unless the file is named in place

    Raises:
        UsageError: it is a table, which is given by `--input`.
        DataError: it is a file of a format that is not read.
    """
    if source is not None:
        is_document = source.suffix.lower() in FORMATS.keys() - {".txt"} | _UNREAD
    elif texts is not None and len(texts) == 1 and len(texts[0]) < 4096 and "\n" not in texts[0]:
        source = Path(texts[0])
        is_table = is_table_file(source) and source.suffix.lower() not in FORMATS
        if is_table and (_is_file(source) or target is not None):
            column = "" if source_table(source, target, "") else " --columns NAME"
            raise UsageError(f"{source}: a table; to translate a column of it: --input {source}{column}")
        # Of the name of a file, the ending of a format and an output file, two make a document.
        signs = (bool(source.suffix) and _is_file(source), source.suffix.lower() in FORMATS.keys() | _UNREAD)
        is_document = (*signs, target is not None).count(True) >= 2
    else:
        return None
    if not is_document:
        return None
    format_of(str(source))
    return source


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a text that is too long for a name
        return False


def check_document(source: Path, target: Path | None) -> None:
    """Refuse a document that cannot be translated, before a model is loaded.

    Raises:
        UsageError: there is no output file, or it has another format.
        DataError: there is no such document.
    """
    ending = format_of(str(source))
    if target is None:
        raise UsageError(f"translate: a document is written to a file; add -o {source.stem}.translated{ending}")
    if target.suffix.lower() != ending:
        raise UsageError(f"{target}: the output has the format of the input; give a name that ends in {ending}")
    refuse_overwriting(target, [source])
    if not source.is_file():
        raise DataError(f"{source}: no such file; give a document or texts")


def translate_document(
    translator: "Translator", source: Path, target: Path, messages: Messages, settings: dict[str, Any]
) -> None:
    """Translate a document.

    Args:
        target: file of the same format.
        messages: where to say what was done.
        settings: keywords of `Translator.translate`.

    Raises:
        DataError: the document cannot be read.
        MissingExtra: the package that reads it is not installed.
    """
    from heedful.predictors.tagged import translate_tagged

    try:
        document = FORMATS[format_of(str(source))](read_bytes(source, MOST_BYTES), MOST_BYTES)
    except DataError as error:
        raise DataError(f"{source}: {error}") from None
    if document.encoding != "UTF-8":
        messages.say(
            f"{source}: read as {document.encoding}, and written in it where it has the letters, else in UTF-8"
        )
    passages = document.passages
    outputs = [*passages]
    num_cut = num_faults = num_lost = 0
    for start in range(0, len(passages), _WINDOW):
        for index, (tagged, plain) in enumerate(
            translate_tagged(translator, passages[start : start + _WINDOW], **settings), start
        ):
            outputs[index] = tagged
            num_cut += plain.was_cut
            num_faults += bool(plain.fault)
            num_lost += len(plain.lost)
        if start + _WINDOW < len(passages):
            messages.say(f"{start + _WINDOW:,} of {counted(len(passages), 'passage')}")
    with temporary_path(target) as temporary:
        temporary.write_bytes(document.write(outputs))
        sync(temporary)
        temporary.replace(target)
    sync(target.parent)
    if num_cut:
        messages.warn(f"{num_cut:,} passages have sentences that are too long for the model; their ends are missing")
    if num_faults:
        messages.warn(f"no translation, only a fault, of {counted(num_faults, 'passage')}; the source stands there")
    if num_lost:
        messages.warn(f"lost: {counted(num_lost, 'span')} that should stay as they are, such as addresses and numbers")
    messages.say(f"{target}: {counted(len(passages), 'passage')} translated")
