"""Beam search over any engine, for a batch of sources at once; greedy search and sampling are beams of 1.

One step, for each source that is still being searched:

1. Each live hypothesis proposes its `beam` + 1 most probable next tokens. All candidates of a source are ranked by the
   log probability of the hypothesis that they would make; among equal ones the lower hypothesis comes first, then the
   lower token id. Candidates of log probability -inf do not exist. PAD and BOS are never candidates.
2. An EOS among the `beam` best candidates finishes its hypothesis (reason `eos`); an EOS ranked lower is dropped. The
   `beam` best candidates that are not EOS stay alive: a finished hypothesis leaves its slot to the next best candidate.
   A beam of 1 ends as soon as EOS is best.
3. At the source's length limit (`heedful.search.search_state.max_lengths`) the `beam` best candidates all finish, those
   that are not EOS with the reason `length`; no EOS is appended to them.

The search of a source ends at its length limit, when no hypothesis is alive, or (`stopping` = `likely`)

- when `beam` hypotheses have finished and the best of them scores no lower than the best live one would at its present
  length. CTranslate2 stops after the first half of this rule, and so returns a fragment where a model is sure of
  itself: the improbable EOS of each step is then among the best candidates, and `beam` of them finish before the right
  output does;
- where the score is the bare log probability (alpha = beta = length_reward = 0): when the `nbest` most probable
  finished hypotheses are at least as probable as any live one, because no later one can enter the list. The best is
  also the one that CTranslate2 returns.

`stopping` = `full` waits until `beam` hypotheses have finished and the worst of the best `beam` of them scores no lower
than the best live one would at its present length, as in Transformers. `stopping` = `certain` waits until no later
hypothesis can enter the list, whatever the score (`heedful.search.stopping`). Both take more steps.

Length and coverage penalties rank finished hypotheses only; the live hypotheses of a source have one length and are
compared by log probability. So a beam of 1 takes the most probable token at each step; a beam no smaller than the
number of prefixes below the length limit finds the best of all outputs; and `nbest` never changes which hypotheses come
first.

Constraints change the candidates and their order, and none of these rules: forbidden tokens
(`heedful.search.forbidden_tokens`) and prefixes (`heedful.search.constraints`) change the candidates, required phrases
(`heedful.search.beam_allocation`) the candidates and their order, groups (`heedful.search.ranking`) the order. A group
of a beam is searched by these rules as a beam of its own. A sample (`heedful.search.sampling`) is a beam of 1 with one
candidate, drawn at random.

The arithmetic of a source does not depend on the others in its batch: with an engine that has the same property,
results are bit-identical in every batch.
"""

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from heedful.search.beam_state import BeamState, BoolArray
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.greedy import is_greedy, search_greedily
from heedful.search.inputs import Sources
from heedful.search.interface import Engine, Hypothesis, IntArray
from heedful.search.next_tokens import next_tokens
from heedful.search.ranking import rank_candidates
from heedful.search.search_state import SearchState
from heedful.search.stopping import is_certain
from heedful.search.trace import SearchTrace
from heedful.text.vocabulary import BOS


def search(
    engine: Engine,
    sources: Sources,
    config: SearchConfig,
    *,
    max_length: int,
    need_alignment: bool = False,
    prefixes: Sequence[Sequence[int]] | None = None,
    constraints: Sequence[Constraints] | None = None,
    cancelled: Callable[[], bool] | None = None,
    trace: SearchTrace | None = None,
) -> list[list[Hypothesis]]:
    """Find the best outputs of each source, or draw samples; the module's docstring gives the rules.

    Args:
        engine: the model, such as a `TorchEngine`.
        sources: inputs of the kind that the model reads, or the [position] ids of each source.
        config: method, beam, penalties and limits.
        max_length: most tokens that the engine can generate for one output, EOS included; at least 1.
        need_alignment: whether hypotheses carry their attention weights.
        prefixes: tokens each output must begin with, in the order of the sources; empty for none. They count towards
            lengths and scores like any other token. Shorthand for constraints with prefixes alone.
        constraints: prefix, required and banned phrases of each source, and the index by which its samples are drawn.
        cancelled: called before every step; once it returns True the search ends, and a source without a finished
            hypothesis returns its live ones, with the reason `cancelled`. Its exceptions propagate.
        trace: record of every hypothesis, filled during the search; None = no record.

    Returns:
        For each source its hypotheses, best score first: at least 1, at most `config.nbest`. For method `sampling`
        `config.nbest`, in the order of the samples.

    Raises:
        UsageError: `max_length` is below 1, or the constraints do not fit it, the sources, the settings, the vocabulary
            or each other.
        ShapeError: a source is not a flat array.
        NonFiniteError: the engine returned NaN.

    Example:
        >>> from heedful.models.engine import TorchEngine
        >>> from heedful.models.luong import LuongConfig
        >>> model = LuongConfig(num_layers=1, hidden_size=8).build(20, 30, is_shared=False).eval()
        >>> (found,) = search(TorchEngine(model), [np.array([5, 6, 3])], SearchConfig(nbest=2), max_length=4)
        >>> len(found)
        2
    """
    if len(sources) == 0:
        return []
    search_state = SearchState.of(sources, config, max_length, need_alignment, prefixes, constraints)
    if trace is None and is_greedy(search_state):
        search_greedily(engine, search_state, cancelled)
    else:
        _run(engine, search_state, cancelled, trace)
    return search_state.best()


