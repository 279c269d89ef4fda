"""The page in Chromium, as an offline file: what is shown, lit, chosen and saved."""

import re
from collections.abc import Generator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.pages.bundle import offline_page
from heedful.pages.passage import Passage, PassagePart
from heedful.pages.sentence import SentenceView, WeightMap
from tests.pages.browser import AXE, Tab, chromium, needs_chromium
from tests.pages.views import sentence_view, weights_of
from tests.thorough import sampled, thinned

pytestmark = needs_chromium
VIEWS = ("translate", "inside", "search", "learn")


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with chromium() as started:
        yield started


def written(tmp_path: Path, view: SentenceView | None = None) -> str:
    path = tmp_path / "page.html"
    path.write_text(offline_page("page", (view or sentence_view()).to_dict()), encoding="utf-8", newline="\n")
    return path.as_uri()


def texts(tab: Tab, selector: str) -> list[str]:
    return [each.strip() for each in tab.page.locator(selector).all_text_contents()]


def test_pointing_at_a_cell_lights_exactly_its_two_words(browser: Any, tmp_path: Path):
    tab = Tab(browser, written(tmp_path))
    box = tab.page.locator("svg.map").bounding_box()
    first = tab.page.locator("svg.map > rect").first
    left, top = (float(first.get_attribute(name)) for name in ("x", "y"))
    tab.page.mouse.move(box["x"] + left + 3.5 * 32, box["y"] + top + 2.5 * 32)
    assert texts(tab, ".links .word.hot") == ["好", "is"]
    assert texts(tab, "svg.map text.hot") == ["is", "好"]
    assert re.search(r"“?is”? ← 好: 0\.\d\d · row sum 1\.000", tab.page.locator(".status").first.inner_text())
    tab.close()


def test_arrow_keys_move_the_cell_and_name_it(browser: Any, tmp_path: Path):
    tab = Tab(browser, written(tmp_path))
    tab.page.locator("svg.map").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        tab.page.keyboard.press(key)
    assert tab.page.locator("svg.map").get_attribute("aria-label").startswith("is ← 天气: 0.")
    tab.close()


def test_chinese_labels_without_room_side_by_side_stand_upright(browser: Any, tmp_path: Path):
    view = sentence_view(source=("今天", "国际", "天气预报", "很", "好") * 4 + ("</s>",))
    tab = Tab(browser, written(tmp_path, view))
    boxes = tab.page.evaluate(
        """() => [...document.querySelectorAll('svg.map text[data-column]')].map((each) => {
            const box = each.getBoundingClientRect();
            return [box.left, box.right, box.top, each.closest('svg').getBoundingClientRect().top];
        })"""
    )
    assert len(boxes) == 21
    assert all(one[1] <= other[0] + 1 for one, other in pairwise(boxes))
    assert all(top >= frame for _, _, top, frame in boxes)
    tab.close()


def test_kept_spans_are_shaded_behind_characters_of_two_units(browser: Any, tmp_path: Path):
    source, output = "😀 see https://a.b 🏳️‍🌈 {x}", "𝒳 {x} https://a.b"
    places = ((6, 17, "url"), (23, 26, "braces"))
    part = PassagePart(source, output, places, ((2, 5, "braces"), (6, 17, "url")), "see")
    view = sentence_view().to_dict() | {"passage": Passage((part,), ("", ""), ("", "")).to_dict()}
    path = tmp_path / "page.html"
    path.write_text(offline_page("page", view), encoding="utf-8", newline="\n")
    tab = Tab(browser, path.as_uri())
    assert texts(tab, "#passage .kept") == ["{x}", "https://a.b"]
    assert texts(tab, "#segment .said .kept") == [source[start:end] for start, end, _ in places]
    assert tab.page.locator("#passage").text_content() == output
    tab.close()


def test_an_offline_file_holds_every_measure(browser: Any, tmp_path: Path):
    view = sentence_view()
    rollout = (replace(view.maps[0], weights=view.maps[1].weights),)
    view = replace(view, measures=("attention", "rollout", "gradients"), other_maps={"rollout": rollout})
    tab = Tab(browser, written(tmp_path, view) + "#view=inside&layer=0")
    buttons = tab.page.locator("#measures button")
    assert buttons.all_text_contents() == ["Attention", "Rollout"]
    before = tab.page.locator("svg.map").inner_html()
    buttons.nth(1).click()
    tab.page.wait_for_selector("#measures button:nth-child(2)[aria-pressed=true]")
    assert tab.page.locator("svg.map").inner_html() != before
    assert "measure=rollout" in tab.page.url
    tab.close()


