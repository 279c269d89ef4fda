import math

import pytest

from heedful.cli.scoring import changed_search
from heedful.data.prepare import EvaluationSet
from heedful.predictors.perplexity import perplexity
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from tests.cli.conftest import Trained


def test_a_changed_search_keeps_the_rest(trained: Trained):
    translator = load(trained.model)
    assert changed_search(translator, None) == translator.search
    changed = changed_search(translator, 7)
    assert (changed.beam, changed.nbest, changed.max_length_offset) == (7, 1, 4)
    assert changed_search(translator, None, 5).beam == 5


def test_outputs_are_those_of_the_translator(trained: Trained):
    translator = load(trained.model)
    items = EvaluationSet(["abc", "fed", "bad"], [["ABC"], ["FED"], ["BAD", "bad"]])
    found = translator.measure(items)
    assert found.outputs == [output.text for output in translator.translate(items.sources)]
    assert found.report.num_references == 4


def test_perplexity_counts_every_reference(trained: Trained):
    translator = load(trained.model)
    one = perplexity(translator, EvaluationSet(["abc"], [["ABC"]]))
    two = perplexity(translator, EvaluationSet(["abc"], [["ABC", "ABC"]]))
    assert (one.num_tokens, two.num_tokens) == (4, 8)
    assert two.per_token == pytest.approx(one.per_token, rel=1e-6)
    assert two.bits_per_character == pytest.approx(one.bits_per_character, rel=1e-6)
    assert one.num_cut == 0


def test_bits_are_those_of_the_characters_that_were_scored(trained: Trained):
    translator = load(trained.model, kind=Translator)
    most = translator.text.max_tokens - 1
    cut = perplexity(translator, EvaluationSet(["abc"], [["A" * 10 * most]]))
    assert (cut.num_cut, cut.num_tokens) == (1, most), "no end is counted, for it does not end there"
    assert cut.bits_per_character == pytest.approx(math.log2(cut.per_token))
