import pytest
from sacrebleu.metrics.ter import TER

from heedful.evaluation.interface import corpus_score
from heedful.evaluation.metrics.ter import Ter
from tests.evaluation.corpus import HYPOTHESES, REFERENCES, WORSE, sacre_score


@pytest.mark.parametrize("hypotheses", [HYPOTHESES, WORSE])
@pytest.mark.parametrize("characters", [False, True])
def test_corpus_score_is_sacrebleus(hypotheses: list[str], characters: bool):
    metric = Ter(characters)
    expected = sacre_score(TER(normalized=characters, asian_support=characters), hypotheses, REFERENCES)
    assert 0 < expected < 100
    assert corpus_score(metric, metric.statistics(hypotheses, REFERENCES)) == expected


def test_a_moved_block_is_one_edit():
    # Moving "c d" to the end is one edit; four would be needed without moves.
    assert Ter().statistics(["a b c d e f"], [["a b e f c d"]]).tolist() == [[1, 6]]


def test_edits_are_to_the_closest_reference_and_the_length_is_the_mean():
    assert Ter().statistics(["a b"], [["a b", "x y z w"]]).tolist() == [[0, 3]]


def test_a_missing_reference_does_not_shorten_the_mean():
    assert Ter().statistics(["a", "a"], [["a b c"], ["a", "b c d"]])[:, 1].tolist() == [3, 2]


def test_chinese_is_split_into_characters_when_told():
    chinese = (["今天天气好"], [["今天天气很好"]])
    assert Ter(characters=True).statistics(*chinese).tolist() == [[1, 6]]
    assert Ter().statistics(*chinese).tolist() == [[1, 1]]
    assert "|asian:yes|" in Ter(characters=True).signature([["a"]])
