import errno
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.cli.messages import readable_size
from heedful.export.ctranslate2 import ACTIVATIONS
from heedful.export.web_runtime import has_runtime
from heedful.files.atomic_write import digest
from tests.architecture.package import SOURCE
from tests.cli.command import Done, heedful
from tests.cli.conftest import Trained
from tests.export.marian_folder import write_folder
from tests.thorough import is_thorough, thorough

LINES = "abc\nfed\n\ncafebabe\nabead\n"

BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numba"):
            raise ModuleNotFoundError(f"blocked: {name}", name="torch")

sys.meta_path.insert(0, Blocker())
"""
COMMAND = "from heedful.cli.main import main; sys.exit(main(sys.argv[1:]))"


def without_torch(*arguments: object, stdin: str = "", script: str = COMMAND) -> Done:
    """Run `heedful`, or another script, in a fresh process in which importing torch or numba fails."""
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + script, *map(str, arguments)],
        input=stdin,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def exported(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done | Path]:
    """The trained model with both engines, and what exporting them said."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        model = tmp_path_factory.mktemp("exported") / "words.model"
        shutil.copytree(trained.model, model)
        done = {kind: heedful("export", model, "--to", kind) for kind in ("onnx", "ctranslate2")}
    return {**done, "model": model}


@pytest.fixture(scope="module")
def model(exported: dict[str, Done | Path]) -> Path:
    path = exported["model"]
    assert isinstance(path, Path)
    return path


@pytest.mark.parametrize("kind", ["onnx", "ctranslate2"])
def test_an_engine_says_where_it_is_and_what_was_measured(exported: dict[str, Done | Path], model: Path, kind: str):
    done = exported[kind]
    assert isinstance(done, Done)
    assert done.code == 0, done.err
    assert done.out.startswith(f"{model / 'engines' / kind}: ")
    assert "48 of 48 outputs the same" in done.out
    facts = json.loads((model / "engines" / kind / "engine.json").read_text(encoding="utf-8"))
    top = json.loads((model / "heedful.json").read_text(encoding="utf-8"))
    assert facts["weights"] == top["files"][top["weights"]]
    assert facts["parity"]["max_difference"] <= 1e-4
    assert facts["precision"] == "float32"


@pytest.mark.parametrize("kind", ["onnx", "ctranslate2"])
def test_an_engine_has_a_card_beside_its_files(copied: Path, kind: str):
    path = copied / "engines" / kind
    card = (path / "README.md").read_text(encoding="utf-8")
    assert f'library_name: "{kind}"' in card
    assert f'heedful.load("words.model", engine="{kind}")' in card
    assert "`tokenizer.json`" in card
    assert "## Limits" in card
    assert "README.md" not in json.loads((path / "engine.json").read_text(encoding="utf-8"))["files"]
    (path / "README.md").write_text("mine", encoding="utf-8")
    assert heedful("translate", copied, "--beam", "1", "--engine", kind, stdin=b"abc\n").code == 0


def test_an_engine_that_is_exported_under_a_licence_says_so(copied: Path):
    assert heedful("export", copied, "--to", "ctranslate2", "--license", "cc-by-4.0").code == 0
    card = (copied / "engines/ctranslate2/README.md").read_text(encoding="utf-8")
    assert card.endswith("## Licence\n\ncc-by-4.0\n")


SERVED = """
import sys
from types import SimpleNamespace

import heedful.serving.server

heedful.serving.server.make_server = lambda *_: SimpleNamespace(run=lambda _: print("torch" in sys.modules))
from heedful.cli.main import main

sys.exit(main(["serve", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("options", [[], ["--device", "cpu"]])
def test_a_server_imports_no_pytorch_for_an_exported_model(model: Path, options: list[str]):
    """Importing it takes as long as all else that a server does before it answers."""
    command = [sys.executable, "-c", SERVED, str(model), "--port", "0", "--quiet", *options]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


@pytest.mark.parametrize(
    ("options", "engine"),
    [
        ([], "onnx"),
        (["--beam", "1"], "ctranslate2"),
        (["--beam", "1", "--align"], "onnx"),
        (["--nbest", "3"], "onnx"),
        is_thorough((["--engine", "onnx", "--beam", "1"], "onnx")),
        is_thorough((["--device", "cpu"], "onnx")),
    ],
)
def test_lines_are_translated_as_pytorch_does_and_without_it(model: Path, options: list[str], engine: str):
    done = without_torch("translate", model, *options, stdin=LINES)
    assert done.code == 0, done.err
    assert done.err == f"engine {engine}\n"
    named = options[2:] if options[:1] == ["--engine"] else options
    wanted = heedful("translate", model, "--engine", "torch", *named, stdin=LINES.encode())
    assert wanted.err == "engine torch\n"
    assert without_numbers(done.out) == without_numbers(wanted.out)


def without_numbers(text: str) -> list[str]:
    """Lines of n-best lists without scores, whose last digits are an engine's own."""
    return [line.partition(" ||| log_prob=")[0] for line in text.split("\n")]


