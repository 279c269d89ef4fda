"""The lexicon of a speech program: forms, formats, known words, and what is left out."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

import heedful as package
from heedful.predictors.pronouncer import Pronouncer
from heedful.predictors.translator import Translator
from heedful.text.pronunciations import LexiconFormat, Pronunciation, entry_lines, entry_of, words_of
from heedful.text.tokenizer import UnitTokenizer
from heedful.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.cli.command import heedful
from tests.cli.conftest import Trained
from tests.prove import prove_sherpa
from tests.thorough import thorough

TWO = [Pronunciation(("R", "EH1", "D"), 0.6), Pronunciation(("R", "IY1", "D"), 0.3)]


def test_lines_of_each_format():
    lines = {name: entry_lines("read", TWO, name) for name in get_args(LexiconFormat)}
    assert lines == {
        "sherpa": "read R EH1 D\nread R IY1 D\n",
        "sherpa-ipa": "read || R EH1 D\n",
        "cmudict": "read  R EH1 D\nread(2)  R IY1 D\n",
        "mfa": "read\t0.60\tR EH1 D\nread\t0.30\tR IY1 D\n",
        "kaldi": "read 1.0000 R EH1 D\nread 0.5000 R IY1 D\n",
    }


def test_every_format_is_read_as_it_is_written():
    for name in get_args(LexiconFormat):
        lines = entry_lines("a(b", TWO, name).splitlines()
        assert [entry_of(line) for line in lines] == [("a(b", one.phones) for one in TWO[: len(lines)]]
    others = {
        "well\t0.99\t0.2\t1.0\t1.0\tW EH1 L": ("well", ("W", "EH1", "L")),  # with probabilities of silences
        "(2)  T UW1": ("(2)", ("T", "UW1")),
        "New York\tN UW": ("New York", ("N", "UW")),
        "New York || n u": ("New York", ("n", "u")),
        "ni n i3 # tone": ("ni", ("n", "i3")),
        **dict.fromkeys(("", " ", "#HASH  HH", ";;; a b", "word", "word\t", "word 0.5", "\t", "# a"), None),
    }
    assert {line: entry_of(line) for line in others} == others


def test_no_probability_is_zero():
    """Kaldi and the aligner refuse a lexicon with one."""
    for probabilities in ((0.9, 1e-9), (0.0, 0.0), (1e-320, 1e-323)):
        entries = [Pronunciation((str(number),), each) for number, each in enumerate(probabilities)]
        for kind, place in (("kaldi", 1), ("mfa", 1)):
            lines = [line.split() for line in entry_lines("a", entries, kind).splitlines()]  # type: ignore[arg-type]
            assert all(0.0 < float(line[place]) <= 1.0 for line in lines)
            assert kind == "mfa" or lines[0][place] == "1.0000"


def test_words_of_a_text():
    assert words_of("Don’t «stop»: 3 naïve, well-known words—and more.") == [
        *("Don’t", "stop", "naïve", "well-known", "words", "and", "more"),
    ]


@pytest.fixture(scope="module")
def pronouncer(trained: Trained) -> Pronouncer:
    translator = package.load(trained.model)
    assert isinstance(translator, Translator)
    return Pronouncer(translator)


def test_a_word_is_read_in_letters_that_the_model_knows():
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *"abdef'"])
    letters = UnitTokenizer(vocabulary, "characters", "NFC", reads_forms=True)
    translator = SimpleNamespace(
        source_tokenizer=letters, target_tokenizer=letters, text=SimpleNamespace(target_units="characters")
    )
    pronouncer = Pronouncer(translator)  # type: ignore[arg-type]
    read = {word: pronouncer.reading(word) for word in ("fade", "FADE", "Fade", "fàdé", "ﬀ", "b’d", "北京", "12")}
    assert read == {
        "fade": "fade",
        "FADE": "fade",
        "Fade": "fade",
        "fàdé": "fade",
        "ﬀ": "ff",
        "b’d": "b'd",
        "北京": "",
        "12": "",
    }


def test_pronunciations_are_those_of_the_translator_by_probability(pronouncer: Pronouncer):
    (found,) = pronouncer.pronounce(["fade"], 4)
    (output,) = pronouncer.translator.translate(["fade"], nbest=4)
    assert {"".join(one.phones) for one in found} == {one.text for one in output.alternatives}
    (greedy,) = pronouncer.pronounce(["fade"], beam=1)
    assert "".join(greedy[0].phones) == pronouncer.translator.translate(["fade"], beam=1)[0].text
    shares = [one.probability for one in found]
    assert shares == sorted(shares, reverse=True)
    (likely,) = pronouncer.pronounce(["fade"], 4, min_probability=0.999)
    assert likely == tuple(one for one in found if one.probability >= 0.999 * shares[0])


def test_a_lexicon_of_a_file(trained: Trained, tmp_path: Path):
    words, known, lexicon = tmp_path / "words.txt", tmp_path / "known.dict", tmp_path / "lexicon.txt"
    words.write_text("fade\ncab\n\nfade\n北京\nbead\n", "utf-8")
    known.write_text("cab  K AE1 B\ncab(2)  K AA1 B\nace  EY1 S\n", "utf-8")
    done = heedful(
        "lexicon", trained.model, words, "--known", known, "--nbest", 2, "--min-probability", 1, "-o", lexicon
    )
    assert done.code == 0
    assert "1 word left out that the model cannot pronounce: 北京" in done.err
    lines = lexicon.read_text("utf-8").splitlines()
    assert [line.split()[0] for line in lines] == ["fade", "cab", "cab", "bead"]
    assert lines[1:3] == ["cab K AE1 B", "cab K AA1 B"]
    (fade,) = Pronouncer(package.load(trained.model)).pronounce(["fade"])  # type: ignore[arg-type]
    assert lines[0] == " ".join(["fade", *fade[0].phones])


def test_words_that_no_lexicon_can_have(trained: Trained, tmp_path: Path):
    words, known, lexicon = tmp_path / "words.txt", tmp_path / "known.tsv", tmp_path / "lexicon.txt"
    words.write_text(f"fade\nfade cab\ncab fade\n\x1b[2J\n{'abc' * 100}\nbead\n", "utf-8")
    known.write_text("cab fade\tK AE1 B\n", "utf-8")
    done = heedful("lexicon", trained.model, words, "--known", known, "-o", lexicon)
    assert done.code == 0
    assert "4 words left out that the model cannot pronounce: fade cab, cab fade, \\x1b[2J, ..." in done.err
    assert "\x1b" not in done.err
    assert [line.split()[0] for line in lexicon.read_text("utf-8").splitlines()] == ["fade", "bead"]


def test_words_of_a_text_that_a_lexicon_lacks(trained: Trained, tmp_path: Path):
    text, known = tmp_path / "text.txt", tmp_path / "known.dict"
    text.write_text("a cab, a bead; a cab!\n", "utf-8")
    known.write_text("cab  K AE1 B\nace  EY1 S\n", "utf-8")
    done = heedful("lexicon", trained.model, "--text", text, "--known", known, "--oov", "--format", "cmudict")
    assert [line.split("  ")[0] for line in done.out.splitlines()] == ["a", "bead"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give a file of words, or --text FILE"),
        (["words.txt", "--text", "x.txt"], "give a file of words, or --text FILE"),
        (["words.txt", "--oov"], "name it by --known FILE"),
        (["words.txt", "--format", "xml"], "xml"),
        (["missing.txt"], "missing.txt"),
    ],
)
def test_what_does_not_fit_is_one_line(trained: Trained, options: list[str], message: str):
    done = heedful("lexicon", trained.model, *options)
    assert done.code == 2
    assert message in done.err


@pytest.fixture
def known(tmp_path: Path) -> Path:
    path = tmp_path / "known.txt"
    path.write_text("abc a b ts\nbca p t\nfade f ə\n", encoding="utf-8")
    return path


def test_phones_that_a_voice_lacks_are_named(trained: Trained, known: Path, tmp_path: Path):
    tokens, words = tmp_path / "tokens.txt", tmp_path / "words.txt"
    words.write_text("abc\nbca\nfade\n", encoding="utf-8")
    command = ("lexicon", trained.model, words, "--known", known, "--tokens", tokens)
    for listed, kind, told in (
        ("_ a b ts p t f ə", "sherpa", None),
        (
            "_ a b p t f",
            "sherpa",
            "2 phones that {} lacks, which its voice does not speak: ts (in 1 word), ə (in 1 word)",
        ),
        ("_ a b t s f ə", "sherpa-ipa", "1 phone that {} lacks, which its voice does not speak: p (in 1 word)"),
    ):
        lines = [f"{token} {number}\n" for number, token in enumerate([" ", *listed.split()])]
        tokens.write_text("".join(lines), encoding="utf-8")
        done = heedful(*command, "--format", kind)
        assert (done.code, done.out.count("\n")) == (0, 3)
        warnings = [f"heedful: warning: {told.format(tokens)}"] if told else []
        assert done.err.splitlines() == ["3 words written", *warnings]
    tokens.write_text("no tokens\n", encoding="utf-8")
    refused = heedful(*command)
    assert (refused.code, len(refused.errors)) == (2, 1)
    assert "no tokens; tokens.txt has a token and its id on each line" in refused.err


@thorough
def test_sherpa_onnx_speaks_every_word(trained: Trained, known: Path, tmp_path: Path):
    """Its loader and frontend read the lexicon; the voice only tells which tokens it is given."""
    if subprocess.run([prove_sherpa.PYTHON, "-c", "import sherpa_onnx"], capture_output=True, check=False).returncode:
        pytest.skip("needs the package sherpa-onnx, in this Python or that of HEEDFUL_SHERPA")
    words = tmp_path / "words.txt"
    words.write_text("abc\nbca\nfade\ncab\n", encoding="utf-8")
    for kind in prove_sherpa.FORMATS:
        lexicon = prove_sherpa.write_lexicon(tmp_path, trained.model, words, kind, "--known", str(known))
        voice = prove_sherpa.voice_for(tmp_path, lexicon, kind)
        entries = prove_sherpa.read_lexicon(lexicon)
        assert len(entries) == 4
        samples, said = prove_sherpa.spoken(voice, lexicon, [*entries])
        phones = [each if kind == "sherpa" else (*"".join(each),) for each in entries.values()]
        assert [tuple(prove_sherpa.tokens_of(one, voice)) for one in samples] == phones, said
