"""Places of spans: each once, none within the characters of others."""

import time

from heedful.text.span_places import span_places


def test_many_kept_spans_are_found_in_linear_time():
    spans = [f"https://a{number}.de/{'x' * (number % 40)}" for number in range(20_000)]
    text = " ".join(reversed(spans))
    started = time.process_time()
    places = span_places(spans, text, [])
    assert time.process_time() - started < 5.0
    assert [text[slice(*places[number])] for number in range(len(spans))] == spans


def test_each_span_has_its_own_place():
    assert span_places(["10", "10", "101", "{a}"], "101 and 10") == {2: (0, 3), 0: (8, 10)}
    assert span_places(["ab"], "ab ab", others=[0, 1]) == {0: (3, 5)}
