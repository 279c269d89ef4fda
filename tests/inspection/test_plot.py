"""Pictures show the weights they are given, where they belong, with labels that can be read."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from rich.cells import cell_len

from heedful.errors import ResourceError, ShapeError, UsageError
from heedful.inspection.plot import save_heat_map, text_heat_map
from tests.inspection.drawn_fonts import install_only, make_font


def labels(path: Path) -> list[str]:
    """The texts of an SVG figure; Matplotlib draws them as outlines and keeps the text in comments."""
    return re.findall(r"<!-- (.*?) -->", path.read_bytes().decode("utf-8"))


def read_image(path: Path) -> np.ndarray:
    from matplotlib.image import imread

    return imread(path)


def darkness(path: Path, rows: int, columns: int) -> np.ndarray:
    """How dark the middle of each cell of a PNG is, found from the cells' own colours."""
    image = read_image(path)
    red = image[:, :, 0]
    ink = np.abs(image[:, :, 2] - red) > 0.02  # cells are blue, texts and paper are grey
    # The colour bar is apart from the cells by an empty gap.
    used = np.flatnonzero(ink.any(axis=0))
    stop = used[np.flatnonzero(np.diff(used) > 12)[0]] if (np.diff(used) > 12).any() else used[-1]
    across = used[used <= stop]
    down = np.flatnonzero(ink[:, across].any(axis=1))
    ys = down[0] + (np.arange(rows) + 0.5) * (down[-1] - down[0]) / rows
    xs = across[0] + (np.arange(columns) + 0.5) * (across[-1] - across[0]) / columns
    return 1.0 - image[:, :, :3].mean(axis=2)[np.ix_(ys.astype(int), xs.astype(int))]


def test_cells_show_the_weights_rows_target_columns_source(tmp_path: Path):
    weights = np.array([[1.0, 0.5, 0.1], [0.1, 0.1, 0.9]])
    assert save_heat_map(tmp_path / "map.png", ["a", "b", "c"], ["x", "y"], weights) == ""
    shown = darkness(tmp_path / "map.png", 2, 3)
    assert shown.shape == weights.shape
    assert (np.argsort(shown, axis=None, kind="stable") == np.argsort(weights, axis=None, kind="stable"))[-3:].all()
    assert shown[0, 2] == pytest.approx(shown[1, 1])


def test_the_range_is_fixed_so_figures_can_be_compared(tmp_path: Path):
    for name, weight in (("half", 0.5), ("whole", 1.0), ("beyond", 7.0)):
        save_heat_map(tmp_path / f"{name}.png", ["a"], ["x"], [[weight]])
    half, whole, beyond = (darkness(tmp_path / f"{name}.png", 1, 1)[0, 0] for name in ("half", "whole", "beyond"))
    assert half < whole - 0.2
    assert whole == beyond


def test_labels_and_title_are_written_as_they_are(tmp_path: Path):
    path = tmp_path / "map.svg"
    pieces = ["▁costs", "▁$5$", "_x^2", " ", "</s>"]
    assert save_heat_map(path, pieces, ["5"], np.full((1, 5), 0.2), title="a $title$") == ""
    for label in ("costs", "$5$", "_x^2", "␣", "&lt;/s&gt;", "a $title$"):
        assert label in labels(path) or label.replace("&lt;", "<").replace("&gt;", ">") in labels(path), labels(path)
    assert {"0.0", "1.0"} <= set(labels(path)) or {"0", "1"} <= set(labels(path))


def test_tokens_no_font_can_draw_are_numbered_and_the_note_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    install_only(monkeypatch)
    path = tmp_path / "map.svg"
    note = save_heat_map(path, ["▁2021", "年"], ["2021", "-"], np.eye(2), title="2021年 → 2021-")
    assert "年" in note
    assert {"2021", "#2", "-", "2021… → 2021-"} <= set(labels(path))
    assert "年" not in path.read_bytes().decode("utf-8")


def test_chinese_is_drawn_where_a_font_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    install_only(monkeypatch, make_font(tmp_path / "han.ttf", "Test Han Drawn", "年月"))
    for name in ("map.svg", "map.png", "map.pdf"):
        # A glyph that is missing all the same would warn, and warnings are errors here.
        assert save_heat_map(tmp_path / name, ["年", "月"], ["y", "m"], np.eye(2), title="年月") == ""
    assert {"年", "月", "年月"} <= set(labels(tmp_path / "map.svg"))


@pytest.mark.parametrize(("num_source", "num_target"), [(1, 1), (1, 40), (40, 1), (720, 1)])
def test_a_figure_of_any_shape_stays_printable(tmp_path: Path, num_source: int, num_target: int):
    path = tmp_path / "map.png"
    weights = np.full((num_target, num_source), 1 / num_source)
    save_heat_map(path, ["▁token"] * num_source, ["word"] * num_target, weights, "A title\nof two lines")
    height, width = read_image(path).shape[:2]
    assert max(height, width) < 8_000
    assert height > 40 * min(num_target, 20)
    assert width > 40 * min(num_source, 20)


