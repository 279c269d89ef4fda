"""The documents: links lead somewhere, `make` targets they name exist, decisions and the changelog keep their form."""

import json
import re
from collections.abc import Container
from pathlib import Path

import pytest

from tests.architecture.package import ROOT

DECISION_HEADINGS = ("Context", "Options", "Choice", "Consequence")
PAGE_BYTES = 6_000
"""Most bytes of a version in the changelog."""
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2[^\n]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?[^)]*\)|(?:src|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
MAKE = re.compile(r"(?:^|&&|;|\$) *make +([a-z][a-z-]*)", re.MULTILINE)


def documents() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings: lower case, blanks to hyphens, punctuation dropped, a number where repeated."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = 1
        while (unique := anchor if number == 1 else f"{anchor}-{number - 1}") in found:
            number += 1
        found.add(unique)
    return found


def broken_links(path: Path) -> list[str]:
    """Relative links of a document to files or headings that do not exist."""
    found: list[str] = []
    for groups in LINK.findall(FENCE.sub("", path.read_bytes().decode("utf-8"))):
        link = groups[0] or groups[1]
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        if not target.exists():
            found.append(f"{path.name}: {link}: no such file")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_bytes().decode("utf-8")):
            found.append(f"{path.name}: {link}: no such heading")
    return found


def unknown_targets(text: str, targets: Container[str]) -> list[str]:
    """`make` targets that a document tells the reader to use and the Makefile does not have."""
    spoken = [*(match[0] for match in FENCE.finditer(text)), *re.findall(r"`([^`\n]+)`", FENCE.sub("", text))]
    return [target for part in spoken for target in MAKE.findall(part) if target not in targets]


def malformed(path: Path) -> list[str]:
    """What a decision lacks: a number and title, and the four headings in order."""
    text = path.read_bytes().decode("utf-8")
    found: list[str] = []
    if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", path.name):
        found.append(f"{path.name}: expected NNNN-title.md")
    if not text.startswith(f"# {path.name[:4]} "):
        found.append(f"{path.name}: expected a first line '# {path.name[:4]} title'")
    headings = tuple(re.findall(r"^## (.+)$", text, re.MULTILINE))
    if headings != DECISION_HEADINGS:
        found.append(f"{path.name}: expected the headings {', '.join(DECISION_HEADINGS)}, got {', '.join(headings)}")
    return found


def makefile_targets() -> set[str]:
    text = (ROOT / "Makefile").read_bytes().decode("utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path):
    assert broken_links(path) == []


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_named_make_targets_exist(path: Path):
    assert unknown_targets(path.read_bytes().decode("utf-8"), makefile_targets()) == []


def test_the_makefile_has_the_targets_people_expect():
    assert {"help", "demo", "test", "check", "bench", "format", "clean"} <= makefile_targets()


def test_the_package_of_npm_has_the_licence_of_the_project():
    package = ROOT / "src/heedful/js"
    assert (package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert "LICENSE" in json.loads((package / "package.json").read_text("utf-8"))["files"]


def test_decisions_keep_their_form():
    paths = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [path.name[:4] for path in paths]
    assert [line for path in paths for line in malformed(path)] == []
    assert numbers == [f"{number:04d}" for number in range(len(numbers))]


def long_versions(text: str) -> list[str]:
    """Versions of a changelog that fill more than a page."""
    versions = re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]
    sizes = {each.split("\n")[0]: len(each.encode()) for each in versions}
    return [f"{name}: {size} bytes, at most {PAGE_BYTES}" for name, size in sizes.items() if size > PAGE_BYTES]


def test_each_version_of_the_changelog_is_a_page():
    text = (ROOT / "CHANGELOG.md").read_bytes().decode("utf-8")
    assert long_versions(text) == []
    assert text.count("\n## [") >= 10


def test_the_log_begins_with_the_newest():
    dates = re.findall(r"^### (\d{4}-\d\d-\d\d) ", (ROOT / "docs/log.md").read_bytes().decode("utf-8"), re.MULTILINE)
    assert len(dates) > 60
    assert dates == sorted(dates, reverse=True)


def test_a_long_version_is_seen():
    text = f"# Changelog\n\n## [2.0.0]\n\n- Short.\n\n## [1.0.0]\n\n{'- Long.' * 1000}\n"
    assert long_versions(text) == [f"## [1.0.0]: 7013 bytes, at most {PAGE_BYTES}"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("see [it](missing.md)", "no such file"),
        ("see [it](#nowhere)", "no such heading"),
        ("see [it](other.md#nowhere)", "no such heading"),
        ('<img src="missing.png">', "no such file"),
    ],
)
def test_a_broken_link_is_seen(text: str, complaint: str, tmp_path: Path):
    (tmp_path / "other.md").write_bytes(b"# Other\n")
    (tmp_path / "page.md").write_bytes(text.encode())
    assert complaint in broken_links(tmp_path / "page.md")[0]


def test_a_good_link_is_taken(tmp_path: Path):
    (tmp_path / "other.md").write_bytes("# The `other` page: 中文\n## Twice\n## Twice\n".encode())
    text = (
        "[a](other.md) [b](other.md#the-other-page-中文) [c](#here) [d](https://example.org) [e](other.md#twice-1)\n"
        "# Here\n```\n[f](missing.md)\n# not a heading\n```\n"
    )
    (tmp_path / "page.md").write_bytes(text.encode())
    assert broken_links(tmp_path / "page.md") == []


@pytest.mark.parametrize("text", ["run `make tests`", "```\ncd heedful\nmake tests\n```\n", "`a && make tests`"])
def test_an_unknown_target_is_seen(text: str):
    assert unknown_targets(text, {"test"}) == ["tests"]


@pytest.mark.parametrize(
    "text", ["run `make test`", "to make tests run", "```\nmake test  # make sure\n```\n", "`make`"]
)
def test_a_known_target_is_taken(text: str):
    assert unknown_targets(text, {"test"}) == []


def test_a_malformed_decision_is_seen(tmp_path: Path):
    path = tmp_path / "1-Title.md"
    path.write_bytes(b"# Title\n## Context\n## Choice\n")
    assert len(malformed(path)) == 3
