"""Tokenizer of sources of several columns: texts by a tokenizer of their own, features as whole tokens."""

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, final, get_args

from heedful.errors import DamagedFile, DataError, FileRefused
from heedful.files.bounded_read import MOST_BULK_BYTES, read_json
from heedful.files.formats import COLUMNS_FORMAT
from heedful.text.columns import COLUMN_SEPARATOR, FEATURE_SEPARATOR, ColumnKind, split_columns
from heedful.text.folding import Normalization, normal_form
from heedful.text.known_letters import KnownLetters
from heedful.text.tokenizer import PieceTokenizer, Tokenizer, Units, UnitTokenizer
from heedful.text.vocabulary import UNK, Vocabulary

SUFFIX: Final = ".columns"
"""Suffix of files of these tokenizers."""


@final
class ColumnTokenizer(Tokenizer):
    """Tokenizer of columns. Ids: those of the tokenizer of texts, then the separator of columns, then the features."""

    def __init__(self, text: Tokenizer, kinds: Sequence[ColumnKind], features: Sequence[str]) -> None:
        """Create a tokenizer.

        Args:
            text: tokenizer of all columns of text.
            kinds: kinds of the columns, two or more.
            features: distinct features in the order of their ids.
        """
        self.text: Final = text
        self.kinds: Final = tuple(kinds)
        self.features: Final = tuple(features)
        self.normalization = text.normalization
        self.ending = ""
        """Last column of sources that lack it; empty = they are refused."""
        self._separator: Final = len(text)
        self._ids: Final = {feature: len(text) + 1 + index for index, feature in enumerate(features)}

    @classmethod
    def train(
        cls,
        sources: Iterable[str],
        kinds: Sequence[ColumnKind],
        normalization: Normalization,
        train_text: Callable[[list[str]], Tokenizer],
    ) -> "ColumnTokenizer":
        """Learn the features of the training sources, the most frequent first, and a tokenizer of their texts.

        Args:
            sources: joined columns.
            kinds: kinds of the columns.
            train_text: function that learns a tokenizer from texts.

        Raises:
            DataError: a source has another number of columns.
        """
        texts: list[str] = []
        counts = Counter[str]()
        for source in sources:
            for kind, part in zip(kinds, _checked(normal_form(source, normalization), kinds), strict=True):
                if kind == "text":
                    texts.append(part)
                else:
                    counts.update(part.split(FEATURE_SEPARATOR))
        features = sorted(counts, key=lambda feature: (-counts[feature], feature))
        return cls(train_text(texts), kinds, features)

    @classmethod
    def load(
        cls, path: Path, units: Units, normalization: Normalization, reads_forms: bool = False
    ) -> "ColumnTokenizer":
        """Read a file written by `save`.

        Args:
            units: units of the texts.
            normalization: Unicode normal form that is applied first.
            reads_forms: as for `UnitTokenizer`.

        Raises:
            FileRefused: the file is no such tokenizer.
            NewerFormat: a newer heedful wrote it.
        """
        try:
            facts: Any = read_json(path, MOST_BULK_BYTES)
        except (DamagedFile, OSError) as error:
            raise FileRefused(f"{path}: not a tokenizer: {error}") from None
        COLUMNS_FORMAT.check(path, facts if isinstance(facts, dict) else {})
        values: list[Any] = [facts.get(key) for key in ("columns", "features", "text")]
        kinds, features, text = values
        are_kinds = _are_texts(kinds) and {*kinds} <= {*get_args(ColumnKind)} and len(kinds) > 1
        are_features = _are_texts(features) and len({*features}) == len(features)
        if not (are_kinds and are_features and (isinstance(text, str) if units == "pieces" else _are_texts(text))):
            raise FileRefused(f"{path}: not a tokenizer of columns of {units}")
        try:
            if units == "pieces":
                inner: Tokenizer = PieceTokenizer(base64.b64decode(text, validate=True), normalization)
            else:
                inner = UnitTokenizer(Vocabulary(text), units, normalization, reads_forms)
        except (ValueError, FileRefused) as error:
            raise FileRefused(f"{path}: {error}") from None
        return cls(inner, kinds, features)

    def normalize(self, text: str) -> str:
        """Convert text to its normal form, with `COLUMN_SEPARATOR` between columns, and the ending if it lacks it."""
        if self.letters:  # letters of features have no other form
            parts = split_columns(normal_form(text, self.normalization))
            kinds = [*self.kinds, *["features"] * len(parts)]
            parts = [
                self.text.normalize(part) if kind == "text" else part for kind, part in zip(kinds, parts, strict=False)
            ]
        else:
            parts = split_columns(self.text.normalize(text))
        if self.ending and len(parts) == len(self.kinds) - 1 and all(parts):
            parts.append(self.ending)
        return COLUMN_SEPARATOR.join(parts)

    @property
    def letters(self) -> KnownLetters | None:
        return self.text.letters

    def unknown_letters(self, text: str) -> tuple[str, ...]:
        parts = zip(self.kinds, split_columns(normal_form(text, self.normalization)), strict=False)
        unknown = [self.text.unknown_letters(part) for kind, part in parts if kind == "text"]
        return tuple(dict.fromkeys(letter for letters in unknown for letter in letters))

    def split(self, text: str) -> list[str]:
        """Split a source into its columns.

        Raises:
            DataError: it has another number of columns, or a blank one.
        """
        return _checked(self.normalize(text), self.kinds)

    def trial_text(self) -> str:
        return COLUMN_SEPARATOR.join("1" for _ in self.kinds)

    def unknown_features(self, text: str) -> list[str]:
        """List the features of a source that the training data did not have.

        Raises:
            DataError: as `split`.
        """
        parts = zip(self.kinds, self.split(text), strict=True)
        features = [one for kind, part in parts if kind == "features" for one in part.split(FEATURE_SEPARATOR)]
        return [feature for feature in dict.fromkeys(features) if feature not in self._ids]

    def encode(self, text: str) -> list[int]:
        """Convert a source to token ids.

        Raises:
            DataError: it has another number of columns, or a blank one.
        """
        ids: list[int] = []
        for index, (kind, part) in enumerate(zip(self.kinds, self.split(text), strict=True)):
            if index:
                ids.append(self._separator)
            if kind == "text":
                ids += self.text.encode(part)
            else:
                ids += [self._ids.get(feature, UNK) for feature in part.split(FEATURE_SEPARATOR)]
        return ids

    def unknown_ids(self) -> list[int]:
        return self.text.unknown_ids()

    def decode(self, ids: Sequence[int]) -> str:
        written: list[str] = []
        for kind, run in groupby(ids, self._kind):
            if kind == "features":
                written.append(FEATURE_SEPARATOR.join(self._feature(index) for index in run))
            else:
                written.append(self.text.decode([*run]) if kind == "text" else COLUMN_SEPARATOR)
        return "".join(written)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [
            self.text.pieces([index])[0]
            if self._kind(index) == "text"
            else "|"
            if index == self._separator
            else self._feature(index)
            for index in ids
        ]

    def word_indices(self, ids: Sequence[int]) -> list[int]:
        indices: list[int] = []
        word = 0
        for kind, run in groupby(ids, self._kind):
            tokens = [*run]
            own = self.text.word_indices(tokens) if kind == "text" else [0] * len(tokens)
            indices += [word + index for index in own]
            word += own[-1] + 1
        return indices

    def ranges(self, text: str) -> list[tuple[int, int]]:
        ranges: list[tuple[int, int]] = []
        end = 0
        for index, (kind, part) in enumerate(zip(self.kinds, split_columns(text), strict=True)):
            start = text.index(part, end)
            if index:
                ranges.append((end, start))
            if kind == "text":
                ranges += [(start + first, start + last) for first, last in self.text.ranges(part)]
            else:
                for feature in part.split(FEATURE_SEPARATOR):
                    ranges.append((start, start + len(feature)))
                    start += len(feature) + 1
            end = text.index(part, end) + len(part)
        return ranges

    def save(self, folder: Path, name: str) -> str:
        text = self.text
        content: Any = base64.b64encode(text.model).decode() if isinstance(text, PieceTokenizer) else None
        content = text.vocabulary.tokens if isinstance(text, UnitTokenizer) else content
        facts = COLUMNS_FORMAT.stamp({"columns": self.kinds, "features": self.features, "text": content})
        written = json.dumps(facts, ensure_ascii=False, indent=0)
        (folder / f"{name}{SUFFIX}").write_text(written, encoding="utf-8", newline="\n")
        return f"{name}{SUFFIX}"

    def __len__(self) -> int:
        return len(self.text) + 1 + len(self.features)

    def _kind(self, index: int) -> str:
        return "text" if index < self._separator else "features" if index > self._separator else "separator"

    def _feature(self, index: int) -> str:
        return self.features[index - self._separator - 1]


def _checked(text: str, kinds: Sequence[ColumnKind]) -> list[str]:
    parts = split_columns(text)
    if len(parts) == len(kinds) and all(parts):
        return parts
    number = sum(map(bool, parts))
    form = COLUMN_SEPARATOR.join(kinds)
    raise DataError(
        f"{text[:60]!r} has {number} column{'' if number == 1 else 's'}; the model reads {len(kinds)}: {form}"
    )


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
