"""`heedful compare` against manual links: who has an alignment error rate, which, and when it is measured."""

import json
from pathlib import Path

import pytest

import heedful as package
from heedful.cli.main import main
from heedful.comparison.run_result import RunResult, read_record
from heedful.errors import UsageError
from heedful.files.formats import COMPARISON_FORMAT, KEY
from tests.cli.command import heedful
from tests.cli.test_compare import BASE
from tests.thorough import sampled, thorough

GRID = f"""
{BASE}
[kinds.luong]
num_layers = 1
embedding_size = 8
hidden_size = 8
[kinds.rnn_encoder_decoder]
num_layers = 1
embedding_size = 8
hidden_size = 8
[[rows]]
name = "plain"
model = {{ kind = "transformer" }}
[[rows]]
name = "local"
model = {{ kind = "luong", window = "local-m", score = "dot" }}
[[rows]]
name = "blind"
model = {{ kind = "rnn_encoder_decoder" }}
[[rows]]
name = "both"
ensemble = ["plain", "local"]
"""
WORDS = ["ab", "cd", "fed", "cafe", "bad", "a"]
LINKS = "".join(["0-0 1-1\n", "0-0 1p1\n", "0-1 1-0\n", "\n", "1-1\n", "0-1\n"])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a comparison that knows nothing of links, and what is needed to ask for them."""
    folder = tmp_path_factory.mktemp("gold")
    pairs = [f"{one} {two}" for one in WORDS for two in WORDS]
    files = {"grid.toml": GRID, "test.links": LINKS}
    files["pairs.tsv"] = "".join(f"{pair}\t{pair.upper()}\n" for pair in pairs)
    files["test.tsv"] = "".join(f"{pair}\t{pair.upper()}\n" for pair in pairs[1::6])
    for name, text in files.items():
        (folder / name).write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        done = heedful(*command(folder))
    assert done.code == 0, done.err
    assert "AER" not in done.out
    return folder


def command(folder: Path, *more: object, out: str = "out") -> list[object]:
    data = ["compare", folder / "grid.toml", folder / "pairs.tsv", "--test", folder / "test.tsv"]
    return [*data, "--out", folder / out, "--threads", "1", *more]


def error_rates(folder: Path) -> dict[str, float]:
    rows = json.loads((folder / "out" / "table.json").read_bytes())["rows"]
    return {row["name"]: row["figures"]["aer"]["mean"] for row in rows if "aer" in row["figures"]}


def aligned(model: Path, folder: Path, gold: str, *more: object) -> float:
    done = heedful("align", model, folder / "test.tsv", "--gold", folder / gold, "--format", "jsonl", *more)
    return json.loads(done.out)["error_rate"]


def test_rows_with_attention_have_the_error_rate_of_align(made: Path, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:  # nothing is trained or translated for it
        patch.setattr("heedful.comparison.run.evaluate_run", None)
        done = heedful(*command(made, "--gold", made / "test.links"))
    assert done.code == 0, done.err
    assert done.err.count("done before") == 4
    found = error_rates(made)
    assert {*found} == {"plain", "local", "both"}
    for name in ("plain", "local"):
        assert found[name] == pytest.approx(aligned(made / "out" / "runs" / f"{name}-1", made, "test.links"))
    assert "note: AER: of 6 pairs with links in" in done.out
    head, *rows = (line.split("|") for line in (made / "out" / "table.md").read_text().split("\n") if line[:1] == "|")
    column = [cell.strip() for cell in head].index("AER %")
    shown = {row[1].strip(): row[column].strip() for row in rows if len(row) == len(head)}
    assert shown == {"---": "---:", "blind": "-"} | {name: f"{rate:.1f}" for name, rate in found.items()}
    assert '<th scope="col">AER %</th>' in (made / "out" / "report.html").read_text()
    assert f"--gold {made / 'test.links'}" in json.loads((made / "out" / "table.json").read_bytes())["command"]

    with monkeypatch.context() as patch:  # nor is it measured again
        patch.setattr("heedful.comparison.run.alignment_error", None)
        assert heedful(*command(made, "--gold", made / "test.links")).code == 0
    assert error_rates(made) == found
    assert heedful(*command(made)).code == 0
    assert error_rates(made) == {}
    assert heedful(*command(made, "--gold", made / "test.links")).code == 0
    assert error_rates(made) == found


@pytest.mark.parametrize(
    ("text", "options", "keys"),
    [
        ("1-1 1-2\n" * 6, ["--one-based"], {"is_one_based": True}),
        ("1-0 1p1\n" * 6, ["--turned"], {"is_turned": True}),
        ("0\t0-0\n3\t1-0\n", [], {}),
    ],
    ids=["one-based", "turned", "some"],
)
def test_other_links_and_notations(made: Path, text: str, options: list[str], keys: dict[str, bool]):
    (made / "other").write_bytes(text.encode())
    done = heedful(*command(made, "--gold", made / "other", "--gold-pairs", made / "test.tsv", *options))
    assert done.code == 0, done.err
    wanted = aligned(made / "out" / "runs" / "plain-1", made, "other", *options)
    assert error_rates(made)["plain"] == pytest.approx(wanted)
    assert all(option in json.loads((made / "out" / "table.json").read_bytes())["command"] for option in options)

    settings = {"links": str(made / "other"), "pairs": [str(made / "test.tsv")], **keys}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    (made / "grid.toml").write_bytes(f"[gold]\n{lines}{GRID}".encode())
    try:
        assert heedful(*command(made)).out == done.out
    finally:
        (made / "grid.toml").write_bytes(GRID.encode())


@thorough
def test_several_seeds_have_a_mean(made: Path):
    assert heedful(*command(made, "--gold", made / "test.links", "--seeds", "1,2")).code == 0
    facts = json.loads((made / "out" / "table.json").read_bytes())["rows"][0]["figures"]["aer"]
    found = [read_record(made / "out" / "findings" / f"plain-{seed}.json", RunResult) for seed in (1, 2)]
    assert facts["num_runs"] == 2
    assert facts["mean"] == pytest.approx(sum(each.measures["aer"] for each in found) / 2)
    assert found[0].gold == found[1].gold != ""


def test_a_model_that_is_gone_is_told_and_nothing_is_trained_for_it(made: Path):
    model = made / "out" / "runs" / "local-1" / "heedful.json"
    kept = model.read_bytes()
    model.unlink()
    (made / "other").write_bytes(b"0-0\n" * 6)
    try:
        done = heedful(*command(made, "--gold", made / "other"))
    finally:
        model.write_bytes(kept)
    assert done.code == 0, done.err
    assert done.err.count("warning: local, seed 1: not aligned: ") == 1
    assert {*error_rates(made)} == {"plain"}


@sampled(2)
@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("0-0 2-1\n" * 6, [], "link 2-1 (from 0) leads out of the 2 source and 2 target words of pair 1"),
        ("0-0\n" * 5, [], "5 lines for 6 pairs"),
        ("0-x\n" * 6, [], "bad:1: '0-x' is not a link"),
        ("6\t0-0\n", [], "aligns sentence 7 of a corpus of 6 pairs"),
    ],
)
def test_links_that_do_not_fit_are_refused_before_any_training(
    made: Path, text: str, options: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("heedful.runs.train._trainer", None)
    (made / "bad").write_bytes(text.encode())
    done = heedful(*command(made, "--gold", made / "bad", *options, out="new"))
    assert (done.code, done.out) == (2, "")
    assert complaint in done.errors[0]
    assert not (made / "new").exists()


def test_links_need_pairs_and_pairs_need_links(made: Path):
    words = ["compare", made / "grid.toml", made / "pairs.tsv", "--out", made / "new"]
    done = heedful(*words, "--gold", made / "test.links")
    assert done.code == 2
    assert "gold.pairs: name the pairs that the links are of, or give --test" in done.errors[0]
    done = heedful(*words, "--gold-pairs", made / "test.tsv")
    assert done.code == 2
    assert "gold.links: name the file" in done.errors[0]


def test_the_same_from_python(made: Path, capsys: pytest.CaptureFixture[str]):
    arguments = {"test": made / "test.tsv", "out": made / "out", "gold": made / "test.links"}
    table = package.compare(made / "grid.toml", made / "pairs.tsv", **arguments)
    assert capsys.readouterr().err.count("done before") == 4
    done = heedful(*command(made, "--gold", made / "test.links"))
    assert done.out.startswith(str(table))
    assert [row.name for row in table.rows] == ["plain", "local", "blind", "both"]
    assert table["plain"].figures["aer"].mean == error_rates(made)["plain"]
    assert json.loads((made / "out" / "table.json").read_bytes()) == {
        KEY: COMPARISON_FORMAT.version,
        **table.to_dict(),
        "context": table_context(made),
    }
    assert table.to_markdown() == (made / "out" / "table.md").read_text()
    page = table._repr_html_()
    assert page.count("<table>") == 1  # sources of one range of lengths have no second table
    assert all(f'<th scope="row">{row.name}</th>' in page for row in table.rows)
    with pytest.raises(KeyError):
        _ = table["plane"]
    quiet = package.compare(str(made / "grid.toml"), made / "pairs.tsv", **arguments, quiet=True)
    assert capsys.readouterr() == ("", "")
    assert quiet.to_dict()["rows"] == table.to_dict()["rows"]


def table_context(folder: Path) -> list[str]:
    return json.loads((folder / "out" / "table.json").read_bytes())["context"]


def test_python_trains_what_is_not_there(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "grid.toml").write_bytes(GRID.partition('[[rows]]\nname = "local"')[0].encode())
    table = package.compare(
        tmp_path / "grid.toml", made / "pairs.tsv", test=[made / "test.tsv"], out=tmp_path / "out", seeds=[3]
    )
    assert table.rows[0].seeds == (3,)
    assert "8 steps: step 8, " in capsys.readouterr().err
    with pytest.raises(UsageError, match="no data given"):
        package.compare(tmp_path / "grid.toml")


def test_help_tells_of_links(capsys: pytest.CaptureFixture[str]):
    assert main(["compare", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "--gold-pairs" in shown
    assert "the table has a column AER" in shown
