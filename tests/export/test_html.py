"""The page with a model inside its file, in Chromium, from disk: no request, no error, and what Python answers."""

import base64
import gzip
import hashlib
import io
import json
import re
import tarfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.engines.onnx import OnnxEngine
from heedful.errors import FileRefused, UsageError
from heedful.export.archive import compressed, write_archive
from heedful.export.html import PageFacts, export_html, write_page
from heedful.export.web_runtime import LICENSE, VERSION, WebRuntime, read_runtime
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.text.vocabulary import EOS
from tests.export.archives import SOURCE, TARGET, archived, archived_words
from tests.export.conftest import MOST, Make
from tests.js.node import needs_runtime
from tests.pages.browser import Tab, chromium, needs_chromium
from tests.thorough import thorough

TEXT = "fade cab"
SCORE = {"key": "exact_match", "name": "exact match", "value": "99.1 %"}
SHOWN = "text => document.querySelector('#output .words')?.textContent === text"


CHANNEL = """index => Number(getComputedStyle(document.querySelector('[role=alert]')).borderLeftColor
    .match(/\\d+/g)[index])"""


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def page(exported: Make, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    model = archived(folder / "letters.model", "rnnsearch")
    facts = PageFacts(examples=("", "abc", " ", "<b>"), scores=(SCORE,), license="cc-by-4.0", weights="int8")
    archive = write_archive(model, exported("rnnsearch-after")[1].folder, "float32")
    html = export_html(model.folder, archive, read_runtime(), facts)
    write_page(html.encode(), folder / "letters.html")
    return folder / "letters.html"


def expected(exported: Make, text: str, config: SearchConfig) -> list[Any]:
    ids = np.array([*SOURCE.encode(text), EOS])
    engine = OnnxEngine(exported("rnnsearch-after")[1], with_weights=True)
    return search(engine, [ids], config, max_length=MOST, need_alignment=True)[0]


@needs_runtime
@needs_chromium
def test_the_page_translates_shows_alternatives_and_looks_inside(exported: Make, browser: Any, page: Path):
    tab = Tab(browser, page.as_uri())
    about = tab.page.locator(".about").inner_text()
    assert "on its test set: exact match 99.1 % · licence cc-by-4.0" in about
    assert "inside this file · weights of 8 bits" in about
    tab.page.wait_for_selector("#examples button")
    assert tab.page.locator("#examples button").all_text_contents() == ["abc", "<b>"]
    tab.page.locator("#source").fill(TEXT)
    outputs = expected(exported, TEXT, SearchConfig(beam=5, nbest=5))
    texts = [TARGET.decode(one.token_ids) for one in outputs]
    tab.page.wait_for_function(SHOWN, arg=texts[0])
    rows = tab.page.locator("table tr.pick td:first-child button").all_text_contents()
    assert rows == [text or "∅" for text in texts]
    # Another word of the output is the beginning of the next search.
    tab.page.locator("#output .word").first.click()
    choice = tab.page.locator(".choices button:enabled").first
    token = int(choice.get_attribute("data-token"))
    choice.click()
    tab.page.wait_for_function("token => location.hash.includes('prefix')", arg=token)
    tab.page.wait_for_function("() => document.querySelector('#output .word')?.textContent", timeout=5000)
    tab.page.locator("#tab-inside").click()
    weights = tab.page.evaluate("() => document.querySelectorAll('#view svg rect, #view svg [data-row]').length")
    assert weights > 0
    tab.page.locator("#tab-search").click()
    tab.page.wait_for_selector("svg.tree .node")
    assert tab.page.locator("#finished tr").count() >= 1
    tab.close()


@needs_runtime
@needs_chromium
def test_lines_are_translated_one_by_one_and_a_text_that_is_too_long_is_refused(
    exported: Make, browser: Any, page: Path
):
    tab = Tab(browser, page.as_uri(), width=400, scheme="dark", language="zh-CN")
    assert "测试集：完全匹配率 99.1 % · 许可证：cc-by-4.0" in tab.page.locator(".about").inner_text()
    tab.page.locator("#source").fill("abc\n\n  fed \n")
    one, other = (TARGET.decode(expected(exported, text, SearchConfig(beam=5))[0].token_ids) for text in ("abc", "fed"))
    tab.page.wait_for_selector("#passage .part")
    assert tab.page.locator("#passage").text_content() == f"{one}\n\n  {other} \n"
    for write in (
        "() => { location.hash = 'text=' + 'a'.repeat(20_000) }",
        "() => { const box = document.querySelector('#source'); box.value = 'a'.repeat(100_000); "
        "box.dispatchEvent(new Event('input', { bubbles: true })) }",
    ):
        tab.page.evaluate(write)
        tab.page.wait_for_selector("[role=alert]")
        assert "5,000" in tab.page.locator("[role=alert]").inner_text()
        tab.page.locator("#source").fill("abc")
        tab.page.wait_for_function(SHOWN, arg=one)
    tab.close()


@needs_runtime
@needs_chromium
@pytest.mark.parametrize(
    ("languages", "shown"),
    [
        (["de", "en"], "letters.model · de → en · on its test set: exact"),
        (["de", "target"], "letters.model · de → Output · on its test set: exact"),
        (["", "en"], "letters.model · en · on its test set: exact"),
        (["source", "target"], "letters.model · on its test set: exact"),
    ],
)
def test_languages_are_named_where_somebody_named_them(
    languages: list[str], shown: str, browser: Any, page: Path, tmp_path: Path
):
    html = page.read_text("utf-8")
    assert html.count('"languages": ["xx", "yy"]') == 1
    (tmp_path / "a.html").write_text(
        html.replace('"languages": ["xx", "yy"]', f'"languages": {json.dumps(languages)}'),
        encoding="utf-8",
        newline="\n",
    )
    tab = Tab(browser, (tmp_path / "a.html").as_uri())
    assert shown in tab.page.locator(".about").inner_text()
    tab.close()


@needs_runtime
@needs_chromium
def test_kept_spans_are_shaded_and_stay(exported: Make, browser: Any, tmp_path: Path):
    model = archived_words(tmp_path / "words.model")
    archive = write_archive(model, exported("rnnsearch-after")[1].folder, "float32")
    write_page(export_html(model.folder, archive, read_runtime(), PageFacts()).encode(), tmp_path / "words.html")
    tab = Tab(browser, (tmp_path / "words.html").as_uri())
    tab.page.locator("#source").fill("\U0001f436 a b {x} C")
    tab.page.wait_for_selector("#passage .kept")
    assert tab.page.locator("#segment .said .kept").all_text_contents() == ["\U0001f436", "{x}"]
    assert sorted(tab.page.locator("#passage .kept").all_text_contents()) == ["{x}", "\U0001f436"]
    assert tab.page.locator("#reading").inner_text() == "a b C"
    tab.page.locator("#source").fill("4711 {x}")
    tab.page.wait_for_function("() => document.querySelector('#passage')?.textContent === '4711 {x}'")
    tab.close()


@needs_runtime
@needs_chromium
def test_a_transformer_without_layers_names_the_command_that_packs_them(exported: Make, browser: Any, tmp_path: Path):
    model = archived(tmp_path / "letters.model", "transformer")
    archive = write_archive(model, exported("transformer-pre")[1].folder, "float32")
    write_page(export_html(model.folder, archive, read_runtime(), PageFacts()).encode(), tmp_path / "letters.html")
    tab = Tab(browser, (tmp_path / "letters.html").as_uri() + "#view=inside&text=fade")
    tab.page.wait_for_selector("#map svg.map")
    said = tab.page.locator("main").inner_text()
    assert "mean of layers and heads" in said
    assert "heedful export letters.model --to html --layers" in said
    tab.close()


@needs_runtime
@needs_chromium
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("newer", "made by a newer heedful"),
        ("graph", "of a kind that this page does not run"),
        ("part", "cut or changed"),
        ("settings", "cut or changed"),
        ("tokens", "The model inside failed"),
    ],
)
def test_a_model_that_cannot_run_is_said_to(fault: str, said: str, browser: Any, page: Path, tmp_path: Path):
    html = page.read_text("utf-8")
    (data,) = re.findall(r'id="model-data">([^<]*)<', html)
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(base64.b64decode(data)))) as archive:
        files = {one.name: archive.extractfile(one).read() for one in archive.getmembers()}  # type: ignore[union-attr]
    facts = json.loads(files["model.json"])
    match fault:
        case "newer":
            facts["format"] = 99
        case "graph":
            files["encode.onnx"] = files["step.onnx"]
        case "part":
            del files["step.onnx"]
        case "settings":
            del facts["search"]
        case _:
            facts["source_tokenizer"]["tokens"] = None
    content = base64.b64encode(compressed(files | {"model.json": json.dumps(facts).encode()})).decode()
    path = tmp_path / "changed.html"
    path.write_text(html.replace(data, content), encoding="utf-8", newline="\n")
    tab = Tab(browser, path.as_uri())
    tab.page.evaluate("() => { location.hash = 'text=abc' }")
    tab.page.wait_for_selector("[role=alert]")
    assert said in tab.page.locator("[role=alert]").inner_text()
    tab.close()


