"""Model card: the README.md that goes with a model to other people, with the metadata that model hubs read.

It says what the model's folder says, and no text of its training data.
"""

import json
import re
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from heedful.errors import FileRefused, HeedfulError
from heedful.files.bounded_read import read_text
from heedful.pages.card_limits import limits_of
from heedful.pages.card_use import Form, use_of
from heedful.pages.evaluation import stored_scores
from heedful.pages.record import read_run, training_size
from heedful.pages.training import summary
from heedful.text.counts import counted

PIPELINES: Final[Mapping[str, str]] = {
    "translation": "translation",
    "classification": "text-classification",
    "captioning": "image-to-text",
    "answering": "question-answering",
}
"""Name of each task on the Hub of Hugging Face."""
MOST_BYTES: Final = 1 << 20
_UNKNOWN: Final = ("", "source", "target")
_LICENSE: Final = re.compile(r"[ \t]*license[ \t]*:[ \t]*([\"']?)([\w.+ -]{1,100}?)\1[ \t]*", re.ASCII)


def card_license(card: str) -> str:
    r"""Find the licence in the metadata of a card.

    Args:
        card: text of a README.md, with or without metadata.

    Returns:
        Its name, such as "cc-by-4.0"; empty where there is none.

    Example:
        >>> card_license("---\nlicense: cc-by-4.0\n---\n# A model")
        'cc-by-4.0'
    """
    first, *lines = card.replace("\r\n", "\n").split("\n")
    if first.rstrip() == "---":
        metadata = takewhile(lambda line: line.rstrip() != "---", lines)
        return next((match[2] for line in metadata if (match := _LICENSE.fullmatch(line))), "")
    return ""


def license_of(facts: Mapping[str, Any]) -> str:
    """Return the licence that a model's `heedful.json` names; empty = none."""
    return str(facts.get("license", ""))


def own_card(path: Path) -> str:
    """Read the card that the owner of a model wrote.

    Args:
        path: the README.md in the model's folder.

    Returns:
        Its text; empty if there is none.

    Raises:
        FileRefused: it is no text in UTF-8, or larger than a card is.
    """
    try:
        return read_text(path, MOST_BYTES)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise FileRefused(f"{path}: {(error.strerror or 'not readable').lower()}") from None


def model_card(path: Path, facts: Mapping[str, Any], form: Form, used_as: str, license: str = "") -> str:
    """Write the card of a model.

    Args:
        path: the model's folder, after which the card is named.
        facts: content of its `heedful.json`.
        form: what the card lies beside, as the library is called that loads it.
        used_as: name by which the reader loads it, as `use_of` takes it.
        license: name of the licence; empty = that of the model, where it is known.

    Returns:
        Markdown, beginning with metadata in YAML, all of whose values are written as JSON.
    """
    name = path.resolve().stem
    task, kind = str(facts.get("task", "translation")), str(facts.get("kind", ""))
    languages = [str(one) for one in facts.get("languages", ()) if one not in _UNKNOWN]
    metrics, number = stored_scores(path, str(facts.get("weights", "")))
    tested = f"test set of its makers, {counted(number, 'item')}"
    terms = license or license_of(facts)
    data: dict[str, Any] = {"library_name": form, "pipeline_tag": PIPELINES.get(task, task)}
    if languages:
        data["language"] = list(dict.fromkeys(languages))
    if terms:
        data["license"] = terms
    data["tags"] = list(dict.fromkeys(["heedful", kind or task]))
    if metrics:
        results = [_result(one) for one in metrics]
        test_set = {"type": "private", "name": tested}
        result = {"task": {"type": data["pipeline_tag"]}, "dataset": test_set, "metrics": results}
        data["model-index"] = [{"name": name, "results": [result]}]
    lines = ["---", *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in data.items()), "---", ""]
    between = f", {' to '.join(languages)}" if len(languages) == 2 else ""
    lines += [f"# {name}", "", f"A model for {task}{between} ({kind or task}), {_origin(facts)}.", ""]
    lines += ["## Use", "", *use_of(form, used_as, facts)]
    lines += _training(path)
    if metrics:
        lines += ["## Scores", "", f"On the {tested}.", ""]
        lines += ["| metric | score | 95 % interval | signature |", "|---|---:|---:|---|", *map(_row, metrics), ""]
    lines += ["## Limits", "", *(f"- {limit}" for limit in limits_of(path, facts, languages, metrics, tested)), ""]
    unsaid = "Its makers have not said here under which licence it may be used; ask them."
    lines += ["## Licence", "", terms or unsaid, ""]
    return "\n".join(lines)


def _origin(facts: Mapping[str, Any]) -> str:
    program = f"heedful {facts['heedful']}" if facts.get("heedful") else "heedful"
    return f"converted from {facts['origin']} by {program}" if facts.get("origin") else f"trained with {program}"


def _result(metric: Mapping[str, Any]) -> dict[str, Any]:
    """Result of a metric as the Hub reads it."""
    result = {"type": metric["key"], "name": metric["name"], "value": metric["score"]}
    return result | ({"args": {"signature": metric["signature"]}} if metric["signature"] else {})


def _row(metric: Mapping[str, Any]) -> str:
    unit = f" {metric['unit']}" if metric["unit"] else ""
    has_interval = metric["low"] is not None and metric["high"] is not None
    interval = f"{metric['low']:.1f} to {metric['high']:.1f}" if has_interval else ""
    cell = metric["signature"].replace("|", "\\|")
    signature = f"`{cell}`" if cell else ""
    return f"| {metric['name']} | {metric['score']:.1f}{unit} | {interval} | {signature} |"


def _training(path: Path) -> list[str]:
    """Say how a model was trained, where its folder still knows."""
    try:
        run = read_run(path)
    except HeedfulError:
        return []
    rows = [(label, text) for label, text in summary(run) if label in ("model", "kept", "trained", "computed")]
    count = training_size(path)
    rows += [("data", f"{counted(count, 'row')} of its makers")] if count else []
    return ["## Training", "", *(f"- {label}: {text}" for label, text in rows), ""] if rows else []
