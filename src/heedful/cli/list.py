"""List scores, biases, masks, normalizers, kernels, models, presets, metrics, tasks or settings.

Examples:
  heedful list presets
  heedful list scores
"""

import inspect
import itertools
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, get_type_hints

import typer

from heedful.cli.completion import completed
from heedful.cli.messages import aligned
from heedful.cli.options import Debug, IdleDevice, IdleThreads, Quiet
from heedful.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from heedful.attention.interface import Score
    from heedful.attention.kernels.interface import Kernel, Request
    from heedful.attention.masks import Mask
    from heedful.attention.normalizers import Normalizer

TableRows = Iterable[tuple[str, ...]]
"""Rows of a table: a name and its descriptions."""

YEAR: Final = re.compile(r"\b(18|19|20)\d\d\b")
SENTENCES: Final = re.compile(r"(?<=[^\s.])\.\s+(?=[A-Z`])")
SECTION: Final = re.compile(r"(Args|Attributes|Cost|Example|Raises|Returns):")
NARROW: Final = 40
"""Minimum width of the text beside a name, in columns; in narrower terminals the text goes below."""
PLACES: Final = 64
"""Number of keys and queries of example masks."""


def wrapped(rows: Sequence[Sequence[str]], columns: int) -> str:
    """Wrap rows for a terminal: names to the left, texts beside them.

    Args:
        rows: names and descriptions; empty descriptions are left out.

    Returns:
        Lines no wider than the terminal, unless a single word is wider.

    Example:
        >>> print(wrapped([("dot", "a(q, k) = q . k", "Luong et al. 2015, section 3.1")], 50))
        dot  a(q, k) = q . k
             Luong et al. 2015, section 3.1
    """
    indent = max(len(row[0]) for row in rows) + 2
    is_beside = columns - indent >= NARROW
    indent = indent if is_beside else 4
    lines: list[str] = []
    for name, *texts in rows:
        width = max(1, columns - indent)
        parts = [
            line
            for text in texts
            for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
        ]
        if is_beside:
            lines += [(name if index == 0 else "").ljust(indent) + part for index, part in enumerate(parts)]
        else:
            lines += [name, *(" " * indent + part for part in parts)]
    return "\n".join(lines)


def first_line(thing: object) -> str:
    """Return the first line of a docstring.

    Returns:
        Its first paragraph on one line; empty without a docstring.
    """
    return " ".join(inspect.cleandoc(thing.__doc__ or "").split("\n\n")[0].split())


class Description(NamedTuple):
    """Parts of the docstring of a mechanism."""

    formula: str
    """First paragraph, without the source and the full stop."""
    source: str
    """First sentence with a year in it; empty where there is none."""
    cost: str
    """Paragraph that begins with "Cost:"; empty where there is none."""


def describe(thing: object) -> Description:
    """Read the docstring of a mechanism.

    Args:
        thing: a class or a function.

    Returns:
        Formula, source and cost.

    Example:
        >>> def dot():
        ...     '''a(q, k) = q . k. Luong et al. 2015, section 3.1.
        ...
        ...     Cost: depth multiply-adds.
        ...     '''
        >>> describe(dot)
        Description(formula='a(q, k) = q . k', source='Luong et al. 2015, section 3.1', cost='depth multiply-adds')
    """
    paragraphs = [" ".join(text.split()) for text in inspect.cleandoc(thing.__doc__ or "").split("\n\n")]
    prose = list(itertools.takewhile(lambda text: not SECTION.match(text), paragraphs))
    sentences = [[sentence.rstrip(".") for sentence in SENTENCES.split(text)] for text in prose]
    source = next((each for each in itertools.chain.from_iterable(sentences) if YEAR.search(each)), "")
    formula = ". ".join(each for each in sentences[0] if each != source) if sentences else ""
    cost = next((text.removeprefix("Cost: ").rstrip(".") for text in paragraphs if text.startswith("Cost: ")), "")
    return Description(formula, source, cost)


