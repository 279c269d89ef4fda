import os
import shutil
from array import array
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from heedful.data import encoded, first_reading
from heedful.data import prepare as module
from heedful.data.corpus import Pair, find_pairs
from heedful.data.prepare import EvaluationSet, PreparedPairs, Sources, choose_units, find_pronunciations, prepare
from heedful.data.prepared_files import TOKENIZERS
from heedful.data.prepared_tokenizers import sampled
from heedful.data.same_data import EXPERIMENT
from heedful.data.split import Split
from heedful.errors import DataError, FileRefused
from heedful.text.tokenizer import PieceTokenizer, TextConfig, UnitTokenizer
from heedful.text.vocabulary import EOS
from tests.prove.disk import DEAD, Call, calls, in_child

CHARACTERS = TextConfig(source_units="characters", target_units="characters")


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8", newline="\n")
    return path


def rows(num: int, start: int = 0) -> list[tuple[str, str]]:
    return [(f"source {i}", f"target {i * i}") for i in range(start, start + num)]


def run(
    tmp_path: Path,
    train: list[tuple[str, str]],
    dev: list[tuple[str, str]] | None = None,
    test: list[tuple[str, str]] | None = None,
    config: TextConfig = CHARACTERS,
    folder: str = "model",
) -> PreparedPairs:
    files = [
        None if part is None else find_pairs([write(tmp_path / f"{name}.tsv", part)])
        for name, part in (("train", train), ("dev", dev), ("test", test))
    ]
    assert files[0] is not None
    (tmp_path / folder).mkdir(exist_ok=True)
    return prepare(Sources(*files), config, tmp_path / folder)


def training_pairs(prepared: PreparedPairs) -> list[tuple[str, str]]:
    return [
        (
            prepared.source_tokenizer.decode(prepared.train.source[i].tolist()),
            prepared.target_tokenizer.decode(prepared.train.target[i].tolist()),
        )
        for i in range(len(prepared.train))
    ]


def test_ten_pairs_are_validated_on_themselves_and_it_says_so(tmp_path: Path):
    prepared = run(tmp_path, rows(10))
    assert training_pairs(prepared) == rows(10)
    assert prepared.dev.sources == [source for source, _ in rows(10)]
    assert len(prepared.test) == 0
    assert any("says nothing about new ones" in line for line in prepared.report)


def test_nine_are_too_few(tmp_path: Path):
    with pytest.raises(DataError, match=r"train\.tsv: 9 of 9 pairs kept; training needs at least 10: give more rows"):
        run(tmp_path, rows(9))


