"""The examples run as they are, only smaller where they train."""

import os
import random
import re
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from heedful.cli.main import main
from heedful.export.onnx import export_graphs
from heedful.export.single import run_single, write_single
from heedful.search.config import SearchConfig
from heedful.text.tokenizer import UnitTokenizer
from heedful.text.vocabulary import Vocabulary
from tests.architecture.package import ROOT
from tests.cli.conftest import write_pairs
from tests.export.test_single import LETTERS, MOST, SYMBOLS
from tests.models.tiny import NUM_TARGET_TOKENS, make_model
from tests.requests import load_experiment, make_request
from tests.thorough import is_thorough, thorough

EXAMPLES = ROOT / "examples"
# Enough for a model to be kept, far too little for a good one.
SIZES = ("embedding_size", "hidden_size", "alignment_size", "maxout_size")
SHORT = {
    **{f"model.{size}": 16 for size in SIZES},
    **{"training.max_steps": 4, "training.validate_every": 2, "training.batch_tokens": 256, "training.export": False},
}


def test_attention_in_ten_lines(capsys: pytest.CaptureFixture[str]):
    runpy.run_path(str(EXAMPLES / "attention_in_ten_lines.py"), run_name="__main__")
    shown = capsys.readouterr().out.split("\n")
    assert shown[0].startswith("contexts: [1, 3, 16]")
    cat, sat, down = shown[2:5]
    # Each finds its own: the darkest shade stands under cat, sat, down in turn.
    assert cat.index("█") < sat.index("█") < down.index("█")


def test_text_classifier(capsys: pytest.CaptureFixture[str]):
    runpy.run_path(str(EXAMPLES / "text_classifier.py"))["main"](num_texts=110, settings={"training.max_steps": 4})
    shown = capsys.readouterr().out
    assert "accuracy on 50 new texts: " in shown
    assert "cross-validated: " in shown


