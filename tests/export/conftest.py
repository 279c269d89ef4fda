"""Graphs of small models, exported once for all tests of a process."""

from collections.abc import Callable
from functools import cache

import pytest

from heedful.engines.onnx import BEST, GRAPHS, Graphs
from heedful.export.onnx import export_graphs
from heedful.models.interface import Seq2Seq
from tests.models.tiny import make_model

MOST = 20
"""Positions and tokens; the tables of positions of all small models are as long."""

Make = Callable[[str], tuple[Seq2Seq, Graphs]]


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Make:
    @cache
    def make(name: str) -> tuple[Seq2Seq, Graphs]:
        model = make_model(name).float()
        folder = tmp_path_factory.mktemp(name)
        export_graphs(model, folder, MOST)
        assert {path.name for path in folder.iterdir()} == {f"{each}.onnx" for each in (*GRAPHS, BEST)}
        return model, Graphs(folder, threads=1)

    return make
