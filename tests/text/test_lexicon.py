"""Lexicon of associations between words."""

from pathlib import Path

import numpy as np
import pytest

from heedful.errors import DataError, NewerFormat
from heedful.text.attention_links import attention_links, lexical_links, moved_links
from heedful.text.lexicon import LEAST, Lexicon, words_of
from heedful.text.tag_placement import CharacterLink
from heedful.text.word_alignment import associations, translation_probabilities

PAIRS = [
    ("Der Hund läuft.", "The dog runs."),
    ("Der Hund schläft.", "The dog sleeps."),
    ("Der Mann läuft.", "The man runs."),
    ("Ein Mann schläft.", "A man sleeps."),
]


def test_associations_are_means_of_both_directions():
    pairs = [(words_of(source), words_of(target)) for source, target in PAIRS]
    forward = translation_probabilities(pairs)
    backward = translation_probabilities([(target, source) for source, target in pairs])
    table = associations(pairs, 1e-6)
    expected = {
        (source, target): (share * backward[target][source]) ** 0.5
        for source, targets in forward.items()
        for target, share in targets.items()
    }
    found = {(source, target): share for source, targets in table.items() for target, share in targets.items()}
    assert found == {key: pytest.approx(share) for key, share in expected.items() if share >= 1e-6}
    assert associations([], 0.1) == associations([([], [])], 0.1) == {}


def test_lexica_are_stored(tmp_path: Path):
    path = tmp_path / "lexicon.tsv"
    Lexicon.learn(PAIRS).save(path)
    lexicon = Lexicon.load(path)
    table = lexicon.associations(["hund", "mann", "katze"], ["dog", "man"])
    assert table.shape == (2, 3)
    assert table[0, 0] > table[0, 1] >= 0
    assert table[1, 1] > table[1, 0] >= 0
    assert not table[:, 2].any()
    assert (table[table > 0] >= LEAST).all()
    assert lexicon.associations([], ["a"]).shape == (1, 0)
    for content, error in (("hund\tdog\t0.5\n", DataError), ("#heedful lexicon 9\n", NewerFormat)):
        path.write_text(content, "utf-8")
        with pytest.raises(error):
            Lexicon.load(path)
    path.write_text("#heedful lexicon 1\nhund\tdog\n", "utf-8")
    with pytest.raises(DataError, match=":2:"):
        Lexicon.load(path)


def best(links: list[CharacterLink], source: str, target: str) -> dict[str, str]:
    strongest = {link.target_start: link for link in sorted(links, key=lambda link: link.weight)}
    return {
        target[one.target_start : one.target_end]: source[one.source_start : one.source_end]
        for one in strongest.values()
    }


def test_a_lexicon_corrects_attention_and_attention_chooses_among_equal_words():
    source, target = "ein Hund und ein Mann", "a man and a dog"
    lexicon = Lexicon({"hund": {"dog": 0.9}, "mann": {"man": 0.9}, "ein": {"a": 0.6}, "und": {"and": 0.9}})
    tokens = [f"▁{word}" for word in source.split()], [f"▁{word}" for word in target.split()]
    weights = np.full((5, 5), 0.1)
    weights[0, 3] = weights[3, 0] = 0.6  # each "a" stands before another noun
    weights[1, 1] = weights[4, 4] = 0.6  # the nouns are confused
    alone = best(attention_links(source, target, *tokens, weights), source, target)
    both = attention_links(source, target, *tokens, weights, lexicon)
    assert (alone["man"], alone["dog"]) == ("Hund", "Mann")
    assert (best(both, source, target)["man"], best(both, source, target)["dog"]) == ("Mann", "Hund")
    first = max((link for link in both if link.target_start == 0), key=lambda link: link.weight)
    assert first.source_start == source.rindex("ein")
    assert best(lexical_links(source, target, lexicon), source, target)["man"] == "Mann"


def test_links_are_moved():
    links = [CharacterLink(0, 2, 1, 3, 0.5)]
    assert [*moved_links(links, [4, 9], [0, 1, 5])] == [CharacterLink(4, 10, 1, 6, 0.5)]
