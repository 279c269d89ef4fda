import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from heedful.runs import progress_display as progress
from heedful.runs.progress_display import LiveDisplay, NotebookDisplay, PlainLines, followed, one_line, where
from heedful.training.progress import Ends, Progress, Validation
from tests.thorough import thorough

RUNNING = Progress(1200, 2.5, 3.21, 3870.4, 1e-3, 60.0, 0.25)
SAMPLE = ("ein [b]Mann[/b]", "a man", "a\tmen")
VALIDATED = replace(RUNNING, validation=Validation({"loss": 3.1239, "bleu": 25.1}, SAMPLE), is_best=True)


def test_where_with_a_limit_and_without():
    assert where(RUNNING) == "25 %, step 1,200, epoch 2.50, 3,870 tokens/s, loss 3.210, 3 min 00 s left"
    assert "3,870 texts/s" in where(replace(RUNNING, unit="texts"))
    assert where(replace(RUNNING, done=0.0)) == "step 1,200, epoch 2.50, 3,870 tokens/s, loss 3.210"


def test_where_names_the_ends_of_a_training_without_a_limit_of_time_or_steps():
    waiting = replace(RUNNING, done=0.0, ends=Ends(patience=8))
    assert where(waiting).endswith(", no set end: stops after 8 validations without a better score")
    waiting = replace(waiting, ends=Ends(num_without_better=2, patience=8))
    assert where(waiting) == (
        "step 1,200, epoch 2.50, 3,870 tokens/s, loss 3.210, "
        "no set end: stops after 8 validations without a better score, 2 so far"
    )
    limited = replace(RUNNING, ends=Ends(max_epochs=10, num_without_better=2, patience=8))
    assert where(limited) == ("25 %, step 1,200, epoch 2.50 of at most 10, 3,870 tokens/s, loss 3.210, 3 min 00 s left")


def test_plain_lines_come_with_validations_and_twice_a_minute(monkeypatch: pytest.MonkeyPatch):
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    said: list[str] = []
    watch = PlainLines(said.append)
    watch(RUNNING)
    assert said == []
    clock[0] += 29.0
    watch(RUNNING)
    assert said == []
    clock[0] += 2.0
    watch(RUNNING)
    assert said == [where(RUNNING)]
    watch(RUNNING)
    assert len(said) == 1
    watch(VALIDATED)
    assert said[1:] == [
        "step 1,200, epoch 2.50: loss 3.124, BLEU 25.10 (best so far)",
        "  source     ein [b]Mann[/b]",
        "  reference  a man",
        r"  model      a\x09men",
    ]
    clock[0] += 29.0
    watch(RUNNING)
    assert len(said) == 5


def validated(step: int, is_best: bool = False, output: str = "a man") -> Progress:
    """Report of a validation."""
    sample = ("ein Mann", "a man", output)
    return replace(RUNNING, step=step, validation=Validation({"loss": 3.0}, sample), is_best=is_best)


def test_many_validations_are_few_lines(monkeypatch: pytest.MonkeyPatch):
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    said: list[str] = []
    with followed(said.append) as watch:
        for step in range(1, 301):  # ten validations a second for half a minute
            clock[0] += 0.1
            watch(validated(step, is_best=step % 7 == 1))
    steps = [int(line.split()[1].strip(",")) for line in said if line.startswith("step")]
    assert steps[0] == 1
    assert steps[-1] == 300
    assert len(said) <= 3 + 2 * (1 + 30 / progress.VALIDATION_SECONDS)
    assert steps == sorted(steps)
    assert any("best so far" in line for line in said[5:])  # a best one that came when it was too early to print it


def test_the_last_validation_of_a_training_that_fails_is_printed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress.time, "monotonic", lambda: 0.0)
    said: list[str] = []

    def fail() -> None:
        with followed(said.append) as watch:
            watch(validated(1))
            watch(validated(2))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert said[-1].startswith("step 2")


def test_texts_of_the_sample_are_printed_when_they_change(monkeypatch: pytest.MonkeyPatch):
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    said: list[str] = []
    watch = PlainLines(said.append)
    for step, output in enumerate(("the", "a man", "a man"), start=1):
        watch(validated(step, output=output))
        clock[0] += 10.0
    assert [line for line in said if line.startswith(" ")] == [
        "  source     ein Mann",
        "  reference  a man",
        "  model      the",
        "  model      a man",
    ]