@needs_runtime
@needs_chromium
def test_the_same_text_may_be_asked_for_twice_at_once(browser: Any, page: Path):
    tab = Tab(browser, page.as_uri())
    answered(tab, "Ada")
    # The engine ends the first request when the second comes, as it does where it is slow.
    tab.page.evaluate("""() => {
      const post = Worker.prototype.postMessage, fault = { name: 'AbortError', message: 'ended' };
      let first;
      Worker.prototype.postMessage = function (data) {
        if (first === undefined) { first = data.id; return; }
        this.onmessage({ data: { id: first, fault } });
        post.call(this, data);
      };
    }""")
    twice = (
        "text => { location.hash = new URLSearchParams({ text }); dispatchEvent(new HashChangeEvent('hashchange')); }"
    )
    tab.page.evaluate(twice, TEXT)
    tab.page.wait_for_selector("#output:not(.busy) .word")
    assert tab.page.locator("[role=alert]").count() == 0
    tab.close()


@needs_runtime
@needs_chromium
def test_an_address_with_a_million_characters_is_refused_at_once(browser: Any, page: Path):
    tab = Tab(browser, page.as_uri())
    answered(tab, TEXT)
    tab.page.evaluate("() => { location.hash = 'text=' + 'ab '.repeat(333_334) }")
    tab.page.wait_for_selector("[role=alert]")  # within half a minute; a translation would take many
    assert "5,000" in tab.page.locator("[role=alert]").inner_text()
    tab.close()


