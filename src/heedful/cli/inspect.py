"""Inspect one sentence: the attention of every layer and head, alternatives of each word, and the beam search.

The page is one HTML file that needs no network; a text of several sentences gets a file for each. Without --html and
--png, the attention is written as text. Of a text that gets a label, the words are shown with their weights and with
the effects of leaving each out; of facts with a question, the weights of the facts or words; of a picture, the region
that each word of the caption looks at.

Examples:
  heedful inspect pairs.model 'Where are you?' --html page.html
  heedful inspect pairs.model 'Where are you?' --png map.png
  heedful inspect pairs.model 'Where are you?' --measure alti
  heedful inspect pairs.model 'Where are you?' --attention encoder --png map.png
  heedful inspect pairs.model Morning --reference Morgen --html page.html
  heedful inspect reviews.model 'A quiet room. Rude staff.' --html page.html
  heedful inspect facts.model 'Ada went to the attic. Where is Ada?'
"""

import sys
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.inspect_labels import inspect_labels, write_page
from heedful.cli.lines import refuse_overwriting
from heedful.cli.messages import Messages
from heedful.cli.options import FILES, SEARCH, Beam, Debug, Device, Engine, ModelPath, Quiet, Threads, use_threads
from heedful.errors import UsageError
from heedful.pages.sentence import MEASURE_NAMES, ROLE_NAMES, MeasureName, RoleName

if TYPE_CHECKING:
    from heedful.pages.sentence import SentenceView
    from heedful.pages.word_map import WordMap
    from heedful.predictors.sentence_view import ViewRequest
    from heedful.predictors.translator import Translator


Reference = Annotated[
    str,
    typer.Option(
        metavar="TEXT",
        help="Translation to look for in the search; the page says where it left the beam.",
        rich_help_panel=SEARCH,
    ),
]
Measure = Annotated[
    MeasureName, typer.Option(metavar="|".join(MEASURE_NAMES), help="Measure of the influence of words that is shown.")
]

Attention = Annotated[
    RoleName,
    typer.Option(
        metavar="|".join(ROLE_NAMES),
        help="Attention of text and picture: output over source (cross), within the source, or within the output.",
    ),
]


