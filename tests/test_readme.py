"""Every block of code in the README and the pages of the manual works, in both languages."""

import ast
import csv
import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import typer

import heedful
from heedful.cli.main import COMMANDS
from heedful.errors import HeedfulError
from heedful.synthetic.notices import generate as generate_notices
from tests.architecture.package import ROOT
from tests.architecture.test_documents import documents
from tests.blocks import Reader, blocks, blocks_of, lines_of, options, parse, reader, without_comments
from tests.cli.command import heedful as command
from tests.cli.conftest import Trained
from tests.cli.test_source_columns import write as write_forms
from tests.serving.task_models import TaskModels
from tests.tasks.reviews import reviews

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = ("README", "docs/guide", "docs/attention")
READING = ("README", "docs/guide", "docs/engines")
"""Pages that are read one after the other, by somebody who keeps what they make."""
SHORT_PAGES = ("docs/start", "docs/serve", "docs/page", "docs/attention")
"""Pages that need nothing of others."""
TRANSLATED = (*PAGES, "docs/start", "docs/serve", "docs/page", "docs/extending")
LANGUAGES = ("", ".zh")
# Enough for a model to be kept, far too little for a good one.
SIZES = ("embedding_size", "hidden_size", "alignment_size", "maxout_size")
SHORT = {
    **{f"model.{size}": 16 for size in SIZES},
    **{"training.max_steps": 4, "training.validate_every": 2, "training.batch_tokens": 256, "training.export": False},
}
SET = [word for key, value in SHORT.items() for word in ("--set", f"{key}={json.dumps(value)}")]


def page(name: str) -> str:
    return (ROOT / f"{name}.md").read_bytes().decode("utf-8")


def table(text: str, name: str) -> list[list[str]]:
    """The cells of the table that holds a text in its first row below the heading."""
    rows = [line.strip("|").split("|") for line in text.split("\n") if line.startswith("|")]
    starts = [place for place, row in enumerate(rows) if set("".join(row)) <= set("-|")]
    for start, stop in zip(starts, [*(place - 1 for place in starts[1:]), len(rows)], strict=True):
        if name in rows[start + 1][0]:
            return [[cell.strip() for cell in row] for row in rows[start + 1 : stop]]
    raise ValueError(f"no table that begins with {name}")


@pytest.mark.parametrize("name", TRANSLATED)
def test_both_languages_show_the_same_code(name: str):
    kinds = ("python", "sh", "bat", "console", "js", "toml", "text", "")
    english, chinese = (blocks(page(name + language), *kinds) for language in LANGUAGES)
    assert [without_comments(code) for code in english] == [without_comments(code) for code in chinese]
    assert english


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_have_the_same_sections_links_and_inline_code(name: str):
    texts = [FENCE.sub("", page(name + language)) for language in LANGUAGES]
    depths = [re.findall(r"^(#+) ", text, re.MULTILINE) for text in texts]
    assert depths[0] == depths[1]
    codes = [set(re.findall(r"`([^`\n]+)`", re.sub(r"\s*\n\s*", " ", text))) for text in texts]
    assert codes[0] == codes[1]
    papers = [re.findall(r"\((https://[^)]+|src/[^)]+|\.\./src/[^)]+)\)", text) for text in texts]
    assert sorted(papers[0]) == sorted(papers[1])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_readme_is_short(language: str):
    assert len(page(f"README{language}").encode("utf-8")) <= 15_000


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_of_commands_names_every_command_and_no_other(language: str):
    commands = [cells[0].strip("`").split()[1] for cells in table(page(f"README{language}"), "heedful demo")]
    assert sorted(commands) == sorted(COMMANDS)


def test_results_are_the_same_in_both_languages():
    english, chinese = (
        [cells[-2:] for cells in table(page(f"README{language}"), first)]
        for language, first in (("", "demo: dates"), (".zh", "演示："))
    )
    assert [row[0].replace("尚未测量", "not measured yet") for row in chinese] == [row[0] for row in english]


