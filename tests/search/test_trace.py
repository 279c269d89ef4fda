"""A trace names every hypothesis that the search could choose from, and tracing changes no result."""

from typing import Literal

import numpy as np
import pytest

from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.trace import ROOT, SearchTrace
from heedful.text.vocabulary import EOS
from tests.search.engines import Toy

SOURCES = [np.array(ids, dtype=np.int64) for ids in ([5, 6, EOS], [4, EOS], [6, 4, 5, 5, EOS])]


def traced(config: SearchConfig, sources: list[np.ndarray] = SOURCES, seed: int = 1):
    trace = SearchTrace()
    engine = Toy(seed=seed, vocab_size=12)
    found = search(engine, sources, config, max_length=8, trace=trace, need_alignment=True)
    return trace, found, search(engine, sources, config, max_length=8, need_alignment=True)


@pytest.mark.parametrize("stopping", ["likely", "full", "certain"])
@pytest.mark.parametrize("beam", [1, 2, 4])
def test_finished_hypotheses_of_the_trace_are_those_of_the_search(
    beam: int, stopping: Literal["likely", "full", "certain"]
):
    config = SearchConfig(beam=beam, nbest=beam, stopping=stopping, max_length_offset=4)
    trace, found, untraced = traced(config)
    assert found == untraced
    for source, hypotheses in enumerate(found):
        outputs = {
            tuple(trace.nodes[node].token for node in trace.path(index)): one.log_prob
            for index, one in enumerate(trace.nodes)
            if one.source == source and one.fate in ("eos", "length")
        }
        for hypothesis in hypotheses:
            ended = (EOS,) if hypothesis.finish_reason == "eos" else ()
            assert outputs[(*hypothesis.token_ids, *ended)] == pytest.approx(hypothesis.log_prob)


def test_each_step_keeps_at_most_a_beam_and_drops_only_less_probable_ones():
    trace, _, _ = traced(SearchConfig(beam=3, nbest=1, max_length_offset=4))
    for source in range(3):
        for step in range(8):
            nodes = [one for one in trace.nodes if (one.source, one.step) == (source, step)]
            alive = [one.log_prob for one in nodes if one.fate in ("live", "stopped")]
            dropped = [one.log_prob for one in nodes if one.fate == "rank"]
            assert len(alive) <= 3
            assert not alive or not dropped or min(alive) >= max(dropped)
            assert [one.rank for one in nodes] == list(range(len(nodes)))


def test_log_probabilities_and_attention_add_up_along_a_path():
    trace, found, _ = traced(SearchConfig(beam=3, nbest=3, max_length_offset=4), SOURCES[:1])
    for index, node in enumerate(trace.nodes):
        path = trace.path(index)
        assert trace.nodes[path[0]].parent == ROOT
        assert [trace.nodes[each].step for each in path] == list(range(len(path)))
        assert sum(trace.nodes[each].token_log_prob for each in path) == pytest.approx(node.log_prob)
    best = found[0][0]
    (leaf,) = (
        index
        for index, node in enumerate(trace.nodes)
        if node.fate in ("eos", "length") and node.log_prob == pytest.approx(best.log_prob, abs=1e-12)
    )
    rows = np.stack([trace.nodes[each].weights for each in trace.path(leaf)])  # type: ignore[arg-type]
    np.testing.assert_array_equal(rows[:, : best.weights.shape[1]], best.weights)  # type: ignore[union-attr]


def test_the_departure_of_an_output_is_its_first_token_outside_the_beam():
    trace, found, _ = traced(SearchConfig(beam=2, nbest=2, max_length_offset=4), SOURCES[:1])
    best = found[0][0]
    whole = [*best.token_ids, *([EOS] if best.finish_reason == "eos" else [])]
    assert trace.departure(whole) == -1
    dropped = next(index for index, node in enumerate(trace.nodes) if node.fate == "rank" and node.step > 0)
    tokens = [trace.nodes[each].token for each in trace.path(dropped)]
    assert trace.departure([*tokens, EOS]) == len(tokens) - 1
    assert trace.departure([0]) == 0


def test_hypotheses_of_a_cancelled_search_are_marked():
    trace, calls = SearchTrace(), iter([False, False, True])
    search(
        Toy(seed=1, vocab_size=12),
        SOURCES[:1],
        SearchConfig(beam=2),
        max_length=8,
        trace=trace,
        cancelled=lambda: next(calls),
    )
    assert {node.fate for node in trace.nodes if node.step == 1} <= {"cancelled", "rank", "eos", "late_eos"}
    assert any(node.fate == "cancelled" for node in trace.nodes)