def answered(tab: Tab, text: str) -> str:
    """The output that the page shows for a text."""
    tab.page.locator("#source").fill(text)
    tab.page.wait_for_selector("#output:not(.busy) .word")
    return tab.page.locator("#output .words").text_content()


@needs_runtime
@needs_chromium
def test_the_model_runs_in_a_worker_and_in_the_page_where_none_starts(browser: Any, page: Path, tmp_path: Path):
    tab = Tab(browser, page.as_uri())
    output = answered(tab, TEXT)
    assert len(tab.page.workers) == 1
    tab.close()
    html = page.read_text("utf-8")
    for name, changed in {
        "refused": html.replace("worker-src blob:", "worker-src 'none'"),
        "unknown": html.replace('<script type="module">', '<script type="module">delete globalThis.Worker;', 1),
    }.items():
        path = tmp_path / f"{name}.html"
        if name == "unknown":
            (script,) = re.findall(r'<script type="module">(.*?)</script>', changed, re.DOTALL)
            (digest, _) = re.findall(r"sha256-[\w+/=]+", changed)[:2]
            changed = changed.replace(digest, digest_of(script))
        path.write_text(changed, encoding="utf-8", newline="\n")
        tab = Tab(browser, path.as_uri())
        assert answered(tab, TEXT) == output
        assert tab.page.workers == []
        tab.context.close()


@thorough
@needs_runtime
@needs_chromium
def test_two_tabs_with_the_page_translate_at_the_same_time(exported: Make, browser: Any, page: Path):
    """Each has a worker of its own, and shows the output of its own text, whichever is asked first."""
    tab = Tab(browser, page.as_uri())
    other = tab.context.new_page()
    other.on("pageerror", lambda error: tab.faults.append(str(error)))
    other.goto(page.as_uri())
    tabs = (tab.page, other)
    for texts in (("abc", "fade cab"), ("fed", "abc"), ("deaf", "deaf")):
        for one, text in zip(tabs, texts, strict=True):
            one.evaluate("text => { location.hash = new URLSearchParams({ text }) }", text)
        for one, text in zip(tabs, texts, strict=True):
            output = TARGET.decode(expected(exported, text, SearchConfig(beam=5))[0].token_ids)
            one.wait_for_function(SHOWN, arg=output)
            assert one.locator("#source").input_value() == text
    assert [len(one.workers) for one in tabs] == [1, 1]
    tab.close()


