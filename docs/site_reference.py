"""Reference pages of the site, made from the code: commands, Python, HTTP, file formats."""

import ast
import importlib
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final
from unittest.mock import MagicMock

import typer
from site_pages import ROOT, Document, Page

from heedful.cli import main as command_line
from heedful.cli.main import GROUPS

PUBLIC: Final = {
    "heedful": "Functions that train, load, compare and capture, and the models that they return",
    "heedful.attention": "Scores, masks, normalizers, and the call that joins them",
    "heedful.layers": "Layers of the models",
    "heedful.sklearn": "Estimators with the interface of scikit-learn",
    "heedful.course": "Checks of the exercises of the course, and pages of the models that its lessons build",
    "heedful.errors": "Errors with their exit codes",
}
"""Public modules: the names in their `__all__`, or the classes of `errors`."""
TABLES: Final = "Tables of all scores, biases, masks and normalizers by their names"
"""Lead of the page of tables, which no single module defines."""
TITLES: Final = {"heedful": ": main functions"}
"""Words behind the name of a module in the title of its page, where the name alone is the title of another page."""
PARTS: Final = {
    "heedful.attention.structured_chain": ("Marginals",),
    "heedful.comparison.compare": ("ComparisonResult",),
    "heedful.comparison.summary": ("RowSummary",),
    "heedful.course.diagram": ("arrow", "box", "canvas"),
    "heedful.data.batching": ("PairBatch", "PairSampler"),
    "heedful.data.encoded": ("EncodedCorpus",),
    "heedful.data.labelled_texts": ("LabelledTexts",),
    "heedful.data.prepare": ("EvaluationSet",),
    "heedful.data.stories": ("Stories",),
    "heedful.engines.scored_pairs": ("ScoredPair",),
    "heedful.evaluation.alignment_error": ("AlignmentErrorRate",),
    "heedful.evaluation.answers": ("AnswerReport", "SpanReport"),
    "heedful.evaluation.bootstrap": ("Difference",),
    "heedful.evaluation.label_sets": ("NumberReport", "SetReport"),
    "heedful.evaluation.labels": ("LabelReport", "LabelScore"),
    "heedful.evaluation.metrics.bleu": ("Bleu",),
    "heedful.evaluation.report": ("Report", "Result"),
    "heedful.inspection.capture": ("Captured",),
    "heedful.inspection.plot": ("save_heat_map", "text_heat_map"),
    "heedful.inspection.position_plot": ("save_position_plot",),
    "heedful.models.engine": ("TorchEngine",),
    "heedful.models.inputs": ("TokenInputs",),
    "heedful.models.interface": ("Decoded", "Seq2Seq"),
    "heedful.models.label_model": ("Encoded", "LabelModel"),
    "heedful.models.luong": ("Luong", "LuongConfig"),
    "heedful.models.rnn_encoder_decoder": ("RNNEncoderDecoder", "RNNEncoderDecoderConfig"),
    "heedful.models.rnnsearch": ("RNNsearch", "RNNsearchConfig"),
    "heedful.models.store": ("store_weights",),
    "heedful.models.transformer": ("Transformer", "TransformerConfig"),
    "heedful.pages.attention_view": ("AttentionView",),
    "heedful.pages.bundle": ("offline_page",),
    "heedful.pages.sentence": ("Output", "SentenceView"),
    "heedful.predictors.answerer": ("Answer", "Answerer"),
    "heedful.predictors.captioner": ("Caption",),
    "heedful.predictors.classifier": ("Classification", "EncodedText"),
    "heedful.predictors.interface": ("Predictor",),
    "heedful.predictors.sentence_view": ("SentenceViewer", "ViewRequest"),
    "heedful.predictors.translation": ("Alternative", "MeasuredTranslations"),
    "heedful.regression.estimator": ("ToyData",),
    "heedful.search.beam": ("search",),
    "heedful.search.config": ("SearchConfig",),
    "heedful.search.interface": ("Hypothesis",),
    "heedful.serving.task_pipelines": ("TaskPipeline",),
    "heedful.serving.transformers_pipelines": ("Pipeline",),
    "heedful.text.dictionary": ("Dictionary",),
    "heedful.text.segments": ("Text",),
    "heedful.text.vocabulary": ("BOS", "EOS"),
    "heedful.training.loss": ("LossSum",),
    "heedful.training.pair_step": ("PairStep",),
}
"""Public names of other modules: those that lessons and pages import, and results of public methods. All others are
private and may change."""
PART_PAGES: Final = {
    "parts": (
        "Parts for loops and pictures of your own",
        "Batches, corpora, steps, texts and pictures for trainings of your own",
        ("course", "data", "inspection", "text", "training"),
    ),
    "models": (
        "Classes of models",
        "Models for pairs of sequences, with their configurations",
        ("models.luong", "models.rnn", "models.transformer"),
    ),
    "model-interfaces": (
        "Interfaces of models",
        "What all models take and give, their engine and their weights on disk",
        ("models.engine", "models.inputs", "models.interface", "models.label_model", "models.store"),
    ),
    "search": (
        "Search for outputs",
        "The search over a model, its settings and its hypotheses",
        ("search",),
    ),
    "results": (
        "Results and scores",
        "Values that attention, comparisons and evaluations return",
        ("attention", "comparison", "engines", "evaluation", "regression"),
    ),
    "predictors": (
        "Predictors, pipelines and pages",
        "What opened models are and return, pipelines over them, and the page files that show them",
        ("pages", "predictors", "serving"),
    ),
}
"""Pages of these names: address, title, lead and beginnings of modules."""
MOST_NAMES: Final = 20
"""Names of a module that stand on one page."""
SECRET: Final = "    options:\n      show_attribute_values: false\n"
"""Option for a value that a page does not give: whoever looks up the exercises does not want their answers."""
HTTP_VERBS: Final = ("get", "post", "put", "delete")
JSON_TYPES: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true, false",
    "object": "object",
}