def test_heads_of_words_have_a_root_and_a_framed_tree(browser: Any, tmp_path: Path):
    view = sentence_view(source=("▁He", "▁sle", "pt", "</s>"))
    heads = WeightMap("encoder", 0, weights_of(1, 4, 5, 3), has_root=True, tree=np.array([[2, 0, 2, 2]]))
    address = written(tmp_path, replace(view, maps=(view.maps[0], heads))) + "#view=inside&role=encoder"
    for unit, words in (("word", ["He", "slept", "⏎"]), ("piece", ["He", "sle", "pt", "⏎"])):
        tab = Tab(browser, f"{address}&unit={unit}")
        assert texts(tab, "svg.map text[data-row]") == words
        assert texts(tab, "svg.map text[data-column]") == ["⟨root⟩", *words]
        tab.page.locator("svg.map").focus()
        for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
            tab.page.keyboard.press(key)
        # "pt" depends on "sle": an arc between pieces, and none between words.
        assert tab.page.locator("svg.map .mark").count() == len(words)
        assert "in the tree" not in tab.page.locator(".status").inner_text()
        tab.page.keyboard.press("ArrowLeft")
        tab.page.keyboard.press("ArrowLeft")
        assert re.search(r"(slept|sle) ← ⟨root⟩: 0\.\d\d · in the tree", tab.page.locator(".status").inner_text())
        tab.close()
    tab = Tab(browser, address, language="zh-CN")
    assert texts(tab, "svg.map text[data-column]")[0] == "⟨根⟩"
    tab.close()


def test_short_labels_beside_a_long_one_stay_upright(browser: Any, tmp_path: Path):
    view = sentence_view(source=("▁1", "▁+", "▁international", "▁2", "</s>"))
    tab = Tab(browser, written(tmp_path, view))
    turned = tab.page.locator("svg.map text[data-column][transform]").all_text_contents()
    assert turned == ["international"]
    tab.close()


@pytest.mark.parametrize("unit", ["word", "piece"])
def test_rows_of_every_map_sum_to_one(browser: Any, tmp_path: Path, unit: str):
    tab = Tab(browser, written(tmp_path) + f"#view=inside&unit={unit}")
    num_rows = tab.page.locator("svg.map text[data-row]").count()
    assert num_rows == (5 if unit == "word" else 6)
    tab.page.locator("svg.map").focus()
    for _ in range(num_rows):
        tab.page.keyboard.press("ArrowDown")
        assert "row sum 1.000" in tab.page.locator(".status").inner_text()
    tab.close()


def test_a_head_changes_the_map_and_the_address_brings_it_back(browser: Any, tmp_path: Path):
    address = written(tmp_path)
    tab = Tab(browser, address + "#view=inside")
    before = tab.page.locator("svg.map").inner_html()
    tab.page.get_by_role("button", name="Layer 1, Head 2").click()
    after = tab.page.locator("svg.map").inner_html()
    assert before != after
    again = Tab(browser, tab.page.url)
    assert again.page.locator("svg.map").inner_html() == after
    assert again.page.locator(".thumbs [aria-pressed=true]").get_attribute("aria-label") == "Layer 1, Head 2"
    tab.close()
    again.close()


def test_an_alternative_of_a_word_replaces_what_follows(browser: Any, tmp_path: Path):
    tab = Tab(browser, written(tmp_path))
    tab.page.locator("#output .word", has_text="weather").click()
    tab.page.locator("button[data-token='99']").click()
    assert tab.page.locator("#output .words").inner_text() == "It is fine"
    assert texts(tab, ".links .lower .word") == ["It", "is", "fine", "⏎"]
    tab.page.get_by_role("button", name="Back to the best output").click()
    assert texts(tab, "#output .word")[:2] == ["The", "weather"]
    tab.close()


def test_the_length_penalty_ranks_finished_hypotheses_anew(browser: Any, tmp_path: Path):
    view = sentence_view()
    nodes = view.searches[-1].trace.nodes
    tab = Tab(browser, written(tmp_path, view) + "#view=search&beam=3&alpha=0")
    ended = sorted((n.log_prob for n in nodes if n.fate in ("eos", "length")), reverse=True)
    assert texts(tab, "#finished td:nth-child(2)") == [f"{one:.2f}".replace("-", "−") for one in ended]
    tab.page.locator("#alpha").fill("2")
    expected = sorted((n.log_prob / (n.step + 1) ** 2 for n in nodes if n.fate in ("eos", "length")), reverse=True)
    assert texts(tab, "#finished td:nth-child(2)") == [f"{one:.2f}".replace("-", "−") for one in expected]
    tab.close()


