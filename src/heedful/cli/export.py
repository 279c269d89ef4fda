"""Export a model as one HTML file, for JavaScript, as an engine without PyTorch, or for Hugging Face transformers.

  html          one file with the model inside, that any browser opens from disk, offline
  js            one file that the npm package heedful loads, in browsers and in Node

An engine is written to `engines/NAME/` in the model folder, with its measured difference from PyTorch; from then on
`heedful translate` and `heedful evaluate` use the fastest engine that gives the same outputs as the model.

  onnx          any model, for ONNX Runtime; every kind of search
  ctranslate2   Transformers, for CTranslate2: greedy search; a beam where it is named, --engine ctranslate2, by its own
                search, which stops once as many outputs have ended as the beam is wide, and may give others
  huggingface   Transformers with model.norm = "post", into the folder OUT, which transformers loads as MarianMTModel
                with MarianTokenizer; what it gives is compared too. Their tokenizer does not normalise text to NFC
  transformers.js  the same Transformers, with one vocabulary, into the folder OUT, which Transformers.js 4 loads, in
                browsers and in Node; it has greedy search alone

With --layers, the ONNX engine and the page also give the attention of every layer and head of a Transformer, so that
`heedful inspect` and `heedful serve` show it without PyTorch; the engine is then twice as large. Those of a page or an
archive are made for this file alone: the engine in the model folder stays as it is.
With --shortlist, the engine also knows which target tokens are probable for each source token, learned from
the training pairs; `heedful translate --shortlist` then considers only these, which is faster.
With --single, --to onnx writes the whole model as one graph, from code points of words to ids of symbols, for programs
that have ONNX Runtime alone (sources of characters, targets of characters or symbols; greedy search).
With --int8, matrices are in eight bits: a smaller engine with slightly different answers, used only by name, as in
--engine onnx-int8.

In files for browsers, weights are stored in 8, 16 or 32 bits: in the fewest with which the model loses at most 0.2
points of its metric, on the items of --dev FILE, else on up to 300 of those that it was validated on, which its folder
has unless it came from a file of `heedful pack` (then 16 bits). --weights names them.
Texts that the empty page of --to html offers are given by --example; no text of the training data is put into it.
Folders, archives and engines have a card, README.md: what the model is, how it runs in Python, JavaScript and C++, how
it was trained, how good it is and where its limits are, and the licence that --license names. A single graph has none:
its metadata are inside the file.

Examples:
  heedful export pairs.model --to html -o pairs.html --example 'Guten Morgen'
  heedful export pairs.model --to onnx
  heedful export pairs.model --to onnx --layers
  heedful export cmu.model --to onnx --single cmu.onnx
  heedful export pairs.model --to ctranslate2 --int8 --shortlist
  heedful export pairs.model --to huggingface marian
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heedful.cli.messages import Messages
from heedful.cli.options import Debug, IdleDevice, License, ModelPath, Quiet, Threads, use_threads
from heedful.cli.web_export import WebKind
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.engines.exported import Exported
    from heedful.engines.folder import ModelFolder
    from heedful.export.stored_weights import WeightKind
    from heedful.pages.card_use import Form
    from heedful.predictors.interface import Predictor
    from heedful.predictors.translator import Translator


Target = Annotated[
    Literal["html", "js", "onnx", "ctranslate2", "huggingface", "transformers.js"],
    typer.Option(
        "--to",
        metavar="html|js|onnx|ctranslate2|huggingface|transformers.js",
        help="Target runtime.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Argument(
        metavar="OUT",
        help="Folder of --to huggingface or transformers.js, file of html, js or --single.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "--out", "-o", metavar="OUT", help="The same as OUT.", show_default=False)
]
Weights = Annotated[
    Literal["float32", "float16", "int8"] | None,
    typer.Option(
        metavar="float32|float16|int8",
        help="With --to html or js: how weights are stored.",
        show_default="by --dev",
    ),
]
DevPairs = Annotated[
    Path | None,
    typer.Option(
        "--dev", metavar="FILE", help="With --to html or js: items that choose --weights.", show_default=False
    ),
]
Examples = Annotated[
    list[str] | None,
    typer.Option("--example", metavar="TEXT", help="With --to html: text that the page offers.", show_default=False),
]
RuntimePackage = Annotated[
    Path | None,
    typer.Option(metavar="PACKAGE", help="With --to html: npm package onnxruntime-web.", show_default="as installed"),
]


def run(
    model: ModelPath,
    to: Target,
    out: Out = None,
    output: Output = None,
    weights: Weights = None,
    dev: DevPairs = None,
    examples: Examples = None,
    runtime: RuntimePackage = None,
    license: License = "",
    int8: Annotated[bool, typer.Option("--int8", help="In eight bits.")] = False,
    single: Annotated[bool, typer.Option("--single", help="With --to onnx: one graph, as the file OUT.")] = False,
    layers: Annotated[
        bool, typer.Option("--layers", help="With --to onnx, html or js: also the attention of every layer.")
    ] = False,
    shortlist: Annotated[
        bool, typer.Option("--shortlist", help="Also a shortlist of the vocabulary, which makes translation faster.")
    ] = False,
    device: IdleDevice = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Export a model.

    Raises:
        UsageError: the options conflict.
    """
    use_threads(threads)
    messages = Messages(quiet)
    if single:
        has_options = int8 or layers or shortlist or bool(examples or runtime or license)
        _export_single(model, to, out or output, has_options, messages)
    elif to in ("html", "js"):
        if int8 or shortlist:
            raise UsageError(f"export: --int8 and --shortlist are for engines; leave them out of --to {to}")
        _export_web(model, to, out or output, weights, dev, examples or (), runtime, layers, license, messages)
    elif weights or dev or examples or runtime:
        raise UsageError("export: --weights, --dev, --example and --runtime are for --to html and --to js")
    else:
        _export(model, to, out or output, int8, layers, shortlist, license, messages)


