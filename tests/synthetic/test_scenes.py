"""Generated scenes of shapes."""

import numpy as np

from heedful.synthetic.scenes import COLOURS, PLACES, SHAPES, SIDE, SIZES, generate_scenes

SCENES = [*generate_scenes(200, seed=3)]


def test_a_scene_is_a_function_of_seed_index_and_split():
    again = [*generate_scenes(5, seed=3)]
    assert all(np.array_equal(one.pixels, other.pixels) for one, other in zip(SCENES, again, strict=False))
    for others in (generate_scenes(5, seed=4), generate_scenes(5, seed=3, split="test")):
        assert not any(np.array_equal(one.pixels, other.pixels) for one, other in zip(SCENES, others, strict=False))


def test_words_of_a_sentence_name_what_is_in_the_boxes():
    for scene in SCENES:
        words = scene.text.split()
        assert scene.pixels.shape == (SIDE, SIDE, 3)
        for index, box in scene.boxes.items():
            assert words[index] in (*COLOURS, *SHAPES)
            if words[index] not in COLOURS:
                continue
            assert words[index - 1] in SIZES
            inside = scene.pixels[box.top : box.bottom, box.left : box.right].reshape(-1, 3).astype(float)
            distances = np.abs(inside - np.array(COLOURS[words[index]])).max(axis=1)
            assert (distances < 45).sum() >= 8, scene.text


def test_nothing_is_drawn_outside_of_the_boxes():
    for scene in SCENES:
        outside = np.ones((SIDE, SIDE), dtype=bool)
        for box in scene.boxes.values():
            outside[box.top : box.bottom, box.left : box.right] = False
        values = scene.pixels[outside].astype(float)
        assert np.abs(values - np.median(values, axis=0)).max() < 45


def test_sentences_say_all_words_and_places():
    text = " ".join(scene.text for scene in SCENES)
    assert all(f" {word} " in f" {text} " for word in (*COLOURS, *SHAPES, *SIZES))
    assert all(place in text for place in PLACES)
    assert max(scene.text.count(" a ") for scene in SCENES) == 2


def test_a_place_is_that_of_the_box():
    for scene in SCENES:
        words = scene.text.split()
        for index, box in scene.boxes.items():
            if words[index] not in SHAPES:
                continue
            rest = " ".join(words[index + 1 :])
            place = max((each for each in PLACES if f"{rest} ".startswith(f"{each} ")), key=len)
            row, column = ((start + stop) / 2 // (SIDE / 3) for start, stop in ((box[0], box[2]), (box[1], box[3])))
            assert PLACES[int(row * 3 + column)] == place, scene.text
