"""Beam search over any engine, for a batch of sources at once; greedy search is a beam of 1.

One step, for each source that is still searched:

1. Each live hypothesis offers its `beam` + 1 most probable next tokens. All offers of a source are ranked by the log
   probability of the hypothesis they would make; of equal ones the lower hypothesis, then the lower id, comes first.
   Offers of log probability -inf do not exist. PAD and BOS are never offered.
2. Those among the best `beam` offers that are EOS end as finished hypotheses (`eos`); an EOS ranked below is dropped.
   The best `beam` offers that are not EOS live on: an ended hypothesis frees its place for the next best offer.
3. At the source's cap (`heedful.search.task.caps`) all of the best `beam` offers end instead, those that are not EOS
   with reason `length`; no EOS is added to them.

A source is done at its cap, or when nothing lives on, or

- when `beam` hypotheses have finished and the best of them scores no lower than the best live one does at the length it
  has now. CTranslate2 stops at the first half of this rule, and so returns a fragment where a model is sure of itself:
  each step's improbable end mark is then among the best offers, and `beam` of them finish before the right output does;
- where the score is the bare log probability (alpha = beta = 0): when the `nbest` most probable finished ones are at
  least as probable as any live one, for then nothing found later can enter the list. The best is CTranslate2's too.

Penalties rank finished hypotheses only; the live ones of a source all have one length, and are compared by log
probability. So with beam 1 each step takes the most probable token; with a beam no smaller than the number of
prefixes below the cap, the best of all outputs is found; and `nbest` never changes which hypotheses come first.

A source's arithmetic does not depend on its neighbours: if an engine's does not either, no batch changes a bit.
"""

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from heedful.errors import NonFiniteError, UsageError
from heedful.search.config import SearchConfig
from heedful.search.interface import Engine, FloatArray, Hypothesis, IntArray, StepScores
from heedful.search.live import Live
from heedful.search.task import Task
from heedful.text.vocabulary import BOS


def search(
    engine: Engine,
    source_ids: Sequence[IntArray],
    config: SearchConfig,
    *,
    max_length: int,
    need_alignment: bool = False,
    prefixes: Sequence[Sequence[int]] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> list[list[Hypothesis]]:
    """Find the best outputs for each source; the module's docstring gives the rules.

    Args:
        engine: the model.
        source_ids: the sources, each [position] ids ending in EOS; an empty one counts as EOS alone.
        config: beam, penalties and limits.
        max_length: most tokens the engine can generate for one output, end mark included; at least 1.
        need_alignment: whether hypotheses carry their attention weights.
        prefixes: tokens each output must begin with, in the order of the sources; empty for none. They count towards
            lengths and scores like any other token.
        cancelled: asked before every step; once it says True the search ends, and a source that has no finished
            hypothesis yet returns its live ones, with reason `cancelled`.

    Returns:
        For each source its hypotheses, best score first: at least 1, at most `config.nbest`.

    Raises:
        UsageError: `max_length` is below 1, or the prefixes fit not it, or not the sources or the vocabulary.
        ShapeError: a source is not a flat array.
        NonFiniteError: the engine gave NaN.
    """
    if len(source_ids) == 0:
        return []
    task = Task.of(source_ids, config, max_length, need_alignment, prefixes)
    _run(engine, task, cancelled)
    return task.best()


def _run(engine: Engine, task: Task, cancelled: Callable[[], bool] | None) -> None:
    beam = task.config.beam
    live = Live.start(len(task.finished), task.config)
    state = engine.start(task.source, task.source_lengths, beam)
    tokens, parents, keep = np.full((len(task.finished), beam), BOS, dtype=np.int64), None, None
    for step in count():
        if cancelled is not None and cancelled():
            task.give_up(live, np.arange(live.sources.size), "cancelled")
            return
        scores, state = engine.step(state, tokens, parents, keep)
        task.remember_weights(scores)
        offers = live.rank(*_offered(scores, live, task, step))
        is_last = step + 1 >= task.caps[live.sources]
        task.give_up(live, np.flatnonzero(~offers.exist[:, 0]), "stuck")
        task.finish(live, offers, is_last)
        live, parents, done = live.advance(offers, is_last, task.config)
        if done.all():
            return
        keep = None
        if done.any():
            keep = np.flatnonzero(~done)
            live, parents = live.select(keep), parents[keep]
        tokens = live.token_ids[:, :, -1]
        if (parents == np.arange(beam)).all():
            parents = None  # spares the engine a copy of its state, always so in greedy search


def _offered(scores: StepScores, live: Live, task: Task, step: int) -> tuple[FloatArray, IntArray]:
    """The [row, hypothesis, k] log probabilities and ids that may follow.

    Raises:
        NonFiniteError: one of a live hypothesis is NaN.
    """
    beam = task.config.beam
    # No hypothesis can place more than `beam` tokens and one EOS. In greedy search an EOS that comes first ends all.
    log_probs, ids = scores.top(beam + 1 if beam > 1 else 1, task.adjust(step))
    forced = task.forced(live, step)
    if (forced >= 0).any():
        log_probs, ids = _force(scores, log_probs, ids, forced)
    broken = (np.isnan(log_probs) & (live.log_probs > -np.inf)[:, :, None]).any(axis=(1, 2))
    if broken.any():
        place = live.sources[broken.argmax()]
        raise NonFiniteError(
            f"source {place}, step {step}: a log probability is NaN; the model's weights are broken "
            "or its arithmetic overflowed"
        )
    return log_probs, ids


def _force(scores: StepScores, log_probs: FloatArray, ids: IntArray, forced: IntArray) -> tuple[FloatArray, IntArray]:
    """Leave hypothesis 0, the only live one within a prefix, nothing but the prefix's token.

    Raises:
        UsageError: the token is not in the vocabulary.
    """
    full = scores.full()
    if forced.max() >= full.shape[-1]:
        raise UsageError(f"prefixes: token {forced.max()} is not in the vocabulary of {full.shape[-1]}")
    rows = np.flatnonzero(forced >= 0)
    log_probs, ids = log_probs.copy(), ids.copy()
    log_probs[rows] = -np.inf
    log_probs[rows, 0, 0] = full[rows, 0, forced[rows]]
    ids[rows, 0, 0] = forced[rows]
    return log_probs, ids
