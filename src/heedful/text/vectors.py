"""Word vectors: reading the needed words of a large file, initial embeddings, writing.

Three layouts, gzip or not, are recognised by content:

- word2vec text, also fastText's ``.vec``: a header line "count size", then one line per word with its numbers
- word2vec binary: the same header line, then for each word the word, a space and its numbers as little-endian float32
- GloVe text: one line per word with its numbers, no header line; a word may contain spaces
"""

import re
from codecs import getincrementaldecoder
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError, ShapeError
from heedful.files.atomic_write import atomic_write
from heedful.text.lines import BYTE_ORDER_MARK, open_bytes, raw_lines, read_chunks

Layout = Literal["word2vec text", "word2vec binary", "GloVe text"]

MAX_SIZE: Final = 100_000
"""Maximum length of a vector."""

_MAX_WORD_BYTES: Final = 1 << 16
_SAMPLE_BYTES: Final = 1 << 12
_HEADER: Final = re.compile(rb"[ \t]*([0-9]{1,12})[ \t]+([0-9]{1,12})[ \t\r]*")
_NO_WORD: Final = re.compile(r"[ \t\n\r\v\f\x00\ud800-\udfff]|^$")
_KINDS: Final = (
    (b"PK\x03\x04", "a zip archive; unzip it and give the file in it"),
    (b"\xba\x16\x4f\x2f", "a model of fastText; give the .vec file that was made with it"),
    (b"\x80", "a pickle, which is not read; save it as word2vec text"),
)


