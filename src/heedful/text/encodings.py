"""Diagnosis of bytes that are not UTF-8: their probable encoding, and a command that converts them."""

import shlex
from pathlib import Path
from typing import Final

GZIP_MAGIC: Final = b"\x1f\x8b"

_MARKS: Final = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)

# For each encoding: iconv's name, Python's codec, the range of first bytes of its frequent letters, the minimum share
# of these among all letters, and the minimum mean length of a run of non-ASCII bytes. For Japanese the range is that of
# kana, whose bytes are rare in Chinese encodings; the minimum share is lower because kanji may be as frequent as kana.
_CODECS: Final = (
    ("SHIFT_JIS", "shift_jis", 0x82, 0x83, 0.2, 1.0),
    ("EUC-JP", "euc_jp", 0xA4, 0xA5, 0.2, 2.0),
    ("EUC-KR", "euc_kr", 0xB0, 0xC8, 0.6, 2.0),
    ("GB18030", "gb18030", 0xB0, 0xD7, 0.6, 2.0),
    ("BIG5", "big5", 0xA4, 0xC6, 0.6, 1.2),
    ("CP1251", "cp1251", 0xE0, 0xFF, 0.6, 3.0),
)


def guess_encoding(sample: bytes, nul_share: float = 0.1) -> str:
    """Guess the encoding of bytes that are not UTF-8.

    Args:
        sample: part of a file; a byte order mark is recognised only if the sample begins at the file's first byte.
        nul_share: minimum share of NUL among the even or the odd bytes of UTF-16; text in other encodings has no NUL.

    Returns:
        A name that ``iconv -f`` knows; CP1252 or ISO-8859-1 if nothing fits better.

    Example:
        >>> guess_encoding("你好，世界".encode("gb18030")), guess_encoding("für".encode("latin-1"))
        ('GB18030', 'ISO-8859-1')
    """
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return encoding
    if utf16 := _utf16_by_nul(sample, nul_share):
        return utf16
    scores = [_usual_share(sample, codec, first, last, run) / share for _, codec, first, last, share, run in _CODECS]
    if max(scores) >= 1.0:
        return _CODECS[scores.index(max(scores))][0]
    return "CP1252" if any(0x80 <= byte < 0xA0 for byte in sample) else "ISO-8859-1"


def _utf16_by_nul(sample: bytes, nul_share: float) -> str:
    """UTF-16 variant recognised by its NUL bytes (every other byte of ASCII text); "" if it is not UTF-16."""
    num_units = len(sample) // 2
    if num_units < 2 or b"\0" not in sample:
        return ""
    high = sample[0 : 2 * num_units : 2].count(0) / num_units
    low = sample[1 : 2 * num_units : 2].count(0) / num_units
    if max(high, low) < nul_share or min(high, low) > 0.1 * max(high, low):
        return ""
    return "UTF-16BE" if high > low else "UTF-16LE"


def _usual_share(sample: bytes, codec: str, first: int, last: int, least_run: float) -> float:
    """Share of frequent letters of the encoding among the non-ASCII letters; 0 if the bytes do not fit the encoding."""
    num_bytes = sum(1 for byte in sample if byte >= 0x80)
    num_runs = sum(1 for before, byte in zip(b"\0" + sample, sample, strict=False) if before < 0x80 <= byte)
    if num_bytes < least_run * num_runs:
        return 0.0
    try:
        text = sample.decode(codec)
    except UnicodeDecodeError as error:
        if error.start < len(sample) - 4:  # an error nearer to the end may be a character cut by the sample's end
            return 0.0
        text = sample[: error.start].decode(codec)
    letters = [character for character in text if character > "\x7f" and character.isalpha()]
    usual = sum(1 for letter in letters if first <= letter.encode(codec)[0] <= last)
    return usual / len(letters) if letters else 0.0


def is_mostly_utf8(sample: bytes) -> bool:
    """Tell UTF-8 with some damage from another encoding.

    Returns:
        Whether valid non-ASCII characters outnumber damaged ones.
    """
    text = sample.decode("utf-8", "replace")
    num_bad = text.count("\ufffd")
    return sum(1 for character in text if character > "\x7f") > 2 * num_bad


def explain_bad_byte(sample: bytes, start: int, seen_utf8: bool, path: Path | None) -> str:
    """Explain bytes that are not UTF-8: name their probable encoding and a remedy.

    Args:
        sample: the line and some bytes after it.
        start: 0-based index of the first bad byte.
        seen_utf8: whether earlier lines contained valid non-ASCII characters in UTF-8.
        path: the file; None for a stream.

    Returns:
        A clause that ends in a command.
    """
    encoding = guess_encoding(sample)
    byte = f"byte 0x{sample[start]:02X} is not UTF-8"
    if encoding.startswith("UTF"):
        problem = f"the file is {encoding}, not UTF-8; convert it:"
    elif seen_utf8 or is_mostly_utf8(sample):
        problem = f"{byte}, though the rest is; mend the line, or drop such bytes:"
        return f"{problem} {_command('iconv -c -f UTF-8 -t UTF-8', path)}"
    else:
        problem = f"{byte}; the file looks like {encoding}; convert it:"
    return f"{problem} {_command(f'iconv -f {encoding} -t UTF-8', path)}"


def _command(convert: str, path: Path | None) -> str:
    if path is None:
        return convert
    file, written = shlex.quote(str(path)), shlex.quote(str(path).removesuffix(".gz") + ".utf8")
    with path.open("rb") as stream:
        is_gzip = stream.read(2) == GZIP_MAGIC
    return f"zcat {file} | {convert} > {written}" if is_gzip else f"{convert} {file} > {written}"
