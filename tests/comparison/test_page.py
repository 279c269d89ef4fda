"""The page: one file, all tables in it, nothing fetched, nothing of the data taken for HTML."""

import base64
import re
from html.parser import HTMLParser

from heedful.comparison.page import report_page
from heedful.comparison.run_result import RunResult
from heedful.comparison.summary import summarise
from heedful.comparison.tables import length_rows, score_rows
from tests.comparison.made import ITEMS, by_row, make_finding

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Read(HTMLParser):
    """Tags in order, texts of cells, and whether every tag is closed by its own."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def page(picture: bytes = b"\x89PNG") -> tuple[str, Read]:
    results = by_row(
        [make_finding("none", 20), make_finding("<b>&", 40, 1), make_finding("<b>&", 45, 2, ended="2 minutes")]
    )
    found = summarise("<i>T</i>", ITEMS, ("bleu",), results, "none", {"odd": "why <not>"})
    text = report_page(found, results, "heedful compare '<g>.toml'", picture, ["training: <pairs>"])
    read = Read()
    read.feed(text)
    assert read.open == []
    wanted = [cell for rows in (score_rows(found), length_rows(found)) for row in rows for cell in row]
    assert read.cells == wanted
    return text, read


def test_everything_is_there_and_closed():
    text, read = page()
    assert text.startswith("<!DOCTYPE html>\n")
    for words in ("<i>T</i>", "why <not>", "heedful compare '<g>.toml'", "training: <pairs>", "seed 2: 2 minutes"):
        assert words in read.text
    assert "heedful train pairs.tsv --set 'training.seed=2'" in read.text
    assert 'kind = "none"' in read.text
    assert '- kind = "none"\n+ kind = "<b>&"' in read.text


def test_nothing_is_fetched_and_no_data_is_html():
    text, read = page()
    assert not re.search(r"https?:|//|<script|@import|url\(", re.sub(r"data:image/png;base64,[^\"]*", "", text))
    assert "<b>" not in text
    assert "<i>" not in text
    sources = [value for name, value in read.attributes if name in ("src", "href")]
    assert sources == ["data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()]
    assert any(name == "alt" and value for name, value in read.attributes)


def test_without_a_picture_the_tables_stand_alone():
    text, _ = page(b"")
    assert "<img" not in text


def test_attention_is_that_of_the_first_seed_of_each_row():
    def drawn(row: str, seed: int) -> RunResult:
        html = f'<svg role="img" aria-label="{row} {seed}"></svg>'
        view = {"title": "<q> → a", "explanation": "Darker is larger", "html": html}
        return make_finding(row, 20, seed, attention=(view,))

    results = by_row([drawn("none", 1), drawn("none", 2), drawn("x", 1), make_finding("y", 20)])
    found = summarise("T", ITEMS, ("bleu",), results, "none", {})
    text = report_page(found, results, "heedful compare g.toml", b"", [])
    assert re.findall(r'aria-label="(.*?)"', text) == ["none 1", "x 1"]
    assert text.count("&lt;q&gt; → a") == 2
    assert text.count("Darker is larger") == 1
    assert "<h2>Attention</h2>" not in page()[0]


def test_units_of_training_are_those_of_the_task():
    items = ITEMS.model_validate(ITEMS.model_dump() | {"trained_unit": "examples"})
    results = by_row([make_finding("none", 20)])
    found = summarise("T", items, ("bleu",), results, "none", {})
    assert "7,000 examples in 62 s" in report_page(found, results, "", b"", [])
    assert "7,000 target tokens in 62 s" in page()[0]


def test_the_baseline_is_marked():
    text, _ = page()
    assert text.count('class="marked"') == 2
    assert '<tr class="marked"><th scope="row">none</th>' in text