def digest_of(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


@needs_runtime
@needs_chromium
def test_a_newer_text_ends_the_search_before(browser: Any, page: Path):
    """A text whose search takes long is given up at its next step, and the page draws meanwhile."""
    tab = Tab(browser, page.as_uri())
    answered(tab, TEXT)
    long = "\n".join(["fade cab deaf"] * 300)
    tab.page.evaluate("text => { location.hash = new URLSearchParams({ text }) }", long)
    begun = time.perf_counter()
    tab.page.wait_for_selector("#passage .part", timeout=100_000)
    whole = time.perf_counter() - begun
    tab.page.evaluate("text => { location.hash = new URLSearchParams({ text }) }", f"{long} a")
    tab.page.wait_for_selector("#output.busy")
    begun = time.perf_counter()
    assert answered(tab, "abc")
    assert time.perf_counter() - begun < max(0.5, whole / 2)
    tab.close()


@needs_runtime
@needs_chromium
@pytest.mark.parametrize(
    "fault",
    [
        "cut in the runtime",
        "cut in the script",
        "cut in the engine",
        "changed",
        "engine changed",
        "without WebAssembly",
    ],
)
def test_a_file_that_cannot_run_says_so(fault: str, browser: Any, page: Path, tmp_path: Path):
    html = page.read_text("utf-8")
    data, engine = (html.index(f'id="{name}">') for name in ("runtime-data", "engine-script"))
    broken = {
        "cut in the runtime": html[: data + 200_000],
        "cut in the script": html[: html.index("modules['pages/app/page.js']")],
        "cut in the engine": html[: engine + 9_000],
        "engine changed": html[: engine + 9_000]
        + ("A" if html[engine + 9_000] != "A" else "B")
        + html[engine + 9_001 :],
        "changed": html[: data + 9_000] + ("A" if html[data + 9_000] != "A" else "B") + html[data + 9_001 :],
        "without WebAssembly": html.replace(" 'wasm-unsafe-eval'", ""),
    }[fault]
    path = tmp_path / "broken.html"
    path.write_text(broken, encoding="utf-8", newline="\n")
    tab = Tab(browser, path.as_uri(), ready="#page > *")
    if fault == "cut in the script":
        assert "the file is cut" in tab.page.locator("#page").inner_text()
        padding = "() => parseFloat(getComputedStyle(document.querySelector('#page > *')).paddingTop)"
        assert tab.page.evaluate(padding) > 10
    else:
        tab.page.wait_for_selector("[role=alert]")
        said = tab.page.locator("[role=alert]").inner_text()
        plain = "This browser does not run the model: it is too old, or WebAssembly is switched off."
        assert said == (plain if fault == "without WebAssembly" else "This file is cut or changed. Copy it again.")
        assert tab.page.locator("#source").is_disabled()
        assert tab.page.locator("#output p").count() == 0
        red, _, blue = (tab.page.evaluate(CHANNEL, index) for index in range(3))
        assert red > blue
    tab.context.close()
    assert tab.refused == []


@needs_runtime
def test_no_address_is_asked_and_one_script_may_run(page: Path):
    html = page.read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    sources = (
        "script-src 'HASH' 'HASH' 'wasm-unsafe-eval'; worker-src blob:; style-src 'unsafe-inline'; img-src data: blob:"
    )
    assert re.sub(r"sha256-[\w+/=]+", "HASH", policy[1]) == f"default-src 'none'; {sources}"
    (data,) = re.findall(r'id="runtime-data">([^<]*)<', html)
    assert gzip.decompress(base64.b64decode(data))[:4] == b"\0asm"


def test_the_licence_of_the_runtime_is_in_every_page(exported: Make, tmp_path: Path):
    model = archived(tmp_path / "letters.model", "rnnsearch")
    archive = write_archive(model, exported("rnnsearch-after")[1].folder, "float32")
    html = export_html(model.folder, archive, WebRuntime("export { ort };", b""), PageFacts())
    (notice,) = re.findall(r'<script type="text/plain" id="licence-onnxruntime">\n([^<]*)</script>', html)
    assert notice == LICENSE
    assert "Copyright (c) Microsoft Corporation" in notice
    assert html.index("licence-onnxruntime") < html.index('id="runtime-data"')


def test_another_version_of_the_runtime_is_refused(tmp_path: Path):
    folder = tmp_path / "package" / "dist"
    folder.mkdir(parents=True)
    (folder / "ort.wasm.min.js").write_bytes(b"// another version")
    with pytest.raises(FileRefused, match=f"not that of onnxruntime-web {VERSION}"):
        read_runtime(folder.parent)
    with pytest.raises(FileRefused, match="not readable"):
        read_runtime(tmp_path)
    with pytest.raises(UsageError, match="npm pack onnxruntime-web@"):
        read_runtime(tmp_path / "none")
    with pytest.raises(UsageError, match="is a folder"):
        write_page(b"", tmp_path)
