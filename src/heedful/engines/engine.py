"""Backends: one interface for decoding and scoring with any engine."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import ResourceError, UsageError, is_out_of_memory
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.ensemble import Ensemble
from heedful.search.forced import ForcedDecoding, score_outputs
from heedful.search.inputs import Sources, as_inputs
from heedful.search.interface import Engine, Hypothesis, posteriors_of
from heedful.text.vocabulary import EOS

IntArray = NDArray[np.int64]
DEFAULT_BATCH_TOKENS: Final = 4096
NO_ATTENTION: Final = (
    "this model has no attention in this engine, so nothing says where a word comes from; take --engine torch, or "
    "train one that has"
)
BATCHED: Final = "batches change its last bits, so it cannot be exact; name another engine, onnx or torch"


class Backend(ABC):
    """Decoder and scorer of batches."""

    name: str
    """Name shown to the user, such as torch, onnx, ctranslate2."""
    has_own_batches: bool = False
    """Whether `decode` and `score` accept any number of sources and split them into batches themselves."""

    has_shortlist: bool = False
    """Whether a search may be restricted to a vocabulary shortlist."""

    @abstractmethod
    def supports(self, config: SearchConfig, need_alignment: bool) -> str | None:
        """Say whether this backend supports a search with these settings.

        Args:
            config: beam, penalties and limits.
            need_alignment: whether attention weights are needed.

        Returns:
            None if it does, else the reason why not.
        """

    def supports_constraints(self, constraints: Constraints) -> str | None:
        """Say whether this backend supports the constraints of a source.

        Args:
            constraints: prefix, required and banned phrases.

        Returns:
            None if it does, else the reason why not. By default no constraints are supported.
        """
        return None if constraints.is_free else "prefixes and phrases are not supported here"

    @abstractmethod
    def decode(
        self,
        sources: Sources,
        config: SearchConfig,
        need_alignment: bool = False,
        cancelled: Callable[[], bool] | None = None,
        constraints: Sequence[Constraints] | None = None,
    ) -> list[list[Hypothesis]]:
        """Decode one batch.

        Args:
            sources: inputs of the kind that the model reads, or the [position] ids of each source.
            config: beam, penalties and limits.
            need_alignment: whether hypotheses include attention weights.
            cancelled: called between steps; True ends the search.
            constraints: constraints of each source; None = none. Their indices determine the samples of sampling.

        Returns:
            Hypotheses of each source, best first; samples in the order in which they were drawn.
        """

    def supports_scoring(self, need_alignment: bool) -> str | None:
        """Say whether this backend scores given outputs.

        Args:
            need_alignment: whether attention weights are needed.

        Returns:
            None if it does, else the reason why not. By default scoring is not supported.
        """
        return "given outputs cannot be scored here"

    def score(
        self, sources: Sources, outputs: Sequence[Sequence[int]], need_alignment: bool = False
    ) -> list[ForcedDecoding]:
        """Score one batch of given outputs (forced decoding).

        Args:
            sources: inputs of the kind that the model reads, or the [position] ids of each source.
            outputs: token ids of one output for each source, including EOS if it is to be scored.
            need_alignment: whether attention weights are needed.

        Returns:
            Log probabilities and attention weights of each output.

        Raises:
            UsageError: this backend does not support scoring.
        """
        raise UsageError(f"{self.name}: {self.supports_scoring(need_alignment)}")


@final
class Stepwise(Backend):
    """Backend that runs our search over an engine, token by token; supports every search."""

    def __init__(
        self,
        name: str,
        make_engine: Callable[[bool], Engine],
        max_length: int,
        has_attention: bool = True,
        single_threaded: Callable[[], AbstractContextManager[None]] = nullcontext,
        make_listed: Callable[[bool], Engine] | None = None,
    ) -> None:
        """Wrap an engine.

        Args:
            make_engine: function that creates the engine; its argument says whether attention weights are needed.
            max_length: maximum number of tokens of an output, EOS included.
            has_attention: whether the model attends to its source.
            single_threaded: function that creates a context manager in which the engine uses one thread.
            make_listed: as `make_engine`, with the vocabulary shortlist of the sources; None = there is none.
        """
        self.has_shortlist = make_listed is not None
        self._make_listed: Final = make_listed
        self.single_threaded: Final = single_threaded
        self.name = name
        self.make_engine: Final = make_engine
        self.max_length: Final = max_length
        self._has_attention: Final = has_attention

    def wrapped(self, wrap: Callable[[Engine], Engine]) -> "Stepwise":
        """Change the engine.

        Args:
            wrap: function that returns the engine to use in the place of another; vocabulary shortlists are not kept.
        """
        return Stepwise(
            self.name,
            lambda with_weights: wrap(self.make_engine(with_weights)),
            self.max_length,
            self._has_attention,
            self.single_threaded,
        )

    def supports(self, config: SearchConfig, need_alignment: bool) -> str | None:
        return self.supports_scoring(need_alignment or config.beta > 0.0)

    def supports_scoring(self, need_alignment: bool) -> str | None:
        return NO_ATTENTION if need_alignment and not self._has_attention else None

    def score(
        self, sources: Sources, outputs: Sequence[Sequence[int]], need_alignment: bool = False
    ) -> list[ForcedDecoding]:
        engine = self.make_engine(need_alignment)
        decodings = score_outputs(engine, sources, outputs, need_alignment)
        rows = [row for row, output in enumerate(outputs) if need_alignment and output]
        inputs = as_inputs(sources).take(np.array(rows, dtype=np.int64)) if rows else None
        posteriors = posteriors_of(engine, inputs, [outputs[row] for row in rows]) if inputs else None
        for row, weights in zip(rows, posteriors or (), strict=False):
            decodings[row] = replace(decodings[row], weights=weights)
        return decodings

    def supports_constraints(self, constraints: Constraints) -> str | None:
        return None

    def decode(
        self,
        sources: Sources,
        config: SearchConfig,
        need_alignment: bool = False,
        cancelled: Callable[[], bool] | None = None,
        constraints: Sequence[Constraints] | None = None,
    ) -> list[list[Hypothesis]]:
        # A phrase may have any token of the vocabulary.
        is_free = constraints is None or all(one.is_free for one in constraints)
        make_engine = self._make_listed if config.shortlist and is_free else None
        engine = (make_engine or self.make_engine)(need_alignment or config.beta > 0.0)
        decoded = search(
            engine,
            sources,
            config,
            max_length=self.max_length,
            need_alignment=need_alignment,
            constraints=constraints,
            cancelled=cancelled,
        )
        return _aligned(engine, sources, decoded) if need_alignment else decoded


def _aligned(engine: Engine, sources: Sources, decoded: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
    """Hypotheses with the posteriors of their alignments, if the engine's alignments are those of whole outputs."""
    rows = [(row, one) for row, hypotheses in enumerate(decoded) for one in hypotheses if one.token_log_probs]
    outputs = [[*one.token_ids, *([EOS] if one.finish_reason == "eos" else [])] for _, one in rows]
    if not rows:
        return decoded
    inputs = as_inputs(sources).take(np.array([row for row, _ in rows], dtype=np.int64))
    if (posteriors := posteriors_of(engine, inputs, outputs)) is None:
        return decoded
    weights = iter(posteriors)
    return [
        [replace(one, weights=next(weights)) if one.token_log_probs else one for one in hypotheses]
        for hypotheses in decoded
    ]


