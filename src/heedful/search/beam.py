"""Beam search over any engine, for a batch of sources at once; greedy search is a beam of 1, and so is a sample.

One step, for each source that is still searched:

1. Each live hypothesis offers its `beam` + 1 most probable next tokens. All offers of a source are ranked by the log
   probability of the hypothesis they would make; of equal ones the lower hypothesis, then the lower id, comes first.
   Candidates of log probability -inf do not exist. PAD and BOS are never offered.
2. Those among the best `beam` offers that are EOS end as finished hypotheses (`eos`); an EOS ranked below is dropped.
   The best `beam` offers that are not EOS live on: an ended hypothesis frees its place for the next best offer. A beam
   of 1 has no next best: it ends where EOS is best.
3. At the source's cap (`heedful.search.search_state.max_lengths`) all of the best `beam` offers end instead, those that
   are not EOS with reason `length`; no EOS is added to them.

A source is done at its cap, or when nothing lives on, or (`stopping` = `likely`)

- when `beam` hypotheses have finished and the best of them scores no lower than the best live one does at the length it
  has now. CTranslate2 stops at the first half of this rule, and so returns a fragment where a model is sure of itself:
  each step's improbable end mark is then among the best offers, and `beam` of them finish before the right output does;
- where the score is the bare log probability (alpha = beta = length_reward = 0): when the `nbest` most probable
  finished ones are at least as probable as any live one, for then nothing found later can enter the list. The best is
  CTranslate2's too.

`stopping` = `certain` waits until nothing found later can enter the list, whatever the score
(`heedful.search.stopping`); it takes more steps.

Penalties of length and coverage rank finished hypotheses only; the live ones of a source all have one length, and are
compared by log probability. So with beam 1 each step takes the most probable token; with a beam no smaller than the
number of prefixes below the cap, the best of all outputs is found; and `nbest` never changes which hypotheses come
first.

What else is asked changes the offers and their order, and nothing in these rules: bans
(`heedful.search.forbidden_tokens`) and prefixes (`heedful.search.constraints`) what is offered, required phrases
(`heedful.search.beam_allocation`) what is offered and in which order, groups (`heedful.search.ranking`) the order. A group of a beam is searched by these rules as if it were
a beam of its own. A sample (`heedful.search.sampling`) is a beam of 1 that is offered one token, drawn at random.

A source's arithmetic does not depend on its neighbours: if an engine's does not either, no batch changes a bit.
"""

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from heedful.search.beam_state import BeamState, BoolArray
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.inputs import Sources
from heedful.search.interface import Engine, Hypothesis, IntArray
from heedful.search.next_tokens import next_tokens
from heedful.search.ranking import rank_candidates
from heedful.search.search_state import SearchState
from heedful.search.stopping import is_certain
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
) -> list[list[Hypothesis]]:
    """Find the best outputs for each source, or draw some; the module's docstring gives the rules.

    Args:
        engine: the model.
        sources: inputs of the kind that the model reads, or the [position] ids of each source.
        config: method, beam, penalties and limits.
        max_length: most tokens the engine can generate for one output, end mark included; at least 1.
        need_alignment: whether hypotheses carry their attention weights.
        prefixes: tokens each output must begin with, in the order of the sources; empty for none. They count towards
            lengths and scores like any other token. Short for constraints that ask for nothing else.
        constraints: what each source asks of its outputs: a prefix, required and banned phrases, and by which number
            its samples are drawn.
        cancelled: asked before every step; once it says True the search ends, and a source that has no finished
            hypothesis yet returns its live ones, with reason `cancelled`. What it raises passes through.

    Returns:
        For each source its hypotheses, best score first: at least 1, at most `config.nbest`. For method `sampling`
        `config.nbest`, in the order of the samples.

    Raises:
        UsageError: `max_length` is below 1, or the constraints fit not it, or not the sources, the settings,
            the vocabulary or each other.
        ShapeError: a source is not a flat array.
        NonFiniteError: the engine gave NaN.
    """
    if len(sources) == 0:
        return []
    search_state = SearchState.of(sources, config, max_length, need_alignment, prefixes, constraints)
    _run(engine, search_state, cancelled)
    return search_state.best()


def _run(engine: Engine, search_state: SearchState, cancelled: Callable[[], bool] | None) -> None:
    config = search_state.config
    beam_state = BeamState.start(search_state.num_sources, config)
    state = engine.start(search_state.inputs, config.width)
    tokens, parents, keep = np.full((search_state.num_sources, config.width), BOS, dtype=np.int64), None, None
    for step in count():
        if cancelled is not None and cancelled():
            search_state.give_up(beam_state, np.arange(beam_state.sources.size), "cancelled")
            return
        scores, state = engine.step(state, tokens, parents, keep)
        if step == 0:
            search_state.check_vocabulary(scores)
        search_state.remember_weights(scores)
        is_last = step + 1 >= search_state.max_lengths[beam_state.sources]
        candidates = rank_candidates(
            next_tokens(scores, beam_state, search_state, step), beam_state, search_state, step
        )
        search_state.give_up(beam_state, np.flatnonzero(~candidates.exist[:, 0]), "stuck")
        search_state.finish(beam_state, candidates, is_last)
        beam_state, parents, done = beam_state.advance(candidates, is_last, config)
        if config.stopping == "certain":
            done |= is_certain(
                beam_state, search_state.worst_of_best(beam_state), search_state.max_lengths[beam_state.sources], config
            )
        # A row that is done before others of its source stays, without hypotheses.
        beam_state.log_probs[done] = -np.inf
        beam_state, parents, keep = _kept(beam_state, parents, done, config)
        if keep is not None and not keep.size:
            return
        tokens = beam_state.token_ids[:, :, -1].reshape(-1, config.width)


def _kept(
    beam_state: BeamState, parents: IntArray, done: BoolArray, config: SearchConfig
) -> tuple[BeamState, IntArray | None, IntArray | None]:
    """Let the sources leave whose rows are all done, and turn rows into what the engine counts by.

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
    # None spares the engine a copy of its state, always so in greedy search.
    return beam_state, None if (placed == np.arange(config.width)).all() else placed, keep