# Lines of output that depend on the weights of larger models than those of these tests.
OF_WEIGHTS = frozenset(
    line
    for line in """
before: BLEU 16.32 on validation, with the weights of pairs.model
best:  BLEU 23.37 on validation, at step 2,070
own:   BLEU 46.20 before, BLEU 45.90 after, on 383 sources of the validation set of pairs.model
teacher  BLEU 27.04, 30.2 MB, 68.9 sources a second
student  BLEU 26.95, 5.7 MB, 164.1 sources a second
first a model from target to source for 3 of 12 minutes: pairs.model.back-translated/reverse.model
19,995 texts translated back, behind the pairs of pairs.model.back-translated/pairs.tsv; tagged ⟲
A dog 🐶 runs in the snow (https://example.org). Two men are waiting. A MAN IS SLEEPING.
Zwei Welpen spielen im Schnee.
Ein Mann steht vor einem roten Laster.
A dog runs across the street.
Two men are playing soccer.
1 of 3 outputs left out: confidence below 0.5
Where's the railway station?""".split("\n")
)
# Trainings of which a few steps are enough for the lines behind them.
SHORTER = {
    "heedful train pairs.tsv --minutes 5": SET,
    "heedful train deu.trn": SET,
    "heedful train ita.tsv rum.tsv --together --dev": SET,
    "heedful train cmudict.dict --minutes 6": ("--set", "training.max_steps=3"),
    "heedful compare": ("--minutes-per-run", "0.0001"),
}


def write_table(path: Path, *rows: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def write_documents(folder: Path) -> None:
    document = pytest.importorskip("docx").Document()
    for text in ("Bericht", "Ein Hund läuft.", "Eine Frau wartet.", "Ein Kind lacht."):
        document.add_paragraph(text)
    document.save(folder / "report.docx")
    page = re.search(r"```html\n(<p>Ein .*\n)", (ROOT / "docs" / "guide.md").read_text("utf-8"))
    assert page, "the guide shows page.html"
    (folder / "page.html").write_text(page[1], "utf-8")


def calibrate(folder: Path) -> None:
    rows = (folder / "pairs.tsv").read_bytes().splitlines(keepends=True)
    (folder / "dev.tsv").write_bytes(b"".join(rows[:100]))
    (folder / "questions.txt").write_text("12\n13\n14\n", "utf-8")
    assert command("calibrate", "pairs.model", "dev.tsv").code == 0


def export_archive(folder: Path) -> None:
    for kind in ("onnx", "js"):  # the engine is that of the archive, and of the page on graphs
        assert command("export", "pairs.model", "--to", kind).code == 0


def write_columns(folder: Path) -> None:
    for name in ("deu.trn", "deu.dev"):
        write_forms(folder / name)


def write_dictionary(folder: Path) -> None:
    phones = {"b": "B", "d": "D", "f": "F", "g": "G", "a": "AH0", "e": "EH1", "i": "IY1", "l": "L", "m": "M", "n": "N"}
    words = [f"{one}{two}{three}" for one in "bdfg" for two in "aei" for three in "lmn"]
    lines = [f"{word}  {' '.join(phones[letter] for letter in word)}\n" for word in words]
    (folder / "cmudict.dict").write_text("".join(lines[::2]), "utf-8")
    (folder / "held-out.dict").write_text("".join(lines[1::2]), "utf-8")
    (folder / "words.txt").write_text("bal\nfin\n", "utf-8")


def write_languages(folder: Path) -> None:
    rows = [f"{first}{second}{third}" for first in "bdfg" for second in "aei" for third in "lmnr"]
    for name in ("ita.tsv", "rum.tsv", "ita.dev.tsv", "rum.dev.tsv", "rum.test.tsv"):
        part = rows[::2] if name in ("ita.tsv", "rum.tsv") else rows[1::2]
        (folder / name).write_text("".join(f"{row}\t{row.upper()}\n" for row in part), "utf-8")
    (folder / "words.txt").write_text("bal\nder\n", "utf-8")


def write_articles(folder: Path) -> None:
    (folder / "new.txt").write_text("Hund schläft hier.\n", "utf-8")
    (folder / "test.tsv").write_text("Hund schläft hier.\tdog sleeps here.\n", "utf-8")
    write_table(folder / "test.csv", ("article", "summary"), ("Hund schläft hier.", "dog sleeps here."))


def write_review_tables(folder: Path) -> None:
    for name in ("reviews.csv", "test.csv"):
        write_table(folder / name, ("text", "label"), *reviews(40))
    write_table(folder / "new.csv", ("text",), *((text,) for text, _ in reviews(4)))


def write_pictures(folder: Path, captioner: Path) -> None:
    shutil.copytree(captioner.parent / "scenes", folder / "scenes")
    rows = [line.split("\t") for line in (captioner.parent / "scenes.tsv").read_text("utf-8").splitlines()]
    for name in ("photos.csv", "test.csv"):
        write_table(folder / name, ("image", "caption"), *rows[:20])
    write_table(folder / "new.csv", ("image",), *((path,) for path, _ in rows[:2]))
    image = pytest.importorskip("PIL.Image")
    image.open(folder / rows[0][0]).save(folder / "dog.jpg")


def write_questions(folder: Path) -> None:
    rows = [(" ".join(each.facts), each.question, each.answer) for each in generate_notices(20, 0)]
    for name in ("questions.csv", "new.csv", "test.csv"):
        write_table(folder / name, ("context", "question", "answer"), *rows)


@pytest.fixture
def newcomer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trained: Trained,
    sentences: Path,
    task_models: TaskModels,
) -> Iterator[Reader]:
    """Reader with the examples, a few pairs, and small models of the names that the pages use."""
    from heedful.runs.api import train_model

    def train_briefly(*data: str, settings: Mapping[str, Any] | None = None, **options: Any) -> object:
        return train_model(*data, settings={**(settings or {}), **SHORT}, **options)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(heedful, "train", train_briefly, raising=False)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    grid = tmp_path / "examples" / "compare_attention.toml"  # two rows of it; test_examples.py reads them all
    grid.write_bytes(b"[[rows]]".join(grid.read_bytes().split(b"[[rows]]")[:3]))
    pairs = tmp_path / "examples" / "write_pairs.py"
    pairs.write_text(pairs.read_text("utf-8").replace("20_000", "200"), "utf-8")
    models = {
        **dict.fromkeys(("dates", "pairs", "trees", "words"), trained.model),
        **dict.fromkeys(("de-en", "ende", "other", "articles"), sentences),
        "reviews": task_models.classifier,
        "stories": task_models.answerer,
        "questions": task_models.finder,
        **dict.fromkeys(("scenes", "photos"), task_models.captioner),
    }
    files = {
        "Translate documents": write_documents,
        "Leave out doubtful translations": calibrate,
        "Pronunciation for speech programs": write_dictionary,
        "Sources of several columns": write_columns,
        "One model for several files": write_languages,
        "Summarize": write_articles,
        "Copying": write_articles,
        "Classify texts": write_review_tables,
        "Describe images": partial(write_pictures, captioner=task_models.captioner),
        "Regions of an image": partial(write_pictures, captioner=task_models.captioner),
        "Answer questions": write_questions,
        "One graph": lambda folder: shutil.copytree(folder / "pairs.model", folder / "cmu.model"),
        "Ship a model": export_archive,
        "Models of every task": lambda folder: (folder / "scene.png").write_bytes(task_models.picture),
        "Behind a reverse proxy": lambda folder: (folder / "keys.txt").write_text("key\n", "utf-8"),
    }
    with reader(tmp_path, monkeypatch, models, files, OF_WEIGHTS) as made:
        yield made