def test_a_node_of_the_tree_shows_its_text_and_attention(browser: Any, tmp_path: Path):
    view = sentence_view()
    tab = Tab(browser, written(tmp_path, view) + "#view=search&beam=3")
    tab.page.locator("#node-4").focus()
    tab.page.keyboard.press("Enter")
    assert tab.page.locator("#hypothesis").inner_text() == view.searches[-1].texts[4]
    assert tab.page.locator("svg.map text[data-row]").count() == len(view.searches[-1].trace.path(4))
    assert "left the beam at its token 2" in tab.page.locator(".notice").inner_text()
    tab.close()


def test_a_map_of_200_by_200_is_a_picture_rather_than_40000_shapes(browser: Any, tmp_path: Path):
    pieces = tuple(f"▁w{index}" for index in range(199))
    tab = Tab(browser, written(tmp_path, sentence_view((*pieces, "</s>"), (*pieces, "</s>"))) + "#view=inside")
    assert tab.page.locator("svg.map *").count() < 20
    image = tab.page.locator("svg.map image")
    assert image.get_attribute("href").startswith("data:image/png")
    box = image.bounding_box()
    tab.page.mouse.move(box["x"] + box["width"] * 150.5 / 200, box["y"] + box["height"] * 0.5 / 200)
    assert tab.page.locator(".status").inner_text().startswith("w0 ← w150: ")
    tab.close()


@pytest.mark.parametrize("kind", ["svg", "png", "csv"])
def test_a_map_is_saved(browser: Any, tmp_path: Path, kind: str):
    tab = Tab(browser, written(tmp_path) + "#view=inside&head=1")
    with tab.page.expect_download() as download:
        tab.page.locator(f"[data-save={kind}]").click()
    saved = Path(download.value.path()).read_bytes()
    assert download.value.suggested_filename == f"attention-cross-2-1.{kind}"
    if kind == "png":
        assert saved.startswith(b"\x89PNG")
    if kind == "svg":
        assert b"var(--" not in saved
        assert "天气".encode() in saved
    if kind == "csv":
        rows = [line.split(",") for line in saved.decode("utf-8-sig").strip().split("\r\n")]
        assert rows[0] == ['""', '"今天"', '"天气"', '"很"', '"好"', '"⏎"']
        sums = [sum(map(float, row[1:])) for row in rows[1:]]
        np.testing.assert_allclose(sums, 1.0, atol=1e-5)
    tab.close()


def test_markup_in_a_sentence_stays_text(browser: Any, tmp_path: Path):
    hostile = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
    tab = Tab(browser, written(tmp_path, sentence_view((hostile, "</s>"), (f"▁{hostile}", "</s>"))))
    for view in VIEWS:
        tab.page.locator(f"#tab-{view}").click()
    assert tab.page.evaluate("window.hacked") is None
    tab.page.locator("#tab-translate").click()
    assert hostile in tab.page.locator("#output").inner_text()
    tab.close()


LATIN = re.compile(r"[A-Za-z]{3,}")
ALL_TEXT = """() => {
    const names = ['aria-label', 'title', 'placeholder'];
    const named = [...document.querySelectorAll('[aria-label],[title],[placeholder]')];
    document.querySelectorAll('option, .formula').forEach((each) => each.remove());
    const attributes = named.flatMap((each) => names.map((name) => each.getAttribute(name) ?? ''));
    const tooltips = [...document.querySelectorAll('svg title')].map((each) => each.textContent);
    return [document.title, document.body.innerText, ...attributes, ...tooltips].join(' ');
}"""


@sampled(2)
@pytest.mark.parametrize("view", VIEWS)
def test_chinese_leaves_no_english(browser: Any, tmp_path: Path, view: str):
    chinese = sentence_view(("今天", "天气", "</s>"), ("很", "好", "</s>"), ("不", "错", "</s>"))
    chinese = replace(chinese, reference="天气不错")
    tab = Tab(browser, written(tmp_path, chinese) + f"#view={view}", language="zh-CN")
    page = tab.page.evaluate(ALL_TEXT)
    allowed = {
        "heedful",
        "English",
        "toy",
        "model",
        "SVG",
        "PNG",
        "CSV",
        "token",
        "Nadaraya",
        "Watson",
        "Luong",
        "local",
        "ALTI",
        "softmax",
        "cell",
    }
    assert set(LATIN.findall(page)) <= allowed
    assert tab.page.locator("html").get_attribute("lang") == "zh-CN"
    tab.page.locator("#language").click()
    assert "Translate" in tab.page.locator("nav").inner_text()
    tab.close()


