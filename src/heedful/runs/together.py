"""Training of one model for several files: the option --together of `heedful train`."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from heedful.config.base import merge
from heedful.data.prepare import EvaluationSet
from heedful.data.rows import RequestedColumns
from heedful.data.together import file_tags, join_files
from heedful.errors import UsageError
from heedful.models.store import DEFAULT_TASK
from heedful.runs.facts import request_task
from heedful.runs.request import TrainRequest
from heedful.runs.train import RunInfo
from heedful.tasks.table import find_task
from heedful.text.columns import split_columns
from heedful.text.counts import counted
from heedful.training.rank import rank_info

SUFFIX: Final = ".together"
"""Suffix of the folder of joined pairs, beside that of the model."""


def with_joined_files(request: TrainRequest, say: Callable[[str], None]) -> TrainRequest:
    """Join the files of a request, each row with the name of its file, and train on them.

    Args:
        say: callback for a line about each file.

    Returns:
        The training of one model; `file_scores` scores it by file.

    Raises:
        UsageError: there are fewer than two files, or the training cannot be combined with joined files.
        DataError: a file is malformed.
    """
    _check(request)
    out = request.out or Path(f"{'-'.join(file_tags(request.data))}.model")
    joined = join_files(request.parts, request.columns, out.with_name(f"{out.name}{SUFFIX}"))
    for line in joined.lines:
        say(line)
    parts = {name: (path,) for name, path in joined.paths.items()}
    return replace(
        request,
        data=parts["train"],
        dev=parts.get("dev", ()),
        test=parts.get("test", ()),
        columns=RequestedColumns(joined.columns),
        out=out,
        settings=merge({"text": {"source_columns": [*joined.kinds]}}, request.settings),
    )


def file_scores(info: RunInfo, device: str) -> list[str]:
    """Score a model on the test items of each file.

    Args:
        info: facts about a completed run on joined files.
        device: PyTorch's device.

    Returns:
        A line for each file with test items.
    """
    by_tag: dict[str, EvaluationSet] = {}
    for source, references in zip(info.data.test.sources, info.data.test.references, strict=True):
        items = by_tag.setdefault(split_columns(source)[-1], EvaluationSet([], []))
        items.sources.append(source)
        items.references.append([*references])
    task = find_task(info.experiment.task)
    predictor = task.open(info.folder, device, "torch")
    return [f"       {tag}: {_scores(predictor.measure(items).to_dict())}" for tag, items in sorted(by_tag.items())]


def _scores(measured: dict[str, Any]) -> str:
    """Scores of one file on a line, with the number of its sources."""
    results = ", ".join(f"{one['name']} {one['score']:.2f} {one['unit']}".rstrip() for one in measured["results"])
    return f"{results}; {counted(measured['num_items'], 'source')}"


def _check(request: TrainRequest) -> None:
    """Refuse what joined files cannot be combined with.

    Raises:
        UsageError: a single file, another task, a model to go on from, further files, or several processes.
    """
    if len(request.data) < 2:
        raise UsageError("--together: joins several files of pairs; give two or more")
    if request_task(request).name != DEFAULT_TASK:
        raise UsageError(f"--together: for pairs of texts, not for {request_task(request).name}; leave it out")
    if request.pretrained:
        raise UsageError("--together: trains from fresh weights; leave out --from")
    training = request.settings.get("training", {})
    if isinstance(training, dict) and (training.get("mix") or training.get("links")):
        raise UsageError("--together: its rows have no older pairs and no links; leave out --mix and --links")
    if rank_info().size > 1:
        raise UsageError("--together: needs a single process; start it without torchrun")