def test_the_code_of_the_readme_the_guide_and_the_page_on_graphs_works_in_order(
    newcomer: Reader, capsys: pytest.CaptureFixture[str]
):
    newcomer.shorter = SHORTER
    del newcomer.models["pairs"]  # the README trains it
    for name in READING:
        newcomer.read(page(name))
    shown = capsys.readouterr().out
    assert "exact match" in shown
    assert "torch.Size([2, 7, 96]) torch.Size([2, 7, 11])" in shown
    assert "score [1, 11, 16]" in shown
    assert newcomer.names["near"].context.shape == (2, 11, 96)
    assert (newcomer.folder / "attention.png").is_file()
    table = (newcomer.folder / "compare_attention.compare" / "table.md").read_bytes().decode("utf-8")
    assert "not run" not in table
    assert OF_WEIGHTS <= {*page("docs/guide").split("\n")}
    newcomer.finish()


@pytest.mark.parametrize("name", SHORT_PAGES)
def test_the_code_of_a_page_works_in_order(name: str, newcomer: Reader):
    newcomer.read(page(name), left_out=("python",) if name == "docs/attention" else ())
    assert newcomer.num_run
    newcomer.finish()


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("sh", "heedful translate dates.model 12 --beems 3"),
        ("sh", "heedful translate none.model 12"),
        ("sh", "heedful train pairs.tsv --set model.no_such_size=3"),
        ("sh", "heedful train pairs.tsv --preset no_such_preset"),
        ("sh", "heedful tran pairs.tsv"),
        ("sh", "python examples/no_such_example.py"),
        ("sh", "no_such_program"),
        ("console", "$ heedful list scores\nno such line"),
        ("console", "$ heedful serve dates.model\n$ curl -s localhost:5000/no_such_route"),
        ("python", "import heedful\n\nheedful.no_such_name"),
        ("python", "import heedful.no_such_module"),
        ("toml", "[axes]\nno_such_setting = [1]"),
        ("text", "heedful train pairs.tsv"),
        ("", "heedful train pairs.tsv"),
        ("rust", "fn main() {}"),
    ],
)
def test_a_fault_in_a_block_is_seen(kind: str, code: str, newcomer: Reader):
    faults = (AssertionError, AttributeError, ImportError, HeedfulError, OSError, typer.TyperException)
    with pytest.raises(faults):
        newcomer.read(f"# dates.model\n\n```{kind}\n{code}\n```\n")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_routes_of_the_page_on_the_server_exist(language: str):
    pytest.importorskip("fastapi")
    from starlette.routing import Match

    from heedful.serving.app import make_app_with_page

    routes = make_app_with_page(MagicMock()).routes

    def exists(verb: str, path: str) -> bool:
        request = {"type": "http", "method": verb, "path": path, "headers": [], "root_path": ""}
        return any(each.matches(request)[0] == Match.FULL for each in routes)

    named = re.findall(r"`(?:(GET|POST) )?(/[\w/.]+)`", page(f"docs/serve{language}"))
    assert [path for verb, path in named if not any(exists(each, path) for each in (verb or "GET POST").split())] == []
    assert len(named) > 12
    assert not exists("GET", "/translations")


