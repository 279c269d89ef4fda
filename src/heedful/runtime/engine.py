"""Backends: what `translate`, `evaluate` and `serve` hold, whatever computes the model underneath."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UsageError
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.interface import Engine, Hypothesis

IntArray = NDArray[np.int64]
DEFAULT_BATCH_TOKENS: Final = 4096


class Backend(ABC):
    """Sources in, hypotheses out."""

    name: str
    """Such as torch, onnx, ctranslate2."""

    @abstractmethod
    def supports(self, config: SearchConfig, need_alignment: bool) -> str | None:
        """Say whether this backend searches exactly as asked.

        Args:
            config: beam, penalties and limits.
            need_alignment: whether attention is wanted.

        Returns:
            None if it does, else the reason why not.
        """

    @abstractmethod
    def decode(
        self,
        source_ids: Sequence[IntArray],
        config: SearchConfig,
        need_alignment: bool = False,
        cancelled: Callable[[], bool] | None = None,
    ) -> list[list[Hypothesis]]:
        """Decode one batch.

        Args:
            source_ids: [position] ids of each source, ending in eos.
            config: beam, penalties and limits.
            need_alignment: whether hypotheses carry attention weights.
            cancelled: asked between steps.

        Returns:
            For each source its hypotheses, best first.
        """


@final
class Stepwise(Backend):
    """The one search over an engine that runs a model token by token; supports everything."""

    def __init__(self, name: str, make_engine: Callable[[bool], Engine], max_length: int) -> None:
        """Hold an engine.

        Args:
            name: what computes.
            make_engine: given whether attention weights are wanted.
            max_length: most tokens of an output, end mark included.
        """
        self.name = name
        self._make_engine: Final = make_engine
        self._max_length: Final = max_length

    def supports(self, config: SearchConfig, need_alignment: bool) -> str | None:
        return None

    def decode(
        self,
        source_ids: Sequence[IntArray],
        config: SearchConfig,
        need_alignment: bool = False,
        cancelled: Callable[[], bool] | None = None,
    ) -> list[list[Hypothesis]]:
        engine = self._make_engine(need_alignment or config.beta > 0.0)
        return search(
            engine,
            source_ids,
            config,
            max_length=self._max_length,
            need_alignment=need_alignment,
            cancelled=cancelled,
        )


def decode_sorted(
    backend: Backend,
    source_ids: Sequence[IntArray],
    config: SearchConfig,
    *,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    need_alignment: bool = False,
) -> list[list[Hypothesis]]:
    """Decode many sources in batches of like length, and give results in the order asked.

    Args:
        backend: what decodes.
        source_ids: [position] ids of each source, ending in eos.
        config: beam, penalties and limits.
        batch_tokens: most source positions times beam in a batch, padding included; one source always fits.
        need_alignment: whether hypotheses carry attention weights.

    Returns:
        For each source its hypotheses, best first.

    Raises:
        UsageError: the backend cannot search so.
    """
    if reason := backend.supports(config, need_alignment):
        raise UsageError(f"{backend.name}: {reason}")
    lengths = np.array([len(ids) for ids in source_ids], dtype=np.int64)
    results: list[list[Hypothesis]] = [[] for _ in source_ids]
    # Longest first: the batch that needs most memory comes at once, not after an hour.
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        rows = max(1, batch_tokens // (max(1, int(lengths[order[start]])) * config.beam))
        batch = order[start : start + rows]
        decoded = backend.decode([source_ids[i] for i in batch], config, need_alignment)
        for index, hypotheses in zip(batch, decoded, strict=True):
            results[index] = hypotheses
        start += rows
    return results
