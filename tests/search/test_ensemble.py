from collections.abc import Sequence

import numpy as np
import pytest

from heedful.errors import NeedError, UsageError
from heedful.search.array_scores import ArrayScores
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.ensemble import Ensemble, MixedScores, mean_of_log_probabilities, mean_of_probabilities
from heedful.search.interface import Adjust
from heedful.text.vocabulary import EOS
from tests.search.engines import Tokens, Toy, never_ends

SOURCES: list[Tokens] = [(5, 6, EOS), (4, EOS), (6, 4, 5, 5, EOS), (EOS,)]
ARRAYS = [np.array(source) for source in SOURCES]
CONFIG = SearchConfig(beam=4, nbest=4, max_length_ratio=1.0, max_length_offset=4)


class Mixed(Toy):
    """One model whose distributions are the average of others', worked out plainly."""

    def __init__(self, toys: Sequence[Toy], average: str, shares: Sequence[float]) -> None:
        super().__init__(vocab_size=toys[0].vocab_size)
        self.toys, self.average, self.shares = toys, average, np.array(shares) / sum(shares)

    def log_probs(self, source: Tokens, prefix: Tokens) -> np.ndarray:
        parts = np.array([toy.log_probs(source, prefix) for toy in self.toys])
        if self.average == "probabilities":
            with np.errstate(divide="ignore"):
                return np.log(self.shares @ np.exp(parts))
        product = np.exp(self.shares @ parts)
        with np.errstate(divide="ignore"):
            return np.log(product / product.sum())

    def weights(self, source: Tokens, prefix: Tokens) -> np.ndarray:
        return sum(share * toy.weights(source, prefix) for share, toy in zip(self.shares, self.toys, strict=True))


@pytest.mark.parametrize("average", ["probabilities", "log_probabilities"])
@pytest.mark.parametrize("shares", [(), (1.0, 2.0, 5.0)])
@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        SearchConfig(beam=4, num_groups=2, diversity=0.5, repetition_penalty=1.2, max_length_offset=4),
        SearchConfig(method="sampling", beam=1, nbest=3, top_p=0.9, max_length_offset=4),
    ],
)
def test_an_ensemble_searches_as_one_model_of_the_averages(
    average: str, shares: tuple[float, ...], config: SearchConfig
) -> None:
    toys = [Toy(seed=seed, vocab_size=9) for seed in range(3)]
    required = () if config.method == "sampling" else [(7, 8)]
    asked = [Constraints((4,), required, [(5, 5)])] * len(SOURCES)
    found, expected = (
        search(engine, ARRAYS, config, max_length=20, need_alignment=True, constraints=asked)
        for engine in (Ensemble(toys, average, shares), Mixed(toys, average, shares or (1, 1, 1)))  # type: ignore[arg-type]
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.token_ids for one in ours] == [one.token_ids for one in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-12)
            assert one.weights is not None
            np.testing.assert_allclose(one.weights, other.weights, atol=1e-6)


@pytest.mark.parametrize("average", ["probabilities", "log_probabilities"])
def test_one_engine_alone_is_itself(average: str) -> None:
    alone = search(Toy(vocab_size=9), ARRAYS, CONFIG, max_length=20)
    assert search(Ensemble([Toy(vocab_size=9)], average), ARRAYS, CONFIG, max_length=20) == alone  # type: ignore[arg-type]


@pytest.mark.parametrize("average", ["probabilities", "log_probabilities"])
def test_an_engine_with_itself_is_itself(average: str) -> None:
    alone = search(Toy(vocab_size=9), ARRAYS, CONFIG, max_length=20)
    twice = search(Ensemble([Toy(vocab_size=9), Toy(vocab_size=9)], average), ARRAYS, CONFIG, max_length=20)  # type: ignore[arg-type]
    for found, expected in zip(twice, alone, strict=True):
        assert [one.token_ids for one in found] == [one.token_ids for one in expected]
        assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in expected], abs=1e-12)