def run(
    model: ModelPath,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="A sentence, a story or the path of a picture.", show_default=False)
    ],
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page, one offline file.", rich_help_panel=FILES)
    ] = None,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the attention as a picture.", rich_help_panel=FILES)
    ] = None,
    reference: Reference = "",
    measure: Measure = "attention",
    attention: Attention = "cross",
    beam: Beam = None,
    engine: Engine = "auto",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Inspect a sentence.

    Raises:
        UsageError: the text is blank.
    """
    use_threads(threads)
    if not text.strip():
        raise UsageError("inspect: TEXT is blank; give one sentence")
    for path in (html, png):
        if path is not None:
            refuse_overwriting(path, ())
    from heedful.cli.scoring import load_to_run
    from heedful.predictors.interface import Predictor
    from heedful.predictors.sentence_view import ViewRequest
    from heedful.predictors.translator import Translator

    predictor: Any = load_to_run(model, engine, device, kind=Predictor)
    messages = Messages(quiet)
    if isinstance(predictor, Translator):
        beams = tuple(sorted({1, 2, 3, 5, beam or 5})) if html else ()
        request = ViewRequest(
            text, beam=beam or 0, is_offline=bool(html), traced_beams=beams, reference=reference, measure=measure
        )
        for one, files in _sentences(predictor, request, (html, png), messages):
            _inspect_sentence(predictor, one, attention, *files, messages)
        return
    others = {"--reference": reference, "--measure": measure != "attention", "--attention": attention != "cross"}
    for name, is_given in {**others, "--beam": beam}.items():
        if is_given:
            raise UsageError(f"inspect: {name} is for translations; leave it out")
    inspect_labels(predictor, text, html, png, messages)


def _sentences(
    translator: "Translator", request: "ViewRequest", files: tuple[Path | None, Path | None], messages: Messages
) -> "list[tuple[ViewRequest, tuple[Path | None, Path | None]]]":
    """Request for each sentence, with its files, which are numbered where there are several sentences."""
    # A reference is that of the whole text.
    sources = [each.source for each in translator.split(request.text, None if request.reference else "auto").segments]
    if len(sources) == 1:
        return [(request, files)]
    if any(files):
        messages.say(f"{len(sources)} sentences, with a file for each")

    def numbered(path: Path | None, number: int) -> Path | None:
        return path and path.with_stem(f"{path.stem}-{number}")

    return [
        (replace(request, text=source), (numbered(files[0], number), numbered(files[1], number)))
        for number, source in enumerate(sources, start=1)
    ]


def _inspect_sentence(
    translator: "Translator",
    request: "ViewRequest",
    attention: RoleName,
    html: Path | None,
    png: Path | None,
    messages: Messages,
) -> None:
    """Inspect the translation of a sentence.

    Raises:
        UsageError: the measure cannot be computed.
    """
    from heedful.cli.scoring import announce_engine
    from heedful.pages.evaluation import evaluation
    from heedful.predictors.sentence_view import SentenceViewer

    viewer = SentenceViewer(translator)
    announce_engine(translator, viewer.search_config(request), False, messages)
    view = viewer.view(request)
    if view.was_cut:
        messages.warn(f"TEXT is longer than {translator.text.max_tokens - 1} tokens and was truncated")
    if request.measure != "attention" and view.measure != request.measure:
        raise UsageError(
            f"inspect: --measure {request.measure}: {view.missing.get('measure') or view.missing.get('layers', '')}"
        )
    for part, command in view.missing.items():
        messages.warn(f"no {part}: {command}")
    tested = evaluation(translator.folder.path, str(translator.folder.facts.get("weights", "")))
    _show(view, attention, {"evaluation": tested} if tested["metrics"] else {}, html, png, messages)


def _show(
    view: "SentenceView",
    attention: RoleName,
    more: dict[str, Any],
    html: Path | None,
    png: Path | None,
    messages: Messages,
) -> None:
    from heedful.inspection.plot import save_heat_map
    from heedful.pages.bundle import offline_page

    if html is not None:
        write_page(html, offline_page(f"{view.text} · {view.model}", view.to_dict() | more))
        print(html)
    if png is not None:
        drawn = _map(view, attention)
        note = save_heat_map(png, drawn.columns, drawn.rows, drawn.weights, title=drawn.title, tree=drawn.tree)
        if note:
            messages.warn(note)
        print(png)
    if html is None and png is None:
        print(_as_text(view, attention), end="")


def _map(view: "SentenceView", attention: RoleName) -> "WordMap":
    """Map of an attention between words.

    Raises:
        UsageError: the model has no such attention.
    """
    from heedful.pages.word_map import WordMap, map_within

    if attention != "cross":
        return map_within(view, attention)
    output = view.outputs[0]
    shares = output.weights
    if shares is None:
        raise UsageError(f"{view.model}: this model has no attention to draw; the page (--html) shows the search")
    if view.measure != "attention":
        from heedful.inspection.measures.table import joined_layers

        shares = joined_layers([one.weights for one in view.maps if one.role == "cross"], view.measure)
    return WordMap.between(view.source, output.words, shares, f"{view.text} → {output.text}")


def _as_text(view: "SentenceView", attention: RoleName) -> str:
    """Translation, probability of each word, and attention as a map of characters."""
    output = view.outputs[0]
    log_probs = [0.0] * len(output.words.words)
    for word, log_prob in zip(output.words.word_of, output.token_log_probs, strict=True):
        log_probs[word] += log_prob
    shares = "  ".join(f"{word} {exp(one):.2f}" for word, one in zip(output.words.words, log_probs, strict=True))
    lines = f"{output.text}\n\n{shares}\n"
    if output.weights is None and attention == "cross":
        return lines
    from heedful.inspection.plot import text_heat_map

    drawn = _map(view, attention)
    return f"{lines}\n{text_heat_map(drawn.columns, drawn.rows, drawn.weights, encoding=sys.stdout.encoding)}\n"
