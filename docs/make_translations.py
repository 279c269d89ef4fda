"""Find Chinese pages that are behind their English ones: `python docs/make_translations.py --check`.

Of each section of a document in two languages, and of each pair of cells of a lesson, `translations.json` has a hash of
either text as they last belonged together. Where the English text has changed since and the Chinese one has not, the
Chinese one is stale: the gate names it. Where both have changed, they are taken to belong together again.

After mending the Chinese page, or where an English change needs no other translation (a typing error), run
`python docs/make_translations.py`, which notes the sections as they are.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from site_pages import HEADING, LANGUAGES, anchor_of, lines_with_code

ROOT: Final = Path(__file__).resolve().parent.parent
NOTED: Final = ROOT / "docs/translations.json"
CELL: Final = re.compile(r"^# %%", re.MULTILINE)
WORDS: Final = re.compile(r'(?:picture|page)="([^"]+)" alt="([^"]*)" alt_zh="([^"]*)"')
"""Name of a picture of a lesson, and its words for those who do not see it."""
Hashes = dict[str, list[str]]
"""Hashes of the English and the Chinese text of each section, by the anchor of its English heading."""


def documents() -> list[str]:
    """English documents that have a translation, and lessons, as paths from the root of the project."""
    chinese = [*ROOT.glob("*.zh.md"), *ROOT.glob("docs/*.zh.md"), *ROOT.glob("docs/course/*.zh.md")]
    both = [*chinese, *ROOT.glob("docs/course/[0-9]*.py")]
    return sorted(path.relative_to(ROOT).as_posix().replace(".zh.md", ".md") for path in both)


def sections(text: str) -> list[tuple[str, str]]:
    """Heading and text of each section, up to the next heading of any depth."""
    parts: list[tuple[str, list[str]]] = []
    for line, is_code in lines_with_code(LANGUAGES.sub("", text)):
        match = None if is_code else HEADING.match(line)
        if match or not parts:
            parts.append((match[2] if match else "", []))
        parts[-1][1].append(line.rstrip())
    return [(heading, "\n".join(lines).strip()) for heading, lines in parts]


def hashes(english: str, chinese: str) -> Hashes:
    """Hashes of the sections of a document in two languages.

    Raises:
        ValueError: the languages have different numbers of sections; the message names the first that has no equal.
    """
    both = sections(english), sections(chinese)
    if len(both[0]) != len(both[1]):
        raise ValueError(f"{len(both[0])} sections in English, {len(both[1])} in Chinese")
    pairs = zip(*both, strict=True)
    return _hashed((heading, text, translated) for (heading, text), (_, translated) in pairs)


def lesson_hashes(lesson: str) -> Hashes:
    """Hashes of the texts of a lesson in two languages: cells by the heading that they stand below, words of pictures.

    Raises:
        ValueError: an English cell has no Chinese one.
    """
    cells = [cell.partition("\n")[::2] for cell in CELL.split(lesson)[1:]]
    texts = [[text for head, text in cells if f'lang="{language}"' in head] for language in ("en", "zh")]
    if len(texts[0]) != len(texts[1]):
        raise ValueError(f"{len(texts[0])} cells in English, {len(texts[1])} in Chinese")
    found: list[tuple[str, str, str]] = []
    for text, translated in zip(*texts, strict=True):
        match = HEADING.match(text.removeprefix("# ").partition("\n")[0])
        found.append((match[2] if match else found[-1][0], text.strip(), translated.strip()))
    for head, _ in cells:
        found += [(f"picture {words[1]}", words[2], words[3]) for words in WORDS.finditer(head)]
    return _hashed(found)


def _hashed(pairs: Iterable[tuple[str, str, str]]) -> Hashes:
    """Hashes of English and Chinese texts by their headings."""
    found: Hashes = {}
    for heading, *texts in pairs:
        anchor = anchor_of(heading)
        while anchor in found:
            anchor += "-again"
        found[anchor] = [sha256(one.encode()).hexdigest()[:12] for one in texts]
    return found


def stale(noted: Mapping[str, Sequence[str]], now: Mapping[str, Sequence[str]]) -> list[str]:
    """Anchors of sections whose English text has changed while the Chinese one has not."""
    return [
        anchor
        for anchor, (english, chinese) in now.items()
        if anchor in noted and noted[anchor][0] != english and noted[anchor][1] == chinese
    ]


def read(document: str) -> Hashes:
    """Hashes of a document as it is.

    Raises:
        ValueError: the languages have different numbers of sections.
    """
    path = ROOT / document
    try:
        if path.suffix == ".py":
            return lesson_hashes(path.read_bytes().decode("utf-8"))
        texts = [one.read_bytes().decode("utf-8") for one in (path, path.with_suffix(".zh.md"))]
        return hashes(texts[0], texts[1])
    except ValueError as error:
        raise ValueError(f"{document}: {error}") from None


def problems() -> list[str]:
    """One line for each stale section."""
    noted: dict[str, Hashes] = json.loads(NOTED.read_text(encoding="utf-8"))
    return [
        f"{document}: the Chinese cell of {anchor!r} is behind the English one"
        if document.endswith(".py")
        else f"{document.replace('.md', '.zh.md')}: section {anchor!r} is behind {document}"
        for document in documents()
        for anchor in stale(noted.get(document, {}), read(document))
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Note the sections as they are, or list what is stale.

    Returns:
        The exit code: 1 if something is stale, else 0.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="list stale sections, and note nothing")
    if parser.parse_args(arguments).check:
        print("\n".join(found := problems()))
        return int(bool(found))
    lines = json.dumps({document: read(document) for document in documents()}, indent=1, sort_keys=True)
    NOTED.write_text(
        lines.replace("[\n   ", "[").replace(",\n   ", ", ").replace("\n  ]", "]") + "\n", encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