def test_larger_files_are_split_by_source(tmp_path: Path):
    # Each source twice, with different targets: both fall together.
    pairs = [(source, target + more) for source, target in rows(500) for more in ("", "!")]
    prepared = run(tmp_path, pairs)
    trained = {source for source, _ in training_pairs(prepared)}
    parts = [trained, set(prepared.dev.sources), set(prepared.test.sources)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 500
    assert 25 <= len(parts[1]) <= 80
    assert 25 <= len(parts[2]) <= 80
    assert {len(references) for references in prepared.dev.references} == {2}
    assert any("split by a hash of the source" in line for line in prepared.report)


def test_who_brings_a_dev_file_keeps_all_of_the_rest(tmp_path: Path):
    prepared = run(tmp_path, rows(300), dev=rows(5, start=1000))
    assert len(prepared.train) == 300
    assert prepared.dev.sources == [source for source, _ in rows(5, start=1000)]
    assert len(prepared.test) == 0


def test_who_brings_a_test_file_has_validation_split_off(tmp_path: Path):
    prepared = run(tmp_path, rows(300), test=rows(5, start=1000))
    assert len(prepared.train) + len(prepared.dev) == 300
    assert len(prepared.dev) > 5
    assert len(prepared.test) == 5


def test_evaluation_rows_that_were_trained_on_are_reported(tmp_path: Path):
    prepared = run(tmp_path, rows(20), dev=rows(3) + rows(2, start=100), test=rows(4, start=200))
    assert any(line.startswith("validation: 3 of 5 rows are in the training data") for line in prepared.report)
    assert not any(line.startswith("test:") for line in prepared.report)


def test_what_is_left_out_is_counted(tmp_path: Path):
    config = CHARACTERS.model_copy(update={"max_tokens": 12, "max_characters": 50})
    pairs = [*rows(10), ("", "empty"), ("source 0", "target 0"), ("x" * 51, "too long"), ("x" * 12, "no room for eos")]
    prepared = run(tmp_path, pairs, config=config)
    report = " ".join(prepared.report)
    assert "12 of 14 pairs kept (1 empty, 1 too long left out); repeated ones count as often as they occur: 1" in report
    assert "1 pair longer than 12 tokens left out of training" in report
    assert len(prepared.train) == 11  # one of them twice
    assert int(prepared.train.source.lengths.max()) <= 12


def test_training_may_have_a_limit_of_its_own(tmp_path: Path):
    config = CHARACTERS.model_copy(update={"max_training_tokens": 10})
    prepared = run(tmp_path, [*rows(10), ("x" * 12, "long")], config=config, dev=[("y" * 20, "longer")])
    assert "1 pair longer than 10 tokens left out of training" in " ".join(prepared.report)
    assert int(prepared.train.source.lengths.max()) <= 10
    assert prepared.dev.sources == ["y" * 20]
    assert TextConfig(max_tokens=5, max_training_tokens=9).longest == 5


@pytest.mark.parametrize("limit", ["max_tokens", "max_training_tokens"])
def test_where_every_pair_is_too_long_it_says_what_to_do(limit: str, tmp_path: Path):
    with pytest.raises(DataError, match=rf"raise text\.{limit}$"):
        run(tmp_path, rows(10), config=CHARACTERS.model_copy(update={limit: 2}))


def test_every_sequence_ends_in_eos(tmp_path: Path):
    prepared = run(tmp_path, rows(20))
    for side in (prepared.train.source, prepared.train.target):
        assert all(side[i][-1] == EOS and EOS not in side[i][:-1] for i in range(len(side)))


@pytest.mark.parametrize(
    ("config", "kinds", "files"),
    [
        (TextConfig(), (PieceTokenizer, PieceTokenizer), {"tokenizer.model"}),
        (CHARACTERS, (UnitTokenizer, UnitTokenizer), {"tokenizer.json"}),
        (
            TextConfig(shared=False),
            (PieceTokenizer, PieceTokenizer),
            {"tokenizer-source.model", "tokenizer-target.model"},
        ),
        (
            TextConfig(target_units="characters"),
            (PieceTokenizer, UnitTokenizer),
            {"tokenizer-source.model", "tokenizer-target.json"},
        ),
    ],
)
def test_which_tokenizers_are_made(config: TextConfig, kinds: tuple[type, type], files: set[str], tmp_path: Path):
    prepared = run(tmp_path, rows(60), config=config)
    assert (type(prepared.source_tokenizer), type(prepared.target_tokenizer)) == kinds
    assert set(prepared.tokenizer_files.values()) == files
    assert {path.name for path in (tmp_path / "model").glob("tokenizer*")} == files
    assert (prepared.source_tokenizer is prepared.target_tokenizer) == (len(files) == 1)
    assert training_pairs(prepared) == rows(60)


def test_held_out_pairs_teach_the_tokenizer_nothing(tmp_path: Path):
    pairs = [(f"{chr(0x4E00 + i)} x", "y") for i in range(400)]
    prepared = run(tmp_path, pairs)
    assert isinstance(prepared.source_tokenizer, UnitTokenizer)
    known = set(prepared.source_tokenizer.vocabulary.tokens)
    assert not any(source[0] in known for source in prepared.dev.sources + prepared.test.sources)
    assert all(source[0] in known for source, _ in training_pairs(prepared))


def test_a_second_call_takes_what_the_first_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = run(tmp_path, rows(120))

    def refuse(*_: object) -> None:
        raise AssertionError("done twice")

    monkeypatch.setattr("heedful.data.prepared_tokenizers.train_tokenizer", refuse)
    monkeypatch.setattr(module, "write_encoded", refuse)
    second = run(tmp_path, rows(120))
    assert training_pairs(second) == training_pairs(first)
    assert (second.dev, second.test, second.report) == (first.dev, first.test, first.report)
    assert second.tokenizer_files == first.tokenizer_files


def prepared_from(train: Path, tmp_path: Path, config: TextConfig = CHARACTERS) -> PreparedPairs:
    return prepare(Sources(find_pairs([train])), config, tmp_path / "model")


def test_a_second_call_for_the_same_files_reads_no_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    train = write(tmp_path / "train.tsv", rows(120))
    first = prepared_from(train, tmp_path)

    def refuse(*_: object) -> None:
        raise AssertionError("read again")

    with monkeypatch.context() as patch:
        patch.setattr(module.CorpusFilter, "apply", refuse)
        patch.setattr("heedful.data.prepared_tokenizers.train_tokenizer", refuse)
        second = prepared_from(train, tmp_path)
    assert training_pairs(second) == training_pairs(first)
    assert (second.dev, second.test, second.report) == (first.dev, first.test, first.report)
    assert second.tokenizer_files == first.tokenizer_files


def test_files_or_settings_that_changed_are_score_missing(tmp_path: Path):
    train = write(tmp_path / "train.tsv", rows(120))
    prepared_from(train, tmp_path)
    kept = train.stat().st_mtime_ns
    write(train, rows(30) + rows(90, 200))
    os.utime(train, ns=(kept, kept))  # of another size only
    assert set(prepared_from(train, tmp_path).dev.sources) <= {source for source, _ in rows(30) + rows(90, 200)}
    before = prepared_from(train, tmp_path)
    write(train, [(f"Source {i}", f"target {i * i}") for i in (*range(30), *range(200, 290))])
    os.utime(train, ns=(kept + 1, kept + 1))  # of another time only
    after = prepared_from(train, tmp_path)
    assert before.dev != after.dev
    assert all(source.startswith("Source") for source in after.dev.sources)
    fewer = CHARACTERS.model_copy(update={"max_characters": 9})
    assert any("left out" in line for line in prepared_from(train, tmp_path, fewer).report)


@pytest.mark.parametrize("lost", ["encoded.json", "prepared.json"])
def test_what_is_lost_is_made_again(lost: str, tmp_path: Path):
    train = write(tmp_path / "train.tsv", rows(120))
    first = prepared_from(train, tmp_path)
    (tmp_path / "model/run/data" / lost).unlink()
    second = prepared_from(train, tmp_path)
    assert training_pairs(second) == training_pairs(first)
    assert (second.dev, second.report) == (first.dev, first.report)


def test_an_interrupted_encoding_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    calls = count()

    def stop(file: encoded._HashedFile, integers: "array[int]") -> None:
        if next(calls) == 40:
            raise KeyboardInterrupt
        write_integers(file, integers)

    write_integers = encoded._HashedFile.write
    with monkeypatch.context() as patch:
        patch.setattr(encoded._HashedFile, "write", stop)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, rows(30))
    assert training_pairs(run(tmp_path, rows(30))) == rows(30)


