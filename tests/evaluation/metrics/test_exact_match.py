import pytest

from heedful.evaluation.interface import corpus_score
from heedful.evaluation.metrics.exact_match import ExactMatch, WrongOutputs

HYPOTHESES = ["K AE T", "R EH D", "D AO G", "B"]
REFERENCES = [["K AE T"], ["R IY D", "R EH D"], ["D AA G", "D AO"], ["b"]]


def test_one_right_reference_is_enough():
    assert ExactMatch().statistics(HYPOTHESES, REFERENCES).tolist() == [[1, 1], [1, 1], [0, 1], [0, 1]]
    assert corpus_score(ExactMatch(), ExactMatch().statistics(HYPOTHESES, REFERENCES)) == 50


def test_wrong_outputs_are_the_rest():
    assert WrongOutputs().statistics(HYPOTHESES, REFERENCES).tolist() == [[0, 1], [0, 1], [1, 1], [1, 1]]
    assert corpus_score(WrongOutputs(), WrongOutputs().statistics(HYPOTHESES[1:], REFERENCES[1:])) == 200 / 3


def test_case_counts_unless_told():
    assert corpus_score(ExactMatch(lowercase=True), ExactMatch(lowercase=True).statistics(HYPOTHESES, REFERENCES)) == 75
    assert ExactMatch(lowercase=True).signature(REFERENCES) == "nrefs:var|case:lc|space:collapsed|heedful:1"
    assert WrongOutputs().signature([["a"]]) == "nrefs:1|case:mixed|space:collapsed|heedful:1"


@pytest.mark.parametrize(
    ("hypothesis", "reference", "right"),
    [("a b", " a  b\u3000", 1), ("ab", "a b", 0), ("", " ", 1), ("", "a", 0), ("é", "e\u0301", 0), ("a", "a.", 0)],
)
def test_only_the_amount_of_white_space_is_forgiven(hypothesis: str, reference: str, right: int):
    assert ExactMatch().statistics([hypothesis], [[reference]])[0, 0] == right
    assert WrongOutputs().statistics([hypothesis], [[reference]])[0, 0] == 1 - right
