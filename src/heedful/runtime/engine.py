"""Backends: what `translate`, `evaluate` and `serve` hold, whatever computes the model underneath."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UsageError
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.ensemble import Ensemble
from heedful.search.forced import ForcedDecoding, score_outputs
from heedful.search.interface import Engine, Hypothesis

IntArray = NDArray[np.int64]
DEFAULT_BATCH_TOKENS: Final = 4096
NO_ATTENTION: Final = "this model has no attention, so nothing says where a word comes from; train one that has"
BATCHED: Final = "batches change its last bits, so it cannot be exact; name another engine, onnx or torch"


class Backend(ABC):
    """Sources in, hypotheses out."""

    name: str
    """Such as torch, onnx, ctranslate2."""
    has_own_batches: bool = False
    """Whether `decode` and `read` take any number of sources and make batches of them themselves."""

    @abstractmethod
    def supports(self, config: SearchConfig, need_alignment: bool) -> str | None:
        """Say whether this backend searches exactly as asked.

        Args:
            config: beam, penalties and limits.
            need_alignment: whether attention is wanted.

        Returns:
            None if it does, else the reason why not.
        """

    def supports_demand(self, demand: Constraints) -> str | None:
        """Say whether this backend gives what a single source may ask of its outputs.

        Args:
            demand: a prefix and phrases.

        Returns:
            None if it does, else the reason why not; as written here, it gives what asks for nothing.
        """
        return None if demand.is_free else "outputs cannot be given prefixes or phrases here"

    @abstractmethod
    def decode(
        self,
        source_ids: Sequence[IntArray],
        config: SearchConfig,
        need_alignment: bool = False,
        cancelled: Callable[[], bool] | None = None,
        constraints: Sequence[Constraints] | None = None,
    ) -> list[list[Hypothesis]]:
        """Decode one batch.

        Args:
            source_ids: [position] ids of each source, ending in eos.
            config: beam, penalties and limits.
            need_alignment: whether hypotheses carry attention weights.
            cancelled: asked between steps.
            constraints: what each source asks of its outputs; None for nothing. A backend that samples draws by their
                indices.

        Returns:
            For each source its hypotheses, best first; samples in the order they were drawn.
        """

    def supports_reading(self, need_alignment: bool) -> str | None:
        """Say whether this backend reads outputs that are given.

        Args:
            need_alignment: whether attention is wanted.

        Returns:
            None if it does, else the reason why not; as written here, it does not.
        """
        return "outputs that are given cannot be read here"

    def read(
        self, source_ids: Sequence[IntArray], outputs: Sequence[Sequence[int]], need_alignment: bool = False
    ) -> list[ForcedDecoding]:
        """Read one batch of outputs that are given (forced decoding).

        Args:
            source_ids: [position] ids of each source, ending in eos.
            outputs: the tokens of one output for each source, with eos if it counts.
            need_alignment: whether attention is wanted.

        Returns:
            What was found of each output.

        Raises:
            UsageError: this backend cannot.
        """
        raise UsageError(f"{self.name}: {self.supports_reading(need_alignment)}")


@final
class Stepwise(Backend):
    """The one search over an engine that runs a model token by token; supports all that the model has."""

    def __init__(
        self,
        name: str,
        make_engine: Callable[[bool], Engine],
        max_length: int,
        has_attention: bool = True,
        single_threaded: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Hold an engine.

        Args:
            name: what computes.
            make_engine: given whether attention weights are wanted.
            max_length: most tokens of an output, end mark included.
            has_attention: whether the model attends to its source.
            single_threaded: makes a context in which the engine uses one processor thread.
        """
        self.single_threaded: Final = single_threaded
        self.name = name
        self.make_engine: Final = make_engine
        self.max_length: Final = max_length
        self._has_attention: Final = has_attention

    def supports(self, config: SearchConfig, need_alignment: bool) -> str | None:
        return self.supports_reading(need_alignment or config.beta > 0.0)

    def supports_reading(self, need_alignment: bool) -> str | None:
        return NO_ATTENTION if need_alignment and not self._has_attention else None

    def read(
        self, source_ids: Sequence[IntArray], outputs: Sequence[Sequence[int]], need_alignment: bool = False
    ) -> list[ForcedDecoding]:
        return score_outputs(self.make_engine(need_alignment), source_ids, outputs, need_alignment)

    def supports_demand(self, demand: Constraints) -> str | None:
        return None

    def decode(
        self,
        source_ids: Sequence[IntArray],
        config: SearchConfig,
        need_alignment: bool = False,
        cancelled: Callable[[], bool] | None = None,
        constraints: Sequence[Constraints] | None = None,
    ) -> list[list[Hypothesis]]:
        engine = self.make_engine(need_alignment or config.beta > 0.0)
        return search(
            engine,
            source_ids,
            config,
            max_length=self.max_length,
            need_alignment=need_alignment,
            constraints=constraints,
            cancelled=cancelled,
        )


