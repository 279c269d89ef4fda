"""First words of sources as a baseline of summaries."""

import pytest

from heedful.evaluation.evaluate import evaluate
from heedful.evaluation.lead import are_summaries, score_lead
from heedful.evaluation.metrics.rouge import Rouge

SOURCES = ["the old mill burned down last night , police say today", "rain fell on all of the northern coast this week"]
SUMMARIES = [["old mill burned down"], ["rain fell on the coast"]]


def test_the_first_words_are_scored_beside_the_outputs():
    report = evaluate(["old mill", "rain"], SUMMARIES, SOURCES, ("rouge1", "bleu"), num_resamples=5)
    lead = report.lead
    assert lead is not None
    assert (lead.length, lead.unit) == (4, "words")  # 4.5 words, rounded to even
    firsts = ["the old mill burned", "rain fell on all"]
    wanted = evaluate(firsts, SUMMARIES, SOURCES, ("rouge1",), num_resamples=1)["rouge1"].score
    assert lead.scores == {"ROUGE-1": wanted}
    assert f"the first 4 words of each source alone have ROUGE-1 {wanted:.2f}\n" in report.to_text()
    assert report.to_dict()["lead"]["scores"] == {"ROUGE-1": wanted}
    assert not any("rouge" in note for note in report.notes)


def test_characters_are_counted_where_scripts_have_no_spaces():
    lead = score_lead(["北京今天下雨了明天晴"], [["北京今天"]], [Rouge("1")])
    assert (lead.length, lead.unit, lead.scores) == (4, "characters", {"ROUGE-1": 100.0})


@pytest.mark.parametrize(
    ("sources", "references"),
    [
        (SOURCES, [[source] for source in SOURCES]),  # as long
        (SOURCES, [["die alte Mühle ist"], ["es hat geregnet"]]),  # other words
        (["scenes/0001.png"], [["a red circle above a blue square"]]),
    ],
)
def test_other_references_are_no_summaries(sources: list[str], references: list[list[str]]):
    assert are_summaries(SOURCES, SUMMARIES)
    assert not are_summaries(sources, references)
    assert evaluate([""] * len(sources), references, sources, ("rouge1",), num_resamples=1).lead is None


def test_summaries_are_told_of_their_metrics():
    report = evaluate(["old mill", "rain"], SUMMARIES, SOURCES, ("exact_match",), num_resamples=1)
    assert report.lead is None
    assert any("rouge1,rouge2,rougeL" in note for note in report.notes)