def together(backends: Sequence[Backend]) -> Stepwise:
    """Combine models into an ensemble that averages their probabilities; Sutskever et al. 2014, section 3.6.

    Args:
        backends: one or more backends whose models share source and target vocabularies.

    Returns:
        A backend that runs one step of every model at each step.

    Raises:
        UsageError: a backend does not decode token by token.

    Cost: the sum of the members' costs, and a mean over the vocabulary at each step.
    """
    members: list[Stepwise] = []
    for backend in backends:
        if not isinstance(backend, Stepwise):
            raise UsageError(
                f"{backend.name} searches by itself and gives no scores of single steps: name another engine"
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
    has_attention = all(member.supports_scoring(need_alignment=True) is None for member in members)
    most = min(member.max_length for member in members)
    return Stepwise(names, make_engine, most, has_attention, single_threaded)


def decode_sorted(
    backend: Backend,
    sources: Sources,
    config: SearchConfig,
    *,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    need_alignment: bool = False,
    constraints: Sequence[Constraints] | None = None,
    first_index: int = 0,
    cancelled: Callable[[], bool] | None = None,
) -> list[list[Hypothesis]]:
    """Decode many sources in batches of similar length; results come in the order of the sources.

    Args:
        sources: inputs of the kind that the model reads, or the [position] ids of each source.
        config: beam, penalties and limits.
        batch_tokens: maximum of source positions times hypotheses in a batch, padding included; a batch may always have
            one source.
        need_alignment: whether hypotheses include attention weights.
        constraints: constraints of each source; None = none.
        first_index: index of the first source in the caller's whole input, for sampling. Constraints without an index
            get this number plus their position, so that samples do not depend on batches or windows of the input.
        cancelled: called between steps; once it returns True, what is unfinished is returned as it is.

    Returns:
        Hypotheses of each source, best first; samples in the order in which they were drawn.

    Raises:
        ResourceError: memory does not hold one source. Batches that it does not hold are halved.
        UsageError: the backend does not support the search, or the numbers of constraints and sources differ.
    """
    if reason := backend.supports(config, need_alignment):
        raise UsageError(f"{backend.name}: {reason}")
    inputs = as_inputs(sources)
    indexed = _indexed(constraints, len(inputs), config, first_index)
    if reason := next(filter(None, map(backend.supports_constraints, indexed or ())), None):
        raise UsageError(f"{backend.name}: {reason}")
    lengths = inputs.num_positions
    results: list[list[Hypothesis]] = [[] for _ in lengths]
    # Longest first, so that running out of memory happens at once, not after an hour.
    order = np.argsort(-lengths, kind="stable")

    def decode(batch: NDArray[np.int64]) -> None:
        batch_inputs = inputs.take(batch)
        if indexed is None:
            decoded = backend.decode(batch_inputs, config, need_alignment, cancelled)
        else:
            decoded = backend.decode(batch_inputs, config, need_alignment, cancelled, [indexed[i] for i in batch])
        for index, hypotheses in zip(batch, decoded, strict=True):
            results[index] = hypotheses

    _run_in_batches(decode, backend, order, lengths, batch_tokens // config.width)
    return results


def score_sorted(
    backend: Backend,
    sources: Sources,
    outputs: Sequence[Sequence[int]],
    *,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    need_alignment: bool = False,
) -> list[ForcedDecoding]:
    """Score many given outputs in batches of similar length; results come in the order of the sources.

    Args:
        sources: inputs of the kind that the model reads, or the [position] ids of each source.
        outputs: token ids of one output for each source, including EOS if it is to be scored.
        batch_tokens: maximum number of source positions in a batch, padding included; a batch may always have one
            source.
        need_alignment: whether attention weights are needed.

    Returns:
        Log probabilities and attention weights of each output.

    Raises:
        ResourceError: memory does not hold one source and its output. Batches that it does not hold are halved.
        UsageError: the backend cannot score outputs, or the numbers of outputs and sources differ.
    """
    if reason := backend.supports_scoring(need_alignment):
        raise UsageError(f"{backend.name}: {reason}")
    inputs = as_inputs(sources)
    if len(outputs) != len(inputs):
        raise UsageError(f"{len(outputs)} outputs were given for {len(inputs)} sources; give one each")
    lengths = inputs.num_positions
    # A batch runs as many steps as its longest output, so sources of equal length are sorted by output length.
    order = np.lexsort(-np.array([[len(output) for output in outputs], lengths], dtype=np.int64))
    results: dict[int, ForcedDecoding] = {}

    def score(batch: NDArray[np.int64]) -> None:
        decodings = backend.score(inputs.take(batch), [outputs[i] for i in batch], need_alignment)
        results.update(zip(batch.tolist(), decodings, strict=True))

    _run_in_batches(score, backend, order, lengths, batch_tokens)
    return [results[index] for index in range(len(inputs))]


def _run_in_batches(
    run: Callable[[NDArray[np.int64]], None],
    backend: Backend,
    order: NDArray[np.int64],
    lengths: NDArray[np.int64],
    batch_tokens: int,
) -> None:
    """Run batches of sources in the given order, from now on half as large whenever memory does not hold one.

    Raises:
        ResourceError: memory does not hold one source, or the batches are the backend's own.
    """
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        rows = max(1, batch_tokens // longest)
        batch = order[start:] if backend.has_own_batches else order[start : start + rows]
        try:
            run(batch)
        except Exception as error:  # engines have errors of their own
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1:
                raise ResourceError(
                    f"out of memory: it does not hold one source of {longest:,} positions; shorten it, or choose a "
                    "smaller beam or model"
                ) from error
            if backend.has_own_batches:
                raise
            # The traceback holds what the batch has taken until the handler ends.
            batch_tokens = longest * (len(batch) // 2)
        else:
            start += len(batch)


def _indexed(
    constraints: Sequence[Constraints] | None, num_sources: int, config: SearchConfig, first_index: int
) -> list[Constraints] | None:
    """Constraints with the indices of their sources; None if there are none and the search does not need indices.

    Raises:
        UsageError: the numbers of constraints and sources differ.
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
        replace(one, index=first_index + position) if one.index < 0 else one for position, one in enumerate(constraints)
    ]
