"""Parts of one's own: what docs/extending.md shows trains, is stored and opened, and errors name the line of a part."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import heedful
from heedful.attention.dispatch import attend
from heedful.attention.interface import Score
from heedful.cli.main import main
from heedful.engines.folder import open_folder
from heedful.errors import FileRefused, UsageError
from heedful.models.store import store_weights
from heedful.predictors.translator import Translator
from tests.architecture.package import ROOT

PAGE = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
QUICK = {
    "training.export": False,
    "training.max_steps": 2,
    "training.batch_tokens": 256,
    "training.validate_every": 2,
    "text.source_units": "characters",
    "text.target_units": "characters",
    "model.hidden_size": 8,
    "model.embedding_size": 8,
}
FAULTY = """
from torch import nn
from heedful.attention import Score


def wrong(query, key):
    return query.no_such_method()


def untraceable(query, key):
    scores = query @ key.mT
    return scores if scores.max() > 0 else -scores


class Empty(Score):
    pass


class Sizeless(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
"""


def block(heading: str) -> str:
    """The block of Python under a heading of the page."""
    found = re.search(rf"\n### {heading}\n.*?```python\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, heading
    return found[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with pairs, and with the parts of the page in a module."""
    headings = ("A function as score", "A score with parameters", "An encoder")
    (tmp_path / "own_parts.py").write_text("\n".join(map(block, headings)) + FAULTY, encoding="utf-8")
    (tmp_path / "pairs.tsv").write_text("".join(f"{n}\t{n * 7}\n" for n in range(300)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("own_parts", None)


def train(kind: str, **settings: object) -> Translator:
    own = {key.replace("__", "."): value for key, value in settings.items()}
    return heedful.train("pairs.tsv", preset=kind, out=f"{kind}.model", settings={**QUICK, **own}, quiet=True)


def test_parts_of_the_page_train_and_are_opened(folder: Path):
    scored = train("luong", model__attention__score="own_parts:squared_distance", model__num_layers=1)
    assert scored.folder.facts["code"] == ["own_parts:squared_distance"]
    assert len(heedful.load("luong.model", code=scored.folder.facts["code"]).translate(["12"])) == 1
    own = {"model__attention__score": "own_parts:Gated", "model__encoder": "own_parts:Convolutions"}
    both = train("rnnsearch", **own, model__initial_state="mean", model__maxout_size=8)
    assert both.folder.facts["code"] == ["own_parts:Convolutions", "own_parts:Gated"]
    names = dict(both.model().named_parameters())
    assert {"score.gate.weight", "encoder.layers.0.weight"} <= names.keys()
    assert names["readout.weight"].shape[1] == 3 * 8  # of states, words and the encoder's 8 features
    assert both.translate(["12"])[0].text == both.translate(["12", "3456"])[0].text  # padding changes nothing


def test_parts_are_compared_where_their_code_is_allowed(folder: Path):
    score = "own_parts:squared_distance"
    (folder / "grid.toml").write_text(
        f'axes = {{ "model.attention.score" = ["general", "{score}"] }}\n[base]\npreset = "luong"\n'
        "[base.model]\nhidden_size = 8\nembedding_size = 8\nnum_layers = 1\n"
        '[base.text]\nsource_units = "characters"\ntarget_units = "characters"\n'
        "[base.training]\nmax_steps = 2\nbatch_tokens = 256\nvalidate_every = 2\n",
        encoding="utf-8",
    )
    table = heedful.compare("grid.toml", "pairs.tsv", code=[score], quiet=True).comparison
    assert [row.name for row in table.rows] == ["general", score]


def test_a_loop_of_ones_own_changes_the_model_in_its_folder(folder: Path, capsys: pytest.CaptureFixture[str]):
    small = '{**QUICK, "training.max_steps": 1, "model.num_layers": 1}'
    code = block("A training loop of your own").replace('{"training.max_steps": 1}', small)
    before: dict[str, torch.Tensor] = {}

    def watched(path: Path, weights: dict[str, torch.Tensor]) -> None:
        before.update({name: part.clone() for name, part in heedful.load(path).model().named_parameters()})
        store_weights(path, weights)

    code = code.replace("store_weights(folder,", "watched(folder,")
    exec(compile(code, "page", "exec"), {"QUICK": QUICK, "watched": watched})
    after = dict(heedful.load("pairs.model").model().named_parameters())
    assert any(not torch.equal(after[name], before[name]) for name in before)
    assert len(list(folder.glob("pairs.model/model-*.safetensors"))) == 1
    assert open_folder(folder / "pairs.model").facts["languages"]
    with pytest.raises(FileRefused, match="do not fit the model: more"):
        store_weights(folder / "pairs.model", {**after, "more": torch.zeros(1)})


def test_errors_name_the_line_of_the_part(folder: Path, capsys: pytest.CaptureFixture[str]):
    common = [part for key, value in QUICK.items() for part in ("--set", f"{key}={str(value).lower()}")]

    def fails(*settings: str) -> str:
        assert main(["train", "pairs.tsv", "--quiet", "--preset", "luong", "--out", "m", *common, *settings]) == 2
        return capsys.readouterr().err.strip().splitlines()[-1]

    line = 1 + (folder / "own_parts.py").read_text(encoding="utf-8").split("\n").index("def wrong(query, key):") + 1
    assert f"own_parts.py:{line}: AttributeError" in fails("--set", "model.attention.score=own_parts:wrong")
    assert "score Empty: write forward(query, key)" in fails("--set", "model.attention.score=own_parts:Empty")
    assert "output_size is None" in fails("--set", "model.encoder=own_parts:Sizeless")
    assert "no encoder 'recurent'; did you mean 'recurrent'" in fails("--set", "model.encoder=recurent")


def test_export_names_the_line_that_cannot_be_traced(folder: Path, capsys: pytest.CaptureFixture[str]):
    train("luong", model__attention__score="own_parts:untraceable", model__num_layers=1)
    assert main(["export", "luong.model", "--to", "onnx", "--code", "own_parts:untraceable"]) == 2
    text = (folder / "own_parts.py").read_text(encoding="utf-8").split("\n")
    line = 1 + next(i for i, each in enumerate(text) if "scores.max()" in each)
    # PyTorch's exporter may print warnings of its own beside it.
    (error,) = [each for each in capsys.readouterr().err.split("\n") if each.startswith("heedful: error")]
    assert f"own_parts.py:{line} cannot be traced" in error
    assert "Caused by" not in error


def test_a_score_with_forward_alone_learns_in_tiles():
    """The gradient of a parameter inside a score function is whole, whether the call is one tile or many."""

    class Weighted(Score):
        def __init__(self) -> None:
            super().__init__(4, 4)
            self.weight = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5, 3.0]))

        def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
            return (query * self.weight) @ key.mT

    torch.manual_seed(1)
    query, key = torch.randn(2400, 4), torch.randn(2000, 4)  # more scores than one tile has

    def gradient(queries: torch.Tensor) -> torch.Tensor:
        score = Weighted()
        total = sum(attend(part, key, key, score=score).context.square().sum() for part in queries.split(600))
        torch.as_tensor(total).backward()
        assert score.weight.grad is not None
        return score.weight.grad

    score = Weighted()
    attend(query, key, key, score=score).context.square().sum().backward()
    assert score.weight.grad is not None
    torch.testing.assert_close(score.weight.grad, gradient(query), rtol=1e-4, atol=1e-4)
    with pytest.raises(UsageError, match="write forward"):
        attend(query, key, key, score=Score(4, 4))
