"""Site: documents are cut into pages of both languages with the same addresses, and links follow the cut."""

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.architecture.package import ROOT

LONGEST = 15_000


@pytest.fixture(scope="module")
def site() -> Iterator[Any]:
    """The module that cuts documents."""
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("site_pages")
    sys.path.remove(str(ROOT / "docs"))


TEXT = """# All

[中文](all.zh.md)

See [two](#two-things), [code](../src/a.py), [other](other.md#there) and `[not](a-link)`.

## One

```sh
## no heading
```

## Two `things`

![drawn](../docs/pictures/heads.svg)

### Deep

- item

  ```text
  code
  ```
"""


def made(site: Any, longest: int | None) -> list[Any]:
    documents = [
        site.Document("docs/all.md", "guide/index", TEXT, longest=longest),
        site.Document("docs/other.md", "other", "# Other\n\n## There\n\n## There\n", longest=None),
    ]
    return [site.pages_of(document, document.text) for document in documents]


def test_a_document_is_cut_at_its_headings(site: Any):
    pages = list(site.walk(made(site, LONGEST)))
    assert [page.address for page in pages] == ["guide/index", "guide/one", "guide/two-things", "other"]
    assert [page.title for page in pages] == ["All", "One", "Two things", "Other"]
    pages = list(site.walk(made(site, 10)))
    assert [page.address for page in pages][2:4] == ["guide/two-things", "guide/two-things/deep"]


def test_links_follow_the_cut(site: Any):
    pages = made(site, LONGEST)
    where = site.addresses(pages)
    pictures: set[str] = set()
    first, _, two, other = [site.rendered(page, where, pictures) for page in site.walk(pages)]
    assert "# All { #all }" in first
    assert "中文" not in first
    assert "[two](two-things.md), code, [other](../other.md#there) and `[not](a-link)`" in first
    assert "- [One](one.md)" in first
    assert two.startswith("# Two `things` { #two-things }")
    assert "![drawn](../pictures/heads.svg)" in two
    assert pictures == {"docs/pictures/heads.svg"}
    assert "## Deep { #deep }" in two
    assert "\n    ```text\n    code\n    ```" in two
    assert "## There { #there }" in other
    assert "## There { #there-1 }" in other


def test_languages_with_other_headings_are_refused(site: Any):
    document = site.Document("docs/all.md", "guide/index", TEXT.replace("## One", "One"))
    with pytest.raises(ValueError, match="sections in the two languages"):
        site.pages_of(document, TEXT)


def test_no_page_has_much_prose(site: Any):
    """Pages of results are a table or two with their command, and none is long, tables apart."""
    make_site = importlib.import_module("make_site")
    prose = {
        page.address: sum(len(line.encode()) for line in page.text.split("\n") if not line.lstrip().startswith("|"))
        for tab in make_site.parts("en")
        for page in site.walk(tab.children)
    }
    assert len(prose) > 200
    assert {address: size for address, size in prose.items() if size > LONGEST} == {}
    measured = ("behind/performance/", "behind/reliability/")
    assert {address: size for address, size in prose.items() if address.startswith(measured) and size > 8_000} == {}


@pytest.mark.parametrize("name", ["results", "performance", "reliability"])
def test_every_page_of_a_folder_is_listed_by_its_document(site: Any, name: str):
    maker = importlib.import_module("make_site")
    listed = maker.pages_below(f"docs/{name}.md")
    assert sorted(listed) == sorted(path.stem for path in (ROOT / "docs" / name).glob("*.md"))
    assert [
        f"{name}/{each}.md" for each in listed if len((ROOT / "docs" / name / f"{each}.md").read_bytes()) > LONGEST
    ] == []


@pytest.mark.parametrize("name", ["guide", "attention"])
def test_both_languages_have_the_same_addresses_and_no_page_is_long(site: Any, name: str):
    english, chinese = ((ROOT / "docs" / f"{name}{part}.md").read_bytes().decode("utf-8") for part in ("", ".zh"))
    pages = [
        list(site.walk([site.pages_of(site.Document(f"docs/{name}.md", f"{name}/index", text), english)]))
        for text in (english, chinese)
    ]
    assert [page.address for page in pages[0]] == [page.address for page in pages[1]]
    assert len(pages[0]) > 8
    assert [page.address for both in pages for page in both if len(page.text.encode()) > LONGEST] == []