def test_averages_by_hand() -> None:
    parts = [np.log([[0.5, 0.5, 1e-300]]), np.log([[0.9, 0.1, 1e-300]])]
    parts[1][0, 2] = -np.inf
    shares = np.array([0.25, 0.75])
    np.testing.assert_allclose(np.exp(mean_of_probabilities(parts, shares)), [[0.8, 0.2, 0.25e-300]], rtol=1e-12)
    product = np.array([0.5**0.25 * 0.9**0.75, 0.5**0.25 * 0.1**0.75, 0.0])
    np.testing.assert_allclose(np.exp(mean_of_log_probabilities(parts, shares)), [product / product.sum()], rtol=1e-12)


@pytest.mark.parametrize("mean", [mean_of_probabilities, mean_of_log_probabilities])
def test_nothing_is_more_than_certain_and_impossible_stays_so(mean) -> None:  # type: ignore[no-untyped-def]
    certain = np.array([[0.0, -np.inf], [-np.inf, -np.inf]])
    found = mean([certain] * 3, np.full(3, 1 / 3))
    assert found.tolist() == [[pytest.approx(0.0, abs=1e-15), -np.inf], [-np.inf, -np.inf]]
    generator = np.random.default_rng(0)
    parts = [np.log(generator.dirichlet(np.full(4, 0.02), size=500) + 1e-300) for _ in range(3)]
    assert mean(parts, np.full(3, 1 / 3)).max() <= 0
    shares = generator.dirichlet(np.ones(3), size=200)
    assert any(one + two + three > 1 for one, two, three in shares)
    assert max(mean([np.zeros(1)] * 3, row)[0] for row in shares) == 0
    disjoint = [np.array([[0.0, -np.inf]]), np.array([[-np.inf, 0.0]])]
    half = mean(disjoint, np.array([0.5, 0.5]))
    assert np.exp(half).tolist() == ([[0.5, 0.5]] if mean is mean_of_probabilities else [[0.0, 0.0]])


def test_top_changes_the_average_and_full_does_not() -> None:
    parts = [np.log([[[0.2, 0.3, 0.5]]]), np.log([[[0.4, 0.5, 0.1]]])]
    scores = MixedScores([ArrayScores(part) for part in parts], np.array([0.5, 0.5]), "probabilities")
    values, ids = scores.top(2, Adjust(banned=np.array([1])))
    assert ids.tolist() == [[[0, 2]]]
    np.testing.assert_allclose(np.exp(values), [[[0.3, 0.3]]])
    np.testing.assert_allclose(np.exp(scores.full()), [[[0.3, 0.4, 0.3]]])
    np.testing.assert_allclose(np.exp(scores.of(np.array([0]), np.array([0]), np.array([1]))), [0.4])
    assert scores.vocab_size == 3


def test_engines_of_other_vocabularies_are_refused() -> None:
    with pytest.raises(UsageError, match=r"vocabularies have \[7, 9\] tokens"):
        search(Ensemble([Toy(vocab_size=7), Toy(vocab_size=9)]), ARRAYS, CONFIG, max_length=9)


@pytest.mark.parametrize("shares", [(1.0,), (1.0, 0.0), (1.0, -1.0), (1.0, np.nan), (1.0, np.inf)])
def test_wrong_shares_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="no shares of 2 engines"):
        Ensemble([Toy(), Toy()], shares=shares)


def test_no_engine_and_a_foreign_state_are_refused() -> None:
    with pytest.raises(UsageError, match="no engine"):
        Ensemble([])
    with pytest.raises(TypeError, match="state of type str"):
        Ensemble([Toy()]).step("x", np.array([[2]]), None, None)


def test_weights_are_missed_where_one_engine_has_none() -> None:
    engines = [Toy(edit=never_ends), Toy(has_weights=False)]
    search(Ensemble(engines), ARRAYS, CONFIG, max_length=9)
    with pytest.raises(NeedError, match="no attention weights"):
        search(Ensemble(engines), ARRAYS, CONFIG, max_length=9, need_alignment=True)
