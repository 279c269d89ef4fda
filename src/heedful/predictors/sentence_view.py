"""View of one sentence: its translation with everything that the page shows of it."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.config.base import validate
from heedful.engines.engine import Backend, Stepwise
from heedful.engines.onnx_layers import LAYERS, OnnxLayers
from heedful.errors import HeedfulError, MissingExtra, UsageError, needed_for
from heedful.pages.sentence import MeasureName, NextToken, Output, SentenceView, TracedSearch, WeightMap
from heedful.pages.words import Words
from heedful.predictors.translation import decoded_texts
from heedful.predictors.translator import Translator
from heedful.search.beam import search
from heedful.search.choices import token_choices
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.inputs import as_inputs
from heedful.search.interface import Hypothesis
from heedful.search.trace import SearchTrace
from heedful.text.encoding import encode_source
from heedful.text.tokenizer import Tokenizer
from heedful.text.vocabulary import EOS

NUM_OUTPUTS: Final = 5
"""Number of alternatives of the whole output."""
NUM_CHOICES: Final = 6
"""Number of alternatives of a token."""
MOST_CONTINUED: Final = 40
"""Longest output, in pieces, whose alternatives are all continued in advance."""


@final
@dataclass(frozen=True)
class ViewRequest:
    """Parts of the view that are wanted.

    Example:
        >>> ViewRequest("Guten Tag", traced_beams=(1, 5)).measure
        'attention'
    """

    text: str
    prefix: tuple[int, ...] = ()
    """Tokens that the output begins with."""
    beam: int = 0
    """Number of hypotheses; 0 = the model's default, at least `NUM_OUTPUTS`."""
    alpha: float | None = None
    """Exponent of the length penalty; None = the model's own."""
    has_layers: bool = True
    is_offline: bool = False
    """Whether the page has no server to ask: alternatives of tokens are continued to whole outputs, and maps of every
    measure are computed."""
    traced_beams: tuple[int, ...] = ()
    """Beams whose searches are recorded."""
    changes: tuple[Mapping[str, Any], ...] = ()
    """Changes of attention, fields of `heedful.inspection.override.AttentionChange`; they need PyTorch."""
    reference: str = ""
    """Translation whose departure from the beam is shown."""
    cancelled: Callable[[], bool] | None = None
    """Function called before every step of a search, which ends once it returns True."""
    measure: MeasureName = "attention"
    """Measure of the influence of positions that the maps show."""


