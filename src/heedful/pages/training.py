"""Page of a training run: status, curves, samples over time, data, configuration."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from heedful.errors import ResourceError
from heedful.evaluation.interface import Metric, Setting
from heedful.evaluation.metrics.table import METRICS, score_name
from heedful.files.atomic_write import atomic_write
from heedful.pages.attention_view import AttentionView
from heedful.pages.chart import Series, chart, number
from heedful.pages.document import document, folded, listed, table, texts
from heedful.pages.record import RunRecord, points, read_run
from heedful.text.counts import counted
from heedful.text.durations import duration

PAGE: Final = "report.html"


def _caption(metric: Metric) -> str:
    unit = ", %" if metric.unit == "%" else ""
    return f"{metric.name}{unit}{'' if metric.higher_is_better else ' (lower is better)'}"


@final
class _Words(NamedTuple):
    """Words for the units that training is counted in."""

    trained: str
    """Units of the speed, at the beginning of a title."""
    short: str
    """The same in the head of a column."""
    loss: str
    """Unit of the loss, with its article."""


_TOKEN_WORDS: Final = _Words("Target tokens", "tokens", "a token")
_TASK_WORDS: Final = {
    "classification": _Words("Texts", "texts", "a label"),
    "answering": _Words("Questions", "questions", "an answer"),
}
"""Words of the tasks whose loss is not over tokens."""
NAMES: Final = {"loss": "loss", **{key: _caption(make(Setting())) for key, make in METRICS.items()}}
MOST_OUTPUTS: Final = 8
"""Number of outputs shown of a sample: the first, the last, the selected model's and some in between."""


def write_training_page(model: Path, path: Path, views: Sequence[AttentionView] = ()) -> None:
    """Write the page of a run.

    Args:
        model: a model folder, finished or still in training.
        path: the file; it is written completely or not at all.

    Raises:
        UsageError: the folder holds no training run.
        FileRefused: a pipe or a device is in the place of the page in the model folder.
        ResourceError: the file cannot be written.
    """
    page = training_page(read_run(model), views)
    try:
        with atomic_write(path, is_internal=path == model / "run" / PAGE) as stream:
            stream.write(page)
    except OSError as error:
        raise ResourceError(f"{path}: not written: {error.strerror or error}; choose another -o") from None


def training_page(run: RunRecord, views: Sequence[AttentionView] = ()) -> str:
    """Return the page of a run.

    Returns:
        A complete HTML document.
    """
    parts = [texts(summary(run))]
    if run.validations:
        parts += ["<h2>Curves</h2>", _key(run), '<div class="charts">', *_charts(run), "</div>"]
        parts.append(folded("All figures", table(_figures(run), f"{_step(run.best):,}")))
        if samples := _samples(run):
            parts += [
                "<h2>Samples over time</h2>",
                f'<p class="faint">Sources of {run.validated_on}, short to long, as the model of each step put them '
                "(greedy search). Steps that changed nothing are left out; the kept model's row is tinted.</p>",
                *samples,
            ]
    explanation = next((one.explanation for one in views), "")
    if drawn := [(one.title, html) for one in views if (html := one.draw())]:
        parts += [
            "<h2>Attention</h2>",
            f'<p class="faint">The kept model on the samples. {explanation}; the pointer shows the number.</p>',
            *(f"<h3>{escape(title)}</h3>\n{html}" for title, html in drawn),
        ]
    parts += _data(run)
    if len(run.history) > 1:
        parts += ["<h2>How it went on</h2>", listed([_event(line) for line in run.history])]
    if run.config:
        parts += [
            "<h2>Configuration</h2>",
            folded("Every setting, resolved", f"<pre>{escape(run.config.strip())}</pre>"),
        ]
    return document(f"Training of {run.name}", parts)