def test_the_address_may_name_the_language(browser: Any, tmp_path: Path):
    tab = Tab(browser, written(tmp_path) + "#view=learn&language=zh")
    assert tab.page.locator("html").get_attribute("lang") == "zh-CN"
    assert "查询" in tab.page.locator("main").inner_text()
    tab.close()


@pytest.mark.parametrize("view", thinned(VIEWS, 2))
def test_a_narrow_screen_does_not_scroll_sideways(browser: Any, tmp_path: Path, view: str):
    tab = Tab(browser, written(tmp_path) + f"#view={view}&word=0", width=320)
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 320
    rights = "() => [...document.querySelectorAll('[role=tab]')].map((each) => each.getBoundingClientRect().right)"
    assert max(tab.page.evaluate(rights)) <= 320
    tab.close()


GUITAR = ("▁A", "▁man", "▁play", "s", "▁gui", "tar", ".", "</s>")
DATE = ("2", "0", "2", "1", "-", "0", "5", "</s>")


@pytest.mark.parametrize(
    ("pieces", "text"), [(GUITAR, "A man plays guitar."), (DATE, "2021-05"), (("▁a", "<unk>", "▁b", "</s>"), "a ⁇ b")]
)
def test_a_selection_of_the_output_is_its_text(browser: Any, tmp_path: Path, pieces: tuple[str, ...], text: str):
    view = sentence_view(target=pieces)
    view = replace(view, outputs=(replace(view.outputs[0], text=text), *view.outputs[1:]))
    tab = Tab(browser, written(tmp_path, view))
    first, last = (tab.page.locator("#output .word").nth(place).bounding_box() for place in (0, -1))
    tab.page.mouse.move(first["x"] + 1, first["y"] + first["height"] / 2)
    tab.page.mouse.down()
    tab.page.mouse.move(last["x"] + last["width"] + 4, last["y"] + last["height"] / 2, steps=4)
    tab.page.mouse.up()
    plain = text.replace("⁇", "<unk>")
    assert tab.page.evaluate("getSelection().toString()") == plain
    assert tab.page.locator("#output .words").inner_text() == plain
    tab.close()


@pytest.mark.parametrize("has_clipboard", [True, False])
def test_the_output_is_copied(browser: Any, tmp_path: Path, has_clipboard: bool):
    tab = Tab(browser, written(tmp_path))
    clipboard = "{ writeText: async (text) => { window.given = text; } }" if has_clipboard else "undefined"
    tab.page.evaluate(f"() => Object.defineProperty(navigator, 'clipboard', {{ value: {clipboard} }})")
    tab.page.evaluate("() => document.addEventListener('copy', () => { window.given = getSelection().toString(); })")
    button = tab.page.get_by_role("button", name="Copy the translation")
    button.click()
    tab.page.wait_for_function("() => document.querySelector('#output .copy').textContent === 'Copied'")
    assert tab.page.evaluate("window.given") == "The weather is good"
    button.wait_for()
    tab.close()


def test_attention_of_no_single_layer_is_called_a_mean(browser: Any, tmp_path: Path):
    command = "heedful export toy.model --to html --layers"
    view = replace(sentence_view(), maps=(), missing={"packed": command})
    tab = Tab(browser, written(tmp_path, view) + "#view=inside")
    said = tab.page.locator("main").inner_text()
    assert "Attention while translating · mean of layers and heads" in said
    assert command in said
    assert "Layer 1" not in said
    assert tab.page.locator(".thumbs").count() == 0
    tab.close()


def test_a_finger_is_told_to_tap(browser: Any, tmp_path: Path):
    tab = Tab(browser, written(tmp_path), width=400, is_touched=True)
    assert tab.page.locator(".status").inner_text() == "Tap a cell."
    assert "Tap a word" in tab.page.locator("main").inner_text()
    tab.close()


INSIDE = """([inner, outer]) => [...document.querySelectorAll(inner)].every((each) => {
    const box = each.getBoundingClientRect(), frame = each.closest(outer).getBoundingClientRect();
    return box.left >= frame.left && box.right <= frame.right;
})"""


def test_a_long_word_stays_inside_its_card_and_its_map(browser: Any, tmp_path: Path):
    long = "▁Donaudampfschifffahrtsgesellschaftskapitän"
    view = sentence_view(source=(*[f"▁w{index}" for index in range(12)], long, "▁w", "</s>"))
    for width in (1280, 400):
        tab = Tab(browser, written(tmp_path, view), width=width)
        assert tab.page.evaluate(INSIDE, [".links .word", ".card"])
        assert tab.page.evaluate(INSIDE, ["svg.map text[data-column]", "svg"])
        tab.close()


