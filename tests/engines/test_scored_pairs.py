from collections.abc import Sequence

import numpy as np
import pytest

from heedful.engines.engine import Stepwise, score_sorted
from heedful.engines.scored_pairs import (
    PairScorer,
    ScoredPair,
    encode_source,
    encode_target,
    num_scored_characters,
    word_links,
)
from heedful.errors import UsageError
from heedful.search.forced import ForcedDecoding, score_outputs
from heedful.search.inputs import Sources, as_inputs
from heedful.text.tokenizer import TextConfig, UnitTokenizer
from heedful.text.vocabulary import EOS, Vocabulary
from tests.engines.test_engine import Spy
from tests.search.engines import Toy

CHARACTERS = UnitTokenizer(Vocabulary.build(["ab c"]), "characters", "NFC")
WORDS = UnitTokenizer(Vocabulary.build([["one", "two", "three"]]), "words", "NFC")
TEXT = TextConfig(source_units="characters", target_units="words", max_tokens=8)
PAIRS = [("ab c", "one two"), ("", "three"), ("a b c", ""), ("abababababab", "one"), ("b a", "two one three")]


def reader(backend: Stepwise | Spy | None = None) -> PairScorer:
    toy = Stepwise("toy", lambda with_weights: Toy(vocab_size=7, has_weights=with_weights), 30)
    return PairScorer(backend or toy, CHARACTERS, WORDS, TEXT)


# ------------------------------------------------------------------------------------------- backends that read


@pytest.mark.parametrize("batch_tokens", [1, 9, 20, 4096])
def test_batches_change_nothing_and_results_come_in_order(batch_tokens: int):
    batches: list[list[int]] = []

    class Watched(Spy):
        def supports_scoring(self, need_alignment: bool) -> str | None:
            return None

        def score(
            self, sources: Sources, outputs: Sequence[Sequence[int]], need_alignment: bool = False
        ) -> list[ForcedDecoding]:
            batches.append(as_inputs(sources).num_positions.tolist())
            return score_outputs(Toy(), sources, outputs, need_alignment)

    sources = [np.array([4] * length + [EOS]) for length in (3, 0, 5, 1, 1, 4, 2)]
    outputs = [[4 + i % 2] * (i % 4) + [EOS] for i in range(7)]
    found = score_sorted(Watched(), sources, outputs, batch_tokens=batch_tokens, need_alignment=True)
    wanted = score_outputs(Toy(), sources, outputs, need_alignment=True)
    for one, other in zip(found, wanted, strict=True):
        assert one.log_probs.tolist() == other.log_probs.tolist()
        assert np.array_equal(one.weights, other.weights)  # type: ignore[arg-type]
    assert [length for batch in batches for length in batch] == [6, 5, 4, 3, 2, 2, 1]
    assert all(len(batch) * max(batch) <= batch_tokens or len(batch) == 1 for batch in batches)
    assert score_sorted(Watched(), [], []) == []


def test_what_cannot_be_read_is_refused():
    with pytest.raises(UsageError, match="spy: given outputs cannot be scored here"):
        score_sorted(Spy(), [np.array([EOS])], [[EOS]])
    with pytest.raises(UsageError, match="spy: given outputs cannot be scored here"):
        Spy().score([np.array([EOS])], [[EOS]])
    with pytest.raises(UsageError, match="spy: given outputs"):
        list(reader(Spy()).score(PAIRS, False, 99))
    toy = Stepwise("toy", lambda with_weights: Toy(), 30)
    with pytest.raises(UsageError, match="2 outputs were given for 1 sources"):
        score_sorted(toy, [np.array([EOS])], [[EOS], [EOS]])


def test_a_model_without_attention_scores_and_does_not_align():
    blind = Stepwise("toy", lambda with_weights: Toy(has_weights=False), 30, has_attention=False)
    assert blind.supports_scoring(False) is None
    assert "no attention" in str(blind.supports_scoring(True))
    with pytest.raises(UsageError, match="toy: this model has no attention"):
        list(reader(blind).score(PAIRS, True, 99))
    assert len(list(reader(blind).score(PAIRS, False, 99))) == len(PAIRS)


# ------------------------------------------------------------------------------------------------------- pairs


def test_pairs_are_read_as_the_engine_reads_their_tokens():
    found = list(reader().score(PAIRS, True, 12))
    toy = Toy(vocab_size=7)
    for (source, target), one in zip(PAIRS, found, strict=True):
        source_ids = tuple([*CHARACTERS.encode(source)[:7], EOS])
        target_ids = (*WORDS.encode(target), EOS)
        assert (one.source, one.target) == (source, target)
        wanted = [toy.log_probs(source_ids, target_ids[:step])[token] for step, token in enumerate(target_ids)]
        assert one.token_log_probs == pytest.approx(wanted)
        assert one.log_prob == pytest.approx(sum(wanted))
        assert one.per_token == pytest.approx(sum(wanted) / len(wanted))
        assert one.perplexity == pytest.approx(np.exp(-sum(wanted) / len(wanted)))
        weights = np.array([toy.weights(source_ids, target_ids[:step]) for step in range(len(target_ids))])
        assert np.array_equal(one.attention, weights)  # type: ignore[arg-type]
        assert one.source_pieces == tuple(CHARACTERS.pieces(source_ids))
        assert one.target_pieces == tuple(WORDS.pieces(target_ids))
        assert one.was_cut is (source == "abababababab")
    assert found[1].alignment == found[2].alignment == ()  # a side is blank
    assert found[0].pharaoh().split() == [f"{source}-{target}" for source, target in found[0].alignment or ()]
    assert {target for _, target in found[4].alignment or ()} == {0, 1, 2}
    assert {source for source, _ in found[4].alignment or ()} <= {0, 1}


