import time
from itertools import pairwise

from heedful.pages.passage import Passage, PassagePart, spans_in


def test_spans_are_found_once_each_the_longer_first():
    output = "12.5 of 2 cats, 2 dogs, <b>"
    spans = [("2", "number"), ("12.5", "number"), ("2", "number"), ("<b>", "tag"), ("absent", "url")]
    found = spans_in(output, spans)
    assert [(output[start:end], kind) for start, end, kind in found] == [
        ("12.5", "number"),
        ("2", "number"),
        ("2", "number"),
        ("<b>", "tag"),
    ]
    assert all(first[1] <= second[0] for first, second in pairwise(found))


def test_many_equal_spans_are_found_in_time():
    started = time.process_time()
    found = spans_in("1 " * 20_000, [("1", "number")] * 20_000)  # ten minutes once
    assert found == tuple((place, place + 1, "number") for place in range(0, 40_000, 2))
    assert spans_in("1 " * 20_000, [("2", "number")] * 20_000) == ()
    assert time.process_time() - started < 2.0


def test_a_sentence_that_is_read_as_it_is_needs_no_passage():
    plain = Passage((PassagePart("a b", "A B", reading="a b"),), ("", ""), ("", ""))
    assert plain.is_plain("a b", "A B")
    assert plain.is_plain("a b", None)  # its output was forced to be another one
    assert not plain.is_plain("a b", "A A A A")  # the output was a loop, and another one stands in the passage
    assert not plain.is_plain("A b", "A B")  # the model read another form of it
    assert not Passage(plain.parts * 2, ("", " ", ""), ("", " ", "")).is_plain("a b", "A B")
