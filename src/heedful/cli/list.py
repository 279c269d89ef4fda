"""List scores, masks, normalizers, kernels, models, presets or metrics."""

import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final

import typer

from heedful.cli.messages import aligned
from heedful.cli.options import Debug, IdleDevice, IdleThreads, Quiet
from heedful.errors import UsageError, did_you_mean

Rows = Iterable[tuple[str, str]]


def run(
    topic: Annotated[str, typer.Argument(help="Which of them.", metavar="TOPIC", show_default=False)],
    device: IdleDevice = "auto",
    threads: IdleThreads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """List a table.

    Raises:
        UsageError: there is no such table.
    """
    if topic not in TOPICS:
        raise UsageError(f"list: no table {topic!r}{did_you_mean(topic, TOPICS)}")
    print(aligned([*TOPICS[topic]()]))


def first_line(thing: object) -> str:
    """Give what a docstring says first.

    Args:
        thing: whatever has a docstring.

    Returns:
        Its first paragraph on one line; empty where there is none.
    """
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def _scores() -> Rows:
    from heedful.attention.scores import SCORES

    return ((name, first_line(score)) for name, score in SCORES.items())


def _masks() -> Rows:
    from heedful.attention import masks

    # Those who make masks are functions, and say so in their signature.
    makers = inspect.getmembers(masks, inspect.isfunction)
    return ((name, first_line(f)) for name, f in makers if inspect.signature(f).return_annotation is masks.Mask)


def _normalizers() -> Rows:
    from heedful.attention.normalizers import NORMALIZERS

    return ((name, first_line(normalizer)) for name, normalizer in NORMALIZERS.items())


def _kernels() -> Rows:
    from heedful.attention.attend import KERNELS

    return ((kernel.name, f"{first_line(kernel)} Memory: {kernel.memory}.") for kernel in KERNELS)


def _models() -> Rows:
    from heedful.experiment import MODELS

    return ((name, first_line(sys.modules[config.__module__])) for name, config in MODELS.items())


def _presets() -> Rows:
    from heedful.experiment import PRESETS

    return ((name, f"{config.kind}: {_settings(config)}") for name, config in PRESETS.items())


def _settings(config: Any) -> str:
    changed: dict[str, object] = config.model_dump(exclude_unset=True, exclude={"kind"})
    return ", ".join(f"{key} {value}" for key, value in changed.items()) or "the defaults"


def _metrics() -> Rows:
    from heedful.evaluation.interface import Setting
    from heedful.evaluation.metrics.table import METRICS

    for name, build in METRICS.items():
        metric = build(Setting())
        yield name, f"{metric.name}, {metric.unit}: {first_line(metric)}"


TOPICS: Final[dict[str, Callable[[], Rows]]] = {
    "scores": _scores,
    "masks": _masks,
    "normalizers": _normalizers,
    "kernels": _kernels,
    "models": _models,
    "presets": _presets,
    "metrics": _metrics,
}
"""What can be listed; each reads the table that the library itself uses."""