def test_of_a_document_only_the_beginning_is_shown():
    said: list[str] = []
    PlainLines(said.append)(replace(VALIDATED, validation=Validation({"loss": 3.0}, ("a word " * 1000, "pos", "neg"))))
    assert said[1] == f"  source     {('a word ' * 1000)[:300]}..."


def test_the_live_display_shows_figures_and_the_sample():
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    display = LiveDisplay(console)
    display(RUNNING)
    display(VALIDATED)
    worse = Validation(
        {"loss": 3.2, "bleu": 24.0}, VALIDATED.validation.sample if VALIDATED.validation else ("", "", "")
    )
    display(replace(VALIDATED, step=1300, is_best=False, validation=worse))
    with console.capture() as captured:
        console.print(display)
    drawn = captured.get()
    assert "step 1,300" in drawn
    assert "BLEU 24.00" in drawn
    assert "loss 3.124, BLEU 25.10, at step 1,200" in drawn
    assert "ein [b]Mann[/b]" in drawn, "a text must not be read as markup"


@pytest.mark.parametrize("width", [40, 80, 132])
def test_the_bar_is_as_wide_as_the_terminal_and_no_line_is_wider(width: int):
    console = Console(file=io.StringIO(), force_terminal=True, width=width)
    display = LiveDisplay(console)
    display(VALIDATED)
    with console.capture() as captured:
        console.print(display)
    lines = Text.from_ansi(captured.get()).plain.split("\n")
    assert width - 3 <= len(lines[0].rstrip()) <= width
    assert max(map(len, lines)) <= width
    assert " ".join(line.strip() for line in lines[1 : -(-len(where(VALIDATED)) // width) + 1]) == where(VALIDATED)


def test_without_a_limit_the_bar_pulses():
    display = LiveDisplay(Console(file=io.StringIO(), force_terminal=True, width=120))
    display(replace(RUNNING, done=0.0))
    assert display._bar.tasks[0].total is None


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]):
    with followed(print, is_quiet=True) as watch:
        watch(VALIDATED)
    assert capsys.readouterr() == ("", "")


def test_elsewhere_than_on_a_terminal_lines_are_plain(capsys: pytest.CaptureFixture[str]):
    with followed(lambda text: print(text, file=sys.stderr)) as watch:
        watch(VALIDATED)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("step 1,200")
    assert "\x1b" not in err


@pytest.mark.parametrize(
    ("text", "expected"), [("a\r\nb\x07", r"a b\x07"), ("日\u2028本", r"日\u2028本"), ("é\u200d", "é\u200d")]
)
def test_one_line(text: str, expected: str):
    assert one_line(text) == expected


def test_a_notebook_has_a_bar_with_the_time_left_and_no_markup_of_the_data():
    shown: list[str] = []
    display = NotebookDisplay(shown.append)
    display(RUNNING)
    display(replace(VALIDATED, validation=Validation({"loss": 3.1239}, ("<b>ein</b>", "a", "b"))))
    display(RUNNING)
    assert "3 min 00 s left" in shown[0]
    assert 'value="0.2500"' in shown[0]
    assert "<b>" not in shown[1]
    assert "&lt;b&gt;ein" in shown[2]
    display(replace(RUNNING, done=0.0))
    assert "value=" not in shown[3]  # without a limit the bar moves to and fro


@thorough
def test_a_training_in_a_real_notebook_shows_its_bar(tmp_path: Path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    code = (
        "import heedful\n"
        "pairs = [(f'wort{n} x', f'word{n} y') for n in range(40)]\n"
        "settings = {'training.max_steps': 4, 'training.validate_every': 2, 'training.export': False}\n"
        "heedful.train(pairs, dev=pairs[:10], test=pairs[:5], out='m', preset='tiny', settings=settings)"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output.data["text/html"] for output in notebook.cells[0].outputs if "data" in output]
    assert "<progress" in shown[0]
    assert "validation" in shown[0]
    assert "step 4" in shown[0]
    assert "translation" in shown[-1]  # the model, as the value of the cell