@dataclass(frozen=True)
class Mechanism:
    """Score, bias, mask or normalizer as a row of a table."""

    name: str
    kind: str
    """Name of the class or function."""
    formula: str
    source: str
    """Paper and section; empty where there is none."""
    cost: str
    """Time per pair of query and key, or per score."""
    memory: str
    """Memory beside inputs and outputs; of a mask, its representation."""
    kernels: tuple[str, ...]
    """Kernels that can run it, in order of preference, on any device and in any dtype."""

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Row of `heedful list`."""
        how = f"cost: {self.cost}; memory: {self.memory}; kernels: {', '.join(self.kernels)}"
        return self.name, self.formula, self.source, how


def list_scores() -> list[Mechanism]:
    """List the scores.

    Returns:
        One per entry of SCORES; without a cost of its own, a score has that of its lowered form.
    """
    from heedful.attention.scores import SCORES

    return [_of_score(name, score) for name, score in SCORES.items()]


def _of_score(name: str, score: "type[Score]") -> Mechanism:
    pairs = get_type_hints(score.lower)["return"]
    formula, source, cost = describe(score)
    kernels = _kernels(pairs=pairs, profile=getattr(score, "profile", ""))
    return Mechanism(
        name, score.__name__, formula, source, cost or describe(pairs).cost, _memory(kernels), _names(kernels)
    )


def list_biases() -> list[Mechanism]:
    """List the biases.

    Returns:
        One per entry of BIASES.
    """
    from heedful.attention.biases import BIASES

    kernels = _kernels(has_bias=True)
    return [
        Mechanism(name, bias.__name__, *describe(bias), _memory(kernels), _names(kernels))
        for name, bias in BIASES.items()
    ]


def list_masks() -> list[Mechanism]:
    """List the masks.

    Returns:
        One per entry of MASKS.
    """
    from heedful.attention.masks import MASKS

    return [_of_mask(name, make) for name, make in MASKS.items()]


def _of_mask(name: str, make: "Callable[..., Mask]") -> Mechanism:
    import torch

    samples: dict[str, Any] = {
        "lengths": torch.tensor([PLACES]),
        "centre": torch.zeros(1),
        "adjacency": torch.ones(PLACES, PLACES, dtype=torch.bool),
    }
    needed = [each for each in inspect.signature(make).parameters.values() if each.default is each.empty]
    mask = make(**{each.name: samples.get(each.name, 1) for each in needed})
    rows = mask.rows(PLACES, PLACES, torch.device("cpu"))
    is_table = rows.dense is not None
    kernels = _kernels(
        mask="dense" if is_table else "interval", width=rows.width, has_gaussian=rows.gaussian is not None
    )
    memory = "query * key bools" if is_table else "2 numbers per query"
    return Mechanism(name, name, *describe(make), memory, _names(kernels))


def list_normalizers() -> list[Mechanism]:
    """List the normalizers.

    Returns:
        One per entry of NORMALIZERS.
    """
    from heedful.attention.normalizers import NORMALIZERS

    return [_of_normalizer(name, normalizer) for name, normalizer in NORMALIZERS.items()]


def _of_normalizer(name: str, normalizer: "type[Normalizer]") -> Mechanism:
    kernels = _kernels(normalizer=normalizer)
    memory = "query * key" if normalizer.scope == "matrix" else _memory(kernels)
    return Mechanism(name, normalizer.__name__, *describe(normalizer), memory, _names(kernels))


def _kernels(**facts: Any) -> "list[Kernel]":
    """Kernels that support such requests, with all keys or with a narrow window."""
    from heedful.attention.dispatch import KERNELS

    requests = [*_requests(facts)]
    return [kernel for kernel in KERNELS if any(kernel.why_not(request) is None for request in requests)]


def _requests(facts: dict[str, Any]) -> "Iterable[Request]":
    import torch

    from heedful.attention.kernels.interface import Request
    from heedful.attention.lowered import LoweredAdditive, LoweredDistance, LoweredDot
    from heedful.attention.profiles import PROFILES

    kinds = [(LoweredDot, ""), (LoweredAdditive, ""), *((LoweredDistance, profile) for profile in PROFILES)]
    if "pairs" in facts:
        kinds = [(facts["pairs"], facts["profile"])]
    masks = [{"mask": "none"}, {"mask": "interval", "width": 1}]
    if "mask" in facts:
        masks = [{}]
    rest = {name: fact for name, fact in facts.items() if name not in {"pairs", "profile"}}
    for (pairs, profile), mask, device in itertools.product(kinds, masks, ("cpu", "cuda")):
        yield Request(
            pairs=pairs,
            profile=profile,
            dtype=torch.float32,
            device=device,
            num_queries=PLACES,
            num_keys=PLACES,
            **mask,
            **rest,
        )


def _memory(kernels: "Sequence[Kernel]") -> str:
    """Memory class of the preferred kernel, without remarks."""
    return re.split(r"[;(]", kernels[0].memory)[0].strip() if kernels else ""


def _names(kernels: "Sequence[Kernel]") -> tuple[str, ...]:
    return tuple(kernel.name for kernel in kernels)


def list_kernels() -> list[tuple[str, str, str]]:
    """List the kernels.

    Returns:
        Name, summary and memory of each kernel, in order of preference.
    """
    from heedful.attention.dispatch import KERNELS
    from heedful.attention.tiled_attention import Tiled

    # All score kernels share the tiled driver, so the score kernel's docstring describes the row.
    return [
        (
            kernel.name,
            first_line(kernel.scoring if isinstance(kernel, Tiled) else kernel).rstrip("."),
            f"{kernel.memory}; {kernel.standing}" if kernel.standing else kernel.memory,
        )
        for kernel in KERNELS
    ]


def _scores() -> TableRows:
    return (score.row for score in list_scores())


def _biases() -> TableRows:
    return (bias.row for bias in list_biases())


def _masks() -> TableRows:
    return (mask.row for mask in list_masks())


def _normalizers() -> TableRows:
    return (normalizer.row for normalizer in list_normalizers())


def _kernel_rows() -> TableRows:
    return ((name, summary, f"memory: {memory}") for name, summary, memory in list_kernels())


def _models() -> TableRows:
    from heedful.models.table import MODELS
    from heedful.tasks.table import TASKS

    for name, config in MODELS.items():
        tasks = ", ".join(task for task, each in TASKS.items() if name in each.kinds)
        yield name, first_line(sys.modules[config.__module__]), f"task: {tasks}"


def _tasks() -> TableRows:
    from heedful.tasks.table import TASKS

    return ((name, first_line(sys.modules[type(task).__module__])) for name, task in TASKS.items())


def _presets() -> TableRows:
    from heedful.models.table import PRESETS

    return ((name, f"{config.kind}: {_settings(config)}") for name, config in PRESETS.items())


def _settings(config: Any) -> str:
    changed: dict[str, object] = config.model_dump(exclude_unset=True, exclude={"kind"})
    return ", ".join(f"{key} {value}" for key, value in changed.items()) or "the defaults"


def _metrics() -> TableRows:
    from heedful.evaluation.interface import Setting
    from heedful.evaluation.metrics.table import METRICS

    for name, build in METRICS.items():
        metric = build(Setting())
        yield name, f"{metric.name}, {metric.unit}: {first_line(metric)}"


def _setting_rows() -> TableRows:
    from heedful.cli.settings_reference import all_settings

    for line in all_settings():
        owners = f"; of {', '.join(line.kinds)}" if line.kinds else ""
        tasks = f"; for {', '.join(line.tasks)}" if line.tasks else ""
        yield line.key, line.default, f"{line.meaning.removesuffix('.')}{owners}{tasks}"


TOPICS: Final[dict[str, Callable[[], TableRows]]] = {
    "scores": _scores,
    "biases": _biases,
    "masks": _masks,
    "normalizers": _normalizers,
    "kernels": _kernel_rows,
    "models": _models,
    "presets": _presets,
    "metrics": _metrics,
    "tasks": _tasks,
    "settings": _setting_rows,
}
"""All topics; each reads the table that the library itself uses."""


def run(
    topic: Annotated[
        str,
        typer.Argument(
            help=f"Table to print: {', '.join(TOPICS)}.",
            metavar="TOPIC",
            show_default=False,
            autocompletion=completed(lambda: TOPICS),
        ),
    ],
    device: IdleDevice = "auto",
    threads: IdleThreads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """List a table.

    Raises:
        UsageError: the topic is unknown.
    """
    if topic not in TOPICS:
        raise UsageError(f"list: no table {topic!r}{did_you_mean(topic, TOPICS)}")
    rows = [*TOPICS[topic]()]
    if sys.stdout.isatty():
        print(wrapped(rows, shutil.get_terminal_size().columns))
    else:
        print(aligned([[cell or "-" for cell in row] for row in rows]))