def commands() -> Page:
    """Pages of all commands: what they do, examples, options."""
    app = typer.main.get_command(command_line._app(command_line.COMMANDS))
    context = typer.Context(app, info_name="heedful")
    first = Document("reference/commands/index.md", "reference/commands/index", "", is_translated=False, longest=None)
    page = Page(first, first.address, "Commands", "")
    rows: list[str] = []
    for heading, names in GROUPS.items():
        rows += [f"\n## {heading}\n", "| command | what it does |", "| --- | --- |"]
        for name in names:
            command = app.commands[name]
            with typer.Context(command, info_name=name, parent=context) as inner:
                text = re.sub(r"\x1b\[[0-9;]*m", "", command.get_help(inner))
            summary = (command.help or "").partition("\n")[0]
            document = Document(f"reference/commands/{name}.md", f"reference/commands/{name}", "", False, None)
            document.text = f"# heedful {name}\n\n{summary}\n\n```text\n{text}\n```\n"
            page.children.append(Page(document, document.address, name, document.text))
            rows.append(f"| [`heedful {name}`]({name}.md) | {summary} |")
    first.text = page.text = "\n".join(
        ["# Commands", "", "`heedful COMMAND --help` prints these pages in the terminal.", *rows, ""]
    )
    return page


def public_names(module: str) -> list[str]:
    """Names that a module offers, without its version."""
    if module in PARTS:
        return [*PARTS[module]]
    loaded = importlib.import_module(module)
    names = getattr(loaded, "__all__", None) or [
        name for name, value in vars(loaded).items() if isinstance(value, type) and value.__module__ == module
    ]
    return [name for name in names if not name.startswith("__")]


def _groups(module: str) -> dict[str, list[str]]:
    """Public names of a module by the page that they stand on: one, or one for each module that defines them."""
    names = public_names(module)
    if len(names) <= MOST_NAMES:
        return {"": names}
    loaded = importlib.import_module(module)
    groups: dict[str, list[str]] = {}
    for name in names:
        defined = getattr(getattr(loaded, name), "__module__", "") or "tables"
        groups.setdefault(defined.rpartition(".")[2] if defined.startswith("heedful") else "tables", []).append(name)
    return dict(sorted(groups.items()))


def _lead(module: str, group: str, names: Sequence[str]) -> str:
    """First sentences of a page: the purpose of its module, or the summary of the module that defines the group."""
    defined = getattr(getattr(importlib.import_module(module), names[0]), "__module__", "")
    if not group:
        return f"{PUBLIC[module]}."
    if group == "tables":
        return f"{TABLES}."
    return " ".join((importlib.import_module(defined).__doc__ or "").partition("\n\n")[0].split())


