import pytest

from heedful.evaluation.interface import corpus_score, reference_count
from heedful.evaluation.metrics.error_rate import TokenErrorRate


def test_corpus_score_is_not_the_mean_of_item_scores():
    metric = TokenErrorRate()
    statistics = metric.statistics(["x", "a b c d"], [["a"], ["a b c d"]])
    assert corpus_score(metric, statistics) == 20
    assert metric.scores(statistics).tolist() == [100, 0]
    assert isinstance(corpus_score(metric, statistics), float)


@pytest.mark.parametrize(
    ("references", "count"), [([["a"]], "1"), ([["a", "b"], ["c", "d"]], "2"), ([["a"], ["b", "c"]], "var")]
)
def test_reference_count(references: list[list[str]], count: str):
    assert reference_count(references) == count
