"""Findings of the data doctor: kinds, severity and the report."""

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple

from heedful.text.counts import counted

Level = Literal["error", "warning", "note"]
Role = Literal["train", "dev", "test"]

LEVELS: Final[tuple[Level, ...]] = ("error", "warning", "note")


class Rule(NamedTuple):
    """Kind of finding about rows."""

    level: Level
    what: str
    """Text after "n of m rows"; {} is replaced by the other data concerned."""
    advice: str = ""
    least_share: float = 0.0
    """Share of the rows below which the finding is only a note."""


_LEFT_OUT: Final = "training leaves them out"
_UNTRANSLATED: Final = "check whether they were left untranslated"
_LEAKED: Final = "scores measured on them are too good; remove them from one of the two"
RULES: Final = {
    "encoding": Rule("error", "are not UTF-8"),
    "row": Rule("error", "cannot be split into source and target"),
    "nul": Rule("error", "contain the character NUL", "remove it: tr -d '\\000'"),
    "empty": Rule("warning", "are empty on one or both sides", _LEFT_OUT, 0.01),
    "too long": Rule("warning", "are over-long", f"{_LEFT_OUT}; cut them up, or raise text.max_characters", 0.01),
    "duplicate": Rule("warning", "repeat an earlier row", "training counts them as often as they occur", 0.05),
    "near duplicate": Rule("note", "repeat an earlier row up to case and spaces", "use one spelling"),
    "ambiguous": Rule("note", "have the source of an earlier row, but another target", "several answers may be right"),
    "identical": Rule("warning", "have the same text on both sides", "remove untranslated rows", 0.02),
    "repeated": Rule("note", "repeat an earlier row", "training counts them as often as they occur"),
    "unchanged": Rule("note", "have the same text on both sides", "words that stay as they are count like others"),
    "replacement": Rule("warning", "contain U+FFFD, where text was lost", "recreate the file from its original"),
    "mojibake": Rule("warning", "hold UTF-8 read as Latin-1, as in 'fÃ¼r'", "recreate the file from its original"),
    "control": Rule("warning", "contain control characters or Unicode line separators", "replace them by spaces"),
    "line break": Rule("warning", "contain line feeds", "replace them by spaces: output has one line per text"),
    "bidirectional": Rule(
        "warning", "contain invisible marks of writing direction", "remove them unless they are intended"
    ),
    "invisible": Rule("note", "contain soft hyphens or zero-width characters", "remove them unless they are intended"),
    "private use": Rule("note", "contain private-use characters", "they are meaningless without their font"),
    "markup": Rule("warning", "contain HTML entities or tags", "replace them by the characters they stand for"),
    "decomposed": Rule("note", "are not in Unicode normal form C", "training normalizes them"),
    "ratio": Rule("warning", "have sides of unusually different lengths", "check whether they belong together", 0.001),
    "swapped": Rule("warning", "have source and target in each other's script", "swap them back"),
    "source script": Rule("warning", "have a source in the script of the targets", _UNTRANSLATED, 0.01),
    "target script": Rule("warning", "have a target in the script of the sources", _UNTRANSLATED, 0.01),
    "script": Rule("note", "are in another script than the rest of their side", "check whether they belong here"),
    "no letters": Rule("note", "have letters on one side only", "check whether a text was lost"),
    "leaked pair": Rule("warning", "are in the {} data too", _LEAKED),
    "leaked near pair": Rule("warning", "are in the {} data too, up to case and spaces", _LEAKED),
    "leaked source": Rule("warning", "have a source that is in the {} data too", _LEAKED, 0.01),
    "leaked near source": Rule("note", "have a source that is in the {} data too, up to case and spaces", _LEAKED),
}
"""All kinds of findings about rows, in the order of a report."""
USUAL_OF_WORDS: Final = {"duplicate": "repeated", "identical": "unchanged"}
"""Findings that are usual where texts are words, and how they are told there."""


@dataclass(frozen=True)
class Finding:
    """Finding about the data."""

    level: Level
    kind: str
    message: str
    where: str
    """File, with the first line concerned, if any."""
    advice: str = ""
    count: int = 1
    lines: tuple[int, ...] = ()
    """First few lines concerned, 1-based."""

    def __str__(self) -> str:
        lines = f" (lines {', '.join(map(str, self.lines))}{', ...' if self.count > len(self.lines) else ''})"
        more = lines if len(self.lines) > 1 else ""
        return f"{self.level}: {self.where}: {self.message}{more}{f'; {self.advice}' if self.advice else ''}"


@dataclass(frozen=True)
class FileFacts:
    """Figures of the files of one role."""

    role: Role
    files: tuple[str, ...]
    num_rows: int
    num_usable: int
    """Rows with text on both sides that are not too long."""
    mean_characters: tuple[float, float]
    """Mean characters of the usable rows' sources and targets."""
    scripts: tuple[dict[str, int], dict[str, int]]
    """Usable rows by the script of most of their letters, sources and targets; "" without letters."""
    form: str
    """Description of the file format and the columns read."""


@dataclass(frozen=True)
class CheckReport:
    """Report of all findings, the most severe first."""

    files: tuple[FileFacts, ...]
    findings: tuple[Finding, ...]

    def count(self, level: Level) -> int:
        """Count findings.

        Returns:
            Their number.
        """
        return sum(1 for finding in self.findings if finding.level == level)

    def summary(self) -> str:
        """Return the number of findings on one line.

        Returns:
            Such as "29,000 rows: 0 errors, 1 warning, 2 notes".
        """
        counts = [(level, self.count(level)) for level in LEVELS]
        said = ", ".join(counted(count, level) for level, count in counts)
        return f"{counted(sum(facts.num_rows for facts in self.files), 'row')}: {said}"

    def to_json(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold.

        Returns:
            "summary", "files" and "findings".
        """
        return {"summary": self.summary(), **asdict(self)}