def test_words_and_tokens_are_linked_as_their_attention_says():
    # a, b, space, c, end of source; "ab" is one word, and so is " c".
    attention = np.array([[0.3, 0.2, 0.1, 0.3, 0.1], [0.2, 0.2, 0.1, 0.35, 0.15], [0.0, 0.0, 0.0, 0.0, 1.0]])
    assert word_links(attention, [0, 0, 1, 1], [0, 1]) == [(0, 0), (1, 1)]
    pair = ScoredPair("ab c", "one two", (-1.0,) * 3, ("a", "b", " ", "c", "<eos>"), ("one", "two", "<eos>"), attention)
    assert pair.token_alignment() == [(0, 0), (3, 1)]
    assert pair.pharaoh() == ""
    assert ScoredPair("a", "b", (-1.0,), ("a",), ("b",)).token_alignment() == []


def test_a_model_that_aligns_the_token_it_reads_is_asked_one_step_later():
    backend = Stepwise("toy", lambda with_weights: Toy(vocab_size=7, has_weights=with_weights), 30)
    later = list(PairScorer(backend, CHARACTERS, WORDS, TEXT, alignment_shift=1).score(PAIRS, True, 99))
    at_once = list(reader().score(PAIRS, True, 99))
    for one, other in zip(later, at_once, strict=True):
        assert one.attention is not None
        assert np.array_equal(one.attention, other.attention)  # type: ignore[arg-type]
        target_words = list(range(len(one.target_pieces) - 1))
        source_words = CHARACTERS.word_indices(CHARACTERS.encode(one.source)[:7])
        assert list(one.alignment or ()) == word_links(one.attention[1:], source_words, target_words)
        assert {target for _, target in one.token_alignment()} <= set(target_words)
    assert [one.alignment for one in later] != [one.alignment for one in at_once]


def test_a_target_word_averages_its_tokens():
    attention = np.array([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]])
    assert word_links(attention, [0, 1], [0, 0, 1]) == [(0, 0), (1, 1)]
    assert word_links(attention, [0, 1], [0, 1, 1]) == [(0, 0), (1, 1)]


def test_without_attention_nothing_is_linked():
    found = list(reader().score(PAIRS, False, 99))
    assert {(one.attention, one.alignment) for one in found} == {(None, None)}


@pytest.mark.parametrize("shift", [0, 1])
def test_no_end_is_counted_that_a_cut_target_lacks(shift: int):
    backend = Stepwise("toy", lambda with_weights: Toy(vocab_size=7, has_weights=with_weights), 30)
    scorer = PairScorer(backend, CHARACTERS, WORDS, TEXT, alignment_shift=shift)
    (found,) = scorer.score([("a", "one " * 20)], True, 99)
    assert found.was_cut
    assert not found.has_end
    assert found.target_pieces == ("one",) * 7
    assert len(found.token_log_probs) == 7
    assert {target for _, target in found.alignment or ()} == set(range(7 - shift))
    assert {target for _, target in found.token_alignment()} == set(range(7 - shift))
    (whole,) = scorer.score([("a", "one " * 6)], True, 99)
    assert found.token_log_probs[:6] == whole.token_log_probs[:-1]
    (nothing,) = PairScorer(backend, CHARACTERS, WORDS, TextConfig(max_tokens=1)).score([("a", "one")], True, 99)
    assert (nothing.token_log_probs, nothing.per_token, nothing.pharaoh()) == ((), 0.0, "")
    ids, was_cut = encode_source(CHARACTERS, "a" * 7, TEXT)
    assert (len(ids), ids[-1], was_cut) == (8, EOS, False)


def test_targets_of_several_sentences_have_one_end():
    tokenizer = UnitTokenizer(Vocabulary.build([["Ja.", "Nein."]]), "words", "NFC")
    text = TextConfig(source_units="words", target_units="words", split_sentences=True)
    assert encode_source(tokenizer, "Ja. Nein.", text)[0].tolist().count(EOS) == 2
    assert encode_target(tokenizer, "Ja. Nein.", text)[0].tolist() == [*tokenizer.encode("Ja. Nein."), EOS]
    toy = Stepwise("toy", lambda with_weights: Toy(vocab_size=7, has_weights=with_weights), 30)
    (found,) = PairScorer(toy, tokenizer, tokenizer, text).score([("Ja. Nein.", "Ja. Nein.")], True, 99)
    assert found.target_pieces == ("Ja.", "Nein.", "<eos>")
    assert {source for source, _ in found.alignment or ()} <= {0, 1}


def test_long_words_are_read_whole():
    tokenizer = UnitTokenizer(Vocabulary.build([["x" * 200, "one"]]), "words", "NFC")
    for text in (f"{'x' * 200} one", f"{'x' * 200} one{' ' * 200}"):
        ids, was_cut = encode_target(tokenizer, text, TEXT)
        assert (ids.tolist(), was_cut) == ([*tokenizer.encode(text), EOS], False)
    ids, was_cut = encode_target(tokenizer, "one " * 100, TEXT)
    assert (ids.tolist(), was_cut) == ([*tokenizer.encode("one") * 7], True)


def test_characters_behind_the_cut_do_not_count():
    assert num_scored_characters(WORDS, "one  two", TEXT) == 8
    assert num_scored_characters(WORDS, "one " * 20, TEXT) == len("one one one one one one one")
