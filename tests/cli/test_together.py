"""`heedful train --together`: one model for several files, asked by the name of one."""

from pathlib import Path

import pytest

from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.runs.api import train_model
from tests.cli.command import Done, heedful
from tests.cli.conftest import Trained
from tests.cli.test_source_columns import QUICK, SMALL
from tests.thorough import thorough

SIZES = ("--preset=rnnsearch-tiny", *(f"--set=model.{size}" for size in SMALL))
WORDS = [first + second + third for first in "bdfg" for second in "aei" for third in "lmnr"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Words in capitals, and words written backwards, of which there are fewer."""
    folder = tmp_path_factory.mktemp("together")
    upper, back = folder / "upper_train.tsv", folder / "back_train.tsv"
    upper.write_text("".join(f"{word}\t{word.upper()}\n" for word in WORDS), encoding="utf-8")
    back.write_text("".join(f"{word}\t{word[::-1]}\n" for word in WORDS[:12]), encoding="utf-8")
    return [upper, back]


@pytest.fixture(scope="module")
def joined(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    model = tmp_path_factory.mktemp("model") / "m"
    parts = [f"--{part}={path}" for part in ("dev", "test") for path in files]
    settings = (*SIZES, *QUICK, "--set=training.export=false")
    return model, heedful("train", *files, "--together", "--out", model, *parts, *settings)


def test_each_file_is_a_column_and_has_scores(joined: tuple[Path, Done]):
    model, done = joined
    assert done.code == 0, done.err
    assert "upper: 48 pairs\nback: 12 pairs, each 2 times\n" in done.err
    lines = [line.strip() for line in done.out.splitlines() if line.startswith(("       back: ", "       upper: "))]
    assert [line.split(": exact match ")[0] for line in lines] == ["back", "upper"]
    assert lines[0].endswith("; 12 sources")
    translator = load(model, kind=Translator)
    assert translator.text.source_columns == ["text", "features"]
    assert "+".join(translator.folder.facts["columns"][:1]) == "source 1+file"
    tokenizer = translator.source_tokenizer
    assert [tokenizer.pieces(tokenizer.encode(f"b | {tag}"))[-1] for tag in ("upper", "back")] == ["upper", "back"]


def test_a_source_is_given_the_name_of_a_file(joined: tuple[Path, Done], files: list[Path], tmp_path: Path):
    model, _ = joined
    words = tmp_path / "words.txt"
    words.write_text("bal\n\nfin\n", encoding="utf-8")
    written = heedful("translate", model, "bal | back", "", "fin | back")
    named = heedful("translate", model, "--as", "back", "bal", "", "fin")
    assert (named.code, named.out) == (0, written.out)
    assert heedful("translate", model, "--as", "back", "-i", words).out == written.out
    table = heedful("translate", model, "--as", "back", "-i", files[1], "--columns", "1")
    assert table.out.count("\n") == 12
    # A source that has its column keeps it.
    assert heedful("translate", model, "--as", "upper", "bal | back", "", "fin | back").out == written.out
    for command in ("pronounce", "lexicon"):
        argument = words if command == "lexicon" else "bal fin"
        assert heedful(command, model, "--as", "back", argument).code == 0, command
    scored = heedful("evaluate", model, files[1], "--as", "back")
    assert scored.code == 0, scored.err
    assert "12 items" in scored.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--as", "left", "bal"), "--as left: the model does not know left; it knows "),
        (("bal",), "or name the last one by --as"),
    ],
)
def test_unknown_names_are_refused(joined: tuple[Path, Done], arguments: tuple[str, ...], words: str):
    done = heedful("translate", joined[0], *arguments)
    assert done.code in (2, 3)
    assert words in done.err


def test_a_model_of_single_texts_has_no_last_column(trained: Trained):
    done = heedful("translate", trained.model, "--as", "upper", "bal")
    assert (done.code, "has no last column of names" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--task", "classification"), "not for classification"),
        (("--monolingual", "x.txt"), "leave out --monolingual"),
        (("--from", "x.model", "--task", "translation"), "leave out --from"),
        (("--mix", "x.tsv"), "leave out --mix and --links"),
        (("--dev", "DATA"), "2 files for training, 1 for dev"),
    ],
)
def test_options_that_exclude_it(files: list[Path], tmp_path: Path, options: tuple[str, ...], words: str):
    given = [files[0] if option == "DATA" else option for option in options]
    done = heedful("train", *files, "--together", "--out", tmp_path / "m", *given)
    assert done.code == 2
    assert words in done.err
    assert not [*tmp_path.iterdir()]
    assert heedful("train", files[0], "--together").code == 2


@thorough
def test_together_in_python(files: list[Path], tmp_path: Path):
    sizes = {"model.embedding_size": 8, "model.hidden_size": 8, "training.max_steps": 2}
    model = train_model(
        *files, together=True, out=tmp_path / "m", preset="rnnsearch-tiny", settings=sizes, quiet=True, kind=Translator
    )
    assert model.translate(["bal | back"])[0].source == "bal | back"