@final
@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and their vectors, read from a file or passed in, such as gensim's `index_to_key` and `vectors`.

    The constructor raises `ShapeError` if `matrix` does not have one row per word, and `DataError` if a word is
    repeated or a number is not finite.

    Attributes:
        words: distinct words.
        matrix: [word, size] finite vectors, one row per word.
        folded: words whose vector is that of a word that differs only in case.
        layout: layout of the file that the vectors were read from; empty = not read from a file.
        num_read: number of words in that file.
    """

    words: tuple[str, ...]
    matrix: NDArray[np.float32]
    folded: frozenset[str] = frozenset()
    layout: Layout | Literal[""] = ""
    num_read: int = 0

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or len(self.matrix) != len(self.words):
            raise ShapeError(f"{len(self.words)} words have vectors of shape {list(self.matrix.shape)}")
        if len(set(self.words)) != len(self.words):
            raise DataError("word vectors: a word is repeated; keep one vector for each")
        if not np.isfinite(self.matrix).all():
            raise DataError("word vectors: a number is infinite or not a number")

    @property
    def size(self) -> int:
        """Length of each vector."""
        return self.matrix.shape[1]


class _Shape(NamedTuple):
    layout: Layout
    size: int
    num_words: int
    """Number of words that the header line states; -1 = no header line."""


def read_vectors(
    path: Path, wanted: Collection[str], *, ignore_case: bool = False, repeated: Literal["refuse", "first"] = "refuse"
) -> WordVectors:
    """Read the vectors of some words of a file.

    For all other words only the number of fields is checked, not their content.

    Args:
        path: word2vec text or binary, GloVe text or fastText's .vec, gzip or not.
        ignore_case: whether a wanted word that is missing from the file gets the vector of the file's first word that
            is equal in lower case.
        repeated: for a wanted word that occurs twice, "first" takes its first vector and "refuse" raises an error.

    Returns:
        The vectors found; words without a vector are left out.

    Raises:
        DataError: the file cannot be read, has none of these layouts or ends early, or a vector of a wanted word is not
            all finite numbers. The message names file:line, or the byte offset in a binary file.

    Cost: one pass; memory for the wanted words and 2 MiB, whatever the size of the file.
    """
    collector = _Collector(wanted, ignore_case, repeated == "refuse")
    shape = _recognize(path, next(read_chunks(path), b""))
    read = _read_binary if shape.layout == "word2vec binary" else _read_text
    num_read = read(path, shape, collector)
    if shape.num_words >= 0 and num_read != shape.num_words:
        raise DataError(f"{path}:1: says that {shape.num_words} words follow, but there are {num_read}; fetch it again")
    return collector.vectors(shape, num_read)


def _recognize(path: Path, head: bytes) -> _Shape:
    for magic, advice in _KINDS:
        if head.startswith(magic):
            raise DataError(f"{path}: {advice}")
    first, _, rest = head.removeprefix(BYTE_ORDER_MARK).partition(b"\n")
    if not first:
        raise DataError(f"{path}:1: empty; expected 'count size' or a word and its numbers")
    if header := _HEADER.fullmatch(first):
        size = int(header[2])
        if not 1 <= size <= MAX_SIZE:
            raise DataError(f"{path}:1: vectors of {size} numbers; expected 1 to {MAX_SIZE:,}")
        return _Shape("word2vec binary" if _is_binary(rest, size) else "word2vec text", size, int(header[1]))
    fields = first.split()
    size = 0
    while size < len(fields) - 1 and _number(fields[-1 - size]) is not None:
        size += 1
    if not 1 <= size <= MAX_SIZE:
        raise DataError(f"{path}:1: no word vectors; expected 'count size' or a word and its numbers")
    return _Shape("GloVe text", size, -1)


def _is_binary(rest: bytes, size: int) -> bool:
    """Whether the data after the header line are binary numbers."""
    fields = rest.partition(b"\n")[0].split()
    if not rest.strip() or (len(fields) > size and all(_number(field) is not None for field in fields[-size:])):
        return False
    sample = rest[:_SAMPLE_BYTES]
    try:
        text = getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return True
    # Text without control characters is damaged text, not binary data; but a few binary bytes may all be letters by
    # chance.
    return len(sample) < 64 or any(character < " " and character not in "\t\n\r" for character in text)


def _number(field: bytes) -> float | None:
    if b"_" in field:  # Python reads 1_000 as a number
        return None
    try:
        return float(field)
    except ValueError:
        return None


@final
class _Collector:
    """Collector of the vectors of wanted words, and of words that differ from a wanted word only in case."""

    def __init__(self, wanted: Collection[str], ignores_case: bool, refuses_repeated: bool) -> None:
        self._wanted: Final = {word.encode("utf-8", "surrogatepass"): word for word in wanted}
        self._refuses_repeated: Final = refuses_repeated
        self._lower: Final = {word.lower() for word in wanted} if ignores_case else frozenset[str]()
        self._found: Final[dict[str, NDArray[np.float32]]] = {}
        self._places: Final[dict[str, str]] = {}
        self._found_lower: Final[dict[str, NDArray[np.float32]]] = {}

    def wants(self, raw: bytes) -> bool:
        return raw in self._wanted or (bool(self._lower) and self._lowered(raw) in self._lower)

    @staticmethod
    def _lowered(raw: bytes) -> str:
        return raw.decode("utf-8", "replace").lower()

    def add(self, raw: bytes, vector: NDArray[np.float32], where: str) -> None:
        lowered = self._lowered(raw)
        if not np.isfinite(vector).all():
            raise DataError(f"{where}: a number of {_shown(raw)} is infinite, not a number or too large for float32")
        if lowered in self._lower:
            self._found_lower.setdefault(lowered, vector)
        word = self._wanted.get(raw)
        if word is not None and self._refuses_repeated and word in self._found:
            raise DataError(f"{where}: {word!r} once more, first at {self._places[word]}; remove one of the two")
        if word is not None:
            self._found.setdefault(word, vector)
            self._places.setdefault(word, where)

    def vectors(self, shape: _Shape, num_read: int) -> WordVectors:
        missing = sorted(word for word in self._wanted.values() if word not in self._found)
        folded = {word: self._found_lower[word.lower()] for word in missing if word.lower() in self._found_lower}
        rows = [*self._found.values(), *folded.values()]
        matrix = np.stack(rows) if rows else np.zeros((0, shape.size), dtype=np.float32)
        return WordVectors((*self._found, *folded), matrix, frozenset(folded), shape.layout, num_read)


def _read_text(path: Path, shape: _Shape, collector: _Collector) -> int:
    num_read, size = 0, shape.size
    with open_bytes(path) as stream:
        for number, raw in enumerate(raw_lines(stream, str(path)), 1):
            line = (raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw).rstrip(b" \t\r")
            if not line or (number == 1 and shape.num_words >= 0):
                continue
            num_read += 1
            if line.count(b" ") == size:
                word, _, numbers = line.partition(b" ")
            else:
                word, numbers = _split(line, shape, f"{path}:{number}")
            if collector.wants(word):
                where = f"{path}:{number}"
                collector.add(word, _vector(numbers.split(), size, word, where), where)
    return num_read


def _split(line: bytes, shape: _Shape, where: str) -> tuple[bytes, bytes]:
    # Any white space may separate the numbers, and a word may contain spaces.
    parts = line.rsplit(None, shape.size)
    if len(parts) == shape.size and line[:1].isspace():
        parts.insert(0, b"")  # the word is missing; some published files have such a line
    num_more = 0
    if len(parts) > shape.size:
        inside = parts[0].split()
        has_number = len(inside) > 1 and _number(inside[-1]) is not None
        num_more = len(inside) - 1 if shape.num_words >= 0 or has_number else 0
    if len(parts) <= shape.size or num_more:
        num_parts = len(parts) - 1 + num_more
        raise DataError(
            f"{where}: {num_parts} number{'' if num_parts == 1 else 's'} after the word; expected {shape.size}"
        )
    return parts[0], line[len(parts[0]) :]


def _vector(fields: Sequence[bytes], size: int, word: bytes, where: str) -> NDArray[np.float32]:
    numbers: list[float] = []
    for field in fields:
        number = _number(field)
        if number is None:
            raise DataError(f"{where}: {_shown(field)} among the numbers of {_shown(word)}")
        numbers.append(number)
    if len(numbers) != size:
        raise DataError(f"{where}: {len(numbers)} numbers after {_shown(word)}; expected {size}")
    with np.errstate(over="ignore"):
        return np.array(numbers, dtype=np.float64).astype(np.float32)


def _shown(raw: bytes) -> str:
    return repr(raw[:40].decode("utf-8", "replace"))


def _read_binary(path: Path, shape: _Shape, collector: _Collector) -> int:
    num_read, num_bytes = 0, 4 * shape.size
    data, offset = b"", 0  # bytes read but not yet consumed, and their offset in the file
    for chunk in read_chunks(path):
        data += chunk
        start = data.index(b"\n") + 1 if offset == 0 else 0
        while num_read < shape.num_words and 0 <= (blank := data.find(b" ", start)) < len(data) - num_bytes:
            raw = data[start:blank].lstrip(b"\n")
            if collector.wants(raw):
                vector = np.frombuffer(data, "<f4", shape.size, blank + 1).astype(np.float32)
                collector.add(raw, vector, f"{path}: at byte {offset + blank - len(raw):,}")
            start = blank + 1 + num_bytes
            num_read += 1
        data, offset = data[start:], offset + start
        if num_read == shape.num_words and not data.strip(b"\n"):
            data, offset = b"", offset + len(data)
        elif num_read == shape.num_words or (b" " not in data[:_MAX_WORD_BYTES] and len(data) > _MAX_WORD_BYTES):
            break
    where = f"{path}: at byte {offset:,}"
    if num_read == shape.num_words and data.strip(b"\n"):
        raise DataError(f"{where}: more than the {num_read:,} words that the first line says; is the file damaged?")
    if data.strip(b"\n"):
        raise DataError(f"{where}: no word and {shape.size:,} numbers; damaged or ends early: fetch the file again")
    return num_read


@final
@dataclass(frozen=True)
class Coverage:
    """Share of a text's words that have vectors.

    Attributes:
        num_types: number of distinct words.
        num_found: number of distinct words with a vector of their own.
        num_folded: number of distinct words with the vector of a word that differs only in case.
        num_running: number of running words (occurrences).
        num_running_found: number of running words with a vector of their own.
        num_running_folded: number of running words with the vector of a word that differs only in case.
        missing: the most frequent words without a vector, at most ten.
    """

    num_types: int
    num_found: int
    num_folded: int
    num_running: int
    num_running_found: int
    num_running_folded: int
    missing: tuple[str, ...]

    def __str__(self) -> str:
        """Return the shares on one line."""

        def share(part: int, whole: int) -> str:
            return f"{100 * part / max(1, whole):.1f} %"

        known = f"{self.num_found:,} of {self.num_types:,} words ({share(self.num_found, self.num_types)})"
        running = f"{share(self.num_running_found, self.num_running)} of running words"
        folded = f", {share(self.num_running_folded, self.num_running)} more ({self.num_folded:,}) by another case"
        return f"vectors for {known}, {running}{folded if self.num_folded else ''}"


def measure_coverage(counts: Mapping[str, int], vectors: WordVectors) -> Coverage:
    """Count the words that have vectors.

    Args:
        counts: number of occurrences of each word.

    Example:
        >>> vectors = WordVectors(("a", "B"), np.ones((2, 3), dtype=np.float32), folded=frozenset("B"))
        >>> print(measure_coverage({"a": 6, "B": 3, "c": 1}, vectors))
        vectors for 1 of 3 words (33.3 %), 60.0 % of running words, 30.0 % more (1) by another case
    """
    known = frozenset(vectors.words)
    known_counts = [count for word, count in counts.items() if word in known and word not in vectors.folded]
    folded = [count for word, count in counts.items() if word in known and word in vectors.folded]
    missing = sorted((-count, word) for word, count in counts.items() if word not in known)
    return Coverage(
        num_types=len(counts),
        num_found=len(known_counts),
        num_folded=len(folded),
        num_running=sum(counts.values()),
        num_running_found=sum(known_counts),
        num_running_folded=sum(folded),
        missing=tuple(word for _, word in missing[:10]),
    )


def embedding_rows(words: Sequence[str], vectors: WordVectors, seed: int) -> NDArray[np.float32]:
    """Make the initial rows of an embedding: known vectors, and random vectors of the same scale for all other words.

    A random vector is drawn from a normal distribution whose mean and standard deviation, for each feature, are those
    of the known vectors.

    Args:
        words: words of a vocabulary, in the order of their ids.
        seed: seed of the random vectors; the draws of a word depend only on the seed and on the word's index.

    Returns:
        [word, size] one row per word.

    Raises:
        DataError: no word has a vector.
    """
    rows = {word: row for row, word in enumerate(vectors.words)}
    indices = [index for index, word in enumerate(words) if word in rows]
    if not indices:
        raise DataError(f"none of {len(words)} words has a vector; are the vectors of another language or case?")
    known = vectors.matrix[[rows[words[index]] for index in indices]]
    drawn = np.random.default_rng(seed).standard_normal((len(words), vectors.size))
    drawn *= known.std(axis=0, dtype=np.float64)
    drawn += known.mean(axis=0, dtype=np.float64)
    embedding = drawn.astype(np.float32)
    embedding[indices] = known
    return embedding


def write_vectors(path: Path, words: Sequence[str], matrix: NDArray[np.floating]) -> None:
    """Write word vectors as word2vec text, which `read_vectors`, gensim and most other tools read.

    Numbers are written with the fewest digits that give the same float32 again.

    Args:
        path: the file; an existing file is replaced only when the new one is complete.
        words: distinct words without white space, which the layout cannot represent.
        matrix: [word, size] finite vectors; rounded to float32.

    Raises:
        ShapeError: `matrix` does not have one row per word, or its rows are empty.
        DataError: a word cannot be written or is repeated, or a number is not finite.
    """
    with np.errstate(over="ignore"):
        vectors = WordVectors(tuple(words), matrix.astype(np.float32))
    if vectors.size < 1:
        raise ShapeError(f"{path}: vectors of no numbers: {list(matrix.shape)}")
    for word in words:
        if _NO_WORD.search(word):
            raise DataError(f"{path}: the word {word!r} is empty or has a character that word2vec text cannot hold")
    with atomic_write(path) as stream:
        stream.write(f"{len(words)} {vectors.size}\n")
        for word, row in zip(words, vectors.matrix, strict=True):
            stream.write(f"{word} {' '.join(map(str, row))}\n")
