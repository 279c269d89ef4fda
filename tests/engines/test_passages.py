"""Arrays of questions and passages."""

import numpy as np

from heedful.engines.passages import PassageArrays, passage_draw

# A passage of two tokens; one without tokens; ids without EOS at all.
PASSAGES = PassageArrays([np.array(ids) for ids in ([5, 6, 3, 7, 8, 3], [4, 3, 3], [9])])


def test_questions_and_passages_are_padded_and_end_in_eos():
    arrays = {name: array.tolist() for name, array in PASSAGES.named_arrays().items()}
    assert arrays == {
        "question": [[5, 6, 3], [4, 3, 0], [9, 3, 0]],
        "question_lengths": [3, 2, 2],
        "passage": [[7, 8, 3], [3, 0, 0], [3, 0, 0]],
        "passage_lengths": [3, 1, 1],
    }
    assert PASSAGES.num_positions.tolist() == [3, 1, 1]
    assert PASSAGES.num_numbers.tolist() == [6, 3, 3]
    assert PASSAGES.length_hint.tolist() == [2, 0, 0]


def test_no_passages_at_all_have_a_position():
    assert PassageArrays([]).named_arrays()["passage"].shape == (0, 1)


def test_selected_widened_and_added_passages():
    assert PASSAGES.take([1]).named_arrays()["passage"].shape == (1, 1)
    assert PASSAGES.widened(5).named_arrays()["passage"].shape == (3, 5)
    more = PASSAGES.with_fillers([4])
    assert more.named_arrays()["passage_lengths"].tolist() == [3, 1, 1, 4]
    assert len(more) == 4


def test_drawn_passages_have_the_wanted_lengths():
    drawn = passage_draw(9)(np.array([7, 1, 3]), np.random.default_rng(0))
    assert drawn.num_positions.tolist() == [7, 1, 3]
    ids = drawn.named_arrays()["passage"]
    assert ids.max() == 8
    assert set(np.unique(ids)) <= {0, 3, 4, 5, 6, 7, 8}
