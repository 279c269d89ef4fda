"""Proof that a model gives the same outputs in JavaScript as in Python, and that its page neither asks nor grows.

`python -m tests.prove.prove_web MODEL SOURCES` translates each line of a file by Python's ONNX engine and by the
package in Node, greedily and with a beam of 5, with weights of 32, 16 and 8 bits, and in Chromium with 32; then puts
thousands of texts into the page, and 300 that would run a script if the page took them for markup. Of a model that
classifies, the page alone is tried. Frames are timed, which needs a quiet machine.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from heedful.cli.messages import Messages
from heedful.cli.web_export import export_web
from heedful.export.stored_weights import KINDS
from heedful.models.engine import TorchEngine
from heedful.predictors.interface import Predictor
from heedful.predictors.table import load
from heedful.predictors.translation import Translation
from heedful.predictors.translator import Translator
from heedful.search.beam import search
from heedful.search.trace import SearchTrace
from heedful.text.vocabulary import EOS
from tests.js.node import PACKAGE, Run, answers
from tests.pages.browser import Frames, PageMemory, Tab, WorkerMemory, chromium
from tests.pages.payloads import FEW, PAYLOADS
from tests.prove.served import POLICY, served, write_site

TIE = 1e-4
LEAST_SAME = 0.999
PART = 100
"""Sources of one call."""
MOST_GROWTH = 5_000_000
"""Bytes by which the heap of the page, and that of the worker with the model, may grow."""
MOST_FRAME = 50.0
"""Milliseconds between two frames."""
# The result is a Boolean: an element would be a handle, by which the browser keeps the whole page that it belonged to.
DONE = """text => document.querySelector('#source').value === text && !document.querySelector('#output.busy')
  && document.querySelector('#output .word, #output .shares, #output .part') !== null"""


def differences(ours: Sequence[Translation], theirs: Sequence[dict[str, Any]]) -> tuple[int, list[int], float, float]:
    """Number of sources whose outputs or their order differ, those where scores are no tie, and largest differences.

    The largest differences are those of scores and of attention, where the outputs are the same.
    """
    num_other, scores, weights = 0, 0.0, 0.0
    untied: list[int] = []
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if [each.text for each in one.alternatives] != [each["text"] for each in other["alternatives"]]:
            num_other += 1
            both = [each.score for each in one.alternatives], [each["score"] for each in other["alternatives"]]
            if len(both[0]) != len(both[1]) or np.abs(np.subtract(*both)).max() > TIE:
                untied.append(number)
            continue
        pairs = zip(one.alternatives, other["alternatives"], strict=True)
        scores = max(scores, *(abs(left.score - right["score"]) for left, right in pairs))
        if one.attention is not None:
            weights = max(weights, np.abs(one.attention - np.array(other["attention"])).max(initial=0.0))
    return num_other, untied, scores, weights


def closest_choice(translator: Translator, source: str, beam: int) -> float:
    """Least difference in log probability between a hypothesis that a beam kept and one that it left, in PyTorch.

    Rounding decides between two that are as close as a tie, and all that follows differs.
    """
    trace = SearchTrace()
    config = translator.search.model_copy(update={"beam": beam, "nbest": beam})
    ids = np.array([*translator.source_tokenizer.encode(source), EOS])
    search(TorchEngine(translator.model()), [ids], config, max_length=translator.text.max_tokens, trace=trace)
    closest = np.inf
    for _, nodes in groupby(sorted(trace.nodes, key=lambda node: (node.step, node.rank)), lambda node: node.step):
        for one, other in pairwise(nodes):
            if (one.fate == "rank") != (other.fate == "rank"):
                closest = min(closest, one.log_prob - other.log_prob)
    return closest


def prove_outputs(translator: Translator, sources: Sequence[str], folder: Path, kinds: Sequence[str]) -> bool:
    is_right = True
    for weights in kinds:
        archive = folder / f"{weights}.tgz"
        print(export_web(translator, "js", Messages(True), archive, weights))
        for beam in (1, 5):
            options = {"beam": beam, "nbest": beam, "attention": translator.has_attention}
            ours = translator.translate(sources, segments=None, corrected=False, **options)
            found = {"Node": in_node(archive, sources, options)}
            if weights == "float32":
                found["Chromium"] = in_chromium(archive, sources, options, folder)
            for place, theirs in found.items():
                num_other, untied, scores, attention = differences(ours, theirs)
                best = sum(one.text == other["text"] for one, other in zip(ours, theirs, strict=True))
                num_same = len(sources) - num_other
                print(
                    f"{place}, {weights}, beam {beam}: {num_same} of {len(sources)} lists of outputs the same, "
                    f"{best} best outputs, {num_other - len(untied)} of the others tied; "
                    f"scores within {scores:.1e}, attention within {attention:.1e}",
                    flush=True,
                )
                if weights == "float32":
                    choices = [closest_choice(translator, sources[number], beam) for number in untied]
                    for number, choice in zip(untied, choices, strict=True):
                        print(f"  differs: {sources[number]!r}, where the beam chose by {choice:.1e} nats")
                    is_tied = all(choice <= TIE for choice in choices)
                    is_right &= num_other <= (1 - LEAST_SAME) * len(sources) and is_tied and attention <= TIE
    return is_right


def in_node(archive: Path, sources: Sequence[str], options: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for start in range(0, len(sources), PART):
        (part,) = answers(Run(archive, [["translate", sources[start : start + PART], options]]))
        found += part
    return found


def in_chromium(archive: Path, sources: Sequence[str], options: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    site = folder / "site"
    write_site(site, PACKAGE, archive)
    found: list[dict[str, Any]] = []
    with served(site, POLICY) as address, chromium() as browser:
        tab = Tab(browser, f"{address}/index.html", ready="#ready")
        tab.page.set_default_timeout(0)
        for start in range(0, len(sources), PART):
            call = "([texts, options]) => model.translate(texts, options)"
            found += tab.page.evaluate(call, [sources[start : start + PART], options])
        tab.close()
    return found


def prove_page(predictor: Predictor, sources: Sequence[str], folder: Path, num_texts: int) -> bool:
    path = folder / "page.html"
    export_web(predictor, "html", Messages(True), path)
    with chromium() as browser:
        tab = Tab(browser, path.as_uri())
        memories = {"page": PageMemory(tab), "worker": WorkerMemory(tab)}
        frames: Frames | None = None
        seconds: list[float] = []
        before: dict[str, int] = {}
        first = min(500, num_texts // 4)
        for number in range(num_texts):
            text = f"{sources[number % len(sources)]} {number}"
            started = time.perf_counter()
            tab.page.evaluate("text => { location.hash = new URLSearchParams({ text }) }", text)
            tab.page.wait_for_function(DONE, arg=text)
            seconds.append(time.perf_counter() - started)
            if number == first:
                before = {name: memory.bytes() for name, memory in memories.items()}
                # A collection that is asked for stops the page, so frames are watched after it, until the next.
                frames = Frames(tab)
        assert frames is not None
        drawn = frames.longest()
        growth = {name: memory.bytes() - before[name] for name, memory in memories.items()}
        grown = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in growth.items())
        print(
            f"page: {num_texts} texts, {1000 * statistics.median(seconds):.0f} ms each (median), growth of the heaps "
            f"after the first {first}: {grown}; {len(tab.refused)} requests, {len(tab.faults)} errors"
        )
        print(
            f"page: at most {drawn.working_gap:.0f} ms between two frames while the model works, {drawn.gap:.0f} ms "
            f"where an answer is drawn; longest task {drawn.task:.0f} ms (0 = none of 50 ms or more)"
        )
        tab.close()
    return max(growth.values()) <= MOST_GROWTH and max(drawn.working_gap, drawn.gap) <= MOST_FRAME


def prove_payloads(predictor: Predictor, folder: Path) -> bool:
    """Type every payload into the page, and put some into what the page says of its model."""
    path = folder / "payloads.html"
    num_run = 0
    tabs: list[Tab] = []
    with chromium() as browser:
        export_web(predictor, "html", Messages(True), path)
        tabs.append(Tab(browser, path.as_uri()))
        for payload in PAYLOADS:
            tabs[0].page.evaluate("text => { location.hash = new URLSearchParams({ text }) }", payload)
            tabs[0].page.wait_for_function(DONE, arg=payload)
            num_run += tabs[0].page.evaluate("window.hacked !== undefined")
        for payload in FEW:
            html = path.read_text("utf-8")
            facts = {"name": payload, "languages": [payload] * 2, "examples": [payload], "scores": [payload]}
            start = html.index('id="model-facts">') + len('id="model-facts">')
            end = html.index("</script>", start)
            tree = json.dumps(json.loads(html[start:end]) | facts).replace("<", "\\u003c")
            hostile = folder / "hostile.html"
            hostile.write_text(f"{html[:start]}{tree}{html[end:]}", encoding="utf-8", newline="\n")
            tabs.append(Tab(browser, hostile.as_uri()))
            tabs[-1].page.wait_for_selector("#examples button")
            num_run += tabs[-1].page.evaluate("window.hacked !== undefined")
            tabs[-1].context.close()
        refused, faults = sum(len(each.refused) for each in tabs), sum(len(each.faults) for each in tabs)
    print(
        f"{len(PAYLOADS)} payloads typed, {len(FEW)} in facts: {num_run} executed, {refused} requests, {faults} errors"
    )
    return not (num_run or refused or faults)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--num", type=int, default=1000, help="sources")
    parser.add_argument("--texts", type=int, default=10_000, help="texts typed into the page; 0 = none")
    parser.add_argument(
        "--weights", default=",".join(reversed(KINDS)), help="kinds of weights whose outputs are compared"
    )
    wanted = parser.parse_args()
    with wanted.sources.open(encoding="utf-8") as file:
        sources = [line.rstrip("\n").partition("\t")[0] for line in islice(file, wanted.num)]
    predictor = load(wanted.model, engine="onnx")
    with tempfile.TemporaryDirectory() as name:
        is_right = prove_payloads(predictor, Path(name))
        if isinstance(predictor, Translator):
            is_right &= prove_outputs(predictor, sources, Path(name), wanted.weights.split(","))
        if wanted.texts:
            is_right &= prove_page(predictor, sources, Path(name), wanted.texts)
    return 0 if is_right else 1


if __name__ == "__main__":
    raise SystemExit(main())
