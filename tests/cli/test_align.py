import gzip
import json
import re
from pathlib import Path

import pytest

from heedful.predictors.table import load
from heedful.text.links import links_from_weights
from tests.cli.command import Done, heedful
from tests.cli.conftest import SETTINGS, Trained

ROWS = ["ab cd\tAB CD", "\t", "fed\tF E D", "a b c\tABC", "cafe\t"]


@pytest.fixture(scope="module")
def spaced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows the space, so that it sees words."""
    folder = tmp_path_factory.mktemp("spaced")
    data = folder / "pairs.tsv"
    words = ["ab", "cd", "fed", "cafe", "bad", "a"]
    pairs = [f"{one} {two}" for one in words for two in words]
    data.write_bytes("".join(f"{pair}\t{pair.upper()}\n" for pair in pairs).encode())
    config = folder / "tiny.toml"
    config.write_bytes(SETTINGS.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        done = heedful("train", data, "--out", folder / "spaced.model", "--config", config)
    assert done.code == 0, done.err
    return folder / "spaced.model"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_bytes("".join(row + "\n" for row in ROWS).encode())
    return path


def aligned(model: Path, *arguments: object) -> Done:
    return heedful("align", model, *arguments)


def test_a_line_of_links_for_each_pair(spaced: Path, data: Path):
    done = aligned(spaced, data)
    assert done.code == 0
    assert done.err == f"{data}: separated by tabs, columns 1 and 2; first pair: 'ab cd' -> 'AB CD'\n"
    lines = done.out.split("\n")[:-1]
    assert len(lines) == len(ROWS)
    for line, row in zip(lines, ROWS, strict=True):
        source, target = (side.split() for side in row.split("\t"))
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        assert all(left < len(source) and right < len(target) for left, right in links)
        assert [right for _, right in sorted(links, key=lambda link: link[1])] == (
            list(range(len(target))) if source else []
        )
    assert re.fullmatch(r"0-0 0-1 0-2", lines[2])
    assert lines == [found.pharaoh() for found in load(spaced).align(tuple(r.split("\t")) for r in ROWS)]


def test_jsonl_holds_tokens_and_links(spaced: Path, data: Path, tmp_path: Path):
    target = tmp_path / "out.jsonl"
    assert aligned(spaced, data, "--format", "jsonl", "--tokens", "-o", target, "--batch-tokens", 3).code == 0
    records = [json.loads(line) for line in target.read_bytes().decode().split("\n")[:-1]]
    assert [record["line"] for record in records] == [1, 2, 3, 4, 5]
    assert records[2]["target_pieces"] == ["F", " ", "E", " ", "D", "<eos>"]
    found = load(spaced).align([("fed", "F E D")])[0]
    assert records[2]["log_prob"] == pytest.approx(found.log_prob, rel=1e-5)
    assert found.attention is not None
    wanted = links_from_weights(found.attention, 3, 5)
    assert records[2]["alignment"] == [list(link) for link in wanted]
    assert len(wanted) == 5
    plain = aligned(spaced, data, "--format", "jsonl").out.split("\n")[2]
    assert [target for _, target in json.loads(plain)["alignment"]] == [0, 1, 2]


GOLD = "0-0 1p1\n\n0-0 0-1\n2-0\n\n"


def test_links_made_by_hand_are_compared_with(spaced: Path, data: Path, tmp_path: Path):
    gold = tmp_path / "gold"
    perfect = aligned(spaced, data).out
    gold.write_bytes(perfect.encode())
    done = aligned(spaced, data, "--gold", gold)
    assert done.out == "AER 0.0 % (0.0 to 0.0), precision 100.0 %, recall 100.0 %, 5 sentences\n"
    gold.write_bytes(GOLD.encode())
    links = tmp_path / "links"
    done = aligned(spaced, data, "--gold", gold, "--out", links, "--format", "jsonl")
    facts = json.loads(done.out)
    found = [json.loads(line)["alignment"] for line in links.read_bytes().decode().split("\n")[:-1]]
    sure = [{(0, 0)}, set(), {(0, 0), (0, 1)}, {(2, 0)}, set()]
    possible = [{(0, 0), (1, 1)}, *sure[1:]]
    pairs = [{tuple(link) for link in one} for one in found]
    num_found = sum(map(len, pairs))
    right = sum(len(one & other) for one, other in zip(pairs, sure, strict=True))
    allowed = sum(len(one & other) for one, other in zip(pairs, possible, strict=True))
    assert facts["error_rate"] == pytest.approx(100 - 100 * (right + allowed) / (num_found + 4))
    assert facts["precision"] == pytest.approx(100 * allowed / num_found)
    assert facts["recall"] == pytest.approx(100 * right / 4)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("1-1 2p2\n\n1-1 1-2\n3-1\n\n", ["--one-based"]),
        ("0-0 1p1\n\n0-0 1-0\n0-2\n\n", ["--turned"]),
        ("SENT: 0\nS 0 0\nP 1 1\nSENT: 2\nS 0 0\nS 0 1\nSENT: 3\nS 2 0\nSENT: 1\nSENT: 4\n", []),
        ("1 1 1 S\n1 2 2 P\n3 1 1 S\n3 1 2 S\n4 3 1 S\n2 0 1\n5 1 0\n", []),
        ("3\t2-0\n2\t0-0 0-1\n0\t0-0 1?1\n1\t\n4\t\n", []),
    ],
    ids=["one-based", "turned", "RWTH", "NAACL", "numbered"],
)
def test_every_notation_gives_the_same(spaced: Path, data: Path, tmp_path: Path, text: str, options: list[str]):
    gold, plain = tmp_path / "gold.gz", tmp_path / "plain"
    gold.write_bytes(gzip.compress(text.encode(), mtime=0))
    plain.write_bytes(GOLD.encode())
    wanted, found = (aligned(spaced, data, "--gold", *words) for words in ([plain], [gold, *options]))
    assert found.code == wanted.code == 0, found.err
    # Intervals come from resampled sentences, whose order is the file's.
    scores = [done.out.partition(" (")[0] + done.out.partition(")")[2] for done in (found, wanted)]
    assert scores[0] == scores[1]


def test_only_the_pairs_aligned_by_hand_count(spaced: Path, data: Path, tmp_path: Path):
    gold = tmp_path / "gold"
    gold.write_bytes(b"2\t0-0 0-1 0-2\n")
    done = aligned(spaced, data, "--gold", gold)
    assert done.out == "AER 0.0 % (0.0 to 0.0), precision 100.0 %, recall 100.0 %, 1 sentence\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-0\n0-0\n", "2 lines for 5 pairs"),
        ("9\t0-0\n", "aligns sentence 10 of a corpus of 5 pairs"),
        ("0\t0-0\n0\t0-0\n", "gold:2: sentence 0 is aligned once more"),
        ("0\t0-0\nx\n", "gold:2: 'x': expected the number of a sentence"),
        ("0-0\n\n3-0\n\n\n", "leads out of the 1 source and 3 target words of pair 3"),
        ("zero\n", "gold:1: 'zero' is not a link"),
        ("0 1 1 S\n", "aligns sentence"),
    ],
)
def test_a_gold_file_that_does_not_fit(spaced: Path, data: Path, tmp_path: Path, text: str, message: str):
    gold = tmp_path / "gold"
    gold.write_bytes(text.encode())
    done = aligned(spaced, data, "--gold", gold)
    assert (done.code, done.out) == (2, "")
    assert len(done.errors) == 1
    assert message in done.errors[0]


def test_what_does_not_go_together(spaced: Path, data: Path):
    done = aligned(spaced, data, "--gold", data, "--tokens")
    assert (done.code, done.out) == (2, "")
    assert "leave out --tokens" in done.errors[0]


def test_cut_pairs_are_told(spaced: Path, tmp_path: Path):
    data = tmp_path / "long.tsv"
    data.write_bytes(b"abc\t" + b"A" * 30 + b"\nab\tAB\n")
    done = aligned(spaced, data, "--quiet")
    assert done.code == 0
    assert done.err == f"heedful: warning: {data}:1: cut after 24 tokens\n"


def test_a_model_without_attention_is_told_in_one_line(trained: Trained, tmp_path: Path):
    model = tmp_path / "blind.model"
    sizes = ["model.kind=rnn_encoder_decoder", "model.embedding_size=4", "model.hidden_size=4", "model.num_layers=1"]
    settings = [word for one in [*sizes, "training.max_steps=4", "training.export=false"] for word in ("--set", one)]
    text = ["text.source_units=characters", "text.target_units=characters", "training.validate_every=4"]
    settings += [word for one in text for word in ("--set", one)]
    assert heedful("train", trained.data, "--out", model, *settings).code == 0
    for words in (["align", model, trained.data], ["translate", model, "--align", "abc"]):
        done = heedful(*words)
        assert (done.code, done.out) == (2, "")
        assert len(done.errors) == 1
        assert "has no attention" in done.errors[0]
    assert heedful("score", model, trained.data).code == 0


@pytest.mark.parametrize("option", ["--one-based", "--turned"])
def test_options_of_manual_links_need_them(spaced: Path, data: Path, option: str):
    done = aligned(spaced, data, option)
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    assert "give their file by --gold" in done.errors[0]
