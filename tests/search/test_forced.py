import numpy as np
import pytest

from heedful.errors import NonFiniteError, ShapeError, UsageError
from heedful.search.array_scores import ArrayScores
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.ensemble import Ensemble
from heedful.search.forced import score_outputs
from heedful.search.interface import Engine, Hypothesis
from heedful.text.vocabulary import EOS
from tests.search.engines import Tokens, Toy

SOURCES: list[Tokens] = [(5, 6, EOS), (4, EOS), (6, 4, 5, 5, EOS), (EOS,)]
ARRAYS = [np.array(source) for source in SOURCES]


def outputs_of(results: list[list[Hypothesis]]) -> tuple[list[np.ndarray], list[Tokens], list[Hypothesis]]:
    """All hypotheses beside their sources."""
    pairs = [(source, one) for source, found in zip(ARRAYS, results, strict=True) for one in found]
    outputs = [one.token_ids + ((EOS,) if one.finish_reason == "eos" else ()) for _, one in pairs]
    return [source for source, _ in pairs], outputs, [one for _, one in pairs]


@pytest.mark.parametrize(
    "changes",
    [
        {"beam": 1},
        {"beam": 5, "nbest": 5},
        {"beam": 5, "nbest": 5, "repetition_penalty": 2.0, "length_reward": 0.3, "stopping": "certain"},
        {"beam": 6, "nbest": 6, "num_groups": 3, "diversity": 2.0},
        {"beam": 3, "nbest": 3, "no_repeat_ngram_size": 1, "min_length": 2, "forbid_unknown": True},
        {"method": "sampling", "beam": 1, "nbest": 5, "temperature": 0.7, "top_p": 0.9},
    ],
)
@pytest.mark.parametrize("is_ensemble", [False, True])
def test_log_probabilities_of_all_that_is_found_equal_forced_decoding(
    changes: dict[str, object], is_ensemble: bool
) -> None:
    def make() -> Engine:
        toys = [Toy(seed=seed, vocab_size=9) for seed in range(2)]
        return Ensemble(toys) if is_ensemble else toys[0]

    config = SearchConfig(**{"max_length_offset": 4, **changes})  # type: ignore[arg-type]
    has_phrases = "method" not in changes and "no_repeat_ngram_size" not in changes
    asked = [Constraints((4,), [(7, 8)] if has_phrases else (), [(5, 5)]) for _ in SOURCES]
    for constraints in (None, asked):
        sources, outputs, found = outputs_of(search(make(), ARRAYS, config, max_length=20, constraints=constraints))
        forced = score_outputs(make(), sources, outputs)
        for one, values in zip(found, (each.log_probs for each in forced), strict=True):
            assert one.token_log_probs == pytest.approx(values.tolist(), abs=1e-12)
            assert one.log_prob == pytest.approx(values.sum(), abs=1e-12)


def test_equals_the_model_and_rows_leave_when_they_are_read() -> None:
    engine = Toy(vocab_size=9)
    outputs = [(4, 5, EOS), (), (7,), (8, 8, 8, 8)]
    found = score_outputs(engine, ARRAYS, outputs)
    for source, output, values in zip(SOURCES, outputs, found, strict=True):
        assert values.log_probs.tolist() == [
            engine.log_probs(source, output[:at])[token] for at, token in enumerate(output)
        ]
    assert engine.rows_fed == [3, 2, 2, 1]


def test_nothing_to_read_asks_no_engine() -> None:
    engine = Toy()
    assert score_outputs(engine, [], []) == []
    assert [each.log_probs.size for each in score_outputs(engine, ARRAYS, [()] * 4)] == [0] * 4
    assert engine.starts == 0


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(ShapeError, match="1 outputs were given for 4 sources"):
        score_outputs(Toy(), ARRAYS, [(4,)])
    for token in (7, -1):
        with pytest.raises(UsageError, match=f"token {token} of source 2 is not in the vocabulary of 7"):
            score_outputs(Toy(), ARRAYS, [(4,), (5,), (4, token), ()])


def test_nan_is_refused_and_says_where() -> None:
    class Broken(Toy):
        def _scores(self, sources, prefixes, width):  # type: ignore[no-untyped-def]
            log_probs = super()._scores(sources, prefixes, width).full().copy()
            if len(prefixes[0][0]) == 2:
                log_probs[-1] = np.nan
            return ArrayScores(log_probs)

    with pytest.raises(NonFiniteError, match=r"source 3, step 1: a log probability is NaN"):
        score_outputs(Broken(), ARRAYS, [(4, 4), (4,), (4, 4), (4, 4)])


def test_attention_is_that_of_each_token_over_the_real_source() -> None:
    outputs = [(4, 5, EOS), (), (7,), (8, 8, 8, 8)]
    for source, output, reading in zip(
        SOURCES, outputs, score_outputs(Toy(vocab_size=9), ARRAYS, outputs, need_alignment=True), strict=True
    ):
        toy = Toy(vocab_size=9)
        assert reading.weights is not None
        assert reading.weights.shape == (len(output), len(source))
        for step in range(len(output)):
            assert reading.weights[step].tolist() == toy.weights(source, output[:step]).tolist()
            assert reading.log_probs[step] == pytest.approx(toy.log_probs(source, output[:step])[output[step]])


def test_attention_is_that_which_the_search_saw() -> None:
    config = SearchConfig(beam=3, nbest=3, max_length_offset=4)
    sources, outputs, found = outputs_of(search(Toy(), ARRAYS, config, max_length=20, need_alignment=True))
    for one, reading in zip(found, score_outputs(Toy(), sources, outputs, need_alignment=True), strict=True):
        assert reading.weights is not None
        assert one.weights is not None
        assert np.array_equal(reading.weights, one.weights)


def test_weights_are_not_asked_for_unless_wanted() -> None:
    readings = score_outputs(Toy(has_weights=False), ARRAYS, [(4,)] * 4)
    assert [reading.weights for reading in readings] == [None] * 4