SHAPE = re.compile(r"(?<!in )\[(\w+(?:, \w+)*)\]")


def run_page(text: str) -> list[tuple[str, Any]]:
    """Run the code of a page from top to bottom; the comment behind each statement, and the value that it speaks of."""
    names: dict[str, Any] = {}
    given: list[tuple[str, Any]] = []
    for code in blocks(text, "python"):
        lines = code.split("\n")
        for node in ast.parse(code).body:
            source = ast.get_source_segment(code, node) or ""
            if isinstance(node, ast.Expr):
                value = eval(source, names)
            else:
                exec(source, names)
                value = eval(ast.unparse(node.targets[0]), names) if isinstance(node, ast.Assign) else None
            comment = lines[(node.end_lineno or 0) - 1].partition("  # ")[2]
            if comment:
                given.append((comment, value))
    return given


def fits(comment: str, value: Any) -> bool:
    """Whether values have the shapes that a comment gives; a word stands for any size, and what is left out is free."""
    shapes = [found[1].split(", ") for found in SHAPE.finditer(comment)]
    values = value if isinstance(value, tuple) else (value,)
    pairs = [(shapes[0], each) for each in values] if "each" in comment else [*zip(shapes, values, strict=False)]
    return all(
        len(shape) == each.dim()
        and all(word in {str(size), "head"} for word, size in zip(shape, each.shape, strict=True))
        for shape, each in pairs
    )


