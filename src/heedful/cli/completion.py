"""Completions of option values in the shell, without importing PyTorch."""

from collections.abc import Callable, Iterable
from typing import Final

PRESETS: Final = (
    *(
        "mini",
        "tiny",
        "small",
        "base",
        "big",
        "rnnsearch-tiny",
        "rnnsearch",
        "rnnsearch-paper",
        "d2l-rnnsearch",
        "luong",
        "syntactic",
    ),
    *("luong-paper", "rnn_encoder_decoder", "sutskever-paper", "cho-paper", "rnnencdec-paper", "d2l-seq2seq"),
    *("hard_attention-tiny", "hard_attention", "hard_attention-paper"),
    *(
        "classifier",
        "classifier-words",
        "bag",
        "text_classifier",
        "text_classifier-steps",
        "hierarchical",
        "hierarchical-average",
        "hierarchical-max",
        "self_attentive",
    ),
    *("show_attend_tell", "show_attend_tell-hard", "show_attend_tell-gumbel", "image_transformer"),
    *("memory_network", "memory_network-average", "memory_network-hard", "memory_network-chain"),
    *("bidaf", "bidaf-average"),
)
"""Names of the presets, because importing their table imports PyTorch; a test compares them with it."""
DEVICES: Final = ("auto", "cpu", "cuda", "mps")


def completed(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Make the completion of an option whose value is one name.

    Args:
        names: function that returns all names.

    Returns:
        A function from the beginning of a value to the names that begin so.

    Example:
        >>> completed(lambda: ("auto", "torch"))("to")
        ['torch']
    """

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def metrics(incomplete: str) -> list[str]:
    """Complete a list of metrics.

    Args:
        incomplete: beginning of names separated by commas.

    Returns:
        The same beginning with each metric that continues its last name.

    Example:
        >>> metrics("bleu,te")
        ['bleu,ter']
    """
    from heedful.evaluation.metrics.table import METRICS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in METRICS if name.startswith(last)]


def engines() -> Iterable[str]:
    """Return the names of the engines."""
    from heedful.engines.exported import ENGINES

    return ("auto", "torch", *ENGINES)


def tasks() -> Iterable[str]:
    """Return the names of the tasks.

    Returns:
        The keys of the table of predictors, one per task.
    """
    from heedful.predictors.table import PREDICTORS

    return PREDICTORS