WORDS = TextConfig(source_units="words", target_units="words", min_count=1)
STORED = (
    "run/data/prepared.json",
    "run/data/tokenizers.json",
    "run/data/encoded.json",
    "run/data/source.ids",
    "run/data/target.ids",
    "run/data/source.offsets",
    "run/data/target.offsets",
    "run/data/dictionary.json",
    "tokenizer.json",
    "dictionary.tsv",
)
"""What a second call for the same files reads."""
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "flipped": lambda whole: (
        whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 4]) + whole[len(whole) // 2 + 1 :]
    ),
}


@pytest.mark.parametrize(("damage", "has_begun"), [*((damage, True) for damage in DAMAGES), ("flipped", False)])
@pytest.mark.parametrize("file", STORED)
def test_what_is_damaged_is_made_again_and_said(file: str, damage: str, has_begun: bool, tmp_path: Path):
    train = write(tmp_path / "train.tsv", rows(120))
    first = prepared_from(train, tmp_path, WORDS)
    pairs = training_pairs(first)
    model = tmp_path / "model"
    if has_begun:
        (model / EXPERIMENT).touch()
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    assert {str(path.relative_to(model)) for path in before} >= set(STORED)
    path = model / file
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    second = prepared_from(train, tmp_path, WORDS)
    assert training_pairs(second) == pairs
    assert (second.dev, second.test, second.tokenizer_files) == (first.dev, first.test, first.tokenizer_files)
    assert {path: path.read_bytes() for path in model.rglob("*") if path.is_file()} == before
    *report, said = second.report
    assert tuple(report) == first.report
    assert said.endswith("prepared again from the data files")
    assert path.name in said
    assert prepared_from(train, tmp_path, WORDS).report == first.report


