"""Options of translation on the command line: how sources are decoded, and the form in which outputs are written."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from heedful.cli.answered_tables import answer_table, text_of_row, warn_of_cut
from heedful.cli.documents import check_document, translate_document
from heedful.cli.lines import OutputFormat, answer_lines
from heedful.cli.messages import Messages
from heedful.cli.search_options import SearchOptions
from heedful.cli.source_columns import ColumnCheck, source_rows
from heedful.cli.translated_tables import opened_sources, result_cells, result_names, warn_of_tabs
from heedful.cli.written_translations import written_line
from heedful.errors import UsageError
from heedful.text.segments import Policy

if TYPE_CHECKING:
    from heedful.cli.translation_notes import OutputNotes
    from heedful.data.answered_tables import TableRow
    from heedful.engines.text_constraints import TextConstraints
    from heedful.predictors.translation import Translation
    from heedful.predictors.translator import Translator
    from heedful.search.config import SearchConfig


@final
@dataclass(frozen=True)
class Decoding:
    """Options of decoding, and the form in which outputs are written."""

    output_format: OutputFormat
    align: bool
    nbest: int
    batch_tokens: int
    exact: bool
    constraints: "TextConstraints"
    min_confidence: float | None = None
    """Smallest confidence of an output that is given; None = confidence is not computed."""
    segments: Policy = "auto"
    """Parts that are translated by themselves."""
    columns: str = ""
    """Columns of a table that are a source; empty = those of the training data."""
    last_column: str = ""
    """Last column of every source; empty = sources have their own."""
    memory: bool | None = None
    """Whether sources seen in training get their commonest targets; None = as the model says."""

    def refuse_conflicts(self, has_ensemble: bool) -> None:
        """Refuse options that contradict each other.

        Args:
            has_ensemble: whether several models decode together.

        Raises:
            UsageError: some do.
        """
        if self.align and self.nbest > 1 and self.output_format == "text":
            raise UsageError("translate: --align with --nbest needs --format jsonl, which has room for both")
        if self.min_confidence is not None and has_ensemble:
            raise UsageError("translate: --min-confidence is about the outputs of one model: leave out --ensemble")

    def translate(
        self,
        translator: "Translator",
        options: SearchOptions,
        texts: Sequence[str],
        source: Path | None,
        target: Path | None,
        messages: Messages,
    ) -> None:
        """Translate texts: those of the command line as they are, else lines.

        Args:
            options: options of the search.
            texts: texts of the command line; none = the lines of `source`.
            source: a file of lines, or of rows of columns for a model that reads several.
            target: output file; None = standard output.
            messages: where to say which engine runs, and what is noted about outputs.

        Raises:
            UsageError: columns are named for lines, or the search is not for this model.
            DataError: the source is unusable.
        """
        from heedful.predictors.translator import WINDOW_LINES

        search, notes = self._prepared(translator, options, messages)
        window_lines = 1 if self.batch_tokens == 1 else WINDOW_LINES
        column_check = ColumnCheck(translator, messages)
        rows = source_rows(translator, source, self.columns)
        if rows is None:
            warn_of_tabs(source, messages)

        def translations(window: list[str], first_index: int) -> Iterator[tuple[str, bool]]:
            column_check.check(window, first_index)
            for index, (translation, text) in enumerate(self.texts(translator, search, window, first_index)):
                notes.add(first_index + index + 1, translation, self.is_withheld(translation))
                yield text, translation.was_cut

        most = translator.text.max_tokens
        are_whole = not column_check.has_columns
        answer_lines(translations, texts, source, target, messages, window_lines, most, rows=rows, are_whole=are_whole)
        column_check.close()
        notes.close()

    def translate_table(
        self,
        translator: "Translator",
        options: SearchOptions,
        source: Path,
        target: Path | None,
        messages: Messages,
    ) -> None:
        """Give a table back with translations.

        Args:
            options: options of the search.
            source: the table.
            target: output file; None = standard output.
            messages: where to say which column is read, which engine runs, and what is noted about outputs.

        Raises:
            DataError: the file is no table, or lacks the column.
        """
        from heedful.predictors.translator import WINDOW_LINES

        table, columns = opened_sources(source, self.columns, translator.source_language)
        messages.say(f"{source}: texts in column {' and '.join(columns)}")
        search, notes = self._prepared(translator, options, messages)
        text_of = text_of_row(columns)
        num_texts = num_cut = 0

        def read(row: "TableRow") -> tuple[int, str] | None:
            text = text_of(row)
            return None if text is None else (row.line, text)

        def results(rows: list[Any]) -> Iterator[dict[str, Any]]:
            nonlocal num_texts, num_cut
            outputs = self.outputs(translator, search, [text for _, text in rows], num_texts)
            num_texts += len(rows)
            for (line, _), output in zip(rows, outputs, strict=True):
                is_withheld = self.is_withheld(output)
                num_cut += output.was_cut
                notes.add(line, output, is_withheld)
                yield result_cells(output, self.align, is_withheld)

        names = result_names(self.align, self.nbest, self.min_confidence is not None)
        answer_table(table, target, self.output_format, read, results, names, messages, WINDOW_LINES)
        warn_of_cut(messages, source, num_cut, translator.text.max_tokens)
        notes.close()

    def _prepared(
        self, translator: "Translator", options: SearchOptions, messages: Messages
    ) -> "tuple[SearchConfig, OutputNotes]":
        """Search for which the engine is loaded, and notes about its outputs."""
        from heedful.cli.memory_notes import warn_of_damage
        from heedful.cli.scoring import announce_engine
        from heedful.cli.translation_notes import OutputNotes

        self.check_confidence(translator)
        constraints = self.constraints.of_sources(translator.target_tokenizer).strictest
        search = announce_engine(translator, options.search(translator), self.align, messages, constraints, self.exact)
        warn_of_damage(translator, messages)
        return search, OutputNotes(messages, self.min_confidence)

    def check_confidence(self, translator: "Translator") -> None:
        """Refuse a model without confidence where it is wanted, before anything is written.

        Raises:
            UsageError: the model is not calibrated, or the engine gives no attention, which its confidence needs.
        """
        if self.min_confidence is not None:
            from heedful.predictors.confidence import confidence_adder

            confidence_adder(translator.folder, translator.backends.scoring, translator.scored_pairs)

    def translate_document(
        self,
        load: "Callable[[], Translator]",
        options: SearchOptions,
        document: Path,
        target: Path | None,
        messages: Messages,
    ) -> None:
        """Translate a document.

        Args:
            load: function that loads the model.
            options: options of the search.
            document: the file.
            target: file of the same format.
            messages: where to say what was done.

        Raises:
            UsageError: options are given that a document has no use for, or there is no output file.
            DataError: the document cannot be read.
        """
        if self.align or self.nbest > 1 or self.output_format != "text" or self.min_confidence is not None:
            raise UsageError(
                "translate: a document has one output; leave out --align, --nbest, --format, --min-confidence"
            )
        check_document(document, target)
        translator = load()
        settings = {
            "search": options.search(translator),
            "batch_tokens": self.batch_tokens,
            "constraints": self.constraints,
            "exact": self.exact,
            "segments": self.segments,
            "memory": self.memory,
        }
        translate_document(translator, document, target or document, messages, settings)

    def is_withheld(self, output: "Translation") -> bool:
        """Tell whether an output is left out, because its confidence is too small."""
        return output.confidence is not None and output.confidence < (self.min_confidence or 0.0)

    def outputs(
        self, translator: "Translator", search: "SearchConfig", window: Iterable[str], first_index: int
    ) -> "Iterator[Translation]":
        """Translate successive sources.

        Args:
            search: configuration of the search.
            window: the sources.
            first_index: index of the first among all.
        """
        return translator.stream(
            window,
            search,
            self.align,
            self.batch_tokens,
            first_index=first_index,
            constraints=self.constraints,
            exact=self.exact,
            corrected=True,
            confidence=self.min_confidence is not None,
            segments=self.segments,
            memory=self.memory,
        )

    def texts(
        self, translator: "Translator", search: "SearchConfig", window: Iterable[str], first_index: int
    ) -> "Iterator[tuple[Translation, str]]":
        """Translate successive sources, and write each translation.

        Args:
            search: configuration of the search.
            window: the sources.
            first_index: index of the first among all.

        Yields:
            The translation, and the lines that are written of it.
        """
        for index, each in enumerate(self.outputs(translator, search, window, first_index), first_index):
            is_withheld = self.is_withheld(each)
            shown = replace(each, text="", alternatives=(), alignment=()) if is_withheld else each
            withheld = each.text if is_withheld else None
            text = written_line(shown, index, self.output_format, self.align, self.nbest, withheld)
            yield each, text