def _export_web(
    model: Path,
    to: WebKind,
    out: Path | None,
    weights: "WeightKind | None",
    dev: Path | None,
    examples: Sequence[str],
    runtime: Path | None,
    layers: bool,
    license: str,
    messages: Messages,
) -> None:
    from heedful.cli.web_export import export_web
    from heedful.predictors.table import load
    from heedful.predictors.translator import Translator

    predictor = load(model)
    if layers and not isinstance(predictor, Translator):
        raise UsageError(f"{model}: a {predictor.folder.task} model; --layers is for models that translate")
    print(export_web(predictor, to, messages, out, weights, examples, runtime, layers, dev, license))


def _export(
    model: Path,
    to: Literal["onnx", "ctranslate2", "huggingface", "transformers.js"],
    out: Path | None,
    int8: bool,
    layers: bool,
    shortlist: bool,
    license: str,
    messages: Messages,
) -> None:
    is_folder = to in ("huggingface", "transformers.js")
    if is_folder != (out is not None) or (int8 and out is not None):
        name = to if is_folder else "huggingface"
        raise UsageError(
            f"export: --to {name} needs a folder OUT and takes no --int8; engines take no OUT: "
            "export MODEL --to huggingface OUT, or export MODEL --to onnx"
        )
    from heedful.predictors.interface import EngineRequest
    from heedful.predictors.table import load
    from heedful.predictors.translator import Translator

    predictor = load(model)
    if to == "huggingface" or to == "transformers.js":
        EngineRequest(to, layers=layers, shortlist=shortlist).refuse_parts(())
        if not isinstance(predictor, Translator):
            task = predictor.folder.task
            raise UsageError(f"{model}: a {task} model, which --to {to} does not take; take html, js or onnx")
        _export_marian(predictor, to, out or Path(), license, messages)
    else:
        _export_engine(predictor, to, int8, layers, shortlist, license, messages)