# What comments say beyond shapes; a comment that is neither here nor in REMARKS fails the test.
CLAIMS: dict[str, Callable[[Any], bool]] = {
    "zeros: average pooling": lambda tensor: float(tensor.abs().max()) < 1e-6,
    "zeros": lambda tensor: tensor.tolist() == [0.0, 0.0, 0.0],
    "[2, 3, 5], rows sum to 1": lambda tensor: float((tensor.sum(-1) - 1).abs().max()) < 1e-6,
    "with zeros": lambda tensor: bool((tensor == 0).any()) and bool((tensor > 0).any()),
    "one-hot": lambda tensor: tensor.unique().tolist() == [0, 1] and tensor.sum(-1).unique().tolist() == [1],
    "each in [0, 1]": lambda tensor: bool(((tensor >= 0) & (tensor <= 1)).all()),
    "row = word, column = head": lambda tensor: (
        float((tensor.sum(-1) - tensor.new_tensor([0, 1, 1, 1, 1])).abs().max()) < 1e-5
    ),
    "[2]: small where the queries look at different keys": lambda tensor: bool((tensor >= 0).all()),
    "depends on the distance only": lambda tensor: all(
        float((tensor.diagonal(distance) - tensor[0, distance]).abs().max()) < 1e-9 for distance in range(60)
    ),
    '"step_cpu"': lambda kernel: kernel == "step_cpu",
    '"plain"': lambda kernel: kernel == "plain",
}
REMARKS = {
    "y = 2 sin x + x^0.8 + noise, as in Dive into Deep Learning",
    "its log_bandwidth is a parameter",
    "U k, once for a source",
    "at every decoding step",
    "of each item of the batch: say, log p(target)",
    "what to expect next time",
    "score of a state (row) followed by another (column); learn it",
    "each place, its neighbours and itself",
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_the_page_on_attention_works_in_order_and_says_what_its_lines_give(capsys: pytest.CaptureFixture[str]):
    given = run_page(page("docs/attention"))
    comments = {comment for comment, _ in given}
    assert comments >= CLAIMS.keys() | REMARKS
    for comment, value in given:
        if comment in CLAIMS:
            assert CLAIMS[comment](value), comment
        if comment not in REMARKS | CLAIMS.keys():
            assert SHAPE.search(comment), f"what {comment!r} says is not checked"
        if SHAPE.search(comment):
            assert fits(comment, value), comment
    shown = capsys.readouterr().out
    (block,) = re.findall(r"\n((?:    (?:constant|gaussian), h = .*\n)+)", page("docs/attention"))
    assert shown.startswith(re.sub("^    ", "", block, flags=re.MULTILINE))
    assert block in page("docs/attention.zh")
    assert "\nsdpa: gives the context only, not weights\n" in shown
    assert "\nplain: can\n" in shown


@pytest.mark.parametrize(
    ("comment", "shape", "is_right"),
    [
        ("[2, 3]", (2, 3), True),
        ("[2, 3]", (3, 2), False),
        ("[2, 3]", (2, 3, 1), False),
        ("self: [2, 3]", (2, 3), True),
        ("[head, 3]", (7, 3), True),
    ],
)
def test_shapes_in_comments_are_compared(comment: str, shape: tuple[int, ...], is_right: bool):
    torch = pytest.importorskip("torch")
    assert fits(comment, torch.zeros(shape)) == is_right
    assert fits(f"each {comment}", (torch.zeros(shape), torch.zeros(shape))) == is_right


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_mechanism_of_the_tables_is_in_the_code_of_the_page(language: str):
    from heedful.attention.masks import MASKS
    from heedful.attention.normalizers import NORMALIZERS
    from heedful.attention.scores import SCORES

    code = "\n".join(blocks(page(f"docs/attention{language}"), "python"))
    names = [*(kind.__name__ for kind in (*SCORES.values(), *NORMALIZERS.values())), *MASKS]
    assert {"Additive", "Softmax", "padding"} <= set(names)
    words = re.findall(r"\w+", code)
    # Once in an import, once in use.
    assert [name for name in names if words.count(name) < 2] == []


def test_no_page_names_a_host_for_packages_or_a_path_of_a_machine():
    for path in (*ROOT.glob("README*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.py")):
        text = path.read_bytes().decode("utf-8")
        assert not re.search(r"pypi|index-url|/home/|/root/|/work/|C:\\", text, re.IGNORECASE), path.name


def unknown_words(line: str) -> str:
    """Faults of a command line of heedful; other programs in the line, and values to fill in, are left out."""
    words = shlex.split(re.sub(r"\$\w+|(?<= )N(?= )", "1", line), comments=True)
    end = next((place for place, word in enumerate(words) if word in ("|", "<", ">", "&&", ";")), len(words))
    if "..." in words[:end]:  # the options of another line
        return ""
    try:
        parse(words[:end])
    except (AssertionError, HeedfulError, typer.TyperException) as error:
        return f"{line}: {type(error).__name__} {error}"
    return ""


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_command_lines_of_all_documents_are_those_of_commands(path: Path):
    text = path.read_bytes().decode("utf-8")
    lines = [line.command for block in blocks_of(text) if block.kind in ("sh", "console") for line in lines_of(block)]
    own = [line.partition("heedful ")[2] for line in lines if re.search(r"(?:^|[|&;] |^ +)heedful ", line)]
    assert [fault for fault in map(unknown_words, own) if fault] == []


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_in_texts_have_the_options_that_the_text_gives_them(path: Path):
    text = FENCE.sub("", path.read_bytes().decode("utf-8"))
    for line in re.findall(r"`heedful ([a-z][^`\n]*)`", text):
        words = [word.partition("=")[0] for word in line.split()]
        assert {word for word in words[1:] if re.match(r"--?[a-z]", word)} <= options(words[0]), line
