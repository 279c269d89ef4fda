import shutil
from pathlib import Path

from tests.cli.command import heedful
from tests.cli.conftest import Trained
from tests.pages.read import Read


def test_training_leaves_a_page_with_its_test_scores(trained: Trained):
    page = trained.model / "run" / "report.html"
    assert f"page:  {page}" in trained.done.out
    text = Read(page.read_text(encoding="utf-8")).text
    assert "finished: 8 steps" in text
    assert "exact match 0.00 [0.00, 0.00]" in text
    assert "sources for validation" in text
    assert "select_by" in text


def test_the_page_may_go_elsewhere(trained: Trained, tmp_path: Path):
    done = heedful("report", trained.model, "-o", tmp_path / "page.html")
    assert (done.code, done.out, done.err) == (0, f"{tmp_path / 'page.html'}\n", "")
    assert (tmp_path / "page.html").read_bytes() == (trained.model / "run" / "report.html").read_bytes()


def test_a_model_without_its_run(trained: Trained, tmp_path: Path):
    shutil.copytree(trained.model, tmp_path / "m")
    shutil.rmtree(tmp_path / "m" / "run")
    done = heedful("report", tmp_path / "m")
    assert done.code == 2
    assert "holds no training run" in done.errors[0]


def test_a_model_that_cannot_be_opened_is_named(trained: Trained, tmp_path: Path):
    shutil.copytree(trained.model, tmp_path / "m")
    (weights,) = (tmp_path / "m").glob("model-*.safetensors")
    weights.write_bytes(b"")
    done = heedful("report", tmp_path / "m", "-o", tmp_path / "page.html")
    assert done.code == 0
    assert done.err.startswith(f"heedful: warning: no attention on the page: {weights}: changed since it was written")
