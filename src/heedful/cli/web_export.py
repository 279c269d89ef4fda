"""Export for the web: one HTML file with the model inside, or the archive that the package in JavaScript reads."""

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from heedful.cli.folder_names import beside
from heedful.cli.messages import Messages, readable_size

if TYPE_CHECKING:
    from heedful.engines.exported import Exported
    from heedful.predictors.translator import Translator

WebKind = Literal["html", "js"]
WeightBits = Literal["float16", "float32"]
SUFFIXES: Final[dict[WebKind, str]] = {"html": ".html", "js": ".tgz"}


def export_web(
    translator: "Translator",
    kind: WebKind,
    messages: Messages,
    out: Path | None = None,
    weights: WeightBits = "float16",
    examples: Sequence[str] = (),
    runtime: Path | None = None,
    has_layers: bool = False,
) -> str:
    """Write a model as one file for browsers or JavaScript.

    Args:
        out: file to write; None = beside the model, after it.
        weights: how weights are stored; they are computed with in 32 bits.
        examples: texts that the empty page offers.
        runtime: npm package `onnxruntime-web`; None = the runtime that is installed with heedful.
        has_layers: whether the attention of every layer and head of a Transformer is in the file.

    Returns:
        A line about the file.

    Raises:
        UsageError: JavaScript would run the model differently, or there is no runtime.
        FileRefused: the runtime is of another version.
    """
    from heedful.export.archive import ArchivedModel, write_archive
    from heedful.export.html import PageFacts, export_html, write_page
    from heedful.export.web_runtime import read_runtime

    out = out or beside(translator.folder.path, SUFFIXES[kind])
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    model = ArchivedModel(translator.folder, tokenizers, translator.text, translator.search)
    model.check()
    # A missing runtime is said before any work.
    web_runtime = read_runtime(runtime) if kind == "html" else None
    engine = _engine(translator, messages, has_layers).path
    content = write_archive(model, engine, weights == "float16", has_layers)
    if web_runtime is not None:
        facts = PageFacts(examples, _scores(translator))
        content = export_html(translator.folder, content, web_runtime, facts).encode()
    write_page(content, out)
    use = "open it in a browser" if kind == "html" else f'await load("{out.name}") in JavaScript'
    return f"{out}: {readable_size(len(content))}; {use}"


def _engine(translator: "Translator", messages: Messages, has_layers: bool) -> "Exported":
    """Graphs of the model, written first where it has none that can be used."""
    from heedful.engines.onnx_layers import LAYERS

    exported = translator.backends.exported.get("onnx")
    if exported is None or exported.fault or (has_layers and not (exported.path / LAYERS).is_file()):
        from heedful.export.engine import export_engine  # with PyTorch, which is needed here alone
        from heedful.export.layers import export_layers

        messages.say(f"{shlex.quote(str(translator.folder.path))}: writing the engine and comparing it with PyTorch")
        model, most, draw = translator.model(), translator.text.max_tokens, translator.backends.draw
        write_more = partial(export_layers, model, max_length=most, draw=draw) if has_layers else None
        exported = export_engine(model, translator.folder, "onnx", False, draw, most, write_more)
    exported.verify()
    return exported


def _scores(translator: "Translator") -> list[str]:
    """Scores of the model on its test set, where they are stored in its folder."""
    from heedful.pages.evaluation import evaluation

    folder = translator.folder
    metrics = evaluation(folder.path, str(folder.facts.get("weights", "")))["metrics"]
    return [f"{one['name']} {one['score']:.1f}" for one in metrics if one["score"] is not None]