def _meaning(module: str, name: str) -> str:
    """First sentence about a public name, for the cell of a table; of a value, the words below it in its module."""
    value = getattr(importlib.import_module(module), name)
    text = inspect.getdoc(value) if callable(value) else _words_below(module, name)
    first = " ".join((text or "").partition("\n\n")[0].split())
    sentence = re.split(r"(?<=[^.][a-z)`\]]\.)\s(?=[A-Z])", first)[0].rstrip(".")
    return re.sub(r"([|<*{]|(?<=[\])])_)", r"\\\1", sentence)


def _words_below(module: str, name: str) -> str:
    """Words below a value in the module that defines it, which may be another than the one that offers it."""
    body = list(ast.walk(ast.parse(inspect.getsource(importlib.import_module(module)))))
    for node in body:
        for after, text in pairwise(getattr(node, "body", None) or ()) if isinstance(node, ast.Module) else ():
            target = getattr(after, "target", None)
            if isinstance(target, ast.Name) and target.id == name and isinstance(text, ast.Expr):
                return str(ast.literal_eval(text.value))
    sources = [node for node in body if isinstance(node, ast.ImportFrom) and name in {each.name for each in node.names}]
    return _words_below(str(sources[0].module), name) if sources else ""


def _all_names(places: Mapping[str, str]) -> list[str]:
    """Lines of the table of all names, in alphabetical order, with their pages.

    Args:
        places: page of each name, by its dotted name.
    """
    rows = ["", "## All names", "", "| name | what it is |", "| --- | --- |"]
    for dotted in sorted(places, key=lambda each: (each.rpartition(".")[2].casefold(), each)):
        module, _, name = dotted.rpartition(".")
        rows.append(f"| [`{name}`]({places[dotted]}.md#{dotted}) | {_meaning(module, name)} |")
    return rows


def python() -> Page:
    """Pages of the Python interface, one a public name, for the generator to fill in."""
    first = Document("reference/python/index.md", "reference/python/index", "", is_translated=False, longest=None)
    page = Page(first, first.address, "Python", "")
    rows = [
        "# Python",
        "",
        "Names on these pages are public: they change with notice. All others may change any day.",
        "",
    ]
    places: dict[str, str] = {}
    for module, purpose in PUBLIC.items():
        name = module.replace(".", "-")
        groups = _groups(module)
        for group, names in groups.items():
            address = f"reference/python/{name}" + (f"-{group}" if len(groups) > 1 else "")
            document = Document(f"{address}.md", address, "", is_translated=False, longest=None)
            title = module + (f": {group}" if len(groups) > 1 else TITLES.get(module, ""))
            blocks = "\n".join(f"::: {module}.{each}\n{SECRET if each == 'EXERCISES' else ''}" for each in names)
            document.text = f"# {title}\n\n{_lead(module, group, names)}\n\n{blocks}"
            page.children.append(Page(document, address, title, document.text))
            places |= {f"{module}.{each}": address.rpartition("/")[2] for each in names}
        rows.append(f"- `{module}`: {purpose[0].lower()}{purpose[1:]}")
    for name, (title, lead, packages) in PART_PAGES.items():
        address = f"reference/python/{name}"
        document = Document(f"{address}.md", address, "", is_translated=False, longest=None)
        modules = [module for module in PARTS if module.removeprefix("heedful.").startswith(packages)]
        blocks = "\n".join(f"::: {module}.{each}\n" for module in modules for each in PARTS[module])
        document.text = f"# {title}\n\n{lead}.\n\n{blocks}"
        page.children.append(Page(document, address, title, document.text))
        places |= {f"{module}.{each}": name for module in modules for each in PARTS[module]}
        rows.append(f"- [{title}]({name}.md): {lead[0].lower()}{lead[1:]}")
    first.text = page.text = "\n".join([*rows, *_all_names(places), ""])
    return page


