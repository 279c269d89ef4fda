import re
from pathlib import Path

import numpy as np
import pytest

from heedful.data import corpus_links
from heedful.data.corpus_links import broadcast_links, link_corpus
from heedful.data.encoded import EncodedCorpus, EncodedSide, write_encoded
from heedful.files.formats import ENCODED_FORMAT
from heedful.files.records import read_facts, write_facts
from heedful.text.tokenizer import TextConfig, Tokenizer, Units
from heedful.text.tokenizer_training import train_tokenizer
from heedful.text.vocabulary import EOS
from heedful.text.word_alignment import align_pairs

# Every word stands beside different ones, so that the pairs alone say what belongs together.
WORDS = {"haus": "house", "Buch": "book", "rot": "red", "alt": "old", "sehr": "very", "klein": "little"}
ORDERS = [(0, 2), (1, 3), (0, 4, 3), (1, 4, 2), (0, 5), (1, 5), (5, 4), (2, 3), (3, 0), (2, 5, 1)]


def make_pairs() -> list[tuple[str, str]]:
    source, target = [*WORDS], [*WORDS.values()]
    pairs: list[tuple[str, str]] = []
    for number, order in enumerate(ORDERS):
        case = str.upper if number == 0 else str.lower
        pairs.append((case(" ".join(source[i] for i in order)), " ".join(target[i] for i in reversed(order))))
    return pairs


def encode(
    pairs: list[tuple[str, str]], units: tuple[Units, Units], size: int = 0
) -> tuple[EncodedCorpus, tuple[Tokenizer, Tokenizer]]:
    tokenizers: list[Tokenizer] = []
    sides: list[EncodedSide] = []
    for side, unit in enumerate(units):
        texts = [pair[side] for pair in pairs]
        tokenizers.append(train_tokenizer(texts, unit, size, TextConfig()))
        sides.append(EncodedSide.of([[*tokenizers[-1].encode(text), EOS] for text in texts]))
    return EncodedCorpus(sides[0], sides[1]), (tokenizers[0], tokenizers[1])


def links_of(corpus: EncodedCorpus, index: int) -> set[tuple[int, int]]:
    assert corpus.links is not None
    return set(zip(corpus.links.source[index].tolist(), corpus.links.target[index].tolist(), strict=True))


def wanted(order: tuple[int, ...]) -> set[tuple[int, int]]:
    return {(place, len(order) - 1 - place) for place in range(len(order))}


def test_words_are_linked_whatever_their_case(tmp_path: Path):
    corpus, tokenizers = encode(make_pairs(), ("words", "words"))
    linked = link_corpus(corpus, tokenizers, tmp_path)
    assert (linked.source, linked.target) == (corpus.source, corpus.target)
    assert [links_of(linked, index) for index in range(len(ORDERS))] == [wanted(order) for order in ORDERS]


@pytest.mark.parametrize("units", [("characters", "words"), ("words", "characters"), ("characters", "characters")])
def test_all_tokens_of_linked_words_are_linked(units: tuple[Units, Units], tmp_path: Path):
    pairs = make_pairs()
    corpus, tokenizers = encode(pairs, units)
    linked = link_corpus(corpus, tokenizers, tmp_path)
    for index, (texts, order) in enumerate(zip(pairs, ORDERS, strict=True)):
        spans: list[list[range]] = []
        for text, unit in zip(texts, units, strict=True):
            found = [match.span() for match in re.finditer(r" ?\w+", text)]
            is_word = unit == "words"
            spans.append([range(n, n + 1) if is_word else range(*span) for n, span in enumerate(found)])
        expected = {(s, t) for left, right in wanted(order) for s in spans[0][left] for t in spans[1][right]}
        assert links_of(linked, index) == expected


