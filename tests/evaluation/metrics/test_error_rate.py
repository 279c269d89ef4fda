import pytest

from heedful.evaluation.interface import Metric, corpus_score
from heedful.evaluation.metrics.error_rate import CharacterErrorRate, TokenErrorRate


def test_phonemes_are_counted_against_the_closest_pronunciation():
    hypotheses = ["R EH D", "K AE T S", "D AO"]
    references = [["R IY D", "R EH D"], ["K AE T"], ["D AA G Z", "D AO G"]]
    statistics = TokenErrorRate().statistics(hypotheses, references)
    # Exact; one phoneme too many; one missing against D AO G (two edits to the other).
    assert statistics.tolist() == [[0, 3], [1, 3], [1, 3]]
    assert corpus_score(TokenErrorRate(), statistics) == pytest.approx(100 * 2 / 9, rel=1e-15)


@pytest.mark.parametrize("references", [["A B C", "A B X Y Z"], ["A B X Y Z", "A B C"]])
def test_of_equally_close_references_the_shortest_gives_the_length(references: list[str]):
    # A B X Y: two edits from A B C (substitute, delete); one from A B X Y Z, which therefore wins although longer.
    assert TokenErrorRate().statistics(["A B X Y"], [references]).tolist() == [[1, 5]]
    # A B X: one edit from A B C, two from the other; A B X Z: two from A B C and one from A B X Y Z.
    assert TokenErrorRate().statistics(["A B X"], [references]).tolist() == [[1, 3]]
    # A B Y: one substitution from A B C; two insertions from the other.
    assert TokenErrorRate().statistics(["A B C D"], [["A B C", "A B C D E"]]).tolist() == [[1, 3]]
    assert TokenErrorRate().statistics(["A B C D"], [["A B C D E", "A B C"]]).tolist() == [[1, 3]]


def test_characters_are_code_points_and_single_spaces():
    assert CharacterErrorRate().statistics(["ab  cd "], [["abc d"]]).tolist() == [[2, 5]]
    assert CharacterErrorRate().statistics(["天气好"], [["天气很好"]]).tolist() == [[1, 4]]


@pytest.mark.parametrize("metric", [TokenErrorRate(), CharacterErrorRate()])
def test_rates_may_exceed_a_hundred(metric: Metric):
    assert corpus_score(metric, metric.statistics(["a b c"], [["x"]])) > 100


@pytest.mark.parametrize("metric", [TokenErrorRate(), CharacterErrorRate()])
@pytest.mark.parametrize(("hypothesis", "score"), [("", 0), ("a b", 100)])
def test_empty_references_are_all_right_or_all_wrong(metric: Metric, hypothesis: str, score: float):
    assert corpus_score(metric, metric.statistics([hypothesis], [["  "]])) == score


def test_case_counts_unless_told():
    assert TokenErrorRate().statistics(["A b"], [["a B"]])[0, 0] == 2
    assert TokenErrorRate(lowercase=True).statistics(["A b"], [["a B"]])[0, 0] == 0
    assert CharacterErrorRate(lowercase=True).statistics(["A b"], [["a B"]])[0, 0] == 0


def test_signatures():
    assert TokenErrorRate().signature([["a"]]) == "nrefs:1|case:mixed|tok:space|ref:closest|heedful:1"
    assert CharacterErrorRate(True).signature([["a", "b"]]) == "nrefs:2|case:lc|tok:char|ref:closest|heedful:1"
