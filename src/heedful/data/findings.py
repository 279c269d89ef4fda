"""Findings of the data doctor: kinds, severity and the report."""

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple

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
    """Share of the rows below which it is only a note."""


_LEFT_OUT: Final = "training leaves them out"
_UNTRANSLATED: Final = "see whether they were left untranslated"
_LEAKED: Final = "figures measured on them flatter; take them out of one of the two"
RULES: Final = {
    "encoding": Rule("error", "are not UTF-8"),
    "row": Rule("error", "cannot be taken apart"),
    "nul": Rule("error", "hold the character NUL", "remove it: tr -d '\\000'"),
    "empty": Rule("warning", "have nothing on one side or on both", _LEFT_OUT, 0.01),
    "too long": Rule("warning", "are over-long", f"{_LEFT_OUT}; cut them up, or raise text.max_characters", 0.01),
    "duplicate": Rule("warning", "repeat an earlier row", "training keeps the first of each", 0.05),
    "near duplicate": Rule("note", "repeat an earlier row but for case and spaces", "decide on one spelling"),
    "ambiguous": Rule("note", "have the source of an earlier row and another target", "several answers may be right"),
    "identical": Rule("warning", "have the same text on both sides", "remove what was left untranslated", 0.02),
    "replacement": Rule("warning", "hold U+FFFD, where text was lost", "make the file from its original again"),
    "mojibake": Rule("warning", "hold UTF-8 read as Latin-1, as in 'fÃ¼r'", "make the file from its original again"),
    "control": Rule("warning", "hold control characters or Unicode line separators", "replace them by spaces"),
    "line break": Rule("warning", "hold line feeds", "replace them by spaces: output is one line for each text"),
    "bidirectional": Rule("warning", "hold invisible marks of writing direction", "remove them unless they are meant"),
    "invisible": Rule("note", "hold soft hyphens or zero-width characters", "remove them unless they are meant"),
    "private use": Rule("note", "hold private-use characters", "they mean nothing without the font they were made for"),
    "markup": Rule("warning", "hold HTML entities or tags", "replace them by the characters they stand for"),
    "decomposed": Rule("note", "are not in Unicode normal form C", "training normalizes them"),
    "ratio": Rule("warning", "have sides of unusually different lengths", "see whether they belong together", 0.001),
    "swapped": Rule("warning", "have source and target in each other's script", "swap them back"),
    "source script": Rule("warning", "have a source in the script of the targets", _UNTRANSLATED, 0.01),
    "target script": Rule("warning", "have a target in the script of the sources", _UNTRANSLATED, 0.01),
    "script": Rule("note", "are in another script than the rest of their side", "see whether they belong here"),
    "no letters": Rule("note", "have letters on one side only", "see whether a text was lost"),
    "leaked pair": Rule("warning", "are in the {} data too", _LEAKED),
    "leaked near pair": Rule("warning", "are in the {} data too, but for case and spaces", _LEAKED),
    "leaked source": Rule("warning", "have a source that is in the {} data too", _LEAKED, 0.01),
    "leaked near source": Rule("note", "have a source that is in the {} data too, but for case and spaces", _LEAKED),
}
"""All kinds of findings about rows, in the order of a report."""


@dataclass(frozen=True)
class Finding:
    """Finding about the data."""

    level: Level
    kind: str
    message: str
    where: str
    """File, with the first line where there is one."""
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
    """The format of the files and the columns read, in words."""


@dataclass(frozen=True)
class CheckReport:
    """Report of all findings, the gravest first."""

    files: tuple[FileFacts, ...]
    findings: tuple[Finding, ...]

    def count(self, level: Level) -> int:
        """Count findings.

        Args:
            level: of which level.

        Returns:
            How many there are.
        """
        return sum(1 for finding in self.findings if finding.level == level)

    def summary(self) -> str:
        """Return the number of findings on one line.

        Returns:
            Such as "29,000 rows: 0 errors, 1 warning, 2 notes".
        """
        counts = [(level, self.count(level)) for level in LEVELS]
        said = ", ".join(f"{count} {level}{'' if count == 1 else 's'}" for level, count in counts)
        return f"{sum(facts.num_rows for facts in self.files):,} rows: {said}"

    def to_json(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold.

        Returns:
            "summary", "files" and "findings".
        """
        return {"summary": self.summary(), **asdict(self)}
