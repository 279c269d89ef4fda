import builtins
from typing import Any

import pytest

from heedful.errors import MissingExtra
from heedful.evaluation.interface import corpus_score
from heedful.evaluation.metrics.rouge import Rouge

HYPOTHESES = ["the cat sat on the mat", "a dog barked, loudly", ""]
REFERENCES = [["The cat was on the mat."], ["dogs bark", "the dog barked"], ["nothing"]]


@pytest.mark.parametrize("kind", ["1", "2", "L"])
def test_english_scores_are_those_of_the_package_itself(kind: str):
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer([f"rouge{kind}"])
    pairs = zip(HYPOTHESES, REFERENCES, strict=True)
    wanted = [scorer.score_multi(texts, hypothesis)[f"rouge{kind}"].fmeasure for hypothesis, texts in pairs]
    statistics = Rouge(kind).statistics(HYPOTHESES, REFERENCES)  # type: ignore[arg-type]
    assert statistics[:, 0].tolist() == pytest.approx(wanted, abs=1e-12)
    assert corpus_score(Rouge(kind), statistics) == pytest.approx(100 * sum(wanted) / 3)  # type: ignore[arg-type]


def test_it_is_the_papers_formula():
    pytest.importorskip("rouge_score")
    # Bigrams: "the cat", "cat sat", "sat down" and "the cat", "cat was", "was down": one in common.
    assert corpus_score(Rouge("2"), Rouge("2").statistics(["the cat sat down"], [["the cat was down"]])) == (
        pytest.approx(100 / 3)
    )


def test_chinese_characters_and_umlauts_are_words():
    pytest.importorskip("rouge_score")
    assert corpus_score(Rouge("1"), Rouge("1").statistics(["今天下雨"], [["今天下雪"]])) == pytest.approx(75.0)
    assert corpus_score(Rouge("1"), Rouge("1").statistics(["über"], [["ber"]])) == 0.0


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    original = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("rouge_score"):
            raise ModuleNotFoundError(name=name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtra, match="summaries"):
        Rouge("1").statistics(["a"], [["a"]])
