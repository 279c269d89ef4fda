"""Tables of words of the training pairs."""

from pathlib import Path

import pytest

from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.word_tables import FORMS, LEXICON, store_word_tables
from heedful.errors import FileRefused
from heedful.text.lexicon import Lexicon
from heedful.text.tokenizer import PieceTokenizer
from heedful.text.vocabulary import EOS
from heedful.text.word_forms import WordForms

WORDS = {"Hund": "dog", "Katze": "cat", "Maus": "mouse", "Straße": "street", "Vögel": "birds", "Haus": "house"}
PAIRS = [(f"Der {one} sieht {other}.", f"The {WORDS[one]} sees {WORDS[other]}.") for one in WORDS for other in WORDS]


def test_tables_are_learned_once(tmp_path: Path):
    (tmp_path / "run/data").mkdir(parents=True)
    tokenizer = PieceTokenizer.train([text for pair in PAIRS for text in pair], 330, "NFC")
    sides = (EncodedSide.of([[*tokenizer.encode(pair[side]), EOS] for pair in PAIRS]) for side in (0, 1))
    corpus = EncodedCorpus(*sides)
    assert store_word_tables(corpus, (tokenizer, tokenizer), tmp_path) == {"forms": FORMS, "lexicon": LEXICON}
    forms = WordForms.load(tmp_path / FORMS, tokenizer)
    assert forms.restored("DER HUND SIEHT VOEGEL") == "Der Hund sieht Vögel"
    lexicon = Lexicon.load(tmp_path / LEXICON)
    assert lexicon.associations([*map(str.lower, WORDS)], [*WORDS.values()]).argmax(1).tolist() == [*range(len(WORDS))]
    store_word_tables(EncodedCorpus(EncodedSide.of([]), EncodedSide.of([])), (tokenizer, tokenizer), tmp_path)
    assert len(Lexicon.load(tmp_path / LEXICON)) == len(lexicon)
    (tmp_path / FORMS).write_text("other\n", "utf-8")
    with pytest.raises(FileRefused):
        store_word_tables(corpus, (tokenizer, tokenizer), tmp_path)
