"""The pages on attention say what the code says: their tables and pictures are those that the script makes."""

import importlib
import re
import sys
from collections.abc import Iterator
from typing import Any, final
from xml.etree import ElementTree

import pytest
import torch
from torch import Tensor

from heedful.attention.dispatch import KERNELS, explain
from heedful.attention.interface import PreparedKey, Score
from heedful.attention.lowered import LoweredDot
from heedful.attention.masks import MASKS, Mask, causal, window
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES, Dot
from heedful.attention.softmax import SOFTMAX
from heedful.errors import ShapeError
from tests.architecture.package import ROOT
from tests.cli.command import heedful
from tests.thorough import thinned

ADVICE = "run: python docs/make_attention.py"
LANGUAGES = (0, 1)
BACKGROUNDS = ("#ffffff", "#0d1117")
PICTURES = sorted(path.stem for path in (ROOT / "docs" / "pictures").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


TRIED = ("additive", "hard")
"""Mechanisms whose row in the table of transforms is made anew, seconds each; contracts/test_transforms.py has all."""


@pytest.fixture(scope="module")
def maker() -> Iterator[Any]:
    """The script that makes tables and pictures."""
    sys.path.insert(0, str(ROOT / "docs"))
    made = importlib.import_module("make_attention")
    text = (ROOT / "docs" / made.PAGES[0].page).read_text(encoding="utf-8")
    table = text.partition("<!-- table: transforms -->")[2].partition("<!-- /table -->")[0]
    cells = {first: tuple(rest) for first, *rest in (row[2:-2].split(" | ") for row in table.strip().split("\n"))}
    known = {(kind, SOFTMAX.__class__): cells["all scores"] for name, kind in SCORES.items() if name not in TRIED}
    known |= {(Dot, kind): cells[f"`{name}`"] for name, kind in NORMALIZERS.items() if name not in TRIED}
    importlib.import_module("attention_transforms")._rows.update(known)
    yield made
    sys.path.remove(str(ROOT / "docs"))


def page(maker: Any, language: int) -> str:
    return (ROOT / "docs" / maker.PAGES[language].page).read_bytes().decode("utf-8")


# ------------------------------------------------------------------------------------------------------ tables
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_tables_are_fresh(maker: Any, language: int):
    text = page(maker, language)
    assert maker.fill(text, maker.PAGES[language]) == text, ADVICE


def test_every_cell_has_a_chinese_wording_and_none_is_left_over(maker: Any):
    assert maker.untranslated() == [], "add them to docs/attention_chinese.py"
    assert maker.stale() == [], "take them out of docs/attention_chinese.py"


@final
class Novel(Score):
    """a(q, k) = |q . k|^2 * 3, for a while. Nobody 2099, arXiv:2999.00001, eq. 4.

    Cost: a wink per pair.
    """

    def prepare(self, key: Tensor) -> PreparedKey:
        return PreparedKey(key)

    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> LoweredDot:
        return LoweredDot(query, prepared.key)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_score_shows_up(maker: Any, language: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(SCORES, "novel", Novel)
    text = page(maker, language)
    fresh = maker.fill(text, maker.PAGES[language])
    assert fresh != text
    (row,) = [line for line in set(fresh.split("\n")) - set(text.split("\n")) if line.startswith("| `Novel`")]
    year, comma, eq = (" 2099", ", ", "eq. 4") if language == 0 else ("，2099", "，", "式 4")
    link = "[arXiv:2999.00001](https://arxiv.org/abs/2999.00001)"
    start = rf"| `Novel` | \|q · k\|² × 3, for a while | Nobody{year}{comma}{link}{comma}{eq} | a wink per pair | "
    assert row.startswith(start)
    assert row.endswith(" | query + key | window, step_cpu, sdpa, plain |")


def test_a_new_score_is_listed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(SCORES, "novel", Novel)
    last = heedful("list", "scores").out.split("\n")[-2]
    assert re.split(r"  +", last)[:3] == [
        "novel",
        "a(q, k) = |q . k|^2 * 3, for a while",
        "Nobody 2099, arXiv:2999.00001, eq. 4",
    ]
    assert last.endswith("cost: a wink per pair; memory: query + key; kernels: window, step_cpu, sdpa, plain")


def test_a_new_mask_shows_up(maker: Any, monkeypatch: pytest.MonkeyPatch):
    def strided(step: int) -> Mask:
        """Let a query attend keys at some distances.

        Args:
            step: between them.

        Cost: a table.
        """
        return causal() | window(step, 0)

    monkeypatch.setitem(MASKS, "strided", strided)
    (row,) = [row for row in maker.tables()["masks"] if row[0] == "`strided`"]
    assert row[1:] == (
        "Let a query attend keys at some distances",
        "",
        "a table",
        "query * key bools",
        "sdpa, additive_cpu, plain",
    )
    assert "Let a query attend keys at some distances" in maker.untranslated()


def test_chinese_without_a_row_is_found(maker: Any, monkeypatch: pytest.MonkeyPatch):
    fewer = [score for score in maker.list_scores() if score.name != "general"]
    monkeypatch.setattr(maker, "list_scores", lambda: fewer)
    assert "q W k, W [query_size, key_size]; bilinear" in maker.stale()


@pytest.mark.parametrize(("old", "new"), [("table: masks", "table: mask"), ("<!-- table: masks -->", "")])
def test_a_page_without_a_table_is_refused(maker: Any, old: str, new: str):
    with pytest.raises(ValueError, match=r"expected scores, biases, normalizers, masks, kernels"):
        maker.fill(page(maker, 0).replace(old, new), maker.PAGES[0])


@pytest.mark.parametrize("name", SCORES)
def test_the_kernels_of_a_score_are_those_that_take_it(maker: Any, name: str):
    score = SCORES[name](8, 8).double()
    tensor = torch.zeros(64, 8, dtype=torch.float64)
    (row,) = [row for row in maker.tables()["scores"] if row[0] == f"`{SCORES[name].__name__}`"]
    listed = row[-1].split(", ")
    calls = [explain(tensor, tensor, tensor, score=score, mask=mask) for mask in (None, causal(), window(0, 0))]
    taking = {choice.kernel for choices in calls for choice in choices if not choice.reason}
    assert taking <= set(listed)
    assert {"window", "plain"} <= taking
    assert listed == [kernel.name for kernel in KERNELS if kernel.name in listed]


def test_only_kernels_that_can_are_named(maker: Any):
    kernels = {row[0].strip("`"): row[-1].split(", ") for rows in maker.tables().values() for row in rows}
    assert "sdpa" in kernels["Dot"]
    assert "sdpa" not in kernels["Additive"]
    assert "sdpa" not in kernels["Gaussian"]
    assert "sdpa" not in kernels["Sparsemax"]
    assert "window" not in kernels["Sampled"]
    assert kernels["ProjectiveTree"] == ["additive_cpu", "plain"]
    assert "window" not in kernels["causal"]
    assert "window" in kernels["local_monotonic"]
    assert "sdpa" not in kernels["local_predictive"]
    assert "sdpa" in kernels["graph"]


@pytest.mark.parametrize("name", thinned(SCORES, 2))
def test_the_cost_of_a_score_names_the_size_of_its_pairs(maker: Any, name: str):
    sizes = {"query_size": 5, "key_size": 7, "hidden_size": 11}
    try:
        score = SCORES[name](**sizes).double()
    except ShapeError:
        sizes["key_size"] = 5
        score = SCORES[name](**sizes).double()
    query, key = (torch.zeros(2, sizes[size], dtype=torch.float64) for size in ("query_size", "key_size"))
    pairs = score.lower(query, score.prepare(key))
    (row,) = [row for row in maker.tables()["scores"] if row[0] == f"`{SCORES[name].__name__}`"]
    named, plus, more, *_ = row[3].split()
    wanted = {**sizes, "depth": 5, "1": 1}[named] + (int(more) if plus == "+" else 0)
    assert pairs.key.shape[-1] == pairs.query.shape[-1] == wanted, row


def test_memory_is_that_of_the_scope_and_the_form(maker: Any):
    tables = maker.tables()
    memory = {row[0].strip("`"): row[4] for name in ("scores", "normalizers", "masks") for row in tables[name]}
    assert {memory[kind.__name__] for kind in SCORES.values()} == {"query + key"}
    whole = {name: memory[kind.__name__] for name, kind in NORMALIZERS.items() if kind.scope == "matrix"}
    assert whole == dict.fromkeys(("monotonic", "hard_monotonic", "projective_tree"), "query * key")
    assert memory["Softmax"] == memory["LinearChain"] == "query + key"
    assert memory["graph"] == "query * key bools"
    assert memory["padding"] == memory["window"] == "2 numbers per query"


def test_every_mechanism_says_what_it_costs_and_papers_have_a_number(maker: Any):
    rows = [row for name in ("scores", "normalizers", "masks") for row in maker.tables()[name]]
    assert len(rows) == len(SCORES) + len(NORMALIZERS) + len(MASKS)
    assert [row[0] for row in rows if not row[1] or not row[3] or not row[5]] == []
    assert [row[0] for row in rows if row[2] and not re.search(r"arXiv:\d{4}\.\d{4,5}|doi:10\.", row[2])] == []


# ---------------------------------------------------------------------------------------------------- pictures
def test_every_picture_is_drawn_by_the_script(maker: Any):
    assert sorted(maker.PICTURES) == PICTURES, ADVICE


@pytest.mark.parametrize("name", PICTURES)
def test_drawing_again_gives_the_same_bytes(maker: Any, name: str):
    kept = (ROOT / "docs" / "pictures" / f"{name}.svg").read_bytes()
    assert maker.PICTURES[name]().to_svg().encode("utf-8") == kept, ADVICE
    assert len(kept) < 100_000


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The ratio of the Web Content Accessibility Guidelines, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def unreadable(svg: str) -> list[str]:
    """What in a picture could not be read on a light or a dark page, at page width."""
    root = ElementTree.fromstring(svg)
    width, height = (float(number) for number in root.attrib["viewBox"].split()[2:])
    found: list[str] = []
    for node in root.iter():
        for colour in {node.attrib.get("fill", "none"), node.attrib.get("stroke", "none")} - {"none"}:
            found += [f"{colour} on {page}" for page in BACKGROUNDS if contrast(colour, page) < 4]
        if node.tag in {f"{SVG}style", f"{SVG}image", f"{SVG}script"}:
            found.append(f"{node.tag} is not shown everywhere")
        if node.tag == f"{SVG}text":
            size, words = float(node.attrib["font-size"]), node.text or ""
            room = len(words) * size * 0.61
            left = float(node.attrib["x"]) - room * {"start": 0, "middle": 0.5, "end": 1}[node.attrib["text-anchor"]]
            if size < 10.5 or left < -1 or left + room > width + 1 or not size < float(node.attrib["y"]) + 2 <= height:
                found.append(f"{words!r} is cut off or small")
    return found


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_can_be_read_on_light_and_dark_pages(name: str):
    assert unreadable((ROOT / "docs" / "pictures" / f"{name}.svg").read_bytes().decode("utf-8")) == []


@pytest.mark.parametrize(
    ("shape", "complaint"),
    [
        ('<rect fill="#ffffff"/>', "#ffffff on #ffffff"),
        ('<rect fill="none" stroke="#101010"/>', "#101010 on #0d1117"),
        ("<style>text { color: red }</style>", "not shown everywhere"),
        ('<text x="50" y="20" text-anchor="middle" font-size="9" fill="#757a82">a</text>', "small"),
        ('<text x="95" y="20" text-anchor="middle" font-size="12" fill="#757a82">abcdef</text>', "cut off"),
        ('<text x="5" y="20" text-anchor="end" font-size="12" fill="#757a82">abcdef</text>', "cut off"),
        ('<text x="50" y="60" text-anchor="start" font-size="12" fill="#757a82">a</text>', "cut off"),
    ],
)
def test_what_cannot_be_read_is_found(shape: str, complaint: str):
    (found,) = unreadable(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 50">{shape}</svg>')
    assert complaint in found


def test_an_index_is_lowered_and_the_rest_raised_again(maker: Any):
    """Not in code."""
    picture = importlib.import_module("drawing").Picture(10, 10)
    picture.text(0, 0, "0.4 P_w + x", size=12)
    picture.text(0, 0, "a_b", is_code=True)
    svg = picture.to_svg()
    assert '>0.4 P<tspan dy="3" font-size="75%">w</tspan><tspan dy="-3"> + x</tspan></text>' in svg
    assert ">a_b</text>" in svg


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_picture_is_on_the_page_with_words_for_those_who_do_not_see_it(maker: Any, language: int):
    found = re.findall(r"^!\[([^\]]+)\]\(pictures/(\w+)\.svg\)\n\n\*([^*]+)\*$", page(maker, language), re.MULTILINE)
    assert sorted(name for _, name, _ in found) == PICTURES
    shortest = (40, 20) if language == 0 else (15, 10)
    assert all(len(words) >= shortest[0] and len(caption) >= shortest[1] for words, _, caption in found), found