def summary(run: RunRecord) -> list[tuple[str, str]]:
    """Return the most important facts about the run.

    Returns:
        Label and text of each fact.
    """
    began = next((line for line in run.history if line.get("event") in ("began", "resumed")), {})
    best, last = run.best, run.validations[-1] if run.validations else {}
    languages = [str(name) for name in run.about.get("languages", ()) if name]
    kind = str(run.about.get("kind", "")) or str(began.get("kind", ""))
    size = f", {int(began['num_parameters']):,} parameters" if "num_parameters" in began else ""
    facts = [
        ("model", f"{kind}{size}"),
        ("languages", "" if languages == ["source", "target"] else " to ".join(languages)),
        ("status", ended(run)),
    ]
    if best:
        name = NAMES.get(run.metric, score_name(run.metric)).partition(" (")[0]
        score = number(float(best["scores"].get(run.metric, math.nan)))
        facts.append(("kept", f"the model of step {_step(best):,}: {name} {score} on {run.validated_on}"))
    results: Sequence[Mapping[str, Any]] = run.tested.get("results", ())
    if results:
        shown = ", ".join(f"{r['name']} {r['score']:.2f} [{r['low']:.2f}, {r['high']:.2f}]" for r in results)
        facts.append(("test", f"{shown} (95 % intervals)"))
    newest = max(last, run.checkpoint, key=_step)
    if newest:
        epochs = f", {last['epoch']:.1f} epochs" if newest is last and "epoch" in last else ""
        facts.append(("trained", f"{counted(_step(newest), 'step')}{epochs}, {duration(newest.get('seconds', 0))}"))
    where = [str(began[key]) for key in ("device", "versions") if began.get(key)]
    facts.append(("computed", ", ".join(where)))
    return [(label, text) for label, text in facts if text]


def ended(run: RunRecord) -> str:
    """Return the status of the run."""
    last = run.history[-1] if run.history else {}
    finished = str(run.checkpoint.get("finished", ""))
    event = last.get("event")
    if event == "finished" or (not last and finished):
        reason = str(last.get("reason", "")) or finished
        text = f"finished: {reason}"
    elif event in ("stopped", "failed"):
        text = f"{event}: {last.get('reason', '')}"
    elif last:
        text = "in training, or ended without a word (killed, or the power failed); the same command goes on"
    else:
        text = "not finished; the same command goes on"
    resumed = sum(line.get("event") == "resumed" for line in run.history)
    times = "" if not resumed else "; resumed once" if resumed == 1 else f"; resumed {resumed} times"
    return text + times


def _key(run: RunRecord) -> str:
    words = ["Over steps; the pointer on a dot tells its value.", _loss_unit(run)]
    if run.validated_on != "validation":
        words.append(f"Validation was on {run.validated_on}, and says nothing about new ones.")
    if run.best:
        words.append("Dashed: the model that was kept.")
    if _breaks(run):
        words.append("Short strokes on the axis: training was resumed there.")
    return f'<p class="faint">{" ".join(words)}</p>'


def _loss_unit(run: RunRecord) -> str:
    is_smoothed = bool(run.settings.get("training", {}).get("label_smoothing"))
    return f"Loss: nats {_words(run).loss}{', in training label-smoothed' if is_smoothed else ''}."


def _words(run: RunRecord) -> _Words:
    task = run.settings.get("task") or run.about.get("task")
    return _TASK_WORDS.get(str(task), _TOKEN_WORDS)


def _breaks(run: RunRecord) -> list[int]:
    return [int(line.get("step", 0)) for line in run.history if line.get("event") == "resumed"]


def _charts(run: RunRecord) -> list[str]:
    lines, best, breaks = run.validations, _step(run.best), _breaks(run)
    both = [Series("training", points(lines, "loss")), Series("validation", points(lines, "scores", "loss"))]
    charts = [chart("Loss", both, best, breaks)]
    for name in (name for name in _score_names(run) if name != "loss"):
        title = NAMES.get(name, score_name(name))
        title = title[0].upper() + title[1:] if name in ("exact_match", "token_error_rate") else title
        charts.append(chart(title, [Series("", points(lines, "scores", name))], best, breaks, from_zero=True))
    charts.append(chart("Learning rate", [Series("", points(lines, "learning_rate"))], 0, breaks, from_zero=True))
    speed = [Series("", points(lines, "tokens_per_second"))]
    charts.append(chart(f"{_words(run).trained} a second", speed, 0, breaks, from_zero=True))
    return charts