@final
@dataclass(frozen=True)
class _Layers:
    """Maps of every layer and head by one measure."""

    maps: tuple[WeightMap, ...] = ()
    measure: MeasureName = "attention"
    measures: tuple[str, ...] = ()
    """Measures that are defined for the model."""
    others: Mapping[str, tuple[WeightMap, ...]] = field(default_factory=dict[str, tuple[WeightMap, ...]])
    """Maps by the other measures, for a page without a server."""
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parts that cannot be given, each with the reason."""


@final
class SentenceViewer:
    """Maker of views with one model.

    Example:
        >>> viewer = SentenceViewer(heedful.load("de-en.model"))  # doctest: +SKIP
        >>> viewer.view(ViewRequest("Guten Tag", has_layers=False)).outputs[0].text  # doctest: +SKIP
        'Good day'
    """

    def __init__(self, translator: Translator) -> None:
        self.translator: Final = translator
        self._source: Final[Tokenizer] = translator.source_tokenizer
        self._target: Final[Tokenizer] = translator.target_tokenizer
        self._layers_graph: OnnxLayers | None = None
        self._cancelled: Callable[[], bool] | None = None

    def view(self, request: ViewRequest) -> SentenceView:
        """Translate a text and collect what the page shows.

        Returns:
            The view. Parts that this engine cannot give are named in `missing`.

        Raises:
            UsageError: the engine searches by itself, so that nothing can be shown.

        Cost: one search for each traced beam, one forward pass for the layers, and with `is_offline` one search for
            each alternative of each token and the cost of every measure.
        """
        translator = self.translator
        self._cancelled = request.cancelled
        ids, was_cut = encode_source(self._source, request.text, translator.text)
        config = self.search_config(request)
        backend = self._changed(request.changes) if request.changes else self._backend(config)
        engine_name = backend.name
        missing: dict[str, str] = {}
        outputs: list[Output] = []
        searches: list[TracedSearch] = []
        layers = _Layers()
        if len(ids) > 1:
            has_attention = backend.supports_scoring(need_alignment=True) is None
            if not has_attention:
                missing["attention"] = "heedful train PAIRS --preset small"
            hypotheses = self._search(backend, ids, config, [request.prefix], has_attention)[0]
            outputs = [self.output(one, len(request.prefix)) for one in hypotheses]
            choices = self._choices(backend, ids, outputs[0], config, has_attention, request.is_offline)
            outputs[0] = replace(outputs[0], choices=choices)
            searches = [
                self._traced(backend, ids, config, beam, request, has_attention) for beam in request.traced_beams
            ]
            if request.has_layers and has_attention:
                layers = self._layers(ids, outputs[0], request)
                missing |= layers.missing
        facts = translator.folder.facts
        source, target = facts.get("languages", ("", ""))
        return SentenceView(
            model=translator.folder.path.name,
            kind=str(facts.get("kind", "")),
            languages=(str(source), str(target)),
            engine=engine_name,
            text=request.text,
            source_ids=tuple(ids.tolist()),
            source=_words(self._source, ids.tolist()),
            was_cut=was_cut,
            outputs=tuple(outputs),
            maps=layers.maps,
            measure=layers.measure,
            measures=layers.measures,
            other_maps=layers.others,
            searches=tuple(searches),
            reference=request.reference,
            length_penalty=config.length_penalty,
            alpha=config.alpha,
            missing=missing,
        )

    def search_config(self, request: ViewRequest) -> SearchConfig:
        """Return the settings of the view's search.

        Args:
            request: beam and length penalty.

        Returns:
            Settings that return as many outputs as the beam is wide, at most `NUM_OUTPUTS`.
        """
        base = self.translator.search
        beam = request.beam or max(base.beam, NUM_OUTPUTS)
        changes = {"method": "beam", "beam": beam, "nbest": min(beam, NUM_OUTPUTS), "num_groups": 1, "diversity": 0.0}
        if request.alpha is not None:
            changes["alpha"] = request.alpha
        plain = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
        return SearchConfig.model_validate(base.model_dump() | plain | changes)

    def output(self, hypothesis: Hypothesis, num_forced: int = 0) -> Output:
        """Convert a hypothesis for the page.

        Args:
            hypothesis: output of a search with the model.
            num_forced: number of its tokens that were prescribed.
        """
        ended = (EOS,) if hypothesis.finish_reason == "eos" else ()
        ids = (*hypothesis.token_ids, *ended)
        return Output(
            text=decoded_texts(self._target, [hypothesis])[0],
            ids=ids,
            words=_words(self._target, ids),
            token_log_probs=hypothesis.token_log_probs,
            log_prob=hypothesis.log_prob,
            score=hypothesis.score,
            weights=hypothesis.weights,
            num_forced=num_forced,
        )

    def _backend(self, config: SearchConfig) -> Stepwise:
        """Backend that searches token by token.

        Raises:
            UsageError: the named engine searches by itself.
        """
        backends, constraints = self.translator.backends, Constraints(prefix=(4,))
        try:
            backend: Backend = backends.searching(config, attention=True, constraints=constraints)
        except MissingExtra:  # PyTorch, where no other engine gives attention
            backend = backends.searching(config, attention=False, constraints=constraints)
        if not isinstance(backend, Stepwise):
            raise UsageError(
                f"{backend.name} searches by itself and shows no single step; use --engine torch, or export to onnx"
            )
        return backend

    def _search(
        self,
        backend: Stepwise,
        ids: NDArray[np.int64],
        config: SearchConfig,
        prefixes: Sequence[Sequence[int]],
        has_attention: bool,
        trace: SearchTrace | None = None,
    ) -> list[list[Hypothesis]]:
        return search(
            backend.make_engine(has_attention),
            [ids] * len(prefixes),
            config,
            max_length=backend.max_length,
            need_alignment=has_attention,
            prefixes=prefixes,
            trace=trace,
            cancelled=self._cancelled,
        )

    def _choices(
        self,
        backend: Stepwise,
        ids: NDArray[np.int64],
        output: Output,
        config: SearchConfig,
        has_attention: bool,
        is_offline: bool,
    ) -> tuple[tuple[NextToken, ...], ...]:
        if not output.ids:
            return ()
        candidates = token_choices(backend.make_engine(False), [ids], output.ids, NUM_CHOICES)
        steps = [
            [
                NextToken(int(token), self._target.pieces([int(token)])[0], float(log_prob))
                for token, log_prob in zip(tokens, log_probs, strict=True)
            ]
            for tokens, log_probs in zip(candidates.ids, candidates.log_probs, strict=True)
        ]
        if not is_offline or len(output.ids) > MOST_CONTINUED:
            return tuple(map(tuple, steps))
        starts = self.word_starts(output)
        wanted = [
            (step, rank)
            for step in starts
            for rank, choice in enumerate(steps[step])
            if choice.token not in (output.ids[step], EOS)
        ]
        prefixes = [(*output.ids[:step], steps[step][rank].token) for step, rank in wanted]
        narrow = config.model_copy(update={"nbest": 1})
        for start in range(0, len(prefixes), 16):
            batch = prefixes[start : start + 16]
            outputs = self._search(backend, ids, narrow, batch, has_attention)
            for (step, rank), prefix, hypotheses in zip(wanted[start:], batch, outputs, strict=False):
                continued = self.output(hypotheses[0], len(prefix))
                steps[step][rank] = replace(steps[step][rank], output=continued)
        return tuple(map(tuple, steps))

    @staticmethod
    def word_starts(output: Output) -> list[int]:
        """List the steps at which a word begins."""
        words = (-1, *output.words.word_of)
        return [step for step, (before, word) in enumerate(pairwise(words)) if word != before]

    def _traced(
        self,
        backend: Stepwise,
        ids: NDArray[np.int64],
        config: SearchConfig,
        beam: int,
        request: ViewRequest,
        has_attention: bool,
    ) -> TracedSearch:
        trace = SearchTrace()
        wide = config.model_copy(update={"beam": beam, "nbest": min(beam, NUM_OUTPUTS)})
        self._search(backend, ids, wide, [request.prefix], has_attention, trace)
        tokens = {node.token for node in trace.nodes}
        pieces = {
            token: Words.of([token], [piece]).pieces[0]
            for token, piece in zip(tokens, self._target.pieces(list(tokens)), strict=True)
        }
        paths = [trace.path(index) for index in range(len(trace.nodes))]
        texts = tuple(self._target.decode([trace.nodes[node].token for node in path]) for path in paths)
        departure = None
        if request.reference:
            departure = trace.departure([*self._target.encode(request.reference), EOS])
        return TracedSearch(beam, trace, pieces, texts, departure)

    def _changed(self, changes: Sequence[Mapping[str, Any]]) -> Stepwise:
        """Backend with changed attention, in PyTorch."""
        with needed_for("changing attention"):
            from heedful.inspection.override import AttentionChange, changed_backend
        checked = [validate(AttentionChange, change, "changes") for change in changes]
        return changed_backend(self.translator.model(), checked, self.translator.text.max_tokens)

    def _layers(self, ids: NDArray[np.int64], output: Output, request: ViewRequest) -> _Layers:
        """Weights of each layer and head, or shares by another measure: in PyTorch where it is installed."""
        try:
            with needed_for("the attention of each layer and head"):
                from heedful.inspection.measures.table import MEASURES, measured_layers, why_not
                from heedful.inspection.override import AttentionChange, changed_attention
            model = self.translator.model()
            measure, reason = request.measure, why_not(model, request.measure)
            if request.changes and measure != "attention":
                reason = f"{measure} is not computed for changed attention; undo the changes, or choose attention"
            if reason:
                measure = "attention"
            checked = [validate(AttentionChange, change, "changes") for change in request.changes]
            names = tuple(name for name in MEASURES if not why_not(model, name))
            wanted = {measure, *(names if request.is_offline and not request.changes else ())}
            with changed_attention(model, checked):
                maps = {
                    name: tuple(
                        # After a change, all trees may be alike.
                        WeightMap(one.role, one.layer, one.weights, one.has_root, None if checked else one.tree)
                        for one in measured_layers(model, as_inputs([ids]), output.ids, name)
                    )
                    for name in sorted(wanted)
                }
        except HeedfulError as error:
            return self._without_torch(ids, output, request, str(error))
        return _Layers(maps.pop(measure), measure, names, maps, {"measure": reason} if reason else {})

    def _without_torch(self, ids: NDArray[np.int64], output: Output, request: ViewRequest, reason: str) -> _Layers:
        """Weights of each layer and head from an engine, where PyTorch cannot give them."""
        missing = {} if request.measure == "attention" else {"measure": reason}
        folder = self.translator.folder
        if not request.changes:
            try:
                if layers := self._exported_layers():
                    computed = layers.weights(as_inputs([ids]), output.ids)
                    maps = tuple(WeightMap(role, layer, weights) for (role, layer), weights in computed.items())
                    return _Layers(maps, missing=missing)
            except HeedfulError as error:
                reason = str(error)
            if output.weights is not None and folder.facts.get("kind") != "transformer":
                # Every engine reports the attention of an RNN's decoder while it generates, and no other.
                missing |= {"heads": reason} if self.translator.has_heads else {}
                return _Layers((WeightMap("cross", 0, output.weights[None]),), missing=missing)
        command = f"heedful export {shlex.quote(folder.path.name)} --to onnx --layers"
        return _Layers(missing={"layers": f"{reason}; or: {command}"})

    def _exported_layers(self) -> OnnxLayers | None:
        """Graph of the attention of every layer, if this engine was exported with it."""
        engine = self.translator.backends.engine
        exported = self.translator.backends.exported.get("onnx")
        if engine not in ("auto", "onnx") or exported is None or exported.fault or not exported.parity.is_exact:
            return None
        if self._layers_graph is None and (path := exported.path / LAYERS).is_file():
            self._layers_graph = OnnxLayers(path)
        return self._layers_graph


def _words(tokenizer: Tokenizer, ids: Sequence[int]) -> Words:
    """Words of tokens; each token is one where the tokenizer says so."""
    inner = [token for token in ids if token != EOS]
    return Words.of(ids, tokenizer.pieces(ids), tokenizer.word_indices(inner) == [*range(len(inner))])