def together(backends: Sequence[Backend]) -> Stepwise:
    """Let several models decode as one, by the mean of their probabilities; Sutskever et al. 2014, section 3.6.

    Args:
        backends: one or more, of one source and one target vocabulary.

    Returns:
        A backend whose every step is one of each.

    Raises:
        UsageError: one of them does not go token by token.

    Cost: the sum of theirs, and a mean over the vocabulary at each step.
    """
    members: list[Stepwise] = []
    for backend in backends:
        if not isinstance(backend, Stepwise):
            raise UsageError(
                f"{backend.name} searches by itself, token by token does not come out: name another engine"
            )
        members.append(backend)

    def make_engine(with_weights: bool) -> Engine:
        return Ensemble([member.make_engine(with_weights) for member in members])

    @contextmanager
    def single_threaded() -> Generator[None]:
        with ExitStack() as stack:
            for member in members:
                stack.enter_context(member.single_threaded())
            yield

    names = "+".join(member.name for member in members)
    has_attention = all(member.supports_reading(need_alignment=True) is None for member in members)
    most = min(member.max_length for member in members)
    return Stepwise(names, make_engine, most, has_attention, single_threaded)


def decode_sorted(
    backend: Backend,
    source_ids: Sequence[IntArray],
    config: SearchConfig,
    *,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    need_alignment: bool = False,
    constraints: Sequence[Constraints] | None = None,
    first_index: int = 0,
) -> list[list[Hypothesis]]:
    """Decode many sources in batches of like length, and give results in the order asked.

    Args:
        backend: what decodes.
        source_ids: [position] ids of each source, ending in eos.
        config: beam, penalties and limits.
        batch_tokens: most source positions times hypotheses in a batch, padding included; one source always fits.
        need_alignment: whether hypotheses carry attention weights.
        constraints: what each source asks of its outputs; None for nothing.
        first_index: index of the first source among all of the caller's, for sampling: a demand without an index gets
            this plus its place, so that no batch and no window of the input changes what is drawn.

    Returns:
        For each source its hypotheses, best first; samples in the order they were drawn.

    Raises:
        UsageError: the backend cannot search so, or there are not as many constraints as sources.
    """
    if reason := backend.supports(config, need_alignment):
        raise UsageError(f"{backend.name}: {reason}")
    asked = _indexed(constraints, len(source_ids), config, first_index)
    if reason := next(filter(None, map(backend.supports_demand, asked or ())), None):
        raise UsageError(f"{backend.name}: {reason}")
    lengths = np.array([len(ids) for ids in source_ids], dtype=np.int64)
    results: list[list[Hypothesis]] = [[] for _ in source_ids]
    # Longest first: the batch that needs most memory comes at once, not after an hour.
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        rows = max(1, batch_tokens // (max(1, int(lengths[order[start]])) * config.width))
        batch = order[start:] if backend.has_own_batches else order[start : start + rows]
        ids = [source_ids[i] for i in batch]
        if asked is None:
            decoded = backend.decode(ids, config, need_alignment)
        else:
            decoded = backend.decode(ids, config, need_alignment, constraints=[asked[i] for i in batch])
        for index, hypotheses in zip(batch, decoded, strict=True):
            results[index] = hypotheses
        start += len(batch)
    return results


def read_sorted(
    backend: Backend,
    source_ids: Sequence[IntArray],
    outputs: Sequence[Sequence[int]],
    *,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    need_alignment: bool = False,
) -> list[ForcedDecoding]:
    """Read many outputs that are given in batches of like length, and give results in the order asked.

    Args:
        backend: what reads.
        source_ids: [position] ids of each source, ending in eos.
        outputs: the tokens of one output for each source, with eos if it counts.
        batch_tokens: most source positions in a batch, padding included; one source always fits.
        need_alignment: whether attention is wanted.

    Returns:
        What was found of each output.

    Raises:
        UsageError: the backend cannot read so, or there are not as many outputs as sources.
    """
    if reason := backend.supports_reading(need_alignment):
        raise UsageError(f"{backend.name}: {reason}")
    if len(outputs) != len(source_ids):
        raise UsageError(f"{len(outputs)} outputs were given for {len(source_ids)} sources; give one each")
    lengths = np.array([len(ids) for ids in source_ids], dtype=np.int64)
    # A batch ends its longest output alone, so outputs of like length stand together among sources of like length.
    order = np.lexsort(-np.array([[len(output) for output in outputs], lengths], dtype=np.int64))
    found: dict[int, ForcedDecoding] = {}
    start = 0
    while start < len(order):
        rows = max(1, batch_tokens // max(1, int(lengths[order[start]])))
        batch = order[start:] if backend.has_own_batches else order[start : start + rows]
        readings = backend.read([source_ids[i] for i in batch], [outputs[i] for i in batch], need_alignment)
        found.update(zip(batch.tolist(), readings, strict=True))
        start += len(batch)
    return [found[place] for place in range(len(source_ids))]


def _indexed(
    constraints: Sequence[Constraints] | None, num_sources: int, config: SearchConfig, first_index: int
) -> list[Constraints] | None:
    """Demands that say which source they belong to; None where nothing depends on it and nothing is asked.

    Raises:
        UsageError: their number is wrong.
    """
    if constraints is None:
        if config.method != "sampling":
            return None
        constraints = [Constraints()] * num_sources
    if len(constraints) != num_sources:
        raise UsageError(
            f"constraints: {len(constraints)} given for {num_sources} sources; give one each, Constraints() for none"
        )
    return [
        replace(demand, index=first_index + place) if demand.index < 0 else demand
        for place, demand in enumerate(constraints)
    ]
