import os
import sys

import pytest

from heedful.cli.options import choose_device, parse_columns, use_threads
from heedful.errors import UsageError


@pytest.mark.parametrize("text", ["", "1", "1,", "1;2", ",2", "1,2,3"])
def test_columns_that_are_none(text: str):
    with pytest.raises(UsageError, match="such as 2,1"):
        parse_columns(text)


def test_columns():
    assert parse_columns(" 3, 1") == (3, 1)


def test_threads_that_were_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # type: ignore[arg-type]  # must not be reached
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    use_threads(3)
    assert os.environ["OMP_NUM_THREADS"] == "3"


def test_threads_by_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heedful.cli.options.physical_cores", lambda: 5)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    use_threads(0)
    assert os.environ["OMP_NUM_THREADS"] == "7"
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    monkeypatch.delenv("OMP_NUM_THREADS")
    use_threads(0)
    assert os.environ["OMP_NUM_THREADS"] == "5"
    assert torch.get_num_threads() == 5
    torch.set_num_threads(before)


def test_devices():
    torch = pytest.importorskip("torch")
    assert choose_device("cpu") == "cpu"
    assert choose_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(UsageError, match="known: auto, cpu"):
        choose_device("gpu")
    with pytest.raises(UsageError, match="PyTorch sees"):
        choose_device("cuda:99")


def test_devices_without_pytorch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert choose_device("auto") == "cpu"
    with pytest.raises(ModuleNotFoundError):
        choose_device("cuda")
