"""Correct a translation: from then on the correction is the model's output for that source.

The correction is appended to corrections.jsonl in the model folder, and is on disk when the command ends. It is in
force at once, in running commands and servers too. Outputs for similar sources follow it, and `translate` names it with
the share of characters that match; all other outputs do not change.

Examples:
  heedful correct pairs.model 'Guten Tag' 'Good afternoon'
  heedful correct pairs.model --list
  heedful correct pairs.model --undo
  heedful correct pairs.model 'Guten Tag' --undo
  heedful correct pairs.model --import memory.tmx
  heedful correct pairs.model --export corrections.tsv
  heedful train corrections.tsv --from pairs.model --mix pairs.tsv
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from heedful.cli.messages import Messages
from heedful.cli.options import (
    FILES,
    ColumnsText,
    Debug,
    IdleDevice,
    IdleThreads,
    ModelPath,
    Quiet,
    parse_columns,
    store_standard_input,
)
from heedful.errors import UsageError
from heedful.text.counts import counted
from heedful.text.quoting import harmless, shortened

if TYPE_CHECKING:
    from heedful.predictors.translator import Translator

Pair = Annotated[
    list[str] | None, typer.Argument(metavar="TEXT", help="A source and its correction.", show_default=False)
]
Undo = Annotated[
    bool, typer.Option("--undo", help="Withdraw the newest correction, of the source TEXT if there is one.")
]
Listing = Annotated[
    bool, typer.Option("--list", help="Print the corrections in force: time, source and correction, by tabs.")
]
ExportPath = Annotated[
    Path | None,
    typer.Option(
        "--export",
        metavar="FILE",
        help="Write the corrections in force to a .tmx or .tsv file; - is standard output.",
        rich_help_panel=FILES,
    ),
]
ImportPaths = Annotated[
    list[Path] | None,
    typer.Option(
        "--import",
        metavar="FILE",
        help="Add the pairs of a file (TMX, TSV, CSV, JSONL), none if a row is unusable; twice for two aligned files.",
        rich_help_panel=FILES,
        callback=store_standard_input,
    ),
]

_STANDARD: Final = Path("-")


def run(
    model: ModelPath,
    texts: Pair = None,
    undo: Undo = False,
    is_listing: Listing = False,
    exported: ExportPath = None,
    imported: ImportPaths = None,
    columns: ColumnsText = "",
    device: IdleDevice = "auto",
    threads: IdleThreads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Correct a model.

    Raises:
        UsageError: not exactly one thing is asked for.
    """
    words = list(texts or ())
    if (undo or len(words) == 2) + is_listing + (exported is not None) + (imported is not None) != 1 or len(words) > 2:
        raise UsageError("correct: expected a source and its correction, or one of --undo, --list, --export, --import")
    if words and len(words) != 2 - undo:
        raise UsageError(f"correct: expected {'no text or a source' if undo else 'a source and its correction'}")
    if columns and imported is None:
        raise UsageError("correct: --columns are those of a file; give it by --import")
    from heedful.predictors.table import load
    from heedful.predictors.translator import Translator

    messages = Messages(quiet)
    translator = load(model, kind=Translator)
    journal = translator.memory.journal
    if undo:
        withdrawn = journal.undo(*words)
        messages.say(f"withdrawn: {shortened(withdrawn.source)} -> {shortened(withdrawn.correction)}")
    elif imported:
        num_pairs, num_left_out = _import(translator, imported, columns)
        left_out = f"; {counted(num_left_out, 'unit')} without text in both languages left out" if num_left_out else ""
        messages.say(f"{counted(num_pairs, 'correction')} imported{left_out}")
    elif words:
        translator.correct(words[0], words[1])
    content = journal.read()
    if error := content.error(journal.path):
        messages.warn(error)
    if is_listing:
        for one in content.corrections:
            print(one.time, harmless(one.source), harmless(one.correction), sep="\t")
    elif exported is not None:
        _export(translator, exported, [(one.source, one.correction) for one in content.corrections])
    messages.say(f"{counted(len(content.corrections), 'correction')} in force")


def _import(translator: "Translator", paths: list[Path], columns: str) -> tuple[int, int]:
    """Add the pairs of a file as corrections.

    Returns:
        The number of pairs, and that of units of a translation memory that lack a side.

    Raises:
        DataError: the file is unusable, or a row of a table lacks a side.
    """
    from heedful.data.tmx import is_tmx
    from heedful.errors import DataError
    from heedful.predictors.source_columns import model_pairs

    if len(paths) == 1 and is_tmx(paths[0]):
        units = _units(translator, paths[0], columns)
        pairs = [(source, target) for source, target in units if source.strip() and target.strip()]
        if not pairs:
            raise DataError(f"{paths[0]}: no unit has text in both languages; see: heedful check {paths[0]}")
        translator.memory.journal.add(pairs)
        return len(pairs), len(units) - len(pairs)
    rows = model_pairs(translator.folder, paths, parse_columns(columns))
    filled = [pair for pair in rows if pair.source.strip() or pair.target.strip()]  # an empty line is no row
    for pair in filled:
        if not (pair.source.strip() and pair.target.strip()):
            raise DataError(f"{paths[0]}:{pair.line}: a side is blank; leave the row out")
    pairs = [(pair.source, pair.target) for pair in filled]
    if rows.has_ranks:  # the newest correction counts, of a lexicon the first pronunciation
        first: dict[str, tuple[str, str]] = {}
        for source, target in pairs:
            first.setdefault(translator.memory.journal.key(source), (source, target))
        pairs = [*first.values()]
    translator.memory.journal.add(pairs)
    return len(pairs), 0


def _units(translator: "Translator", path: Path, columns: str) -> list[tuple[str, str]]:
    """Source and target of each unit of a translation memory, "" where it lacks one.

    They are in the languages of the model, if those of model and file are known and no columns are chosen.

    Raises:
        DataError: the file is unusable.
    """
    from heedful.data.corpus import find_pairs
    from heedful.data.tmx import tmx_languages, tmx_pairs
    from heedful.text.text_files import UNNAMED

    source, target = map(str, translator.folder.facts.get("languages", UNNAMED))
    unknown = {"", *UNNAMED}
    if columns or {source, target} & unknown or {*tmx_languages(path)} <= unknown:
        return [(pair.source, pair.target) for pair in find_pairs([path], parse_columns(columns))]
    return [*tmx_pairs(path, source, target)]


def _export(translator: "Translator", path: Path, pairs: list[tuple[str, str]]) -> None:
    """Write corrections.

    Raises:
        UsageError: the name of the file says no format, or there are no corrections.
    """
    from heedful.cli.lines import opened_output
    from heedful.data.pair_rows import tsv_lines
    from heedful.data.tmx import SUFFIX, write_tmx

    if path != _STANDARD and path.suffix.lower() not in (SUFFIX, ".tsv"):
        raise UsageError(f"--export {path}: expected a name that ends in {SUFFIX} or .tsv")
    if not pairs:
        raise UsageError(f"--export {path}: no correction is in force")
    with opened_output(path) as stream:
        if path.suffix.lower() == SUFFIX:
            source, target = translator.folder.facts.get("languages", ("", ""))
            write_tmx(stream, (str(source or "source"), str(target or "target")), pairs)
        else:
            stream.writelines(tsv_lines(pairs))