def http() -> Page:
    """Page of all routes of the server, from its OpenAPI description."""
    from heedful.serving.app import make_app_with_page
    from heedful.serving.schemas import ERRORS

    described = make_app_with_page(MagicMock()).openapi()
    lines = [
        "# HTTP routes",
        "",
        "All routes of `heedful serve`; `/spec` gives the same as OpenAPI, `/docs` as a page.",
    ]
    tag = ""
    for route, verbs in described["paths"].items():
        for verb, operation in verbs.items():
            if verb not in HTTP_VERBS:
                continue
            if operation["tags"][0] != tag:
                tag = operation["tags"][0]
                lines += ["", f"## {tag[0].upper()}{tag[1:]}"]
            lines += ["", f"### {verb.upper()} {route}", "", *_route(operation)]
    lines += [
        "",
        "## Errors",
        "",
        'Every error has the body `{"error": "…"}`, which says where and why; under `/v1` it is an object.',
        "",
    ]
    lines += ["| status | meaning |", "| --- | --- |"]
    lines += [f"| {status} | {one['description']} |" for status, one in ERRORS.items()]
    document = Document("reference/http.md", "reference/http", "\n".join([*lines, ""]), False, None)
    return Page(document, document.address, "HTTP routes", document.text)


def _route(operation: Mapping[str, Any]) -> Iterator[str]:
    """Lines about a route: purpose, fields, answers."""
    words = operation.get("description") or operation.get("summary") or ""
    yield " ".join(re.split(r"\n\s*(?:Args|Returns|Raises):", words)[0].split())
    content = operation.get("requestBody", {}).get("content", {})
    rows = [
        _field(one["name"], one["schema"], one["required"], one.get("description", ""))
        for one in operation.get("parameters", ())
    ]
    for body in [*content.values()][:1]:  # a form has the fields of JSON
        fields, needed = body["schema"]["properties"], body["schema"]["required"]
        rows += [_field(name, one, name in needed, one.get("description", "")) for name, one in fields.items()]
    if content:
        yield f"\nBody: {' or '.join(f'`{kind}`' for kind in content)}."
    if rows:
        yield from ("", "| field | values | default | meaning |", "| --- | --- | --- | --- |", *rows)
    answers = operation["responses"]["200"].get("content", {}).values()
    parts = [f"`{name}`" for one in answers for name in one["schema"].get("properties", ())]
    if parts:
        yield f"\nAnswer: an object with {', '.join(parts)}."


def _field(name: str, schema: Mapping[str, Any], is_needed: bool, meaning: str) -> str:
    default = f"`{json.dumps(schema['default'])}`" if "default" in schema else "needed" if is_needed else "none"
    return f"| `{name}` | {_values(schema)} | {default} | {meaning} |"


def _values(schema: Mapping[str, Any]) -> str:
    """Values that a field takes, in words."""
    if "anyOf" in schema:
        return " or ".join(_values(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if schema["type"] == "array":
        least, most = schema.get("minItems", 0), schema.get("maxItems", 0)
        return f"list of {least} to {most} texts" if most else "list of texts"
    if schema["type"] == "object" and "properties" in schema:
        return "object with " + " and ".join(f"`{one}`" for one in schema["properties"])
    bounds = [f"{word} {schema[key]:g}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    return " ".join(["file" if schema.get("format") == "binary" else JSON_TYPES[schema["type"]], *bounds])


def formats() -> Page:
    """Page of all file formats, from the table of their versions."""
    body = ast.parse((ROOT / "src/heedful/files/formats.py").read_bytes()).body
    lines = [
        "# File formats",
        "",
        "Every file that heedful writes and reads again states the version of its format.",
        "",
    ]
    lines += ["| format | version | files |", "| --- | --- | --- |"]
    loaded = importlib.import_module("heedful.files.formats")
    for node, text in pairwise(body):
        name = ast.unparse(node.target) if isinstance(node, ast.AnnAssign) else ""
        if name.endswith("_FORMAT") and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            entry = getattr(loaded, name)
            lines.append(f"| {entry.name} | {entry.version} | {' '.join(str(text.value.value).split())} |")
    lines += ["", "A file of a newer version is refused and left unchanged; older ones are read.", ""]
    document = Document("reference/formats.md", "reference/formats", "\n".join(lines), False, None)
    return Page(document, document.address, "File formats", document.text)
