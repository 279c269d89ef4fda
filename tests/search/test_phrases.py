import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.search.phrases import FILLING, Phrases, laid_out
from tests.search.engines import begun_of, stands_in

PHRASE = st.lists(st.integers(4, 6), min_size=1, max_size=4)
ROWS = st.lists(st.lists(PHRASE, max_size=3), min_size=1, max_size=3)


def test_rows_are_filled_up() -> None:
    assert laid_out([[5], [], [6, 7]]).tolist() == [[5, FILLING], [FILLING, FILLING], [6, 7]]
    assert laid_out([[]]).tolist() == [[FILLING]]


def test_phrases_are_laid_out_by_row() -> None:
    phrases = Phrases.of([[(4, 5, 6)], [], [(7,), (8, 9)]])
    assert phrases.lengths.tolist() == [[3, 0], [0, 0], [1, 2]]
    assert phrases.ids[2].tolist() == [[7, FILLING, FILLING], [8, 9, FILLING]]
    assert phrases.select(np.array([2, 2])).lengths.tolist() == [[1, 2], [1, 2]]
    assert Phrases.of([[], []]).ids.shape == (2, 0, 1)


@given(rows=ROWS, num_steps=st.integers(0, 6), data=st.data())
def test_equals_looking_at_each_hypothesis(rows: list[list[list[int]]], num_steps: int, data: st.DataObject) -> None:
    ids = st.lists(st.integers(4, 7), min_size=num_steps, max_size=num_steps)
    hypotheses = [[data.draw(ids), data.draw(ids)] for _ in rows]
    token_ids = np.array(hypotheses, dtype=np.int64).reshape(len(rows), 2, num_steps)
    phrases = Phrases.of(rows)
    begun, complete = phrases.begun(token_ids), phrases.complete(token_ids)
    parents, next_ids = np.array([[0, 1, 1, 0]] * len(rows)), np.array([[4, 5, 6, 7]] * len(rows))
    reached = phrases.reached(begun, parents, next_ids)
    for row, of_row in enumerate(rows):
        for place in range(phrases.lengths.shape[1]):
            for hypothesis, tokens in enumerate(hypotheses[row]):
                if place >= len(of_row):
                    assert complete[row, hypothesis, place]
                    assert not begun[row, hypothesis, place].any()
                    continue
                phrase = of_row[place]
                assert complete[row, hypothesis, place] == stands_in(phrase, tokens)
                for size in range(phrases.ids.shape[2]):
                    is_begun = size < len(phrase) and tokens[len(tokens) - size :] == phrase[:size]
                    assert begun[row, hypothesis, place, size] == (is_begun and size <= len(tokens))
            for offer in range(4):
                tokens = (*hypotheses[row][parents[row, offer]], int(next_ids[row, offer]))
                furthest = max((at + 1 for at in np.flatnonzero(reached[row, offer, place])), default=0)
                if place >= len(of_row):
                    assert furthest == 0
                elif tokens[-len(of_row[place]) :] == tuple(of_row[place]):
                    assert furthest == len(of_row[place])
                else:
                    assert furthest == begun_of(of_row[place], tokens)


@pytest.mark.parametrize("num_steps", [0, 1])
def test_no_phrases_no_columns(num_steps: int) -> None:
    phrases, token_ids = Phrases.of([[], []]), np.full((2, 3, num_steps), 4)
    assert phrases.begun(token_ids).shape == (2, 3, 0, 1)
    assert phrases.complete(token_ids).shape == (2, 3, 0)
