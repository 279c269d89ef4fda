import math

import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU

from heedful.evaluation.interface import corpus_score
from heedful.evaluation.metrics.bleu import Bleu
from tests.evaluation.corpus import HYPOTHESES, REFERENCES, WORSE, sacre_score

CHINESE = (
    ["今天天气很好,我们去公园。", "你好 world"],
    [["今天天气真好,我们去公园吧。"], ["你好,世界!", "你好,world!"]],
)


@pytest.mark.parametrize("hypotheses", [HYPOTHESES, WORSE])
@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("tokenizer", ["13a", "intl", "char", "none"])
def test_corpus_score_is_sacrebleus(hypotheses: list[str], lowercase: bool, tokenizer: str):
    metric = Bleu(tokenizer, lowercase)
    expected = sacre_score(BLEU(tokenize=tokenizer, lowercase=lowercase), hypotheses, REFERENCES)
    assert 0 < expected < 100
    assert corpus_score(metric, metric.statistics(hypotheses, REFERENCES)) == expected


def test_chinese_corpus_score_is_sacrebleus():
    metric = Bleu("zh")
    score = corpus_score(metric, metric.statistics(*CHINESE))
    assert score == sacre_score(BLEU(tokenize="zh"), *CHINESE)
    assert score > 2 * corpus_score(Bleu(), Bleu().statistics(*CHINESE))


def test_matches_are_clipped():
    # Papineni et al. 2002, example 2: 2 of 7 unigrams count; the reference closest in length has 7 words.
    references = [["The cat is on the mat".lower(), "There is a cat on the mat".lower()]]
    statistics = Bleu("none").statistics(["the the the the the the the"], references)
    assert statistics.tolist() == [[7, 7, 2, 0, 0, 0, 7, 6, 5, 4]]


def test_known_precisions_and_brevity():
    metric = Bleu("none")
    statistics = metric.statistics(["A B B C D"], [["A B C D E F"]])
    assert statistics.tolist() == [[5, 6, 4, 3, 1, 0, 5, 4, 3, 2]]
    # No 4-gram matches: sacreBLEU's smoothing takes half a match of two.
    by_hand = 100 * math.exp(1 - 6 / 5) * (4 / 5 * 3 / 4 * 1 / 3 * 1 / 4) ** 0.25
    assert corpus_score(metric, statistics) == pytest.approx(by_hand, rel=1e-12)


def test_of_two_equally_close_references_the_shorter_gives_the_length():
    assert Bleu("none").statistics(["a b c"], [["a b c d", "a b"]])[0, 1] == 2


def test_a_missing_reference_is_not_one_of_length_zero():
    # A one-word hypothesis would be closer to an empty reference than to one of three words.
    statistics = Bleu("none").statistics(["a", "a b"], [["a b c"], ["a b", "c"]])
    assert statistics[:, 1].tolist() == [3, 2]


def test_only_empty_hypotheses_score_zero():
    assert corpus_score(Bleu(), Bleu().statistics(["", ""], [["a b"], ["c"]])) == 0


def test_signature():
    references = [["a"], ["b"]]
    version = sacrebleu.__version__
    assert Bleu().signature(references) == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert Bleu("zh", lowercase=True).signature(references).startswith("nrefs:1|case:lc|eff:no|tok:zh|")


def test_no_line_is_written_about_tokenised_text(caplog: pytest.LogCaptureFixture):
    Bleu().statistics(["a ."] * 100, [["a ."]] * 100)
    assert not caplog.records
