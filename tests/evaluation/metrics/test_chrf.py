import pytest
from sacrebleu.metrics.chrf import CHRF

from heedful.evaluation.interface import corpus_score
from heedful.evaluation.metrics.chrf import Chrf
from tests.evaluation.corpus import HYPOTHESES, REFERENCES, WORSE, sacre_score


@pytest.mark.parametrize("hypotheses", [HYPOTHESES, WORSE])
@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("word_order", [0, 2])
def test_corpus_score_is_sacrebleus(hypotheses: list[str], lowercase: bool, word_order: int):
    metric = Chrf(word_order, lowercase)
    expected = sacre_score(CHRF(word_order=word_order, lowercase=lowercase), hypotheses, REFERENCES)
    assert 0 < expected < 100
    assert corpus_score(metric, metric.statistics(hypotheses, REFERENCES)) == expected


def test_known_counts():
    statistics = Chrf().statistics(["ab c"], [["abd"]])
    # Hypothesis abc, reference abd: characters a b of 3 and 3, the pair ab of 2 and 2, no triple of 1 and 1.
    assert statistics[0, :9].tolist() == [3, 3, 2, 2, 2, 1, 1, 1, 0]
    assert corpus_score(Chrf(), statistics) == pytest.approx(100 * (2 / 3 + 1 / 2 + 0) / 3, rel=1e-12)


def test_names_and_signatures():
    assert (Chrf().name, Chrf(2).name) == ("chrF2", "chrF2++")
    assert Chrf(2, lowercase=True).signature([["a"]]).startswith("nrefs:1|case:lc|eff:yes|nc:6|nw:2|space:no|version:")
