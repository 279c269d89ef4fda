"""Data files: checks that they are text, line counts, alignment of two files, names and fingerprints."""

import glob
import hashlib
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from threading import Thread
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DamagedFile, DataError
from heedful.files.atomic_write import recorded_name
from heedful.files.bounded_read import open_regular
from heedful.text.encodings import guess_encoding
from heedful.text.lines import open_bytes, raw_lines, read_chunks

Fingerprint = dict[str, str | int]

HEAD_BYTES: Final = 1 << 14
"""Number of first bytes of a file by which a text is told from other files."""
_CHUNK_BYTES: Final = 1 << 20

_KINDS: Final = (
    (b"PK\x03\x04", "a zip archive or an office document", "unzip it, or save it as tab-separated UTF-8 text"),
    (b"\xd0\xcf\x11\xe0", "an office document", "save it as tab-separated UTF-8 text"),
    (b"BZh", "bzip2", "unpack it: bunzip2"),
    (b"\xfd7zXZ", "xz", "unpack it: unxz"),
    (b"\x28\xb5\x2f\xfd", "Zstandard", "unpack it: unzstd"),
    (b"7z\xbc\xaf", "a 7-zip archive", "unpack it: 7z x"),
    (b"PAR1", "Parquet", "write it as JSONL"),
    (b"ARROW1", "Arrow", "write it as JSONL"),
    (b"%PDF", "PDF", "extract its text first"),
    (b"SQLite format 3", "an SQLite database", "export it as tab-separated text"),
    (b"\x89PNG", "a PNG picture", "give a text file"),
    (b"\xff\xd8\xff", "a JPEG picture", "give a text file"),
)
_TEXT_CONTROLS: Final = frozenset(b"\t\n\v\f\r\x1b\x1c\x1d\x1e\x1f\x85")
_MOST_CONTROLS: Final = 0.1  # a file with NUL and a larger share of control bytes is not text

# ISO 639-1, and the three-letter codes that corpora use most.
_LANGUAGE_CODES: Final = frozenset(
    (
        "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee "
        "el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is "
        "it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms "
        "mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk "
        "sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi "
        "yo za zh zu eng deu ger fra fre spa por ita nld rus ukr pol ces tur ara heb fas hin ben vie ind zho chi cmn "
        "yue lzh jpn kor swe dan nor fin ell hun ron"
    ).split()
)


def check_file(path: Path) -> None:
    """Refuse a file that cannot be text.

    Raises:
        DataError: the path does not exist or is not a regular file, or the file is empty, binary or damaged gzip.
    """
    if path.is_dir():
        inside = sorted(child.name for child in path.iterdir() if child.is_file())
        raise DataError(f"{path}: a folder; give a file{_such_as(inside[:3])}")
    if not path.exists():
        raise DataError(f"{path}: no such file{_near(path)}")
    if not path.is_file():
        raise DataError(f"{path}: not a regular file; it is read more than once, so write it to a file first")
    with open_bytes(path) as stream:
        try:
            head = stream.read(HEAD_BYTES)
        except (EOFError, OSError, ValueError, zlib.error) as error:
            raise DataError(f"{path}: damaged gzip data: {error}; fetch or compress the file again") from None
    if head in (b"", b"\xef\xbb\xbf"):
        raise DataError(f"{path}: empty")
    if reason := why_no_text(head):
        raise DataError(f"{path}: {reason}")


def why_no_text(head: bytes) -> str:
    """Tell why a file cannot be text.

    Args:
        head: its first `HEAD_BYTES` bytes.

    Returns:
        The kind of file that it is, and what to do; empty = it may be text.

    Example:
        >>> why_no_text(b"%PDF-1.7"), why_no_text("Zoë".encode())
        ('PDF, not text; extract its text first', '')
    """
    for magic, kind, advice in _KINDS:
        if head.startswith(magic):
            return f"{kind}, not text; {advice}"
    num_controls = sum(1 for byte in head if byte < 0x20 and byte not in _TEXT_CONTROLS)
    has_nul_and_more = b"\0" in head and num_controls > _MOST_CONTROLS * len(head)
    return "a binary file, not text" if has_nul_and_more and not guess_encoding(head).startswith("UTF") else ""


