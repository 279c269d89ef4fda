"""Data doctor of the other tasks: labelled texts, stories with answers, and images with captions."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar, final

from heedful.data.caption_files import DOUBT, CaptionFile
from heedful.data.captioned import MOST_BROKEN
from heedful.data.corpus import Pair
from heedful.data.damage_signs import has_encoded_data
from heedful.data.findings import LEVELS, RULES, CheckReport, FileFacts, Finding, Level, Role, Rule
from heedful.data.images import ImageConfig, look_at, read_image
from heedful.data.label_check import Sign, file_sign, joined_sign, order_sign, type_sign
from heedful.data.label_kinds import MOST_CHARACTERS, MOST_TOKENS, LabelKind, label_count_fault
from heedful.data.label_split import num_held_out
from heedful.data.labelled import find_labelled
from heedful.data.leakage import TrainingIndex
from heedful.data.passages import answer_place
from heedful.data.row_faults import LEFT_OUT, most_faults
from heedful.data.rows import Columns
from heedful.data.split import MIN_PAIRS, Split
from heedful.data.stories import MOST_WITHOUT, StoryFile, are_spans_missing, find_stories, story_line
from heedful.data.tally import Tally, of_rows
from heedful.errors import DataError
from heedful.text.counts import counted
from heedful.text.label_sets import JOINT, shown_labels, split_labels
from heedful.text.quoting import shortened
from heedful.text.scripts import main_script

Key = TypeVar("Key", bound=Hashable)

_MOST_READ: Final = 5 * MOST_TOKENS
"""Number of characters beyond which training cuts a text of almost any script."""
_TASK_RULES: Final[Mapping[str, Rule]] = {
    "unreadable": Rule("warning", "cannot be read", "training leaves them out"),
    "empty": Rule("warning", "lack a {}", "training leaves them out", 0.01),
    "duplicate": Rule("note", "repeat an earlier row", "training takes each once"),
    "ambiguous": Rule("warning", "have the text of an earlier row, but another label", "decide for one", 0.001),
    "unanswered": Rule("warning", "have no answer", "training leaves them out"),
    "impossible": Rule("note", "have no answer in their facts", "a model of spans learns to say so"),
    "absent": Rule("warning", "have an answer that is no part of the facts", "copy answers from the facts"),
    "misplaced": Rule(
        "warning", "have an answer that is not at its answer_start", "the nearest place counts; correct the offsets"
    ),
    "missing": Rule("warning", "name an image that is not there", "training leaves them out"),
    "broken": Rule("warning", "name a picture that cannot be read", "training leaves them out"),
    "encoded data": Rule(
        "warning", "have a text with a word of 1,000 letters and more", "give texts alone, without encoded pictures"
    ),
    "over-long": Rule(
        "warning", f"have a text of more than {MOST_CHARACTERS:,} characters", "training leaves them out"
    ),
    "cut": Rule(
        "note",
        f"have a text of more than {_MOST_READ:,} characters",
        f"training reads its first {MOST_TOKENS:,} tokens, and n-grams of all of it",
    ),
    "leaked pair": RULES["leaked pair"],
    "leaked source": Rule("warning", "have a text that is in the {} data too, with another label", "", 0.01),
}
_CORRECTED: Final = {
    "missing": "correct the paths, or leave these rows out",
    "broken": "copy the pictures again, or leave these rows out",
}
"""Advice about faults of so many rows that training refuses them."""
_PARTS: Final = {"captioning": "picture or a description"}
"""Parts of a row, if they are not a text and a label."""
_MOST_OPENED: Final = 1_000
"""Number of pictures up to which each is opened."""
_FEW: Final = 5
"""Number of labels that a finding lists."""
_UNEVEN: Final = 0.9
"""Share of a label from which on the others are rare."""
_LONG_LABEL: Final = 200
"""Number of characters from which on a label is more likely a text."""
_MOST_SOURCES: Final = 5_000_000
"""Number of rows up to which texts with several labels are looked for."""


class _Files(NamedTuple):
    """Opened data of a role."""

    pairs: Iterator[Pair]
    form: Callable[[], str]
    notes: Callable[[], Sequence[str]]


def check_task(
    task: str,
    train: Sequence[Path],
    dev: Sequence[Path] = (),
    test: Sequence[Path] = (),
    columns: Columns = (1, 2),
    separator: str = "",
    kind: LabelKind = "one",
) -> CheckReport:
    """Check the data of one training for a task other than translation.

    Args:
        task: "classification", "answering" or "captioning".
        train: one file, or two aligned ones.
        dev: the same for validation; may be empty.
        test: the same for testing; may be empty.
        separator: separator of several labels in a cell.
        kind: kind of the labels that training learns.

    Returns:
        The findings; an unreadable file is a finding too.

    Cost: one pass over each file and some of its images; about 100 bytes of memory per row.
    """
    roles: tuple[tuple[Role, Sequence[Path]], ...] = (("train", train), ("dev", dev), ("test", test))
    readings: list[_Reading] = []
    for role, paths in roles:
        if paths:
            reading = _Reading(task, role, paths, columns, separator, kind, (bool(dev), bool(test)))
            reading.run(readings)
            readings.append(reading)
    findings = [finding for reading in readings for finding in reading.findings(readings[0])]
    findings.sort(key=lambda finding: LEVELS.index(finding.level))
    return CheckReport(tuple(reading.facts() for reading in readings), tuple(findings))


@final
class _Reading:
    """One pass over the files of one role, with all counts."""

    def __init__(
        self,
        task: str,
        role: Role,
        paths: Sequence[Path],
        columns: Columns,
        separator: str,
        kind: LabelKind,
        has_held_out: tuple[bool, bool],
    ) -> None:
        self.role: Final[Role] = role
        self.labels: Final[Counter[str]] = Counter()
        self._first_lines: Final[dict[str, int]] = {}
        self.seen: Final = TrainingIndex()
        self._task: Final = task
        self._paths: Final = tuple(paths)
        self._columns: Final = columns
        self._separator: Final = separator
        self._kind: LabelKind = kind
        self._has_held_out: Final = has_held_out
        self._repeated: Final[Counter[str]] = Counter()
        """Rows of each label that repeat earlier ones."""
        self._label_column: int | str = 2
        self._examples: Final[dict[str, str]] = {}
        """Reason or answer of the first row of some kinds."""
        self._images: ImageConfig | None = None
        self._kinds: Final = Tally[str]()
        self._leaks: Final = Tally[tuple[str, Role]]()
        self._general: Final[list[Finding]] = []
        self._scripts: Final[tuple[Counter[str], Counter[str]]] = (Counter(), Counter())
        self._num_characters = [0, 0]
        self._num_rows = self._num_usable = 0
        self._form = ""

    def run(self, earlier: Sequence["_Reading"]) -> None:
        """Read all files."""
        label_of: dict[int, int] = {}
        block: list[Pair] = []
        try:
            files = self._open()
            self._form = files.form().removeprefix(f"{self._paths[0]}: ")
            for pair in files.pairs:
                self._num_rows += 1
                if not self._look_at(pair, label_of):
                    continue
                block.append(pair)
                if len(block) == 8192:
                    self._compare(block, earlier)
                    block = []
            for note in files.notes():
                where, _, message = note.partition(": ")
                is_harmful = LEFT_OUT in note or DOUBT in note
                self._say("warning" if is_harmful else "note", "file", message, where)
        except DataError as error:
            where, _, message = str(error).partition(": ")
            self._say("error", "file", message, where)
        self._compare(block, earlier)

    def _open(self) -> _Files:
        if self._task == "classification":
            if len(self._paths) == 1:
                self._tell(file_sign(self._paths[0]))
            file = find_labelled(self._paths, self._columns, self._separator, leaves_out_faults=True)
            self._tell(type_sign(file))
            self._label_column = file.columns[1]
            self._kind = "several" if file.has_label_sets else self._kind
            return _Files(iter(file), file.describe, lambda: file.notes)
        if self._task == "captioning":
            images = CaptionFile(self._paths, self._columns, leaves_out_faults=True)
            return _Files(self._with_images(images), images.pairs.describe, lambda: images.notes)
        stories = find_stories(self._paths, leaves_out_faults=True)
        return _Files(self._answered(stories), stories.describe, lambda: stories.notes)

    def _with_images(self, file: CaptionFile) -> Iterator[Pair]:
        known: dict[str, str] = {}
        for pair in file:
            if pair.source and pair.source not in known:
                known[pair.source] = self._fault(file.image(pair), file.where(pair), len(known) < _MOST_OPENED)
            if fault := known.get(pair.source, ""):
                self._kinds.add(fault, pair.line)
            yield pair
        if len(known) > _MOST_OPENED:
            message = f"the first {_MOST_OPENED:,} of {len(known):,} pictures were opened"
            self._say("note", "opened", message, str(file.path), "training opens all of them")

    def _fault(self, path: Path, where: str, is_opened: bool) -> str:
        """Kind of the fault of an image; empty = none is known."""
        if not path.is_file():
            return "missing"
        try:
            if is_opened and self._images is None:
                look = look_at(path, where)
                known = {key: look[key] for key in ("kind", "num_features") if key in look}
                self._images = ImageConfig(**known)
            if is_opened and self._images is not None:
                read_image(path, self._images, where)
        except DataError as error:
            reason = str(error).removeprefix(f"{where}: ")
            self._examples.setdefault("broken", reason.rpartition("; ")[0] or reason)
            return "broken"
        return ""

    def _answered(self, file: StoryFile) -> Iterator[Pair]:
        for number, story in file:
            if story.is_impossible:
                self._kinds.add("impossible", number)
            elif not story.answer:
                self._kinds.add("unanswered", number)
            elif answer_place(story) is None:
                self._kinds.add("absent", number)
                self._examples.setdefault("absent", shortened(story.answer))
            if story.is_misplaced:
                self._kinds.add("misplaced", number)
                self._examples.setdefault("misplaced", shortened(story.answer))
            yield Pair(story_line(story), story.answer or ("none" if story.is_impossible else " "), number)

    def _look_at(self, pair: Pair, label_of: dict[int, int]) -> bool:
        """Record the findings about a row, and return whether training would use it."""
        source, target, line = pair[:3]
        if not source.strip() or not target.strip():
            if self._task != "answering":
                self._kinds.add("empty", line)
            return False
        if self._task == "classification" and not self._fits(source, line):
            return False
        self._num_usable += 1
        for side, text in enumerate((source, target)):
            self._num_characters[side] += len(text)
            self._scripts[side][main_script(text)] += 1
        if self._task == "classification":
            for label in _labels_of(target):
                self.labels[label] += 1
                self._first_lines.setdefault(label, line)
        if self._task != "captioning" and len(label_of) < _MOST_SOURCES:
            text, label = hash(source.strip()), hash(target.strip())
            known = label_of.setdefault(text, label)
            if known != label:
                self._kinds.add("ambiguous", line)
        return True

    def _fits(self, text: str, line: int) -> bool:
        """Record the findings about the length of a text, and return whether training takes it."""
        if len(text) > MOST_CHARACTERS:
            self._kinds.add("over-long", line)
            return False
        if len(text) > _MOST_READ:
            self._kinds.add("cut", line)
        if has_encoded_data(text):
            self._kinds.add("encoded data", line)
        return True

    def _compare(self, block: Sequence[Pair], earlier: Sequence["_Reading"]) -> None:
        if not block:
            return
        met = self.seen.add(block)
        for index in met.pair.nonzero()[0].tolist():
            self._kinds.add("duplicate", block[index].line)
            if self._task == "classification":
                self._repeated.update(_labels_of(block[index].target))
        for other in earlier:
            sighting = other.seen.find(block)
            for kind, flags in (("leaked pair", sighting.pair), ("leaked source", sighting.source & ~sighting.pair)):
                if self._task != "captioning" or kind == "leaked pair":
                    for index in flags.nonzero()[0].tolist():
                        self._leaks.add((kind, other.role), block[index].line)

    def _tell(self, sign: Sign | None) -> None:
        if sign:
            where = f"{self._paths[0]}{f':{sign.line}' if sign.line else ''}"
            self._say(sign.level, sign.kind, sign.message, where, sign.advice)

    def _say(self, level: Level, kind: str, message: str, where: str, advice: str = "") -> None:
        self._general.append(Finding(level, kind, message.removeprefix(f"{where}: "), where, advice))

    def findings(self, train: "_Reading") -> list[Finding]:
        """Return all findings.

        Args:
            train: reading of the training data.
        """
        limits = {"absent": MOST_WITHOUT, "missing": MOST_BROKEN, "broken": MOST_BROKEN}
        unusable = self._kinds.total(("missing", "broken"))
        for kind in _TASK_RULES:
            if count := self._kinds.counts.get(kind, 0):
                number = unusable if kind in ("missing", "broken") else count
                is_refused = kind in limits and number > most_faults(self._num_rows, limits[kind])
                # Answers that are no part of their facts are labels, unless most are spans.
                is_refused = is_refused and (kind != "absent" or 2 * count < self._num_rows)
                if kind == "absent" and not are_spans_missing(count, self._num_rows):
                    continue
                parts = _PARTS.get(self._task, "text or a label") if kind == "empty" else ""
                self._add(kind, self._kinds, [kind], parts, level="error" if is_refused else None)
        for kind, role in self._leaks.counts:
            self._add(kind, self._leaks, [(kind, role)], role)
        if self._task == "classification":
            self._judge_labels(train)
        if self.role == "train" and self._num_usable < MIN_PAIRS and not any(f.level == "error" for f in self._general):
            message = f"{counted(self._num_usable, 'row')} to learn from; training needs at least {MIN_PAIRS}"
            self._say("error", "few rows", message, str(self._paths[0]))
        return self._general

    def _add(
        self, kind: str, tally: Tally[Key], keys: Sequence[Key], other: str = "", level: Level | None = None
    ) -> None:
        rule, count, lines = _TASK_RULES[kind], tally.total(keys), tally.lines(keys)
        usual: Level = rule.level if count >= rule.least_share * self._num_rows else "note"
        message = of_rows(count, self._num_rows, rule.what.format(other))
        if kind in self._examples:
            message += f"; the first: {self._examples[kind]}"
        where = f"{self._paths[0]}:{lines[0]}"
        advice = _CORRECTED.get(kind, rule.advice) if level == "error" else rule.advice
        self._general.append(Finding(level or usual, kind, message, where, advice, count, lines))

    def _judge_labels(self, train: "_Reading") -> None:
        path = str(self._paths[0])
        if self.role != "train":
            if others := [label for label in self.labels if train.labels and label not in train.labels]:
                number = counted(sum(self.labels[label] for label in others), "row")
                message = f"{number} with labels that no training text has: {_listed(others)}"
                self._say("warning", "unseen labels", message, f"{path}:{self._first_lines[others[0]]}")
            return
        if len(self.labels) == 1:
            (label,) = self.labels
            self._say("error", "one label", f"every row has the label {shortened(label)}", path, "give rows of another")
            return
        if self._kind == "number":
            return
        is_sized = not self._judge_sizes(path)
        self._tell(joined_sign(self.labels) if self._kind == "one" else None)
        if is_sized:
            self._tell(order_sign(self.labels) if self._kind == "one" else None)
            self._judge_single(path)
        folded: dict[str, list[str]] = defaultdict(list)
        for label in self.labels:
            folded[" ".join(label.casefold().split())].append(label)
        if alike := [" and ".join(map(shortened, own)) for own in folded.values() if len(own) > 1]:
            advice = "if they are one, write them alike"
            line = min(self._first_lines[own[1]] for own in folded.values() if len(own) > 1)
            message = f"labels that differ only in case or spaces: {'; '.join(alike[:_FEW])}"
            self._say("warning", "alike labels", message, f"{path}:{line}", advice)
        (label, number), *_ = self.labels.most_common(1) or [("", 0)]
        if number > _UNEVEN * self._num_usable:
            share = 100 * number / self._num_usable
            message = f"{share:.0f} % of the rows have the label {shortened(shown_labels(label))}"
            self._say("note", "uneven labels", message, path, "macro-F1 counts each label the same")

    def _judge_single(self, path: str) -> None:
        if few := [label for label, number in self.labels.items() if number == 1 and label != JOINT]:
            message = f"{counted(len(few), 'label')} of {len(self.labels):,} with one row: {_listed(few)}"
            advice = "give more rows, or leave them out"
            self._say("warning", "single rows", message, f"{path}:{self._first_lines[few[0]]}", advice)

    def _judge_sizes(self, path: str) -> bool:
        """Look for labels that are so long that they are texts, or too many to be learned, and return whether they are.

        Rows that training holds out are not learned from.
        """
        num_rows = self._num_usable - self._kinds.counts.get("duplicate", 0)
        if self._kind != "several":
            split = Split(num_rows, *self._has_held_out)
            num_rows -= num_held_out(self.labels - self._repeated, split.dev_share, split.test_share)
        fault = label_count_fault(len(self.labels), num_rows, self._label_column)
        is_fault = bool(fault) and self._num_usable >= MIN_PAIRS
        if is_fault:
            self._say("error", "many labels", fault, path)
        if long := [label for label in self.labels if len(label) > _LONG_LABEL]:
            message = f"{counted(len(long), 'label')} of more than {_LONG_LABEL} characters: {_listed(long)}"
            advice = "name the columns of text and label with --columns TEXT,LABEL"
            self._say("warning", "long labels", message, f"{path}:{self._first_lines[long[0]]}", advice)
        return is_fault

    def facts(self) -> FileFacts:
        """Return the figures."""
        means = [characters / max(1, self._num_usable) for characters in self._num_characters]
        files = tuple(map(str, self._paths))
        scripts = dict(self._scripts[0]), dict(self._scripts[1])
        return FileFacts(self.role, files, self._num_rows, self._num_usable, (means[0], means[1]), scripts, self._form)


def _labels_of(target: str) -> tuple[str, ...]:
    return split_labels(target.strip()) or (target.strip(),)


def _listed(labels: Sequence[str]) -> str:
    more = ", ..." if len(labels) > _FEW else ""
    return ", ".join(map(shortened, labels[:_FEW])) + more
