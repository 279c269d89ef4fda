"""Export for the web: one HTML file with the model inside, or the archive that the package in JavaScript reads."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from heedful.cli.folder_names import beside
from heedful.cli.memory_notes import HAS_NONE, note_left_out
from heedful.cli.messages import Messages, readable_size
from heedful.files.atomic_write import private_folder

if TYPE_CHECKING:
    from heedful.engines.exported import Exported
    from heedful.export.archive import ArchivedModel
    from heedful.export.stored_weights import WeightKind
    from heedful.predictors.interface import Predictor

WebKind = Literal["html", "js"]
SUFFIXES: Final[dict[WebKind, str]] = {"html": ".html", "js": ".tgz"}


def export_web(
    predictor: "Predictor",
    kind: WebKind,
    messages: Messages,
    out: Path | None = None,
    weights: "WeightKind | None" = None,
    examples: Sequence[str] = (),
    runtime: Path | None = None,
    has_layers: bool = False,
    dev: Path | None = None,
    license: str = "",
) -> str:
    """Write a model as one file for browsers or JavaScript.

    Args:
        out: file to write; None = beside the model, after it.
        weights: how weights are stored; they are computed with in 32 bits. None = the smallest that loses at most 0.2
            points of the model's metric.
        examples: texts that the empty page offers.
        runtime: npm package `onnxruntime-web`; None = the runtime that is installed with heedful.
        has_layers: whether the attention of every layer and head of a Transformer is in the file.
        dev: items by which weights are chosen; None = those that the model was validated on, and where its folder
            has them no longer, weights of 16 bits.
        license: name of the licence that the file says; empty = that of the model, where it is known.

    Returns:
        A line about the file.

    Raises:
        UsageError: JavaScript would run the model differently, there is no runtime, or an example is empty.
        FileRefused: the runtime is of another version, or the graphs of the model are none of such a model.
    """
    from heedful.export.html import PageFacts, export_html, write_page
    from heedful.export.web_runtime import read_runtime
    from heedful.pages.model_card import license_of, model_card

    out = out or beside(predictor.folder.path, SUFFIXES[kind])
    model = predictor.archived(has_layers)
    model.check()
    # A missing runtime is said before any work.
    web_runtime = read_runtime(runtime) if kind == "html" else None
    shown = [*_examples(predictor, examples)]
    card = ""  # a page says these things itself
    if kind == "js":
        card = model_card(predictor.folder.path, predictor.folder.facts, "heedful.js", out.name, license)
    with ExitStack() as until_written:
        engine = _engine(predictor, messages, has_layers, until_written)
        content, weight_kind = _archive(predictor, model, engine, weights, dev, card, messages)
    if web_runtime is not None:
        licence = license or license_of(predictor.folder.facts)
        facts = PageFacts(shown, _scores(predictor), licence, weight_kind)
        content = export_html(predictor.folder, content, web_runtime, facts).encode()
    write_page(content, out)
    note_left_out(predictor.folder.path, out, HAS_NONE, messages)
    hint = "open it in a browser" if kind == "html" else "for JavaScript: npm package heedful, load(bytes or address)"
    return f"{out}: {readable_size(len(content))}; {hint}"


def _archive(
    predictor: "Predictor",
    model: "ArchivedModel",
    engine: "Exported",
    weights: "WeightKind | None",
    dev: Path | None,
    card: str,
    messages: Messages,
) -> "tuple[bytes, WeightKind]":
    """Archive of a model, whose graphs are tried first, and the kind of its weights."""
    from heedful.cli.graph_check import check_graphs_alone
    from heedful.cli.weight_choice import choose_weights
    from heedful.export.archive import write_archive

    model.graphs(engine.path)  # a kind of graphs that JavaScript does not run is said as such
    check_graphs_alone(predictor, engine)
    kind = weights or choose_weights(predictor, engine, dev, messages)
    return write_archive(model, engine.path, kind, card), kind


def _engine(predictor: "Predictor", messages: Messages, has_layers: bool, until_written: ExitStack) -> "Exported":
    """Graphs of the model, written first where it has none that can be used."""
    from heedful.engines.onnx_layers import LAYERS

    exported = predictor.exported.get("onnx")
    if exported is None or exported.fault or (has_layers and not (exported.path / LAYERS).is_file()):
        folder, parts = predictor.folder, "the engine and comparing it"
        if has_layers:
            # These graphs are twice as large, and only the file to write needs them: the model's own stay as they are.
            parts = "graphs of every layer, for this file alone, and comparing them"
            folder = replace(folder, path=until_written.enter_context(private_folder()))
        write = predictor.exporter("onnx", layers=has_layers, folder=folder)
        messages.say(f"{shlex.quote(str(predictor.folder.path))}: writing {parts} with PyTorch")
        exported = write()
    exported.verify()
    return exported


def _examples(predictor: "Predictor", examples: Sequence[str]) -> Iterator[str | dict[str, str]]:
    """Examples as the page has them.

    Raises:
        UsageError: one of them is empty.
    """
    from heedful.errors import UsageError

    for example in examples:
        if not example.strip():
            raise UsageError("export: --example: an empty text; leave it out")
        yield predictor.page_example(example)


def _scores(predictor: "Predictor") -> list[dict[str, str]]:
    """Scores of the model on its test set, where they are stored in its folder."""
    from heedful.pages.evaluation import stored_scores

    metrics, _ = stored_scores(predictor.folder.path, str(predictor.folder.facts.get("weights", "")))
    return [
        {"key": one["key"], "name": one["name"], "value": f"{one['score']:.1f} {one['unit']}".rstrip()}
        for one in metrics
    ]
