"""Data doctor: a single pass over data files that finds problems which would stop or spoil training.

Errors stop training, warnings harm a model or its scores, notes are for information. The report counts and locates
texts, but never quotes them.
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from math import log
from pathlib import Path
from typing import Final, NamedTuple, TypeVar, final

import numpy as np

from heedful.data.cells import suffix_of
from heedful.data.corpus import SHORT_ITEMS, Pair, check_columns, check_one_side, find_pairs, row_format
from heedful.data.damage_signs import find_signs
from heedful.data.findings import LEVELS, RULES, USUAL_OF_WORDS, CheckReport, FileFacts, Finding, Level, Role
from heedful.data.leakage import TrainingIndex
from heedful.data.row_faults import most_faults
from heedful.data.rows import Columns
from heedful.data.split import MIN_PAIRS, SourceSpread, Split
from heedful.data.tables import check_data_file, data_lines
from heedful.data.tally import Tally, far_from_median, of_rows
from heedful.data.text_columns import is_header
from heedful.errors import DataError
from heedful.text.columns import ColumnKind, text_columns
from heedful.text.counts import counted
from heedful.text.lines import Lines
from heedful.text.scripts import main_script
from heedful.text.text_files import unequal

_BLOCK_PAIRS: Final = 8192
_FEW_PAIRS: Final[dict[Role, int]] = {"train": 1_000, "dev": 50, "test": 50}

# Length ratios: log((target + PRIOR) / (source + PRIOR)) in bins. The prior keeps short texts from being outliers.
_PRIOR_CHARACTERS: Final = 5.0
_BINS_PER_UNIT: Final = 50.0
_USUAL_DEVIATIONS: Final = 6.0
_USUAL_FACTOR: Final = 2.5

# Targets are labels if at most so many differ, and each occurs so often on average.
_MOST_LABELS: Final = 50
_LEAST_TEXTS_PER_LABEL: Final = 20

UNREADABLE: Final = ("row", "encoding", "nul")
"""Kinds of rows that cannot be read."""
_PURPOSES: Final[dict[Role, str]] = {"train": "learn from", "dev": "choose by", "test": "measure on"}
_SCRIPT_KINDS: Final = ("swapped", "source script", "target script", "script", "no letters")
_KIN: Final = {("Japanese", "Han"): "Japanese"}

Key = TypeVar("Key", bound=Hashable)


def check_corpus(
    train: Sequence[Path],
    dev: Sequence[Path] = (),
    test: Sequence[Path] = (),
    columns: Columns = (1, 2),
    max_characters: int = 2_000,
    are_summaries: bool = False,
) -> CheckReport:
    """Check the data of one experiment.

    Args:
        train: one file or two aligned ones.
        dev: the same for validation; may be empty.
        test: the same for testing; may be empty.
        max_characters: longer texts are left out of training.
        are_summaries: whether targets are summaries, for which training cuts their sources.

    Returns:
        The findings; an unreadable file is a finding too.

    Cost: one pass over each file; 32 bytes of memory per row.
    """
    readings: list[_Reading] = []
    settings = _Settings(max_characters, are_summaries, bool(dev), bool(test))
    roles: tuple[tuple[Role, Sequence[Path]], ...] = (("train", train), ("dev", dev), ("test", test))
    for role, paths in roles:
        if paths:
            check_columns(paths, columns)
            reading = _Reading(role, paths, columns, settings)
            reading.run(readings)
            readings.append(reading)
    findings = [finding for reading in readings for finding in reading.findings()]
    findings.sort(key=lambda finding: LEVELS.index(finding.level))
    return CheckReport(tuple(reading.facts() for reading in readings), tuple(findings))


class _Settings(NamedTuple):
    """Settings of the training that data are checked for."""

    max_characters: int
    are_summaries: bool
    has_dev: bool
    has_test: bool


@final
class _Reading:
    """One pass over the files of one role, with all counts."""

    def __init__(self, role: Role, paths: Sequence[Path], columns: Columns, settings: _Settings) -> None:
        self._settings: Final = settings
        self._spread: Final = SourceSpread()
        self.role: Final[Role] = role
        self.seen: Final = TrainingIndex()
        self._paths: Final = tuple(paths)
        self._columns: Final = columns
        self._read: Final[list[Lines]] = []
        self._num_inner_breaks = 0
        """Line breaks inside quoted cells."""
        self._general: Final[list[Finding]] = []
        self._first_message: Final[dict[str, str]] = {}
        self._kinds: Final = Tally[str]()
        self._ratios: Final = Tally[int]()
        self._scripts: Final = Tally[tuple[str, str]]()
        self._leaks: Final = Tally[tuple[str, Role]]()
        self._num_rows = self._num_usable = 0
        self._num_characters = [0, 0]
        self._form = "aligned lines"
        self._kinds_of_columns: tuple[ColumnKind, ...] = ()
        self._labels: set[str] = set()

    def run(self, earlier: Sequence["_Reading"]) -> None:
        """Read all files; rows that occurred in `earlier` passes are reported."""
        pairs = self._pairs()
        while block := list(islice(pairs, _BLOCK_PAIRS)):
            usable = [pair for pair in block if self._look_at(pair)]
            for pair in usable:
                self._spread.add(pair)
            self._num_usable += len(usable)
            self._compare(usable, earlier)
        for lines in self._read:
            self._describe(lines)

    def _say(self, level: Level, kind: str, message: str, where: str, advice: str = "") -> None:
        self._general.append(Finding(level, kind, message, where, advice))

    def _refuse(self, kind: str, error: DataError) -> None:
        where, _, message = str(error).partition(": ")
        self._say("error", kind, message, where)

    # ------------------------------------------------------------------------------------------------- reading
    def _pairs(self) -> Iterator[Pair]:
        for path in self._paths:
            try:
                check_data_file(path)
            except DataError as error:
                self._refuse("file", error)
        if self._general:
            return iter(())
        return self._pairs_of_two() if len(self._paths) == 2 else self._pairs_of_one(self._paths[0])

    def _pairs_of_one(self, path: Path) -> Iterator[Pair]:
        bad: set[int] = set()
        lines, head = self._marked(path, bad), [""]
        while not head[-1] and (line := next(lines, None)) is not None:
            head.append(line)
        if not head[-1]:
            self._num_rows = len(head) - 1
            yield from (Pair("", "", number) for number in range(1, len(head)))
            return
        first = len(head) - 1
        try:
            rows = row_format(path, head[-1], first, self._columns)
            if rows.source_names:
                self._kinds_of_columns = find_pairs([path], self._columns, True).source_kinds
        except DataError as error:
            self._refuse("columns", error)
            return
        self._form = rows.describe()
        for record in rows.records(chain(head[1:], lines)):
            self._num_rows += 1
            self._num_inner_breaks += record.end - record.line
            if record.line == first and rows.has_header:
                self._leave_out(path, first)
            elif not record.text:
                yield Pair("", "", record.line)
            elif bad.isdisjoint(range(record.line, record.end + 1)):
                try:
                    yield Pair(*rows.cells(record.text, str(path), record.line), record.line)
                except DataError as error:
                    self._first_message.setdefault("row", str(error))
                    self._kinds.add("row", record.line)

    def _marked(self, path: Path, bad: set[int]) -> Iterator[str]:
        """Lines of a file; the numbers of those that are not UTF-8 are added to a set."""
        for number, line in self._texts(path):
            if line is None:
                bad.add(number)
            yield line or "\ufffd" * (line is None)

    def _pairs_of_two(self) -> Iterator[Pair]:
        source_path, target_path = (self._paths[int(column) - 1] for column in self._columns)
        try:
            for path, other in zip(self._paths, reversed(self._paths), strict=True):
                check_one_side(path, other, next(filter(None, data_lines(path, bad_bytes="replace")), ""))
        except DataError as error:
            self._refuse("columns", error)
            return
        for source, target in zip_longest(self._texts(source_path), self._texts(target_path)):
            if source is None or target is None:
                # If reading one file broke off, that is reported already, so the surplus lines of the other are not.
                if not any(finding.kind == "reading" for finding in self._general):
                    self._say("error", "counts", str(unequal(*self._paths)), str(self._paths[0]))
                return
            self._num_rows += 1
            (number, source_text), (_, target_text) = source, target
            if source_text is None or target_text is None:
                continue
            if number == 1 and is_header(source_text, target_text):
                self._leave_out(source_path, number)
            else:
                yield Pair(source_text, target_text, number)

    def _leave_out(self, path: Path, number: int) -> None:
        self._num_rows -= 1
        self._say("note", "headings", "headings, left out", f"{path}:{number}")

    def _texts(self, path: Path) -> Iterator[tuple[int, str | None]]:
        """Lines with their numbers; None for a line that is not UTF-8."""
        lines = data_lines(path, bad_bytes="replace")
        self._read.append(lines)
        num_bad = 0
        try:
            for number, text in enumerate(lines, start=1):
                is_bad = lines.num_replaced > num_bad
                num_bad = lines.num_replaced
                if is_bad:
                    self._first_message.setdefault("encoding", lines.first_replaced)
                    self._kinds.add("encoding", number)
                if "\0" in text:
                    self._kinds.add("nul", number)
                yield number, None if is_bad else text
        except DataError as error:
            self._refuse("reading", error)

    def _describe(self, lines: Lines) -> None:
        if lines.had_byte_order_mark:
            self._say("note", "byte order mark", "byte order mark, left out", f"{lines.name}:1")
        num_ends = lines.num_lines - self._num_inner_breaks
        if suffix_of(Path(lines.name)) == ".csv" and lines.num_carriage_returns == num_ends:
            return  # as CSV is written: RFC 4180
        if lines.num_carriage_returns == lines.num_lines > 0:
            self._say("note", "line ends", "lines end in CR LF, read as LF", lines.name)
        elif lines.num_carriage_returns:
            mixed = f"{lines.num_carriage_returns:,} of {lines.num_lines:,} lines end in CR LF, the others in LF"
            self._say("note", "line ends", mixed, lines.name)

    # ------------------------------------------------------------------------------------------------ counting
    def _look_at(self, pair: Pair) -> bool:
        """Record the findings about a row, and return whether training would use it."""
        source, target, line = pair[:3]
        if not source.strip() or not target.strip():
            self._kinds.add("empty", line)
            return False
        if max(len(source), len(target)) > self._settings.max_characters:
            self._kinds.add("too long", line)
            return False
        source = text_columns(source, self._kinds_of_columns)
        for sign in {*find_signs(source), *find_signs(target)}:
            self._kinds.add(sign, line)
        if source == target:
            self._kinds.add("identical", line)
        if len(self._labels) <= _MOST_LABELS:
            self._labels.add(target.strip())
        self._scripts.add((main_script(source), main_script(target)), line)
        ratio = log((len(target) + _PRIOR_CHARACTERS) / (len(source) + _PRIOR_CHARACTERS))
        self._ratios.add(round(ratio * _BINS_PER_UNIT), line)
        self._num_characters[0] += len(source)
        self._num_characters[1] += len(target)
        return True

    def _compare(self, usable: Sequence[Pair], earlier: Sequence["_Reading"]) -> None:
        met = self.seen.add(usable)
        repeated = {
            "duplicate": met.pair,
            "near duplicate": met.folded_pair & ~met.pair,
            "ambiguous": met.source & ~met.folded_pair,
        }
        for kind, flags in repeated.items():
            for index in np.flatnonzero(flags).tolist():
                self._kinds.add(kind, usable[index].line)
        for other in earlier:
            overlap = other.seen.find(usable)
            leaked = {
                "leaked pair": overlap.pair,
                "leaked near pair": overlap.folded_pair & ~overlap.pair,
                "leaked source": overlap.source & ~overlap.folded_pair,
                "leaked near source": overlap.folded_source & ~overlap.folded_pair & ~overlap.source,
            }
            for kind, flags in leaked.items():
                for index in np.flatnonzero(flags).tolist():
                    self._leaks.add((kind, other.role), usable[index].line)

    # ----------------------------------------------------------------------------------------------- reporting
    def facts(self) -> FileFacts:
        """Return the figures."""
        means = [characters / max(1, self._num_usable) for characters in self._num_characters]
        scripts = self._script_counts()
        files = tuple(str(path) for path in self._paths)
        return FileFacts(self.role, files, self._num_rows, self._num_usable, (means[0], means[1]), scripts, self._form)

    def _script_counts(self) -> tuple[dict[str, int], dict[str, int]]:
        sides: tuple[dict[str, int], dict[str, int]] = ({}, {})
        for pair, count in sorted(self._scripts.counts.items(), key=lambda item: -item[1]):
            for side, script in zip(sides, pair, strict=True):
                side[script] = side.get(script, 0) + count
        return sides

    @property
    def _is_of_short_items(self) -> bool:
        """Whether texts are about as long as words, of which many stay as they are."""
        return max(self._num_characters) <= SHORT_ITEMS * max(1, self._num_usable)

    def findings(self) -> list[Finding]:
        """Return all findings."""
        findings = [*self._general]
        for kind in RULES:
            if kind in self._kinds.counts:
                named = USUAL_OF_WORDS.get(kind, kind) if self._is_of_short_items else kind
                findings.append(self._counted(named, self._kinds, [kind]))
        if self._is_labelled:
            message = f"targets are {counted(len(self._labels), 'label')}"
            advice = "to learn them: heedful train --task classification"
            findings.append(Finding("note", "labels", message, str(self._paths[0]), advice))
        else:
            findings += self._unlike_sides()
        findings.extend(self._counted(kind, self._leaks, [(kind, role)], role) for kind, role in self._leaks.counts)
        # If anything else stops training, a small number of rows is no further finding.
        if not any(finding.level == "error" for finding in findings):
            findings.extend(self._too_few())
        return findings

    def _too_few(self) -> Iterator[Finding]:
        few, path = _FEW_PAIRS[self.role], self._paths[0]
        num_different = self._num_usable - self._kinds.counts.get("duplicate", 0)
        if self.role == "train" and 0 < num_different < MIN_PAIRS:
            message = f"{counted(num_different, 'different row')} to learn from; training needs at least {MIN_PAIRS}"
            yield Finding("error", "few rows", message, str(path), f"have {few:,} or more")
            return
        if self._num_usable < few:
            level: Level = "error" if self._num_usable == 0 else "warning" if self.role == "train" else "note"
            message = f"{counted(self._num_usable, 'row')} to {_PURPOSES[self.role]}"
            yield Finding(level, "few rows", message, str(path), f"have {few:,} or more")
        if self.role == "train" and num_different:
            try:
                self._spread.check(Split(num_different, self._settings.has_dev, self._settings.has_test), path)
            except DataError as error:
                where, _, message = str(error).partition(": ")
                yield Finding("error", "few sources", message, where)

    @property
    def _is_labelled(self) -> bool:
        """Whether the targets are labels, to which the comparisons of the two sides do not apply."""
        num_labels = len(self._labels)
        return 0 < num_labels <= _MOST_LABELS and self._num_usable >= num_labels * _LEAST_TEXTS_PER_LABEL

    def _unlike_sides(self) -> list[Finding]:
        """Findings about rows whose sides differ in length or script from those of other rows."""
        findings: list[Finding] = []
        far = far_from_median(self._ratios.counts, _USUAL_DEVIATIONS, log(_USUAL_FACTOR) * _BINS_PER_UNIT)
        if self._settings.are_summaries:  # those of long and of short texts are about as long
            if self.role == "train":
                advice = "training cuts long sources, and copies words from them"
                where = str(self._paths[0])
                findings.append(Finding("note", "summaries", "targets are summaries of their sources", where, advice))
        elif far:
            findings.append(self._counted("ratio", self._ratios, far))
        findings.extend(self._counted(kind, self._scripts, keys) for kind, keys in self._odd_scripts().items() if keys)
        return findings

    def _counted(self, kind: str, tally: Tally[Key], keys: Sequence[Key], other: str = "") -> Finding:
        rule = RULES[kind]
        count, lines = tally.total(keys), tally.lines(keys)
        level = rule.level if count >= rule.least_share * self._num_rows else "note"
        if kind in UNREADABLE and self._kinds.total(UNREADABLE) <= most_faults(self._num_rows):
            level = "warning"  # training leaves them out
        message = of_rows(count, self._num_rows, rule.what.format(other))
        where, _, first = self._first_message.get(kind, "").partition(": ")
        if first:
            message += f"; the first: {first}"
        return Finding(level, kind, message, where or f"{self._paths[0]}:{lines[0]}", rule.advice, count, lines)

    def _odd_scripts(self) -> dict[str, list[tuple[str, str]]]:
        """Classify unusual combinations of scripts by their probable cause."""
        counts = [{script: count for script, count in side.items() if script} for side in self._script_counts()]
        mains = [max(side, key=lambda script: side[script], default="") for side in counts]
        odd: dict[str, list[tuple[str, str]]] = {kind: [] for kind in _SCRIPT_KINDS}
        for pair in self._scripts.counts:
            # A Japanese text without kana looks Chinese.
            sides = [_KIN.get((main, script), script) for main, script in zip(mains, pair, strict=True)]
            differs = [side not in ("", main) for side, main in zip(sides, mains, strict=True)]
            if sides == mains[::-1] and all(differs):
                odd["swapped"].append(pair)
            elif differs[0] and sides[0] == mains[1]:
                odd["source script"].append(pair)
            elif differs[1] and sides[1] == mains[0]:
                odd["target script"].append(pair)
            elif any(differs):
                odd["script"].append(pair)
            elif ("" in pair) and pair != ("", "") and all(mains):
                odd["no letters"].append(pair)
        return odd