@pytest.mark.skipif(os.name == "nt", reason="needs fork")
def test_a_death_at_any_call_of_a_preparation_is_made_good(tmp_path: Path):
    train = write(tmp_path / "train.tsv", rows(30))
    first = prepared_from(train, tmp_path, WORDS)
    pairs = training_pairs(first)
    model = tmp_path / "model"
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    for number in count(step=4):
        shutil.rmtree(model)
        model.mkdir()
        numbers = count()

        def die(call: Call, numbers: Iterator[int] = numbers, number: int = number) -> None:
            if next(numbers) == number:
                os._exit(DEAD)

        def prepare_and_die(die: Callable[[Call], None] = die) -> None:
            with calls(die):
                prepared_from(train, tmp_path, WORDS)

        status = in_child(prepare_and_die)
        again = prepared_from(train, tmp_path, WORDS)
        assert training_pairs(again) == pairs
        assert (again.dev, again.test, again.tokenizer_files) == (first.dev, first.test, first.tokenizer_files)
        assert {path: path.read_bytes() for path in model.rglob("*") if path.is_file()} == before
        if status == 0:
            break
    assert number > 20


def test_tokenizers_that_a_begun_training_depends_on_stay(tmp_path: Path):
    prepared_from(write(tmp_path / "train.tsv", rows(120)), tmp_path)
    model = tmp_path / "model"
    (model / EXPERIMENT).touch()
    tokenizer = (model / "tokenizer.json").read_bytes()
    for record in (False, True):  # with other pairs the checksums of the record are not met either
        if record:
            (model / TOKENIZERS).unlink()
        (model / "tokenizer.json").write_bytes(tokenizer[:-9] if not record else tokenizer)
        (model / "run/data/prepared.json").unlink(missing_ok=True)
        other = write(tmp_path / "train.tsv", [(f"other words {i}", str(i)) for i in range(200)] + rows(3))
        with pytest.raises(FileRefused, match=r"tokenizer\.json: missing, damaged or made by another version"):
            prepared_from(other, tmp_path)
        assert (model / "tokenizer.json").read_bytes() == (tokenizer if record else tokenizer[:-9])
    assert not [path for path in model.rglob("*.unfinished")]


def test_the_sample_for_tokenizers_is_uniform():
    pairs = [Pair(str(i), "", i) for i in range(1000)]
    sample = sampled(iter(pairs), 100)
    places = np.array([pair.line for pair in sample])
    assert len(set(places.tolist())) == 100
    assert 400 < places.mean() < 600
    assert sampled(iter(pairs), 100) == sample
    assert sampled(iter(pairs), 5000) == pairs


def test_evaluation_sets_group_references_and_leave_out_blank_sources():
    pairs = [Pair("a", "x", 1), Pair(" ", "y", 2), Pair("a", "z", 3), Pair("b", "", 4)]
    assert EvaluationSet.of(pairs) == EvaluationSet(["a", "b"], [["x", "z"], [""]])


def test_a_dev_file_without_a_source_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="validation: no usable pair"):
        run(tmp_path, rows(20), dev=[(" ", "x"), ("", "y")])


