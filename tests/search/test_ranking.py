from collections.abc import Sequence

import numpy as np
import pytest

from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.text.vocabulary import EOS
from tests.search.engines import Tokens, Toy, never_ends

SOURCES: list[Tokens] = [(5, 6, EOS), (4, EOS), (6, 4, 5, 5, EOS)]


def arrays(sources: Sequence[Tokens]) -> list[np.ndarray]:
    return [np.array(source, dtype=np.int64) for source in sources]


def test_the_first_group_searches_as_a_beam_of_its_size_alone() -> None:
    for seed in range(10):
        engine = Toy(seed=seed, vocab_size=12)
        alone = search(engine, arrays(SOURCES), SearchConfig(beam=2, max_length_offset=4), max_length=20)
        grouped = SearchConfig(beam=6, num_groups=3, diversity=2.0, max_length_offset=4)
        found = search(engine, arrays(SOURCES), grouped, max_length=20)
        for (one,), (own,) in zip(found, alone, strict=True):
            assert one.score >= own.score


def test_groups_that_may_not_agree_take_different_tokens_at_every_step() -> None:
    chosen = SearchConfig(beam=3, nbest=3, num_groups=3, diversity=500.0, max_length_ratio=0.0, max_length_offset=4)
    engine = Toy(vocab_size=12, edit=never_ends)
    for hypotheses in search(engine, arrays(SOURCES), chosen, max_length=20):
        assert len(hypotheses) == 3
        for taken in zip(*(one.token_ids for one in hypotheses), strict=True):
            assert len(set(taken)) == 3


def test_more_diversity_shares_fewer_tokens() -> None:
    def shared(diversity: float) -> float:
        chosen = SearchConfig(
            beam=6, nbest=6, num_groups=6, diversity=diversity, max_length_ratio=0.0, max_length_offset=6
        )
        shares = []
        for seed in range(6):
            engine = Toy(vocab_size=20, edit=never_ends, seed=seed)
            for hypotheses in search(engine, arrays(SOURCES), chosen, max_length=20):
                for taken in zip(*(one.token_ids for one in hypotheses), strict=True):
                    shares.append(1 - (len(set(taken)) - 1) / 5)
        return float(np.mean(shares))

    shares = [shared(diversity) for diversity in (0.01, 1.0, 900.0)]
    assert shares[0] > shares[1] > shares[2] == 0


def test_diversity_leaves_no_trace_in_scores() -> None:
    engine = Toy(vocab_size=12)
    chosen = SearchConfig(beam=4, nbest=4, num_groups=2, diversity=3.0, max_length_offset=4, alpha=0.5)
    for source, hypotheses in zip(SOURCES, search(engine, arrays(SOURCES), chosen, max_length=20), strict=True):
        scores = [one.score for one in hypotheses]
        assert scores == sorted(scores, reverse=True)
        for one in hypotheses:
            forced = engine.rescore(source, one)
            assert list(one.token_log_probs) == forced
            assert one.score == pytest.approx(sum(forced) / len(forced) ** 0.5, rel=1e-13)


def test_what_two_groups_find_is_returned_once() -> None:
    def only(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[np.arange(logits.size) != (EOS if len(prefix) == 2 else 5)] = -np.inf

    chosen = SearchConfig(beam=4, nbest=4, num_groups=2, diversity=1.0)
    for hypotheses in search(Toy(edit=only), arrays(SOURCES), chosen, max_length=20):
        assert [one.token_ids for one in hypotheses] == [(5, 5)]


def test_the_end_is_no_token_to_differ_in() -> None:
    def short(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[EOS] = 6.0 if len(prefix) == 2 else -np.inf

    chosen = SearchConfig(beam=3, nbest=3, num_groups=3, diversity=900.0)
    for hypotheses in search(Toy(edit=short, vocab_size=12), arrays(SOURCES), chosen, max_length=20):
        assert [len(one.token_ids) for one in hypotheses] == [2, 2, 2]


def test_a_group_that_is_done_waits_for_the_others() -> None:
    # The first group ends at once, the second, which may not take the same first token, after 6 more.
    def uneven(logits: np.ndarray, source: Tokens, prefix: Tokens) -> None:
        logits[:] = -np.inf
        if not prefix:
            logits[[4, 5]] = 2.0, 0.0
        else:
            logits[EOS if prefix[0] == 4 or len(prefix) == 7 else 6] = 0.0

    chosen = SearchConfig(beam=2, nbest=2, num_groups=2, diversity=5.0)
    engine = Toy(edit=uneven)
    for hypotheses in search(engine, arrays(SOURCES), chosen, max_length=20):
        assert {one.token_ids for one in hypotheses} == {(4,), (5, 6, 6, 6, 6, 6, 6)}
        assert {one.finish_reason for one in hypotheses} == {"eos"}
    assert len(engine.rows_fed) == 8