def test_train_and_translate(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    example = runpy.run_path(str(EXAMPLES / "train_and_translate.py"))
    example["main"](tmp_path / "new", num_pairs=200, settings=SHORT)
    shown = capsys.readouterr().out
    assert all(f"\n{text} -> " in shown for text in example["TEXTS"])
    assert "exact match" in shown
    assert (tmp_path / "new" / "dates.model" / "heedful.json").is_file()
    drawn = sorted((tmp_path / "new").glob("attention-*.png"))
    assert len(drawn) == shown.count("weight  ")
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_write_pairs(tmp_path: Path):
    runpy.run_path(str(EXAMPLES / "write_pairs.py"))["main"](tmp_path, num_pairs=400)
    pairs, test = (
        [line.split("\t") for line in (tmp_path / name).read_bytes().decode("utf-8").split("\n")[:-1]]
        for name in ("pairs.tsv", "test.tsv")
    )
    assert [len(pairs), len(test)] == [400, 10]
    assert all(len(row) == 2 for row in pairs + test)
    assert not {target for _, target in test} & {target for _, target in pairs}


@thorough
def test_write_linked_dates(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    runpy.run_path(str(EXAMPLES / "write_linked_dates.py"))["main"](tmp_path, num_pairs=800, num_test=50)
    texts, links = ((tmp_path / f"dates-test.{end}").read_bytes().decode().split("\n")[:-1] for end in ("tsv", "links"))
    assert [len(texts), len(links)] == [50, 50]
    for text, line in zip(texts, links, strict=True):
        source, target = (side.split(" ") for side in text.split("\t"))
        found = {int(right): source[int(left)] for left, right in (link.split("-") for link in line.split())}
        assert found[0] == target[0]
        assert (
            found[1][:3].lower() in "jan feb mar apr may jun jul aug sep oct nov dec".split()[int(target[1]) - 1 :][0]
        )
        digits = "".join(c for c in found[2] if c.isdecimal())
        assert int(digits) == int(target[2]) if digits else found[2].endswith(("st", "nd", "rd", "th"))
    capsys.readouterr()
    words = ["text.source_units=words", "text.target_units=words", "training.alignment_weight=3"]
    quick = ["training.optimizer.learning_rate=0.02", "training.optimizer.schedule.warmup_steps=20", "model.dropout=0"]
    sizes = [f"model.{size}=24" for size in SIZES]
    settings = [*words, *quick, *sizes, "training.export=false", "training.max_steps=90", "training.batch_tokens=512"]
    folder = str(tmp_path / "dates.model")
    set_all = [part for setting in settings for part in ("--set", setting)]
    assert (
        main(["train", str(tmp_path / "dates.tsv"), "--preset", "rnnsearch-tiny", "--out", folder, "--quiet", *set_all])
        == 0
    )
    capsys.readouterr()
    assert main(["align", folder, str(tmp_path / "dates-test.tsv"), "--gold", str(tmp_path / "dates-test.links")]) == 0
    error_rate = float(capsys.readouterr().out.split()[1])
    assert error_rate <= 15.0


def test_join_pairs(tmp_path: Path):
    example = runpy.run_path(str(EXAMPLES / "join_pairs.py"))
    files = [tmp_path / name for name in ("train.de", "train.en", "val.de", "val.en")]
    for number, path in enumerate(files):
        side = path.suffix[1:]
        path.write_bytes("".join(f"{side}{place} word\n" for place in range(400 >> number // 2)).encode())
    example["main"](tmp_path / "joined", files)
    for name, count in (("train", 400), ("val", 200)):
        left, right = (
            (tmp_path / "joined" / f"{name}.{side}").read_bytes().decode().split("\n")[:-1] for side in ("de", "en")
        )
        sources = [line.split()[::2] for line in left]
        assert sources == [[word.replace("en", "de") for word in line.split()[::2]] for line in right]
        assert sorted(word for line in sources for word in line) == sorted(f"de{place}" for place in range(count))
        assert [word for line in sources for word in line] != [f"de{place}" for place in range(count)]
        sizes = [len(line) for line in sources]
        assert all(sizes.count(size) > count / 20 for size in (1, 2, 3, 4))
        assert set(sizes) == {1, 2, 3, 4}
    pairs = [(str(place), "") for place in range(50)]
    join = example["join_pairs"]
    assert join(pairs) == join(pairs) != join(pairs, seed=2)
    assert all(" " not in source for source, _ in join(pairs, most=1))


def test_alignment_baselines(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    example = runpy.run_path(str(EXAMPLES / "alignment_baselines.py"))
    words = [f"w{place}" for place in range(12)]
    # Four words of a circle, and the same the other way round: the diagonal is wrong, and IBM model 1 sees it.
    sources = [[words[(start + step * jump) % 12] for step in range(4)] for start in range(12) for jump in (1, 3, 5)]
    text = "".join(f"{' '.join(side)} ||| {' '.join(side[::-1]).upper()}\n" for side in sources)
    (tmp_path / "pairs").write_bytes(text.encode())
    (tmp_path / "gold").write_bytes(b"1-4 2-3 3?2 4-1\n" * len(sources))
    example["main"](tmp_path / "out", [tmp_path / "pairs"], tmp_path / "gold", one_based=True)
    shown = capsys.readouterr().out.split("\n")
    assert shown[0].endswith("36 pairs to train on, 12 to validate on, 36 aligned by hand")
    assert shown[1].startswith("diagonal: AER 100.0 %")
    assert shown[2].startswith("IBM model 1: AER 0.0 %")
    assert (tmp_path / "out" / "gold.links").read_bytes() == b"0-3 1-2 2p1 3-0\n" * 36
    assert (tmp_path / "out" / "gold.tsv").read_bytes() == (tmp_path / "out" / "pairs.tsv").read_bytes()
    for side in (0, 1):
        lines = "".join(line.split(" ||| ")[side] + "\n" for line in text.split("\n")[:-1])
        (tmp_path / f"side{side}").write_bytes(lines.encode())
    (tmp_path / "some").write_bytes(b"0\t0-3 1-2 2?1 3-0\n")
    example["main"](tmp_path / "two", [tmp_path / "side0", tmp_path / "side1"], tmp_path / "some")
    again = capsys.readouterr().out.split("\n")
    assert again[0].endswith("26 pairs to train on, 10 to validate on, 1 aligned by hand")
    rows = [(tmp_path / "two" / f"{name}.tsv").read_bytes().split(b"\n")[:-1] for name in ("pairs", "dev", "gold")]
    assert sorted(rows[0] + rows[1]) == sorted(line.replace(" ||| ", "\t").encode() for line in text.split("\n")[:-1])
    assert rows[2][0] in rows[0]


def test_nadaraya_watson(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    runpy.run_path(str(EXAMPLES / "nadaraya_watson.py"))["main"](tmp_path)
    scores = [float(line.partition("R^2 =")[2]) for line in capsys.readouterr().out.split("\n")[:3]]
    assert scores == sorted(scores)  # average pooling, a Gaussian, a Gaussian of learned width
    assert (tmp_path / "nadaraya_watson.png").read_bytes().startswith(b"\x89PNG")


def test_a_shared_task_is_trained_written_and_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    example = runpy.run_path(str(EXAMPLES / "shared_tasks" / "g2p_2021.py"))
    words = ["casa", "sacco", "oca", "caso", "cassa", "saccoca", "asso", "cocco", "sasso", "ossa", "coca", "asco"]
    for part, chosen in (("train", words), ("dev", words[:3])):
        text = "".join(f"{word}\t{' '.join(word.replace('c', 'k'))}\n" for word in chosen)
        (tmp_path / f"ita_{part}.tsv").write_text(text, encoding="utf-8", newline="\n")
    options = [f"--set={key}={str(value).lower()}" for key, value in SHORT.items() if key.startswith("training")]
    example["main"](tmp_path, tmp_path / "out", options=[*options, "--set=model.hidden_size=8"])
    *_, language, mean = capsys.readouterr().out.strip().split("\n")
    assert language.split() == ["ita", mean.split()[1], "22.00"]
    outputs = example["read"](tmp_path / "out" / "ita_dev.tsv")
    assert [word for word, _ in outputs] == words[:3]
    gold = example["read"](tmp_path / "ita_dev.tsv")
    assert example["word_error_rate"](outputs, gold) == pytest.approx(float(mean.split()[1]), abs=0.01)
    assert example["word_error_rate"]([gold[0], (words[1], "x"), gold[2]], gold) == pytest.approx(100 / 3)


def test_inflection_is_trained_written_and_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    example = runpy.run_path(str(EXAMPLES / "shared_tasks" / "inflection_2023.py"))
    words, endings = (
        ["amo", "lodo", "noto", "oro", "paro", "roto"],
        {"V;PRS;NOM(2,SG)": "as", "V;PST;NOM(2,SG)": "abas"},
    )
    rows = [f"{word}\t{tags}\t{word[:-1]}{end}\n" for word in words for tags, end in endings.items()]
    for part, chosen in (("trn", rows), ("dev", rows[:4])):
        (tmp_path / f"lat.{part}").write_text("".join(chosen), encoding="utf-8", newline="\n")
    options = [f"--set={key}={str(value).lower()}" for key, value in SHORT.items() if key.startswith("training")]
    sizes = ["--set=model.hidden_size=8", "--set=model.embedding_size=8"]
    example["main"](tmp_path, tmp_path / "out", others=tmp_path, options=[*options, *sizes])
    *_, language, mean = capsys.readouterr().out.strip().split("\n")
    assert language.split() == ["lat", mean.split()[1], "100.00"]
    outputs, gold = (example["read"](folder / "lat.dev") for folder in (tmp_path / "out", tmp_path))
    assert [row[:2] for row in outputs] == [row[:2] for row in gold]
    assert example["accuracy"](outputs, gold) == pytest.approx(float(mean.split()[1]), abs=0.01)
    assert example["accuracy"]([gold[0], (*gold[1][:2], "x")], gold[:2]) == 50.0


def test_old_spelling_is_trained_written_and_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    example = runpy.run_path(str(EXAMPLES / "shared_tasks" / "histnorm.py"))
    words = ["thou", "haue", "vp", "loue", "giue", "ouer", "euer", "vnto", "deuil", "liue", "moue", "aboue"]
    rows = [(word, word.replace("u", "v")) for word in words]
    for part, chosen in (("train", [*rows, ("haue", "have"), ("vp", "up")]), ("dev", [*rows[:2], ("new", "x")])):
        example["write"](tmp_path / f"icelandic-icepahc.{part}.txt", chosen)
    options = [f"--set={key}={str(value).lower()}" for key, value in SHORT.items() if key.startswith("training")]
    sizes = ["--set=model.hidden_size=8", "--set=model.embedding_size=8"]
    example["main"](tmp_path / "icelandic-icepahc", tmp_path / "out", 1_000, options=[*options, *sizes])
    first, looked_up, published = capsys.readouterr().out.strip().split("\n")[-3:]
    outputs = example["read"](tmp_path / "out" / "dev.out.tsv")
    gold = example["read"](tmp_path / "icelandic-icepahc.dev.txt")
    assert first == f"icelandic-icepahc, 14 tokens; tokens right, dev: {example['accuracy'](outputs, gold):.2f} %"
    assert looked_up == "looked up, or left as it is: 66.67 %"
    assert published.endswith("72.3 %, neural 66.0 %")
    assert example["looked_up"]([("a", "b"), ("a", "c"), ("a", "c")], [("a", ""), ("d", "")]) == [
        ("a", "c"),
        ("d", "d"),
    ]


def test_every_example_says_how_to_run_it_and_is_run_by_a_test():
    tests = "".join(path.read_bytes().decode("utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    for path in EXAMPLES.rglob("*.py"):
        assert f"python examples/{path.relative_to(EXAMPLES).as_posix()}" in path.read_bytes().decode("utf-8"), (
            path.name
        )
        assert f'"{path.name}"' in tests, f"{path.name} is run by no test"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("compare_*.toml")), ids=lambda path: path.name)
def test_every_row_of_a_grid_can_be_run(path: Path):
    from heedful.comparison.grid import baseline_of, read_grid, rows_of
    from heedful.runs.train import check_buildable

    grid = read_grid(path)
    rows = rows_of(grid)
    assert baseline_of(grid, rows) == rows[0].name
    budgets: set[str] = set()
    budget_keys = ("max_target_tokens", "max_steps", "max_epochs")
    for row in (each for each in rows if not each.members):
        experiment = load_experiment(row.preset, None, row.settings)
        check_buildable(make_request(data=(), task=grid.task, preset=row.preset, settings=row.settings))
        training = experiment.training
        if row.name.endswith(", longer"):
            shared = load_experiment("", None, rows[0].settings).training.max_target_tokens
            assert training.max_target_tokens > shared
            training = training.model_copy(update={"max_target_tokens": shared})
        # What is seen of the corpus may be shorter; how much is not.
        text = experiment.text.model_copy(update={"max_training_tokens": 0})
        budget = [getattr(training, key) for key in budget_keys]
        budgets.add(repr((budget, training.batch_tokens, training.optimizer, text)))
        assert experiment.training.patience == 1000
        assert any(budget)
    assert len(budgets) == 1
    assert f"heedful compare examples/{path.name}" in path.read_bytes().decode("utf-8")


def test_settings_for_one_training_are_valid_and_say_how_to_use_them():

    grids = {*EXAMPLES.glob("compare_*.toml")}
    for path in {*EXAMPLES.glob("*.toml")} - grids:
        assert load_experiment("", path, ()).model.kind
        assert f"--config examples/{path.name}" in path.read_bytes().decode("utf-8"), path.name


@thorough
def test_the_grid_of_lengths_runs_on_joined_pairs(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    runpy.run_path(str(EXAMPLES / "write_pairs.py"))["main"](tmp_path, num_pairs=400)
    files: list[Path] = []
    for name in ("pairs", "test"):
        rows = [line.split("\t") for line in (tmp_path / f"{name}.tsv").read_bytes().decode("utf-8").split("\n")[:-1]]
        for side in (0, 1):
            files.append(tmp_path / f"{name}.{side}")
            files[-1].write_bytes("".join(f"{row[side]}\n" for row in rows).encode())
    runpy.run_path(str(EXAMPLES / "join_pairs.py"))["main"](tmp_path / "joined", files)
    train, test = ([tmp_path / "joined" / f"{name}.{side}" for side in (0, 1)] for name in ("pairs", "test"))
    done = main(
        [
            *["compare", str(EXAMPLES / "compare_lengths.toml"), *map(str, train), "--out", str(tmp_path / "out")],
            *["--test", str(test[0]), "--test", str(test[1]), "--minutes-per-run", "1e-4", "--quiet"],
        ]
    )
    shown = capfd.readouterr()
    assert done == 0, shown.err
    assert "not run" not in shown.out
    assert "\nRNNsearch  " in shown.out


@thorough
def test_the_grid_of_the_transformer_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """A step of a few of its rows; that of attention is run by tests/test_readme.py, as the README tells it."""
    write_pairs(tmp_path / "words.tsv", 120)
    shared, *rows = (EXAMPLES / "compare_transformer.toml").read_bytes().decode("utf-8").split("[[rows]]")
    grid = tmp_path / "grid.toml"
    grid.write_bytes("[[rows]]".join([shared, rows[0], *rows[-3:]]).encode())
    done = main(
        ["compare", str(grid), str(tmp_path / "words.tsv"), "--out", str(tmp_path / "out"), "--minutes-per-run", "1e-4"]
    )
    shown = capfd.readouterr()
    assert done == 0, shown.err
    assert "not run" not in shown.out
    assert shown.out.count("\nD: label smoothing 0.2  ") >= 1
    assert "every training ended after 0.0001 minutes" in shown.out


def write_small(name: str, folder: Path) -> list[str]:
    """Data of a grid, a few of each kind, and the arguments that name them."""
    if name in ("facts", "passages"):
        numbers = {"facts1": 110, "facts2": 110, "facts3": 150, "notices": 150}
        runpy.run_path(str(EXAMPLES / "write_stories.py"))["main"](folder, numbers)
        return [str(folder / ("facts3.jsonl" if name == "facts" else "notices.jsonl"))]
    if name == "headlines":
        for part, count in (("train", 120), ("dev", 6)):
            lines = [f"prices of item{n} rose in {part}, officials said\titem{n} is dearer\n" for n in range(count)]
            (folder / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")
        return [str(folder / "train.tsv"), "--dev", str(folder / "dev.tsv")]
    benchmark = {"trees": "trees", "segments": "segmentation", "scenes": "scenes"}[name]
    write = runpy.run_path(str(ROOT / "benchmarks" / f"{benchmark}.py"))["write"]
    small = {"NUM_TRAIN": 120, "NUM_DEV": 20, "NUM_TEST": 4, "NUMBERS": {"train": 100, "dev": 10, "test": 20}}
    write.__globals__.update(small)
    write(folder, *((120, (2, 3)) if name == "trees" else ()))
    return [str(folder / "train.tsv"), "--dev", str(folder / "dev.tsv"), "--test", str(folder / "test.tsv")]


@thorough
@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("facts", "row accuracy 95 % interval difference p parameters macro-F1 % facts attended %"),
        is_thorough(("passages", "row exact match 95 % interval difference p F1 parameters facts attended %")),
        ("scenes", "row exact match 95 % interval difference p"),
        is_thorough(("trees", "row tokens before an error 95 % interval difference p exact match")),
        is_thorough(("segments", "row tokens in place 95 % interval difference p exact match")),
        ("headlines", "row ROUGE-2 95 % interval difference p ROUGE-1 ROUGE-L"),
    ],
)
def test_the_grids_of_tasks_run(name: str, head: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    grid, out = tmp_path / f"compare_{name}.toml", tmp_path / "out"
    text = (EXAMPLES / grid.name).read_bytes().decode("utf-8").replace("export = false\n", "")
    text = re.sub(r"max_(?:steps|epochs) = \d+", "max_steps = 1\nexport = false", text)
    shared, *rows = re.sub(r"_size = \d\d+", "_size = 16", text).split("[[rows]]")
    grid.write_bytes("[[rows]]".join([shared, *rows[:2], *rows[2:][-2:]]).encode())
    data = write_small(name, tmp_path)
    capfd.readouterr()
    done = main(["compare", str(grid), *data, "--out", str(out), "--threads", "1"])
    shown = capfd.readouterr()
    assert done == 0, shown.err
    table = [" ".join(line.split()) for line in shown.out.split("\n")]
    assert any(line.startswith(head) for line in table)
    assert "not run" not in shown.out
    # Attention over the long outputs of an untrained model is not drawn.
    page = (out / "report.html").read_text(encoding="utf-8")
    assert ("<h2>Attention</h2>" in page) >= (name in ("facts", "passages", "scenes"))


def test_statistical_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    example = runpy.run_path(str(EXAMPLES / "statistical_links.py"))
    words = [f"w{place}" for place in range(12)]
    sources = [[words[(start + step * jump) % 12] for step in range(4)] for start in range(12) for jump in (1, 3, 5)]
    rows = [f"{' '.join(side)}\t{' '.join(side[::-1]).upper()}\n" for side in sources]
    (tmp_path / "pairs.tsv").write_text("".join(rows[2:]), encoding="utf-8")
    (tmp_path / "test.tsv").write_text("".join(rows[:2]), encoding="utf-8")
    example["main"](tmp_path / "links", [tmp_path / "pairs.tsv"], [tmp_path / "test.tsv"])
    assert (tmp_path / "links").read_text(encoding="utf-8") == "0-3 1-2 2-1 3-0\n" * 2
    assert "8 sure links of 2 pairs" in capsys.readouterr().out


def runtime_options() -> list[str]:
    """Options of the compiler for ONNX Runtime: HEEDFUL_ONNXRUNTIME is its folder of include and lib, or pkg-config."""
    if folder := os.environ.get("HEEDFUL_ONNXRUNTIME"):
        library = Path(folder) / "lib"
        return [f"-I{folder}/include", f"-L{library}", "-lonnxruntime", f"-Wl,-rpath,{library}"]
    if shutil.which("pkg-config"):
        command = ["pkg-config", "--cflags", "--libs", "libonnxruntime"]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        return shlex.split(found.stdout) if found.returncode == 0 else []
    return []


@thorough
def test_pronounce_in_cpp(tmp_path: Path):
    """The program in C++ gives what the graph gives in Python, for words of one byte a letter to four."""
    options = runtime_options()
    if not shutil.which("g++") or not options:
        pytest.skip("needs g++ and ONNX Runtime for C++: HEEDFUL_ONNXRUNTIME, or pkg-config libonnxruntime")
    program, folder = tmp_path / "pronounce", tmp_path / "engine"
    source = EXAMPLES / "pronounce.cpp"
    (command,) = re.findall(r"g\+\+ .*", source.read_text("utf-8"))
    flags = shlex.split(command.partition("$(")[0].replace("pronounce.cpp", str(source)))
    subprocess.run([*flags[:-1], str(program), "-Wall", "-Wextra", "-Werror", *options], cwd=tmp_path, check=True)
    folder.mkdir()
    export_graphs(make_model("hard-monotonic").float(), folder, MOST)
    config = SearchConfig(max_length_ratio=2, max_length_offset=0, forbid_unknown=True)
    draw = random.Random(1)
    words = ["".join(draw.choices("äbç中😀fgx", k=1 + number % (MOST + 2))) for number in range(300)]
    for targets in (SYMBOLS, LETTERS):
        graph = tmp_path / f"{targets.units}.onnx"
        with_targets = UnitTokenizer(Vocabulary(targets.vocabulary.tokens[:NUM_TARGET_TOKENS]), targets.units, "NFC")
        write_single(folder, (LETTERS, with_targets), config, MOST, {}, graph)
        listed = "".join(f"{word}\n" for word in [*words, ""])
        done = subprocess.run([program, graph], input=listed.encode(), capture_output=True, check=True)
        texts = [with_targets.decode(ids) for ids in run_single(graph, words)]
        lines = [f"{word}\t{text}\n" for word, text in zip(words, texts, strict=True)]
        assert done.stdout.decode() == "".join([*lines, "\t\n"])
        named = subprocess.run([program, graph, *words[:9]], capture_output=True, check=True)
        assert named.stdout.decode() == "".join(lines[:9])
    wrong = subprocess.run([program, tmp_path / "none.onnx", "a"], capture_output=True, check=False)
    assert (wrong.returncode, wrong.stderr.count(b"\n")) == (1, 1)