@pytest.mark.parametrize(
    ("rows", "units"),
    [
        ([("March 5th, 2021", "2021-03-05"), ("三月五日", "03-05")], "characters"),
        ([("a", "b" * 20)], "characters"),
        ([("a", "b" * 21)], "pieces"),
        ([("b" * 21, "a")], "pieces"),
        (
            [("Two dogs run across the field.", "Zwei Hunde laufen über die Wiese.")],
            "pieces",
        ),
        ([("我爱你。", "I have loved you for a very long time.")], "pieces"),
    ],
)
def test_short_items_are_read_by_characters(tmp_path: Path, rows: list[tuple[str, str]], units: str):
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8", newline="\n")
    assert choose_units(find_pairs([file]), 100) == units


@pytest.mark.parametrize(
    ("rows", "has_spaces"),
    [
        ([("ita", "i t a"), ("che", "k e"), ("giù", "d͡ʒ u")], True),
        ([("HELLO", "HH AH0 L OW1"), ("A", "AH0")], True),
        ([("hoofs", "ˈhufs"), ("tone", "ˈtoʊn")], False),
        ([("矋", "li˥˩"), ("锁", "suɔ˨˩˦")], False),
        ([("portbagaj", "portbaɡaʒ"), ("şase", "ʃase"), ("cânt", "kɨnt"), ("câini", "kɨjnʲ"), ("fată", "fatə")], False),
        ([("cat", "Katze"), ("dog", "Hund")], None),
        ([("ita", "ita"), ("che", "ke")], None),
        ([("notebook", "dəftər"), ("school", "məktəb")], None),
        ([("ˈhufs", "ˈhʊfs"), ("ˈtoʊn", "ˈtoʊn")], None),
        ([("hoofs and horns", "ˈhufs ən ˈhɔrnz"), ("tone", "ˈtoʊn")], None),
        ([("new york", "n u j o r k"), ("ita", "i t a")], None),
        ([("三月", "san1 yue4"), ("中国", "zhong1 guo2")], None),
        ([("a b", "a"), ("b", "a")], None),
        ([("5", "a"), ("6", "b")], None),
    ],
)
def test_pronunciations_are_symbols_or_letters_of_the_ipa(
    tmp_path: Path, rows: list[tuple[str, str]], has_spaces: bool | None
):
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8", newline="\n")
    found = find_pronunciations(find_pairs([file]), 100)
    assert found == (None if has_spaces is None else (has_spaces, True))


def test_a_large_lexicon_is_no_small_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = write(tmp_path / "pairs.tsv", [(f"w{number}", f"W {number % 7} {number}") for number in range(60)])
    for most, is_small in ((60, True), (59, False)):
        monkeypatch.setattr(module, "FEW_PRONUNCIATIONS", most)
        assert find_pronunciations(find_pairs([file]), 100) == (True, is_small)


def test_what_is_left_out_of_training_does_not_choose_the_units(tmp_path: Path):
    file = tmp_path / "pairs.tsv"
    file.write_text(f"abc\tabd\n{'long ' * 40}\tx\n", encoding="utf-8", newline="\n")
    assert choose_units(find_pairs([file]), 100) == "characters"
    assert choose_units(find_pairs([file]), 1000) == "pieces"


@pytest.mark.parametrize("most", [1, 7, 10**9])
@pytest.mark.parametrize("num_pairs", [99, 100, 500, 12_000])
def test_held_out_pairs_are_those_of_the_split_however_few_are_kept_in_memory(
    num_pairs: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(first_reading, "_MOST_KEPT", most)
    pairs = rows(num_pairs) + rows(20)  # some twice
    (tmp_path / "train.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    file = find_pairs([tmp_path / "train.tsv"])
    first = first_reading.FirstReading(file, 100, has_dev=False, has_test=False)
    split = Split(num_pairs, has_dev=False, has_test=False)
    for part in ("dev", "test"):
        wanted = [pair for pair in rows(num_pairs) if split(Pair(*pair, 1)) == part]
        assert [pair[:2] for pair in first.held_out(part)] == wanted
    assert [pair[:2] for pair in first.sample] == [pair for pair in pairs if split(Pair(*pair, 1)) == "train"]
