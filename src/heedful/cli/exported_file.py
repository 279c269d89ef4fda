"""Description of one file that `heedful export` wrote: an archive for JavaScript, or a page with the model inside."""

import base64
import gzip
import io
import re
import tarfile
import zlib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

from heedful.cli.messages import readable_size
from heedful.errors import FileRefused, UsageError
from heedful.files.bounded_read import MOST_BYTES, open_regular, parse_json, read_bytes

ARCHIVE: Final = ".tgz"
PAGE: Final = ".html"
_DESCRIPTION: Final = "model.json"
_CARD: Final = "README.md"
_MOST_PAGE_BYTES: Final = 4 << 20
"""Bytes of a page in which its facts are looked for: they stand before the model."""
_MOST_FILE_BYTES: Final = 4 << 30
_MOST_UNPACKED_BYTES: Final = 16 << 30
"""Bytes of a compressed part after which it can be none of a model."""
_FACTS: Final = re.compile(rb'<script type="application/json" id="model-facts">([^<]*)</script>')
_POLICY: Final = re.compile(rb"script-src 'sha256-([^']*)' 'sha256-([^']*)'")
"""Digests of the script of the page and of that of the engine."""
_SCRIPT: Final = re.compile(rb'<script type="module">(.*?)</script>', re.DOTALL)
_PARTS: Final = ("engine-script", "model-data", "runtime-data")
_PART: Final = re.compile(rb'<script type="text/plain" id="(engine-script|model-data|runtime-data)">([^<]*)</script>')
_CHANGED: Final = "cut or changed; copy it again"
Row = tuple[str, str]


def is_exported_file(path: Path) -> bool:
    """Tell whether a path is a file of a kind that is described here."""
    return path.suffix.lower() in (ARCHIVE, PAGE) and not path.is_dir()


def about_file(path: Path) -> list[Row]:
    """Describe the file, and what to do with it.

    Returns:
        Name and text of each fact.

    Raises:
        UsageError: there is no such file.
        FileRefused: it is damaged, or nothing that heedful exported.
    """
    from heedful.pages.model_card import card_license

    is_archive = path.suffix.lower() == ARCHIVE
    if is_archive:
        facts, card = _read_archive(path)
        what, terms = "a model for JavaScript, in one archive", card_license(card)
        use = f"with the npm package heedful: await load({path.name!r})"
    else:
        facts = _read_page(path)
        what, terms = "a page with the model inside", str(facts.get("license", ""))
        use = "open it in a browser"
    rows = [
        ("file", str(path)),
        ("what", what),
        ("model", str(facts.get("name", ""))),
        ("task", str(facts.get("task", ""))),
        ("kind", str(facts.get("kind", ""))),
        ("languages", " to ".join(map(str, facts.get("languages", ()))).replace("source to target", "not known")),
        ("written by", f"heedful {facts.get('heedful', '')}"),
        ("licence", terms),
        ("size", readable_size(path.stat().st_size)),
        ("use", use),
    ]
    return [(name, text) for name, text in rows if text.strip() not in ("", "to")]


def card_of_file(path: Path) -> str:
    """Read the model card in an archive.

    Returns:
        Its text.

    Raises:
        UsageError: there is no such file, or it has no card; a page says below itself what a card says.
        FileRefused: it is damaged, or nothing that heedful exported.
    """
    card = _read_archive(path)[1] if path.suffix.lower() == ARCHIVE else ""
    if not card:
        raise UsageError(f"{path}: has no model card; leave out --card")
    return card


def _read_archive(path: Path) -> tuple[Mapping[str, Any], str]:
    """Description of the model in an archive, and its card.

    Raises:
        UsageError: there is no such file.
        FileRefused: it is damaged, or nothing that heedful exported.
    """
    parts: dict[str, bytes] = {}
    try:
        with open_regular(path) as file, tarfile.open(fileobj=file, mode="r:gz") as archive:
            for _ in (_DESCRIPTION, _CARD):  # in this order, before the graphs
                entry = archive.next()
                if entry is None or entry.name not in (_DESCRIPTION, _CARD) or entry.size > MOST_BYTES:
                    break
                content = archive.extractfile(entry)
                parts[entry.name] = content.read() if content else b""
        facts, card = _facts(parts[_DESCRIPTION]), parts.get(_CARD, b"").decode("utf-8")
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (OSError, EOFError, ValueError, KeyError, zlib.error, tarfile.TarError):
        facts, card = None, ""
    if facts is None:
        raise FileRefused(f"{path}: not an archive of heedful export --to js, or damaged; copy it again")
    with open_regular(path) as file:
        if not _is_whole(file):
            raise FileRefused(f"{path}: {_CHANGED}")
    return facts, card


def _read_page(path: Path) -> Mapping[str, Any]:
    """Facts that a page says of its model.

    Raises:
        UsageError: there is no such file.
        FileRefused: it is damaged, or nothing that heedful exported.
    """
    page = b""
    try:
        page = read_bytes(path, _MOST_FILE_BYTES)
        match = _FACTS.search(page, 0, _MOST_PAGE_BYTES)
        facts = None if match is None else _facts(match[1])
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (OSError, ValueError):
        facts = None
    if facts is None:
        raise FileRefused(f"{path}: not a page of heedful export --to html, or damaged; copy it again")
    if not _is_whole_page(page):
        raise FileRefused(f"{path}: {_CHANGED}")
    return facts


def _is_whole_page(page: bytes) -> bool:
    """Tell whether a page is what its digests and the checksums of its parts say, as it does when it is opened."""
    policy, script = _POLICY.search(page), _SCRIPT.search(page)
    encoded = {match[1].decode(): match[2] for match in _PART.finditer(page)}
    if policy is None or script is None or len(encoded) < len(_PARTS) or not page.rstrip().endswith(b"</html>"):
        return False
    try:
        engine, *others = (base64.b64decode(encoded[name], validate=True) for name in _PARTS)
        scripts = script[1], gzip.GzipFile(fileobj=io.BytesIO(engine)).read(MOST_BYTES)
    except (OSError, EOFError, ValueError, zlib.error):
        return False
    digests = tuple(base64.b64encode(sha256(one).digest()) for one in scripts)
    return digests == policy.groups() and all(_is_whole(io.BytesIO(part)) for part in others)


def _is_whole(file: IO[bytes]) -> bool:
    """Tell whether a file in gzip ends where it should, and has its checksum."""
    number = 0
    try:
        with gzip.GzipFile(fileobj=file) as stream:
            while number < _MOST_UNPACKED_BYTES and (chunk := stream.read(1 << 20)):
                number += len(chunk)
    except (OSError, EOFError, zlib.error):
        return False
    return 0 < number < _MOST_UNPACKED_BYTES


def _facts(content: bytes) -> Mapping[str, Any] | None:
    """JSON object of a model's facts; None if it is none."""
    facts = parse_json(content)
    return facts if isinstance(facts, dict) and isinstance(facts.get("languages", []), list) else None