def test_the_arcs_of_a_tree_are_framed_and_explained(tmp_path: Path):
    pieces, weights = ["a", "b"], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    for name, tree in (("plain", ()), ("tree", ((1, 2),))):
        save_heat_map(tmp_path / f"{name}.svg", ["root", *pieces], pieces, weights, tree=tree)
        save_heat_map(tmp_path / f"{name}.png", ["root", *pieces], pieces, weights, tree=tree)
    note = "framed: the tree with the largest sum of weights"
    assert (note in labels(tmp_path / "tree.svg"), note in labels(tmp_path / "plain.svg")) == (True, False)
    dark = [int((read_image(tmp_path / f"{name}.png")[:, :, :3] < 0.3).all(axis=2).sum()) for name in ("plain", "tree")]
    assert dark[1] > dark[0] + 100


def test_matplotlib_is_left_as_it_was(tmp_path: Path):
    from matplotlib import rcParams

    before = dict(rcParams)
    save_heat_map(tmp_path / "map.pdf", ["a"], ["b"], [[1.0]])
    assert dict(rcParams) == before
    assert (tmp_path / "map.pdf").read_bytes().startswith(b"%PDF")


def test_what_cannot_be_drawn_is_refused_in_one_line(tmp_path: Path):
    with pytest.raises(ShapeError, match=r"\[1, 2\] for 2 target and 1 source"):
        save_heat_map(tmp_path / "map.png", ["a"], ["x", "y"], [[0.5, 0.5]])
    with pytest.raises(ShapeError, match="at least one token"):
        text_heat_map([], ["x"], np.zeros((1, 0)))
    with pytest.raises(UsageError, match=r"map\.gif: .*\.png, \.pdf, \.svg"):
        save_heat_map(tmp_path / "map.gif", ["a"], ["x"], [[1.0]])
    with pytest.raises(ResourceError, match="No such file"):
        save_heat_map(tmp_path / "nowhere" / "map.png", ["a"], ["x"], [[1.0]])


def test_a_map_for_the_terminal():
    drawn = text_heat_map(
        ["▁I", "▁learn", "."], ["我", "学习", "。"], [[0.8, 0.2, 0.0], [0.05, 0.6, 0.3], [0.0, 0.0, 1]]
    )
    assert drawn.split("\n") == [
        "     I learn .",
        "我   █ ░░░░░",
        "学习 ░ ▓▓▓▓▓ ▒",
        "。           █",
        "",
        "weight  ░ 0.05+  ▒ 0.25+  ▓ 0.5+  █ 0.75+",
    ]


def test_characters_stand_side_by_side_wide_ones_two_columns_each():
    drawn = text_heat_map([*"三月5日"], [*"35"], [[1.0, 0, 0, 0], [0, 0, 0.5, 0.5]])
    assert drawn.split("\n")[:3] == ["  三月5日", "3 ██", "5     ▓▓▓"]


def test_a_terminal_without_blocks_gets_signs():
    drawn = text_heat_map(["▁Tür", " ", "中"], ["x"], [[0.8, 0.3, 0.1]], encoding="ascii")
    assert drawn.isascii()
    assert drawn.split("\n")[:2] == ["  T?r _ ?", "x ### : ."]
    chinese = text_heat_map(["中"], ["文"], [[1.0]], encoding="gbk")
    assert chinese.split("\n")[:2] == ["   中", "文 ##"]
    assert chinese.encode("gbk")


@given(
    st.integers(1, 12).flatmap(lambda n: st.lists(st.text(min_size=1, max_size=9), min_size=n, max_size=n)),
    st.integers(1, 5),
    st.integers(20, 60),
    st.sampled_from(["utf-8", "ascii", "gbk", "latin-1"]),
    st.data(),
)
def test_every_block_fits_and_is_aligned(pieces: list[str], rows: int, width: int, encoding: str, data: st.DataObject):
    weights = data.draw(arrays.arrays(float, (rows, len(pieces)), elements=st.floats(0, 1)))
    drawn = text_heat_map(pieces, ["t"] * rows, weights, width, encoding)
    drawn.encode(encoding)
    *blocks, legend = drawn.split("\n\n")
    assert legend.startswith("weight  ")
    for block in blocks:
        head, *lines = block.split("\n")
        assert cell_len(head) <= width
        # Shades end no later than the labels above them: what a terminal shows is aligned.
        assert all(len(line) <= cell_len(head) for line in lines)


def test_a_block_leaves_out_targets_that_attend_to_nothing_in_it():
    drawn = text_heat_map(["▁token"] * 6, [*"abcdef"], np.eye(6), width=20)
    assert [block.split("\n")[1:] for block in drawn.split("\n\n")[:-1]] == [
        ["a █████", "b       █████", "c             █████"],
        ["d █████", "e       █████", "f             █████"],
    ]
