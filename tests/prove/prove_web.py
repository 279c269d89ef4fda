"""Proof that a model gives the same outputs in JavaScript as in Python, and that its page neither asks nor grows.

`python -m tests.prove.prove_web MODEL SOURCES` translates each line of a file by Python's ONNX engine and by the
package in Node, greedily and with a beam of 5, with weights of 32 and of 16 bits; then puts thousands of texts into the
page.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from heedful.cli.messages import Messages
from heedful.cli.web_export import WeightBits, export_web
from heedful.predictors.table import load
from heedful.predictors.translation import Translation
from heedful.predictors.translator import Translator
from tests.js.node import Run, answers
from tests.pages.browser import Tab, chromium

TIE = 1e-4
LEAST_SAME = 0.999
MOST_GROWTH = 5_000_000
"""Bytes."""
DONE = """text => document.querySelector('#source').value === text && document.querySelector('#output .word')
  && !document.querySelector('#output.busy')"""


def differences(ours: Sequence[Translation], theirs: Sequence[dict[str, Any]]) -> tuple[int, float, float]:
    """Number of sources whose outputs or their order differ, and largest differences of scores and attention."""
    num_other, scores, weights = 0, 0.0, 0.0
    for one, other in zip(ours, theirs, strict=True):
        if [each.text for each in one.alternatives] != [each["text"] for each in other["alternatives"]]:
            num_other += 1
            continue
        pairs = zip(one.alternatives, other["alternatives"], strict=True)
        scores = max(scores, *(abs(left.score - right["score"]) for left, right in pairs))
        if one.attention is not None:
            weights = max(weights, np.abs(one.attention - np.array(other["attention"])).max(initial=0.0))
    return num_other, scores, weights


def prove_outputs(translator: Translator, sources: Sequence[str], folder: Path) -> bool:
    is_right = True
    bits: tuple[WeightBits, ...] = ("float32", "float16")
    for weights in bits:
        archive = folder / f"{weights}.tgz"
        print(export_web(translator, "js", Messages(True), archive, weights))
        for beam in (1, 5):
            options = {"beam": beam, "nbest": beam, "attention": translator.has_attention}
            ours = translator.translate(sources, segments=None, corrected=False, **options)
            (theirs,) = answers(Run(archive, [["translate", sources, options]]))
            num_other, scores, attention = differences(ours, theirs)
            best = sum(one.text == other["text"] for one, other in zip(ours, theirs, strict=True))
            num_same = len(sources) - num_other
            print(
                f"{weights}, beam {beam}: {num_same} of {len(sources)} lists of outputs the same, {best} best outputs; "
                f"scores within {scores:.1e}, attention within {attention:.1e}",
                flush=True,
            )
            if weights == "float32":
                is_right &= num_other <= (1 - LEAST_SAME) * len(sources) and attention <= TIE
    return is_right


def prove_page(translator: Translator, sources: Sequence[str], folder: Path, num_texts: int) -> bool:
    path = folder / "page.html"
    export_web(translator, "html", Messages(True), path)
    with chromium() as browser:
        tab = Tab(browser, path.as_uri())
        session = tab.context.new_cdp_session(tab.page)

        def size() -> int:
            session.send("HeapProfiler.collectGarbage")
            usage = session.send("Runtime.getHeapUsage")  # `performance.memory` is rounded, and seldom counted again
            return int(usage["usedSize"] + usage.get("backingStorageSize", 0))

        seconds: list[float] = []
        before = 0
        for number in range(num_texts):
            text = f"{sources[number % len(sources)]} {number}"
            started = time.perf_counter()
            tab.page.evaluate("text => { location.hash = new URLSearchParams({ text }) }", text)
            tab.page.wait_for_function(DONE, arg=text)
            seconds.append(time.perf_counter() - started)
            if number == min(500, num_texts // 4):
                before = size()
        growth = size() - before
        print(
            f"page: {num_texts} texts, {1000 * statistics.median(seconds):.0f} ms each (median), heap growth after the "
            f"first 500: {growth / 1e6:.1f} MB, {len(tab.refused)} requests, {len(tab.faults)} errors"
        )
        tab.close()
    return growth <= MOST_GROWTH


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--num", type=int, default=1000, help="sources")
    parser.add_argument("--texts", type=int, default=10_000, help="texts typed into the page; 0 = none")
    wanted = parser.parse_args()
    with wanted.sources.open(encoding="utf-8") as file:
        sources = [line.rstrip("\n").partition("\t")[0] for line in islice(file, wanted.num)]
    translator = load(wanted.model, engine="onnx", kind=Translator)
    with tempfile.TemporaryDirectory() as name:
        is_right = prove_outputs(translator, sources, Path(name))
        if wanted.texts:
            is_right &= prove_page(translator, sources, Path(name), wanted.texts)
    return 0 if is_right else 1


if __name__ == "__main__":
    raise SystemExit(main())
