"""Arrays of stories."""

import numpy as np

from heedful.engines.stories import StoryArrays, story_draw

# Two facts and none; a fact without words; ids without EOS at all.
SEQUENCES = [[5, 6, 3, 7, 3, 8, 9, 8, 3], [4, 3], [4, 3, 3]]
STORIES = StoryArrays([np.array(ids) for ids in SEQUENCES])


def test_questions_and_facts_are_padded():
    arrays = STORIES.named_arrays()
    assert arrays["question"].tolist() == [[5, 6], [4, 0], [4, 0]]
    assert arrays["facts"][0].tolist() == [[7, 0, 0], [8, 9, 8]]
    assert not arrays["facts"][1:].any()
    assert arrays["num_facts"].tolist() == [2, 0, 1]
    assert STORIES.num_positions.tolist() == [2, 1, 1]
    assert STORIES.num_numbers.tolist() == [9, 1, 2]
    assert STORIES.length_hint.tolist() == [6, 1, 1]


def test_a_batch_of_stories_without_facts_or_words_has_positions():
    arrays = StoryArrays([np.array([3])]).named_arrays()
    assert {name: array.shape for name, array in arrays.items()} == {
        "question": (1, 1),
        "facts": (1, 1, 1),
        "num_facts": (1,),
    }


def test_ids_without_an_end_are_a_question():
    assert StoryArrays([np.array([5, 6])]).named_arrays()["question"].tolist() == [[5, 6]]


def test_selected_widened_and_added_stories():
    assert STORIES.take([1]).named_arrays()["facts"].shape == (1, 1, 1)
    assert STORIES.widened(5).named_arrays()["facts"].shape == (3, 5, 3)
    more = STORIES.with_fillers([4])
    assert more.named_arrays()["num_facts"].tolist() == [2, 0, 1, 4]
    assert len(more) == 4


def test_drawn_stories_have_the_wanted_numbers_of_facts():
    drawn = story_draw(9)(np.array([7, 1, 3]), np.random.default_rng(0))
    assert drawn.num_positions.tolist() == [7, 1, 3]
    ids = drawn.named_arrays()["facts"]
    assert ids.max() == 8
    assert set(np.unique(ids)) <= {0, 4, 5, 6, 7, 8}