def test_info_lists_the_engines(trained: Trained, model: Path):
    done = heedful("info", model)
    assert done.code == 0
    rows = {line[: line.index("  ")]: line for line in done.out.split("\n") if "  " in line}
    for name in ("onnx", "ctranslate2"):
        assert "48 of 48 outputs the same" in rows[f"engine {name}"]
    without = heedful("info", trained.model).out
    assert "engine" not in without
    assert rows["size"].split()[1:] == next(line for line in without.split("\n") if line.startswith("size")).split()[1:]


def test_quiet_says_nothing(model: Path):
    assert without_torch("translate", model, "-q", stdin="abc\n").err == ""


def test_evaluation_without_pytorch_is_the_same(trained: Trained, model: Path):
    options = ("--limit", 20, "--format", "json")
    done = without_torch("evaluate", model, trained.data, *options)
    assert done.code == 0, done.err
    assert "engine onnx\n" in done.err
    got, wanted = (json.loads(each.out) for each in (done, heedful("evaluate", trained.model, trained.data, *options)))
    assert got["perplexity"] == pytest.approx(wanted["perplexity"], rel=1e-5)
    assert got["results"] == wanted["results"]


@pytest.mark.parametrize(
    ("options", "code", "complaint"),
    [
        (["--engine", "ctranslate2", "--groups", "5"], 2, "ctranslate2: has no groups in a beam"),
        (["--engine", "ctranslate2", "--beam", "1", "--align"], 2, "use another engine for alignments"),
        (["--engine", "onnx-int8"], 2, "--to onnx --int8"),
        (["--engine", "tensorflow"], 2, "engine 'tensorflow': unknown"),
        (["--engine", "onnx", "--device", "cuda"], 2, "leave out --device cuda"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(model: Path, options: list[str], code: int, complaint: str):
    done = heedful("translate", model, *options, stdin=b"abc\n")
    assert done.code == code
    assert len(done.errors) == 1
    assert complaint in done.errors[0]


@pytest.fixture
def copied(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "words.model"))


def test_an_engine_that_is_named_searches_beams_its_own_way_and_says_so(model: Path):
    done = heedful("translate", model, "--engine", "ctranslate2", "--nbest", "2", stdin=LINES.encode())
    assert done.code == 0
    assert done.err == "engine ctranslate2; its own beam search, which stops sooner than heedful's\n"
    assert done.out.count(" ||| log_prob=") == 2 * 4 + 1


def test_an_engine_of_other_weights_is_named_and_left(copied: Path):
    for engine in ("onnx", "ctranslate2"):
        path = copied / "engines" / engine / "engine.json"
        facts = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(facts | {"weights": "0" * 64}), encoding="utf-8")
    done = heedful("translate", copied, stdin=b"abc\n")
    assert done.code == 0
    assert done.err.startswith("engine torch; ctranslate2: out of date")
    named = heedful("translate", copied, "--engine", "onnx", stdin=b"abc\n")
    assert (named.code, len(named.errors)) == (3, 1)
    assert "out of date" in named.errors[0]


def test_an_engine_that_was_found_to_differ_is_taken_only_by_name(copied: Path):
    path = copied / "engines" / "onnx" / "engine.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    facts["parity"]["max_difference"] = 0.5
    path.write_text(json.dumps(facts), encoding="utf-8")
    assert heedful("translate", copied, stdin=b"abc\n").err == "engine torch\n"
    assert heedful("translate", copied, "--engine", "onnx", stdin=b"abc\n").err == "engine onnx\n"


@pytest.mark.parametrize(
    "damage",
    [lambda path: path.write_bytes(path.read_bytes()[:-1]), lambda path: path.unlink()],
    ids=["cut", "missing"],
)
def test_a_damaged_engine_is_refused(copied: Path, damage: Callable[[Path], None]):
    damage(copied / "engines" / "onnx" / "step.onnx")
    done = heedful("translate", copied, stdin=b"abc\n")
    assert (done.code, len(done.errors)) == (3, 1)
    assert "step.onnx: missing or changed" in done.errors[0]


@thorough
def test_eight_bits_are_taken_only_by_name(copied: Path):
    shutil.rmtree(copied / "engines")
    done = heedful("export", copied, "--to", "ctranslate2", "--int8")
    assert done.code == 0, done.err
    path = copied / "engines" / "ctranslate2-int8" / "engine.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    # However near it came on the few sources that were compared.
    path.write_text(json.dumps(facts | {"parity": facts["parity"] | {"max_difference": 0.0}}), encoding="utf-8")
    assert heedful("translate", copied, "--beam", "1", stdin=b"abc\n").err == "engine torch\n"
    named = heedful("translate", copied, "--beam", "1", "--engine", "ctranslate2-int8", stdin=b"abc\n")
    assert (named.code, named.err) == (0, "engine ctranslate2-int8\n")


def test_a_shortlist_is_used_by_engines_that_have_one(copied: Path):
    arguments = ("translate", copied, "--beam", "1", "--shortlist")
    without = heedful(*arguments, stdin=LINES.encode())
    assert without.err == "engine ctranslate2; the whole vocabulary, because it has no shortlist\n"
    done = heedful("export", copied, "--to", "ctranslate2", "--shortlist")
    assert done.code == 0, done.err
    listed = heedful(*arguments, stdin=LINES.encode())
    # No target of the training pairs has a lower-case letter, which the vocabulary has from the sources.
    assert (listed.code, listed.err, set(listed.out)) == (0, "engine ctranslate2\n", set(listed.out) & set("\nABCDEF"))
    assert set(without.out) & set("abcdef")
    by_torch = heedful(*arguments, "--engine", "torch", stdin=LINES.encode())
    assert (by_torch.code, by_torch.err, by_torch.out) == (0, "engine torch\n", listed.out)
    path = copied / "engines" / "ctranslate2" / "vmap.txt"
    path.write_bytes(path.read_bytes()[:-2])
    assert heedful(*arguments, "--engine", "ctranslate2", stdin=b"abc\n").code == 3
    shutil.rmtree(copied / "engines" / "ctranslate2")  # whose list is damaged
    shutil.rmtree(copied / "run")
    missing = heedful("export", copied, "--to", "ctranslate2", "--shortlist")
    assert missing.code == 2
    assert "has no training pairs in run/data" in missing.errors[0]


@thorough
def test_a_shortlist_is_used_by_onnx_runtime(copied: Path):
    arguments = ("translate", copied, "--beam", "1", "--shortlist", "--engine")
    done = heedful("export", copied, "--to", "onnx", "--shortlist")
    assert done.code == 0, done.err
    by_onnx, by_torch = (heedful(*arguments, engine, stdin=LINES.encode()) for engine in ("onnx", "torch"))
    assert (by_onnx.code, by_onnx.err, by_onnx.out) == (0, "engine onnx\n", by_torch.out)
    free = heedful(*arguments, "onnx", "--require", "a", stdin=LINES.encode())
    assert free.err == "engine onnx; the whole vocabulary, because phrases may have any token\n"


@thorough
@pytest.mark.skipif(os.name == "nt", reason="no folder can be locked there")
def test_what_killed_exports_left_is_removed_by_the_next(copied: Path):
    left = copied / "engines" / ".onnx-99-0.unfinished"
    left.mkdir()
    (left / "step.onnx").write_bytes(b"half")
    assert heedful("export", copied, "--to", "onnx").code == 0
    assert sorted(path.name for path in (copied / "engines").iterdir()) == ["ctranslate2", "onnx"]


def with_export(settings: Path, *changes: tuple[str, str]) -> Path:
    """The settings of the tests, with exports at the end of a training."""
    text = settings.read_text(encoding="utf-8").replace("export = false", "export = true")
    for before, after in changes:
        text = text.replace(before, after)
    settings.write_text(text, encoding="utf-8")
    return settings


def test_a_training_ends_with_the_engines_that_serve_its_model(trained: Trained, settings: Path, tmp_path: Path):
    path, config = tmp_path / "m", with_export(settings, ("beam = 2", "beam = 1"))
    done = heedful("train", trained.data, "--out", path, "--config", config)
    assert done.code == 0, done.err
    assert "exporting to onnx and ctranslate2, to run the model without PyTorch" in done.err
    assert sorted(each.name for each in (path / "engines").iterdir()) == ["ctranslate2", "onnx"]
    for name in ("onnx", "ctranslate2"):
        assert f"engine {path / 'engines' / name}: " in done.err
    manifest = (path / "engines" / "onnx" / "engine.json").read_bytes()
    translated = without_torch("translate", path, stdin=LINES)
    assert (translated.code, translated.err) == (0, "engine ctranslate2\n")
    assert translated.out == heedful("translate", path, "--engine", "torch", stdin=LINES.encode()).out
    script = f"import heedful; print(heedful.load({str(path)!r}).translate(['abc'], beam=2)[0].text)"
    loaded = without_torch(script=script)
    assert loaded.code == 0, loaded.err
    # The same command finds the engines, and exports only what is missing.
    shutil.rmtree(path / "engines" / "ctranslate2")
    again = heedful("train", trained.data, "--out", path, "--config", config)
    assert "exporting to ctranslate2, to run the model without PyTorch" in again.err
    assert (path / "engines" / "onnx" / "engine.json").read_bytes() == manifest


def test_a_model_without_an_engine_is_trained_and_one_line_says_so(trained: Trained, settings: Path, tmp_path: Path):
    config = with_export(
        settings, ("dropout = 0.0", 'dropout = 0.0\nencoder_attention = { normalizer = "projective_tree" }')
    )
    done = heedful("train", trained.data, "--out", tmp_path / "m", "--config", config)
    assert done.code == 0, done.err
    lines = [line for line in done.err.split("\n") if "no engine" in line]
    assert lines == [
        "heedful: warning: no engine onnx, the model runs with PyTorch: onnx: a tree needs a loop over spans, "
        "and exported graphs have no loops"
    ]
    assert heedful("translate", tmp_path / "m", "abc").code == 0


def test_a_failed_export_costs_no_model(
    trained: Trained, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*arguments: object) -> None:
        raise RuntimeError("the exporter broke\nhere and there")

    monkeypatch.setattr("heedful.export.engine.export_engine", fail)
    done = heedful("train", trained.data, "--out", tmp_path / "m", "--config", with_export(settings), "-q")
    assert done.code == 0, done.err
    assert "heedful: warning: no engine onnx, the model runs with PyTorch: the exporter broke\n" in done.err
    assert f"model: {tmp_path / 'm'}" in done.out


def test_without_ctranslate2_the_other_engine_runs(model: Path, monkeypatch: pytest.MonkeyPatch):
    wanted = heedful("translate", model, "--beam", "1", "--engine", "ctranslate2", stdin=LINES.encode()).out
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    done = heedful("translate", model, "--beam", "1", stdin=LINES.encode())
    assert (done.code, done.err, done.out) == (0, "engine onnx\n", wanted)
    named = heedful("translate", model, "--beam", "1", "--engine", "ctranslate2", stdin=LINES.encode())
    assert (named.code, named.out) == (6, "")
    assert "running a model in CTranslate2 needs ctranslate2: pip install" in named.errors[0]


def test_a_missing_runtime_is_named_before_any_work(trained: Trained, monkeypatch: pytest.MonkeyPatch):
    def work(*arguments: object) -> None:
        raise AssertionError("exported before asking for ONNX Runtime")

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr("heedful.export.engine.export_graphs", work)
    done = heedful("export", trained.model, "--to", "onnx")
    assert (done.code, len(done.errors)) == (6, 1)
    assert "running ONNX models needs onnxruntime" in done.errors[0]


def test_an_engine_that_gives_other_numbers_is_not_kept(copied: Path, monkeypatch: pytest.MonkeyPatch):
    before = (copied / "engines" / "ctranslate2" / "engine.json").read_bytes()
    monkeypatch.setitem(ACTIVATIONS, "relu", ACTIVATIONS["swish"])
    done = heedful("export", copied, "--to", "ctranslate2")
    assert (done.code, len(done.errors)) == (3, 1)
    assert "nats from PyTorch's; not kept" in done.errors[0]
    assert sorted(path.name for path in (copied / "engines").iterdir()) == ["ctranslate2", "onnx"]
    assert (copied / "engines" / "ctranslate2" / "engine.json").read_bytes() == before


def test_a_target_that_cannot_take_the_model_leaves_nothing(trained: Trained, settings: Path, tmp_path: Path):
    text = settings.read_text(encoding="utf-8")
    sizes = text[text.index("num_encoder_layers") : text.index("[training]")]
    small = "embedding_size = 4\nhidden_size = 4\nalignment_size = 4\nmaxout_size = 4\n"
    settings.write_text(text.replace("transformer", "rnnsearch").replace(sizes, small), encoding="utf-8")
    path = tmp_path / "r.model"
    assert heedful("train", trained.data, "--out", path, "--config", settings).code == 0
    done = heedful("export", path, "--to", "ctranslate2")
    assert (done.code, len(done.errors)) == (2, 1)
    assert "export --to onnx runs any model" in done.errors[0]
    assert [*(path / "engines").iterdir()] == []
    for options, complaint in (
        (("--to", "transformers.js", tmp_path / "out"), "transformers.js: Marian's models are Transformers"),
        (("--to", "js", "--layers"), "--layers is for Transformers"),
        (("--to", "onnx", "--layers"), "--layers is for Transformers"),
    ):
        refused = heedful("export", path, *options)
        assert (refused.code, refused.out, complaint in refused.err) == (2, "", True)
        assert "writing" not in refused.err
    assert [*(path / "engines").iterdir()] == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--to", "huggingface"], "needs a folder OUT"),
        (["out", "--to", "huggingface", "--int8"], "needs a folder OUT"),
        (["out", "--to", "onnx"], "engines take no OUT"),
        (["out", "--to", "huggingface"], "huggingface: Marian's models normalise after each sub-layer"),
        (["out", "--to", "transformers.js"], "transformers.js: Marian's models normalise after each sub-layer"),
        (["out", "--to", "html", "--int8"], "are for engines"),
        (["out", "--to", "js", "--shortlist"], "are for engines"),
        (["--to", "onnx", "--example", "abc"], "are for --to html and --to js"),
        (["m.onnx", "--to", "onnx", "--single", "--license", "mit"], "without further options"),
        (["--to", "html", "--runtime", "none.tgz"], "none.tgz: no such file or folder"),
        (["--to", "js", "--example", " "], "--example: an empty text"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_anything_is_written(
    trained: Trained, arguments: list[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    done = heedful("export", trained.model, *arguments)
    assert (done.code, len(done.errors)) == (2, 1)
    assert complaint in done.errors[0]
    assert "writing" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_files_for_the_web_are_written_without_pytorch(copied: Path, tmp_path: Path):
    archive = tmp_path / "a" / "words.tgz"
    done = without_torch("export", copied, "--to", "js", "-o", archive, "--weights", "float32")
    assert done.code == 0, done.err
    assert done.out.startswith(f"{archive}: ")
    with tarfile.open(archive) as opened:
        assert opened.getnames() == ["model.json", "README.md", "encode.onnx", "step.onnx"]
    pairs = tmp_path / "dev.tsv"
    pairs.write_text("abc\tABC\nfade\tFADE\n", encoding="utf-8")
    done = heedful("export", copied, "--to", "js", "-o", archive, "--dev", pairs)
    assert (done.code, "exact_match; " in done.err, "taken: int8" in done.err) == (0, True, True), done.err
    assert heedful("export", copied, "--to", "onnx", "--dev", pairs).code == 2
    if has_runtime():
        done = without_torch("export", copied, "--to", "html", "--example", "abc")
        assert done.code == 0, done.err
        page = copied.with_suffix(".html")
        assert done.out == f"{page}: {readable_size(page.stat().st_size)}; open it in a browser\n"
        assert '"examples": ["abc"]' in page.read_text("utf-8")
    assert heedful("export", copied, "--to", "js", "-o", tmp_path).code == 2


def put_step(engine: Path, kind: str) -> None:
    """Put another graph, with the hash that the manifest then has, into the place of the one of a step."""
    import onnx
    from onnx import TensorProto, helper

    model = onnx.load(engine / "step.onnx")
    if kind == "another graph":
        inputs, outputs = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
        node = helper.make_node("Relu", ["x"], ["y"])
        opset = [helper.make_opsetid("", 17)]
        graph = helper.make_graph([node], "step", [inputs], [outputs])
        model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    elif kind == "a file outside":
        weights = max(model.graph.initializer, key=lambda each: len(each.raw_data))
        weights.ClearField("raw_data")
        weights.data_location = TensorProto.EXTERNAL
        weights.external_data.add(key="location", value="../../../secret.txt")
    else:
        onnx.save(model, engine / "step.onnx", save_as_external_data=True, location="step.bin", size_threshold=512)
        model = onnx.load(engine / "step.onnx", load_external_data=False)
    (engine / "step.onnx").write_bytes(model.SerializeToString())
    facts = json.loads((engine / "engine.json").read_text("utf-8"))
    files = {path.name: digest(path) for path in engine.iterdir() if path.suffix in (".onnx", ".bin")}
    (engine / "engine.json").write_text(json.dumps(facts | {"files": files}), encoding="utf-8")


@pytest.mark.parametrize("kind", ["another graph", "a file outside", "a file beside it"])
@pytest.mark.parametrize("options", [["--weights", "float32"], []], ids=["as they are", "chosen"])
def test_graphs_that_no_browser_runs_are_refused(copied: Path, kind: str, options: list[str]):
    put_step(copied / "engines" / "onnx", kind)
    (copied.parent / "secret.txt").write_bytes(b"\0" * 9999)
    done = heedful("export", copied, "--to", "js", *options)
    assert (done.code, done.out, len(done.errors)) == (3, "", 1), done.err
    assert "export the model again" in done.errors[0]
    assert not copied.with_suffix(".tgz").exists()
    is_runnable = kind == "a file beside it"
    packed = heedful("pack", copied, "-o", copied.with_suffix(".zip"))
    assert packed.code == heedful("translate", copied, "--engine", "onnx", "abc").code == (0 if is_runnable else 3)
    assert copied.with_suffix(".zip").exists() == is_runnable


def test_layers_of_a_page_leave_the_engine_of_the_model_as_it_is(copied: Path):
    engine = copied / "engines" / "onnx"
    before = {path.name: path.read_bytes() for path in engine.iterdir()}
    done = heedful("export", copied, "--to", "js", "--layers", "--weights", "float32")
    assert done.code == 0, done.err
    with tarfile.open(copied.with_suffix(".tgz")) as opened:
        assert "layers.onnx" in opened.getnames()
    assert {path.name: path.read_bytes() for path in engine.iterdir()} == before


def test_a_missing_runtime_for_browsers_says_where_it_comes_from(copied: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heedful.export.web_runtime.has_runtime", lambda: False)
    done = heedful("export", copied, "--to", "html")
    assert (done.code, len(done.errors)) == (2, 1)
    assert "make runtime; or: npm pack onnxruntime-web@" in done.errors[0]
    assert not copied.with_suffix(".html").exists()


def test_a_folder_for_transformers_comes_back_by_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "opus")
    assert heedful("import", "opus", "--quiet").code == 0
    done = heedful("export", "opus.model", "--to", "huggingface", "theirs/opus")
    assert (done.code, done.err) == (0, "theirs/opus: writing the folder and comparing what it gives\n")
    assert 'library_name: "transformers"' in Path("theirs/opus/README.md").read_text("utf-8")
    assert done.out.startswith("theirs/opus: log probabilities within ")
    assert done.out.endswith(" of the model's, 48 of 48 outputs the same\n")
    assert heedful("import", "theirs/opus", "--out", "again.model", "--quiet").code == 0
    one, two = (heedful("translate", each, "-q", stdin=b"a b\n\nab d\n") for each in ("opus.model", "again.model"))
    assert one == two
    assert one.out.count("\n") == 3


def test_the_card_of_a_folder_for_transformers_js_has_the_lines_of_a_page(imported: Path, tmp_path: Path):
    assert heedful("export", imported, tmp_path / "o s", "--to", "transformers.js").code == 0
    card = (tmp_path / "o s" / "README.md").read_text("utf-8")
    lines = card.split("```javascript\n")[2].split("```")[0].splitlines()
    assert lines[0] == "env.allowLocalModels = true;"
    assert lines[1].startswith("env.backends.onnx.wasm.wasmPaths = './';")
    assert "\ncp -r 'o s' node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded.* dist/\n" in card
    assert card.index("pipeline('translation'") < card.index(lines[0]) < card.index("## ", card.index("## Use") + 3)


@thorough
def test_one_graph_of_a_whole_model(trained: Trained, tmp_path: Path):
    from heedful.export.single import run_single
    from heedful.predictors.table import load
    from heedful.predictors.translator import Translator

    path = tmp_path / "words.onnx"
    done = heedful("export", trained.model, "--to", "onnx", "--single", path)
    assert done.code == 0, done.err
    assert "200 of 200 outputs of random words the same" in done.out
    words = ["abc", "fed", "cafe", "a" * 40]
    tokenizer = load(trained.model, kind=Translator).target_tokenizer
    lines = heedful("translate", trained.model, *words, "--beam", "1", "--quiet").out.split("\n")
    assert [tokenizer.decode(ids) for ids in run_single(path, words)] == lines[:-1]


def test_options_of_a_single_graph_are_checked(trained: Trained, tmp_path: Path):
    for options, words in (
        (("--to", "onnx", "--single"), "--single OUT.onnx"),
        (("--to", "onnx", tmp_path / "m.onnx"), "engines take no OUT"),
        (("--to", "ctranslate2", "--single", tmp_path / "m.onnx"), "writes one graph"),
        (("--to", "onnx", "--int8", "--single", tmp_path / "m.onnx"), "without further options"),
    ):
        done = heedful("export", trained.model, *options)
        assert (done.code, len(done.errors), words in done.err) == (2, 1, True), done.err
    assert not [*tmp_path.iterdir()]


@pytest.fixture
def read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which nothing can be created, as on a disk that is mounted read-only, also for an administrator."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    make_folder, open_file = os.mkdir, os.open

    def refuse(path: object, is_refused: bool) -> None:
        if is_refused and str(path).startswith(str(folder)) and not os.path.exists(str(path)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    def mkdir(path: Any, *arguments: Any, **named: Any) -> None:
        refuse(path, True)
        make_folder(path, *arguments, **named)

    def opened(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        refuse(path, bool(flags & os.O_CREAT))
        return open_file(path, flags, *arguments, **named)

    monkeypatch.setattr(os, "mkdir", mkdir)
    monkeypatch.setattr(os, "open", opened)
    return folder


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that programs of others can hold."""
    folder = tmp_path_factory.mktemp("imported")
    write_folder(folder / "opus")
    assert heedful("import", folder / "opus", "--out", folder / "opus.model", "--quiet").code == 0
    return folder / "opus.model"


@pytest.mark.parametrize(
    "command",
    [
        ["export", "{inside}", "--to", "onnx"],
        ["export", "{inside}", "--to", "ctranslate2"],
        ["export", "{inside}", "--to", "html"],
        ["export", "{inside}", "--to", "js"],
        ["export", "{model}", "{folder}/out", "--to", "huggingface"],
        ["export", "{model}", "{folder}/out", "--to", "transformers.js"],
        pytest.param(["export", "{model}", "-o", "{folder}/out.html", "--to", "html"], marks=thorough),
        ["export", "{model}", "-o", "{folder}/out.heedful", "--to", "js"],
        pytest.param(["export", "{trained}", "{folder}/out.onnx", "--to", "onnx", "--single"], marks=thorough),
        ["pack", "{model}", "-o", "{folder}/out.zip"],
        is_thorough(["pack", "{model}", "-o", "{folder}/out.html"]),
    ],
    ids=" ".join,
)
def test_exports_to_a_read_only_disk_end_as_those_to_a_full_one(
    command: list[str], imported: Path, trained: Trained, read_only: Path
):
    inside = read_only / "words.model"
    if "{inside}" in command:
        shutil.copytree(imported, read_only.parent / "words.model").rename(inside)
    places = {"inside": inside, "model": imported, "trained": trained.model, "folder": read_only}
    done = heedful(*(part.format_map(places) for part in command))
    assert done.code == 5, done.err
    (error,) = done.errors
    assert str(read_only) in error
    assert "read-only file system" in error.lower()
    assert [*read_only.iterdir()] == [inside] * ("{inside}" in command)
