"""`heedful calibrate`, `translate --min-confidence` and `evaluate` of a calibrated model."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.command import Done, heedful
from tests.cli.conftest import Trained, write_pairs

TEXTS = ("abc", "fedcba", "aa", "")


@pytest.fixture(scope="module")
def calibrated(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calibrated")
    model = Path(shutil.copytree(trained.model, folder / "m"))
    # After 8 steps nothing equals its reference; that counts too.
    done = heedful("calibrate", model, write_pairs(folder / "dev.tsv", 160, seed=5), "--right", "chrf")
    assert done.code == 0, done.err
    assert done.out.startswith("confidence in ")
    assert "(chrF of 60 or more)" in done.out
    assert f"heedful translate {model} --min-confidence" in done.err
    return model


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_pairs(tmp_path / "test.tsv", 40, seed=6)


def refusal(done: Done, code: int = 2) -> str:
    assert (done.code, done.out, len(done.errors)) == (code, "", 1), done
    return done.errors[0]


def rows(model: Path, *options: object) -> list[dict[str, object]]:
    done = heedful("translate", model, "--format", "jsonl", *options, *TEXTS)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.split("\n")[:-1]]


def test_figures_can_be_read_by_programs(trained: Trained, tmp_path: Path):
    model = shutil.copytree(trained.model, tmp_path / "m")
    done = heedful("calibrate", model, write_pairs(tmp_path / "d.tsv", 160), "--format", "json", "-q")
    facts = json.loads(done.out)
    assert (facts["criterion"], done.err) == ("exact_match", "")
    assert set(facts["risks"]) == {"0.1", "0.25", "0.5", "0.75", "1"}
    assert 0.0 <= facts["calibration_error"] <= 1.0


def test_outputs_below_the_limit_are_withheld(calibrated: Path):
    known = rows(calibrated, "--min-confidence", 0)
    plain = rows(calibrated)
    assert "confidence" not in plain[0]
    assert [one["text"] for one in known] == [one["text"] for one in plain]
    confidences = [float(str(one["confidence"])) for one in known]
    assert confidences[3] == 1.0
    limit = sorted(confidences)[1]
    shown = rows(calibrated, "--min-confidence", limit + 1e-6)
    for before, after in zip(known, shown, strict=True):
        is_low = float(str(before["confidence"])) < limit + 1e-6
        assert after["text"] == ("" if is_low else before["text"])
        assert after.get("withheld") == (before["text"] if is_low else None)
        assert bool(after["alternatives"]) != is_low
    number = sum(one["text"] != other["text"] for one, other in zip(known, shown, strict=True))
    assert 1 <= number <= 3
    done = heedful("translate", calibrated, "--min-confidence", limit + 1e-6, *TEXTS)
    assert done.out.split("\n")[:-1] == [one["text"] for one in shown]
    assert f"{number} of 4 outputs left out: confidence below" in done.err


def test_outputs_of_a_source_are_given_or_withheld_together(calibrated: Path):
    lines = heedful("translate", calibrated, "--nbest", 2, *TEXTS).out.split("\n")[:-1]
    confidences = [float(str(one["confidence"])) for one in rows(calibrated, "--min-confidence", 0)]
    limit = sorted(confidences)[1] + 1e-6
    given = heedful("translate", calibrated, "--nbest", 2, "--min-confidence", limit, *TEXTS).out.split("\n")[:-1]
    kept = [index for index, one in enumerate(confidences) if one >= limit]
    assert given == [line for line in lines if int(line.split(" ")[0]) in kept]
    assert 0 < len(given) < len(lines)


def test_links_of_a_withheld_output_are_left_out(calibrated: Path):
    done = heedful("translate", calibrated, "--min-confidence", 1, "--align", "abc")
    assert done.out == "\t\n"


def test_evaluation_says_how_far_to_trust_it(calibrated: Path, trained: Trained, data: Path, tmp_path: Path):
    done = heedful("evaluate", calibrated, data, "--risk-png", tmp_path / "risk.png")
    assert "calibration error (ECE)" in done.out
    assert (tmp_path / "risk.png").read_bytes()[:4] == b"\x89PNG"
    facts = json.loads(heedful("evaluate", calibrated, data, "--format", "json").out)
    assert facts["confidence"]["num_items"] == 40
    without = heedful("evaluate", trained.model, data)
    assert "confidence" not in without.out


def test_bad_use_is_refused_in_a_line(calibrated: Path, trained: Trained, data: Path, tmp_path: Path):
    short = write_pairs(tmp_path / "short.tsv", 20)
    cases = {
        "give at least 100": ("calibrate", calibrated, short, "-q"),
        "--right luck: unknown": ("calibrate", calibrated, data, "--right", "luck"),
        "not calibrated, so it has no confidence; run: heedful calibrate": (
            *("translate", trained.model, "abc", "--min-confidence", 0.5),
        ),
        "about the outputs of one model: leave out --ensemble": (
            *("translate", calibrated, "abc", "--min-confidence", 0.5, "--ensemble", trained.model),
        ),
        "--risk-png draws the confidence of one model alone": (
            *("evaluate", calibrated, data, "--risk-png", tmp_path / "a.png", "--ensemble", trained.model),
        ),
    }
    for complaint, command in cases.items():
        assert complaint in refusal(heedful(*command))
    out = tmp_path / "out"
    done = heedful("translate", trained.model, "--ray", data, "-o", out, "--min-confidence", 0.5)
    assert "not calibrated" in refusal(done)
    assert not out.exists()
    done = heedful("evaluate", trained.model, data, "--risk-png", tmp_path / "a.png", "-q")
    assert "not calibrated" in refusal(done)
    assert not (tmp_path / "a.png").exists()
    assert heedful("translate", calibrated, "abc", "--min-confidence", 1.5).code == 2