def test_links_of_pieces_lie_within_their_pair_and_never_at_an_end_mark(tmp_path: Path):
    pairs = make_pairs() * 3
    corpus, tokenizers = encode(pairs, ("pieces", "pieces"), 300)
    linked = link_corpus(corpus, tokenizers, tmp_path)
    for index in range(len(pairs)):
        found = links_of(linked, index)
        assert found
        assert all(s < corpus.source.lengths[index] - 1 and t < corpus.target.lengths[index] - 1 for s, t in found)
        # A word is linked as a whole, or not at all.
        words = [
            tokenizer.word_indices(side[index].tolist()[:-1])
            for tokenizer, side in zip(tokenizers, (corpus.source, corpus.target), strict=True)
        ]
        between = {(words[0][s], words[1][t]) for s, t in found}
        assert found == {
            (s, t) for s, left in enumerate(words[0]) for t, right in enumerate(words[1]) if (left, right) in between
        }


def test_the_tokens_of_a_text_without_spaces_are_its_words(tmp_path: Path):
    pairs = [("abcdefghijklmnopqrst", "x y"), ("bcdefghijklmnopqrsta", "y x"), ("cdefghijklmnopqrstab", "x")]
    corpus, tokenizers = encode(pairs, ("characters", "words"))
    linked = link_corpus(corpus, tokenizers, tmp_path)
    texts = [([*source], target.split()) for source, target in pairs]
    assert [links_of(linked, i) for i in range(3)] == [set(found) for found in align_pairs(texts, "grow-diag")]


def test_parts_are_aligned_by_themselves_and_stay_with_their_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # Every second pair is of another language, so that two parts find what the whole finds.
    pairs = [pair for one in make_pairs() for pair in (one, (one[1] + " ja", "yes " + one[0]))]
    corpus, tokenizers = encode(pairs, ("words", "words"))
    places = int(corpus.source.lengths @ corpus.target.lengths)
    monkeypatch.setattr(corpus_links, "MAX_PLACES", places // 2 + 1)
    sizes: list[int] = []

    def watched(part: list[tuple[list[str], list[str]]], method: str, model: str) -> list[list[tuple[int, int]]]:
        sizes.append(len(part))
        return align_pairs(part, method, model=model)  # type: ignore[arg-type]

    monkeypatch.setattr(corpus_links, "align_pairs", watched)
    linked = link_corpus(corpus, tokenizers, tmp_path)
    assert sizes == [len(ORDERS)] * 2
    assert [links_of(linked, 2 * index) for index in range(len(ORDERS))] == [wanted(order) for order in ORDERS]


def test_links_are_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    corpus, tokenizers = encode(make_pairs(), ("words", "words"))
    first = link_corpus(corpus, tokenizers, tmp_path)
    monkeypatch.setattr(corpus_links, "align_pairs", None)
    again = link_corpus(corpus, tokenizers, tmp_path)
    assert [links_of(again, i) for i in range(len(corpus))] == [links_of(first, i) for i in range(len(corpus))]
    assert again.links is not None
    assert again.links.source[0].dtype == np.uint16  # as in the files
    assert (tmp_path / "source.ids").stat().st_size == 2 * sum(len(order) for order in ORDERS)


@pytest.mark.parametrize("damage", ["cut", "flipped", "of other pairs", "no checksums"])
def test_damaged_links_are_made_again(damage: str, tmp_path: Path):
    corpus, tokenizers = encode(make_pairs(), ("words", "words"))
    first = link_corpus(corpus, tokenizers, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    path = tmp_path / "target.ids"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-2])
    elif damage == "flipped":
        path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    elif damage == "of other pairs":
        write_encoded(tmp_path, iter([([0], [0])] * (len(ORDERS) - 1)), 10)
    else:  # positions beyond the pair, in files of earlier versions
        write_encoded(tmp_path, iter([([9], [0])] * len(ORDERS)), 10)
        facts = read_facts(tmp_path / "encoded.json", ENCODED_FORMAT, "")
        write_facts(tmp_path / "encoded.json", ENCODED_FORMAT, {k: v for k, v in facts.items() if k != "files"})
    again = link_corpus(corpus, tokenizers, tmp_path)
    assert [links_of(again, i) for i in range(len(corpus))] == [links_of(first, i) for i in range(len(corpus))]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_words_without_a_token_in_common_are_spread_apart():
    assert broadcast_links([], [(0,)], [(0,)]) == ([], [])
    assert broadcast_links([(1, 0)], [(0,), (1, 2)], [(0, 1)]) == ([1, 1, 2, 2], [0, 1, 0, 1])