def _such_as(names: Sequence[str]) -> str:
    return f" in it, such as {', '.join(names)}" if names else ""


def _near(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"; the folder {folder} does not exist"
    names = sorted(child.name for child in folder.iterdir() if child.is_file())
    close = get_close_matches(path.name, names, n=1)
    if close:
        return f"; did you mean {str(folder / close[0])!r}?"
    return f"; files in {folder}: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}" if names else ""


_BEGUN: Final[dict[tuple[int, ...], Future[Fingerprint]]] = {}


def begin_fingerprints(paths: Iterable[Path]) -> None:
    """Hash files in a thread while libraries are loaded; `fingerprint_file` then waits for the result.

    Args:
        paths: the files, in the order in which they will be needed; a file that cannot be read is skipped, so that
            `fingerprint_file` raises the error.
    """
    waiting: list[tuple[Path, Future[Fingerprint]]] = []
    for path in paths:
        with suppress(OSError):
            future: Future[Fingerprint] = Future()
            if _BEGUN.setdefault(file_identity(path), future) is future:
                waiting.append((path, future))

    def run() -> None:
        for path, future in waiting:
            try:
                future.set_result(_read_fingerprint(path))
            except BaseException as error:
                future.set_exception(error)

    if waiting:
        # A daemon thread, so that the process can exit without waiting for it.
        Thread(target=run, name="fingerprints", daemon=True).start()


def file_identity(path: Path) -> tuple[int, ...]:
    """Return numbers that change whenever the content of a file changes.

    Returns:
        Device, inode, size, and times of the last change of the content and of the file's own entry.

    Raises:
        OSError: there is no such file.
    """
    stat = path.stat()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def fingerprint_file(path: Path) -> Fingerprint:
    """Compute the fingerprint of a file, which changes with any byte of its content.

    Returns:
        "name" without the folder, "size" in bytes, "sha256" of the bytes on disk, and the number of "lines" after

    Raises:
        DataError: the file cannot be read.
    """
    begun = None
    with suppress(OSError):
        begun = _BEGUN.pop(file_identity(path), None)
    return _read_fingerprint(path) if begun is None else {**begun.result(), "name": recorded_name(path)}


def _read_fingerprint(path: Path) -> Fingerprint:
    sha256 = hashlib.sha256()
    size = 0
    try:
        with open_regular(path) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                sha256.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except DamagedFile as error:
        raise DataError(str(error)) from None
    return {"name": recorded_name(path), "size": size, "sha256": sha256.hexdigest(), "lines": count_lines(path)}


def count_lines(path: Path) -> int:
    """Count the lines of a file, gzip or not; a last line without a line end counts.

    Returns:
        The number of lines that `read_lines` yields.

    Raises:
        DataError: the file cannot be read.
    """
    num_lines = 0
    last = b"\n"
    for chunk in read_chunks(path):
        num_lines += chunk.count(b"\n")
        last = chunk[-1:]
    return num_lines + (last != b"\n")


def unequal(first: Path, second: Path) -> DataError:
    """Make the error for two aligned files with different numbers of lines.

    Args:
        second: the other file.

    Returns:
        An error with both line counts and the line at which the files seem to go out of step.
    """
    lengths = _line_lengths(first), _line_lengths(second)
    line = drift_line(*lengths)
    counts = f"{first} has {len(lengths[0])} lines, {second} has {len(lengths[1])}"
    if line > min(len(lengths[0]), len(lengths[1])):
        shorter, longer = (first, second) if len(lengths[0]) < len(lengths[1]) else (second, first)
        return DataError(f"{counts}; they seem to agree until {shorter} ends: complete it, or cut {longer}")
    return DataError(f"{counts}; they seem to drift apart at about line {line}; mend one of them there")


def _line_lengths(path: Path) -> NDArray[np.int64]:
    with open_bytes(path) as stream:
        return np.fromiter((len(raw) for raw in raw_lines(stream, str(path))), dtype=np.int64)


def drift_line(first: NDArray[np.int64], second: NDArray[np.int64]) -> int:
    """Find the line at which lines were lost or added, from line lengths alone.

    Lines before it are compared at equal line numbers; lines after it are compared shifted by the difference of the
    line counts. The line returned is the one that makes the ratios of line lengths most uniform.

    Args:
        first: [first] lengths of the lines of one file.
        second: [second] lengths of the lines of the other file; the two numbers of lines differ.

    Returns:
        1-based line number; the number of lines of the shorter file plus one if that file merely ends early.
    """
    shorter, longer = sorted((np.log1p(first), np.log1p(second)), key=len)
    shift = len(longer) - len(shorter)
    ratio = np.median(longer) - np.median(shorter)
    straight = np.abs(longer[: len(shorter)] - shorter - ratio)
    shifted = np.abs(longer[shift:] - shorter - ratio)
    # cost[k]: first k lines compared at equal numbers, the rest shifted; up to a constant.
    cost = np.concatenate([[0.0], np.cumsum(straight - shifted)])
    # A gain below the cost of two wrongly paired lines may be chance: then the shorter file merely ends early.
    if cost[-1] - cost.min() < 2.0 * shifted.mean():
        return len(cost)
    return int(np.argmin(cost)) + 1


def stem(path: Path) -> str:
    """Return a file's name without its suffix, for naming a model after it.

    Returns:
        The name up to its last suffix, after ``.gz`` is removed.

    Example:
        >>> stem(Path("data/pairs.tsv.gz")), stem(Path("train.de"))
        ('pairs', 'train')
    """
    return Path(path.name.removesuffix(".gz")).stem or "pairs"


UNNAMED: Final = ("source", "target")
"""Languages of files whose names say none."""


def language_names(paths: Sequence[Path], columns: Sequence[int | str] = (1, 2)) -> tuple[str, str]:
    """Guess the languages of two aligned files from their names.

    Args:
        columns: (2, 1) if the second file has the sources.

    Returns:
        Two language codes, that of the sources first, or `UNNAMED` if the names do not contain two different codes.

    Example:
        >>> language_names([Path("train.de"), Path("train.en.gz")])
        ('de', 'en')
        >>> language_names([Path("pairs.tsv")])
        ('source', 'target')
    """
    codes = [_language_code(path) for path in paths]
    if len(codes) == 2 and all(codes) and codes[0] != codes[1]:
        return (codes[1], codes[0]) if tuple(columns) == (2, 1) else (codes[0], codes[1])
    return UNNAMED


def aligned_with(path: Path) -> Path | None:
    """Find a file that may be the other side of a text.

    Args:
        path: a file named after its language, such as ``train.de``.

    Returns:
        A file in the same folder with the same name but for the language; None if there is none, or several.
    """
    code = _language_code(path)
    head, _, tail = path.name.rpartition(f".{code}")
    if not code or not path.parent.is_dir():
        return None
    names = [child.name for child in path.parent.glob(f"{glob.escape(head)}.*{glob.escape(tail)}")]
    others = [name for name in names if name != path.name and _language_code(Path(name)) not in ("", code)]
    same_form = [name for name in others if name == f"{head}.{_language_code(Path(name))}{tail}"]
    return path.with_name(same_form[0]) if len(same_form) == 1 else None


def _language_code(path: Path) -> str:
    name = path.name.removesuffix(".gz").removesuffix(".txt")
    code = Path(name).suffix.removeprefix(".")
    language = code.replace("_", "-").split("-")[0].lower()
    return code if language in _LANGUAGE_CODES else ""
