"""Model card: the README.md that goes with a model to other people, with the metadata that model hubs read.

It says what the model's folder says, and no text of its training data.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from heedful.pages.evaluation import evaluation

PIPELINES: Final[Mapping[str, str]] = {
    "translation": "translation",
    "classification": "text-classification",
    "captioning": "image-to-text",
    "answering": "question-answering",
}
"""Name of each task on the Hub of Hugging Face."""
_UNKNOWN: Final = ("", "source", "target")


def model_card(path: Path, facts: Mapping[str, Any], library: str, use: str) -> str:
    """Write the card of a model.

    Args:
        path: the model's folder, after which the card is named.
        facts: content of its `heedful.json`.
        library: name of the library that loads what the card lies beside, as the Hub knows it.
        use: lines of Python that use the model, or of JavaScript for a library that ends in ``.js``.

    Returns:
        Markdown, beginning with metadata in YAML, all of whose values are written as JSON.
    """
    name = path.resolve().stem
    task, kind = str(facts.get("task", "translation")), str(facts.get("kind", ""))
    languages = [str(one) for one in facts.get("languages", ()) if one not in _UNKNOWN]
    metrics = [one for one in evaluation(path, str(facts.get("weights", "")))["metrics"] if one["score"] is not None]
    data: dict[str, Any] = {"library_name": library, "pipeline_tag": PIPELINES.get(task, task)}
    if languages:
        data["language"] = list(dict.fromkeys(languages))
    data["tags"] = list(dict.fromkeys(["heedful", kind or task]))
    if metrics:
        results = [{"type": one["key"], "name": one["name"], "value": one["score"]} for one in metrics]
        test_set = {"type": "private", "name": "test set of its makers"}
        result = {"task": {"type": data["pipeline_tag"]}, "dataset": test_set, "metrics": results}
        data["model-index"] = [{"name": name, "results": [result]}]
    lines = ["---", *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in data.items()), "---", ""]
    between = f", {' to '.join(languages)}" if len(languages) == 2 else ""
    origin = f"heedful {facts['heedful']}" if facts.get("heedful") else "heedful"
    lines += [f"# {name}", "", f"A model for {task}{between} ({kind or task}), trained with {origin}.", ""]
    lines += ["## Use", "", "```javascript" if library.endswith(".js") else "```python", use, "```", ""]
    if metrics:
        rows = [f"| {one['name']} | {one['score']:.1f}{one['unit'] and ' ' + one['unit']} |" for one in metrics]
        lines += ["## Scores", "", "On the test set of its makers.", "", "| metric | score |", "|---|---:|", *rows, ""]
    lines += [
        "## Limits",
        "",
        "The model knows what its training data show, and nothing else: try it on texts of your own kind first. Its",
        "makers have not said here under which licence it may be used; ask them.",
        "",
    ]
    return "\n".join(lines)