def _run(
    engine: Engine, search_state: SearchState, cancelled: Callable[[], bool] | None, trace: SearchTrace | None
) -> None:
    config = search_state.config
    beam_state = BeamState.start(search_state.num_sources, config)
    state = engine.start(search_state.inputs, config.width)
    tokens, parents, keep = np.full((search_state.num_sources, config.width), BOS, dtype=np.int64), None, None
    for step in count():
        if cancelled is not None and cancelled():
            search_state.give_up(beam_state, np.arange(beam_state.sources.size), "cancelled")
            if trace is not None:
                trace.close(beam_state, np.arange(beam_state.sources.size), "cancelled")
            return
        scores, state = engine.step(state, tokens, parents, keep)
        if step == 0:
            search_state.check_vocabulary(scores)
        search_state.remember_weights(scores)
        is_last = step + 1 >= search_state.max_lengths[beam_state.sources]
        candidates = rank_candidates(
            next_tokens(scores, beam_state, search_state, step), beam_state, search_state, step
        )
        stuck = np.flatnonzero(~candidates.exist[:, 0])
        search_state.give_up(beam_state, stuck, "stuck")
        search_state.finish(beam_state, candidates, is_last)
        if trace is not None:
            trace.close(beam_state, stuck, "stuck")
            weights = search_state.weights_steps[-1] if search_state.weights_steps else None
            trace.record(step, beam_state, candidates, is_last, weights)
        beam_state, parents, done = beam_state.advance(candidates, is_last, config)
        if config.stopping == "certain":
            done |= is_certain(
                beam_state, search_state.worst_of_best(beam_state), search_state.max_lengths[beam_state.sources], config
            )
        if trace is not None:
            trace.close(beam_state, np.flatnonzero(done), "stopped")
        # A row that is done before the others of its source stays in the batch, without hypotheses.
        beam_state.log_probs[done] = -np.inf
        beam_state, parents, keep = _kept(beam_state, parents, done, config)
        if keep is not None and not keep.size:
            return
        tokens = beam_state.token_ids[:, :, -1].reshape(-1, config.width)


def _kept(
    beam_state: BeamState, parents: IntArray, done: BoolArray, config: SearchConfig
) -> tuple[BeamState, IntArray | None, IntArray | None]:
    """Drop the sources whose rows are all done, and convert parents from rows to the engine's numbering.

    Returns:
        The hypotheses that stay; [source, hypothesis] their parents, None where each continues itself; [kept] the
        sources that stay, None for all.
    """
    size = config.row_size
    stays = ~done.reshape(-1, config.num_rows).all(axis=1)
    keep = None
    if not stays.all():
        keep = np.flatnonzero(stays)
        rows = np.flatnonzero(np.repeat(stays, config.num_rows))
        beam_state, parents = beam_state.select(rows), parents[rows]
    # The hypotheses of a row lie beside each other among those of its source.
    placed = (
        parents if config.num_rows == 1 else (parents + beam_state.groups[:, None] * size).reshape(-1, config.width)
    )
    # None saves the engine a copy of its state; greedy search always gives None.
    return beam_state, None if (placed == np.arange(config.width)).all() else placed, keep