def _figures(run: RunRecord) -> list[list[str]]:
    names = _score_names(run)
    heads = [
        "validation loss" if name == "loss" else NAMES.get(name, score_name(name)).partition(" (")[0] for name in names
    ]
    rows = [["step", "epoch", "time", "training loss", *heads, "learning rate", f"{_words(run).short}/s"]]
    for line in run.validations:
        scores = [number(float(line["scores"].get(name, math.nan))) for name in names]
        where = [f"{_step(line):,}", f"{line.get('epoch', 0):.2f}", duration(line.get("seconds", 0))]
        rates = [number(float(line.get(key, math.nan))) for key in ("loss", "learning_rate", "tokens_per_second")]
        rows.append([*where, rates[0], *scores, *rates[1:]])
    return rows


def _score_names(run: RunRecord) -> list[str]:
    """Names of all scores; the score that selects the model comes first."""
    names = [str(name) for name in run.validations[-1]["scores"]]
    return sorted(names, key=lambda name: name != run.metric)


def samples_of(run: RunRecord) -> list[tuple[str, str]]:
    """List the samples of a run.

    Returns:
        Source and reference of each sample of the last validation that is not empty.
    """
    last = run.validations[-1] if run.validations else {}
    return [(source, reference) for source, reference, _ in _sampled(last) if source]


def _sampled(line: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    """Source, reference and output of each sample of a validation."""
    return line.get("samples") or [line.get("sample", ["", "", ""])]


def _samples(run: RunRecord) -> list[str]:
    """Table for each sample: source, reference, and outputs in the course of training."""
    shown: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for line in run.validations:
        for source, reference, output in _sampled(line):
            outputs = shown.setdefault((source, reference), [])
            if not outputs or outputs[-1][1] != output:
                outputs.append((_step(line), output))
    best = _step(run.best)
    tables: list[str] = []
    for (source, reference), outputs in shown.items():
        if not source:
            continue
        best_step = max((step for step, _ in outputs if step <= best), default=0)
        rows = [("source", source), ("reference", reference)]
        rows += [(f"step {step:,}", text) for step, text in _chosen(outputs, best_step)]
        tables.append(texts(rows, f"step {best_step:,}"))
    return tables


def _chosen(outputs: Sequence[tuple[int, str]], best_step: int) -> list[tuple[int, str]]:
    """Selection of outputs: the first, the last, the selected model's, and others evenly in between."""
    if len(outputs) <= MOST_OUTPUTS:
        return list(outputs)
    indices = {round(i * (len(outputs) - 1) / (MOST_OUTPUTS - 2)) for i in range(MOST_OUTPUTS - 1)}
    return [one for index, one in enumerate(outputs) if index in indices or one[0] == best_step]


def _data(run: RunRecord) -> list[str]:
    lines = next((line["report"] for line in reversed(run.history) if line.get("report")), ())
    return ["<h2>Data</h2>", listed([str(line) for line in lines])] if lines else []


def _event(line: Mapping[str, Any]) -> str:
    words = {
        "began": "began",
        "resumed": "resumed at step",
        "finished": "finished at step",
        "stopped": "stopped at step",
        "failed": "failed after the save at step",
    }
    event = str(line.get("event", ""))
    step = "" if event == "began" else f" {int(line.get('step', 0)):,}"
    reason = f": {line['reason']}" if line.get("reason") else ""
    return f"{line.get('time', '')} {words.get(event, event)}{step}{reason}".strip()


def _step(line: Mapping[str, Any]) -> int:
    return int(line.get("step", 0))
