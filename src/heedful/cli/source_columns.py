"""Sources of several columns on the command line: rows of a table, and checks of each line."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from heedful.cli.lines import STANDARD
from heedful.cli.messages import Messages, RepeatedWarning
from heedful.errors import DataError, UsageError
from heedful.text.columns import FEATURE_SEPARATOR

if TYPE_CHECKING:
    from heedful.predictors.interface import Predictor
    from heedful.predictors.translator import Translator

_SHOWN: Final = 20
"""Number of names shown in an error."""


def reads_columns(model: Path) -> bool:
    """Tell whether the sources of a model are several columns."""
    from heedful.engines.folder import read_manifest
    from heedful.predictors.source_columns import COLUMNS

    return COLUMNS in read_manifest(model).facts


def set_last_column(predictor: "Predictor", name: str) -> None:
    """Give every source a last column: the option --as.

    Args:
        name: one of the features that the model knows.

    Raises:
        UsageError: the sources of the model are single texts, or it does not know the name.
    """
    from heedful.text.column_tokenizer import ColumnTokenizer

    tokenizer = getattr(predictor, "source_tokenizer", None)
    if not isinstance(tokenizer, ColumnTokenizer) or tokenizer.kinds[-1] != "features":
        raise UsageError(f"--as: a source of {predictor.folder.path} has no last column of names; leave it out")
    if unknown := [part for part in name.split(FEATURE_SEPARATOR) if part not in tokenizer.features]:
        known = ", ".join(tokenizer.features[:_SHOWN]) + (", ..." if len(tokenizer.features) > _SHOWN else "")
        raise UsageError(f"--as {name}: the model does not know {', '.join(unknown)}; it knows {known}")
    tokenizer.ending = name


def source_rows(translator: "Translator", source: Path | None, columns: str) -> Iterator[str] | None:
    """Read the rows of a table as the sources of a model.

    Args:
        source: file of `--input`; None = there is none.
        columns: columns that were named; may be empty.

    Returns:
        The sources; None if the input is no table, or the model reads single texts.

    Raises:
        UsageError: columns are named for an input without any.
    """
    from heedful.predictors.source_columns import COLUMNS, is_source_table, table_sources

    has_columns = COLUMNS in translator.folder.facts
    if has_columns and source is not None and source != STANDARD and source.is_file() and is_source_table(source):
        return table_sources(source, translator.folder, columns, bool(_ending(translator)))
    if columns:
        raise UsageError("translate: --columns names those of a table, given by --input FILE, such as texts.csv")
    return None


def _ending(translator: "Translator") -> str:
    return getattr(translator.source_tokenizer, "ending", "")


@final
class ColumnCheck:
    """Check of sources: their number of columns, and whether the model knows their features."""

    def __init__(self, translator: "Translator", messages: Messages) -> None:
        """Prepare to check.

        Args:
            messages: where to warn of unknown features.
        """
        from heedful.text.column_tokenizer import ColumnTokenizer

        tokenizer = translator.source_tokenizer
        self._tokenizer: Final = tokenizer if isinstance(tokenizer, ColumnTokenizer) else None
        self._unknown: Final = RepeatedWarning(messages, "lines have features that the model does not know")

    @property
    def has_columns(self) -> bool:
        """True for a model whose sources are several columns."""
        return self._tokenizer is not None

    def check(self, texts: Sequence[str], first_index: int) -> None:
        """Check some lines.

        Args:
            first_index: 0-based number of the first.

        Raises:
            DataError: a line that is not empty has another number of columns than the model reads.
        """
        for number, text in enumerate(texts, first_index + 1):
            if self._tokenizer is None or not text.strip():
                continue
            try:
                unknown = self._tokenizer.unknown_features(text)
            except DataError as error:
                advice = "; or name the last one by --as" if self._tokenizer.kinds[-1] == "features" else ""
                raise DataError(f"line {number}: {error}{advice}") from None
            if unknown:
                self._unknown.add(f"line {number}: the model does not know the features {', '.join(unknown)}")

    def close(self) -> None:
        """Print the number of further warnings."""
        self._unknown.close()