def _export_single(model: Path, to: str, out: Path | None, has_options: bool, messages: Messages) -> None:
    if to != "onnx" or has_options or out is None:
        raise UsageError(
            "export: --single writes one graph, without further options: export MODEL --to onnx --single OUT.onnx"
        )
    from heedful.cli.lines import refuse_overwriting
    from heedful.cli.memory_notes import HAS_NONE, note_left_out
    from heedful.export.single import compare_single, export_single, refuse_unsuited
    from heedful.predictors.table import load
    from heedful.predictors.translator import Translator

    predictor = load(model)
    if not isinstance(predictor, Translator):
        raise UsageError(f"export: --single is for models of pairs of texts, not for {predictor.folder.task}")
    tokenizers = refuse_unsuited((predictor.source_tokenizer, predictor.target_tokenizer), predictor.search)
    refuse_overwriting(out, ())
    messages.say(f"{out}: writing the graph and comparing its outputs")
    languages = predictor.source_language, predictor.target_language
    facts = {"kind": str(predictor.folder.facts.get("kind", "")), "languages": " ".join(languages)}
    export_single(predictor.model(), tokenizers, predictor.search, predictor.text.max_tokens, facts, out)

    def translate(words: list[str]) -> list[str]:
        outputs = predictor.translate(words, beam=1, corrected=False, memory=False, segments=None)
        return [one.text for one in outputs]

    note_left_out(model, out, HAS_NONE, messages)
    print(compare_single(out, tokenizers, translate))


def _export_engine(
    predictor: "Predictor",
    to: Literal["onnx", "ctranslate2"],
    int8: bool,
    layers: bool,
    shortlist: bool,
    license: str,
    messages: Messages,
) -> None:
    write = predictor.exporter(to, int8=int8, layers=layers, shortlist=shortlist)
    messages.say(f"{predictor.folder.path}: writing the engine and comparing it with PyTorch")
    exported = write()
    _write_engine_card(predictor.folder, to, exported, license)
    print(exported.summary())


def _write_engine_card(
    folder: "ModelFolder", kind: Literal["onnx", "ctranslate2"], exported: "Exported", license: str
) -> None:
    """Write the card of an engine, which is none of its files: what others write into it damages no engine."""
    used_as = f"{folder.path.resolve().name}/engines/{exported.name}"
    _write_card(folder, kind, exported.path, used_as, license)


def _write_card(folder: "ModelFolder", form: "Form", out: Path, used_as: str, license: str) -> None:
    from heedful.engines.pack import CARD
    from heedful.files.atomic_write import atomic_write
    from heedful.pages.model_card import model_card

    card = model_card(folder.path, folder.facts, form, used_as, license)
    with atomic_write(out / CARD) as file:
        file.write(card)


def _export_marian(
    translator: "Translator",
    to: Literal["huggingface", "transformers.js"],
    out: Path,
    license: str,
    messages: Messages,
) -> None:
    from heedful.cli.memory_notes import HAS_NONE, note_left_out
    from heedful.export.huggingface import Described, export_huggingface, expressible
    from heedful.export.transformers_js import export_transformers_js, refuse_unsuited

    model, tokenizers = translator.model(), (translator.source_tokenizer, translator.target_tokenizer)
    (expressible if to == "huggingface" else refuse_unsuited)(model, tokenizers)
    messages.say(f"{out}: writing the folder and comparing what it gives")
    source, target = translator.folder.facts.get("languages", ["", ""])
    described = Described(tokenizers, translator.text.max_tokens, translator.search, (str(source), str(target)))
    export = export_huggingface if to == "huggingface" else export_transformers_js
    parity = export(model, described, out)
    _write_card(translator.folder, "transformers" if to == "huggingface" else to, out, out.name, license)
    note_left_out(translator.folder.path, out, HAS_NONE, messages)
    print(
        f"{out}: log probabilities within {parity.max_difference:.1e} of the model's, "
        f"{parity.num_same} of {parity.num_outputs} outputs the same"
    )