def test_the_ring_of_the_text_has_the_corners_of_its_card(browser: Any, tmp_path: Path):
    corners = "getComputedStyle(document.querySelector('.panes > *')).borderRadius"
    for width, shape in ((1280, "13px 0px 0px 13px"), (400, "11px 11px 0px 0px")):
        tab = Tab(browser, written(tmp_path), width=width)
        tab.page.locator("#source").focus()
        assert tab.page.evaluate(corners) == shape
        tab.close()


def test_a_label_of_the_tree_is_whole_where_it_has_room(browser: Any, tmp_path: Path):
    view = sentence_view()
    short = replace(view.searches[-1], pieces=dict.fromkeys(view.searches[-1].pieces, "wearing"))
    tab = Tab(browser, written(tmp_path, replace(view, searches=(short,))) + "#view=search")
    assert set(texts(tab, ".tree .node:not(.best) text:first-of-type")) == {"wearing"}
    tab.close()


@pytest.mark.skipif(
    not AXE.is_file(), reason="needs axe-core, and its axe.min.js named by HEEDFUL_AXE: npm install axe-core"
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious(browser: Any, tmp_path: Path, view: str, scheme: str):
    tab = Tab(browser, written(tmp_path) + f"#view={view}&word=0", scheme=scheme)
    tab.page.evaluate(AXE.read_text(encoding="utf-8"))
    result = tab.page.evaluate("axe.run()")
    found = [
        f"{one['id']}: {one['nodes'][0]['html'][:120]}"
        for one in result["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert found == []
    tab.close()


def test_a_link_chooses_the_mechanism(browser: Any, tmp_path: Path):
    page = written(tmp_path)
    chosen = "[...document.querySelectorAll('#score, #normalizer, #gaussian')].map((one) => one.value + one.checked)"
    for asked, found in {
        "&score=additive&normalizer=sparsemax&window=gaussian": ["additiveundefined", "sparsemaxundefined", "ontrue"],
        "&score=constructor&normalizer=no&window=any": ["dotundefined", "softmaxundefined", "onfalse"],
    }.items():
        tab = Tab(browser, f"{page}#view=learn{asked}")
        assert tab.page.evaluate(chosen) == found
        tab.close()


def test_the_reader_s_own_numbers_change_scores_weights_and_context(browser: Any, tmp_path: Path):
    tab = Tab(browser, written(tmp_path) + "#view=learn")
    label = "document.getElementById('{}').getAttribute('aria-label')"
    assert tab.page.evaluate(label.format("scores")) == "Scores: 1.000, 1.000, −0.750, −0.500, 2.000"
    tab.page.locator("input[aria-label='Query, component 1']").fill("2")
    assert tab.page.evaluate(label.format("scores")) == "Scores: 2.000, 1.500, −1.750, −0.500, 3.500"
    tab.page.locator("#normalizer").select_option("hard")
    assert tab.page.evaluate(label.format("weights")) == "Weights: 0.000, 0.000, 0.000, 0.000, 1.000"
    assert tab.page.locator("#context").inner_text() == "c = Σ w v = [1.000, 1.000]"
    strip = tab.page.locator("#strip").bounding_box()
    middle = strip["x"] + strip["width"] / 2, strip["y"] + strip["height"] / 2
    tab.page.mouse.move(*middle)
    tab.page.mouse.down()
    tab.page.mouse.move(middle[0] - 120, middle[1])
    tab.page.mouse.up()
    # The window has its centre at the first key: only the first two may be attended.
    assert tab.page.evaluate(label.format("weights")) == "Weights: 1.000, 0.000, 0.000, 0.000, 0.000"
    before = tab.page.locator("#regression path").get_attribute("d")
    tab.page.locator("#bandwidth").fill("2")
    assert tab.page.locator("#regression path").get_attribute("d") != before
    tab.close()


@pytest.mark.parametrize("piece", ["▁internationalisation", "国际化的翻译模型", "WWWWWWWWWW"])
def test_labels_of_the_tree_do_not_reach_their_numbers(browser: Any, tmp_path: Path, piece: str):
    view = sentence_view()
    long = replace(view.searches[-1], pieces=dict.fromkeys(view.searches[-1].pieces, piece.removeprefix("▁")))
    tab = Tab(browser, written(tmp_path, replace(view, searches=(long,))) + "#view=search")
    gaps = tab.page.evaluate(
        """() => [...document.querySelectorAll('.tree .node')].map((node) => {
            const [label, number] = [...node.querySelectorAll('text')].map((text) => text.getBBox());
            return number.x - label.x - label.width;
        })"""
    )
    assert len(gaps) > 3
    assert min(gaps) >= 0
    tab.close()
