"""Biased search: batches that fit into memory, and the tokens of corrections."""

from collections.abc import Sequence

import pytest

from heedful.config.base import validate
from heedful.engines import biased_search
from heedful.engines.biased_search import KnnSearch
from heedful.engines.engine import Stepwise
from heedful.engines.translation_memory import MemoryMatch
from heedful.search.biased import BiasedEngine, StoredSteps, source_key, store_steps
from heedful.search.config import SearchConfig
from heedful.search.inputs import Sources
from heedful.search.interface import Engine, Hypothesis
from heedful.text.encoding import encode_source
from heedful.text.tokenizer import TextConfig, UnitTokenizer
from heedful.text.vocabulary import EOS, Vocabulary
from tests.search.engines import Toy

TEXT = TextConfig(source_units="characters", target_units="characters", max_tokens=12)
TOKENIZER = UnitTokenizer(Vocabulary.build([list("abcdefx")]), "characters", "NFC")
TEXTS = ["abcd", "abce", "cdab", "abcf"]
SHORT, LONG = ("abcx", "fed"), ("cdax", "abcdefabcdefabcdef")
MATCHES = [[MemoryMatch(*pair, 0.8, is_exact=False)] for pair in (SHORT, SHORT, LONG, SHORT)]
CONFIG = SearchConfig(beam=2, max_length_offset=4)


@pytest.fixture
def toy() -> Toy:
    return Toy(vocab_size=len(TOKENIZER))


def searched(toy: Toy) -> tuple[list[list[str]], list[Hypothesis]]:
    """Sources of each batch, and the best hypothesis of each source."""
    backend = Stepwise("toy", lambda _: toy, TEXT.max_tokens)
    biased = KnnSearch(backend, (TOKENIZER, TOKENIZER), TEXT)
    batches: list[list[str]] = []
    found: list[Hypothesis] = []
    for texts, each in biased.batches(TEXTS, MATCHES):
        batches.append(texts)
        sources = [encode_source(TOKENIZER, text, TEXT)[0] for text in texts]
        found += [hypotheses[0] for hypotheses in each.decode(sources, CONFIG)]
    return batches, found


def test_each_source_follows_the_steps_of_its_own_matches(toy: Toy):
    _, found = searched(toy)
    outputs = {SHORT: [*TOKENIZER.encode("fed"), EOS], LONG: TOKENIZER.encode("abcdefabcde")}  # cut, so without EOS
    for text, (match,), hypothesis in zip(TEXTS, MATCHES, found, strict=True):
        source, _ = encode_source(TOKENIZER, text, TEXT)
        corrected, _ = encode_source(TOKENIZER, match.source, TEXT)
        (steps,) = store_steps(toy, [corrected], [outputs[match.pair]])
        engine = BiasedEngine(toy, {source_key(source): StoredSteps.joined([steps])})
        expected = Stepwise("toy", lambda _, engine=engine: engine, TEXT.max_tokens).decode([source], CONFIG)[0][0]
        assert hypothesis == expected


def test_batches_are_as_large_as_memory_allows_and_change_nothing(toy: Toy, monkeypatch: pytest.MonkeyPatch):
    batches, found = searched(toy)
    assert batches == [TEXTS]
    monkeypatch.setattr(biased_search, "MOST_NUMBERS", 5 * len(TOKENIZER))
    batches, again = searched(toy)
    assert batches == [["abcd", "abce", "cdab"], ["abcf"]]
    assert again == found
    monkeypatch.setattr(biased_search, "MOST_NUMBERS", 1)
    batches, again = searched(toy)
    assert batches == [[text] for text in TEXTS]
    assert again == found


def test_corrections_of_several_sentences_have_one_end(toy: Toy, monkeypatch: pytest.MonkeyPatch):
    stored: list[list[int]] = []

    def watch(engine: Engine, sources: Sources, outputs: Sequence[Sequence[int]]) -> list[StoredSteps]:
        stored.extend(list(output) for output in outputs)
        return store_steps(engine, sources, outputs)

    monkeypatch.setattr(biased_search, "store_steps", watch)
    backend = Stepwise("toy", lambda _: toy, TEXT.max_tokens)
    text = validate(TextConfig, TEXT.model_dump() | {"split_sentences": True})
    matches = [[MemoryMatch("a b", "a! B", 0.8, is_exact=False)]]
    list(KnnSearch(backend, (TOKENIZER, TOKENIZER), text).batches(["a b c"], matches))
    assert stored == [[*TOKENIZER.encode("a! B"), EOS]]
