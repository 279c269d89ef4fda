from heedful.pages.passage import spans_in


def test_spans_are_found_once_each_the_longer_first():
    output = "2 of 12.5 cats, 2 dogs, <b>"
    spans = [("2", "number"), ("12.5", "number"), ("2", "number"), ("<b>", "tag"), ("absent", "url")]
    found = spans_in(output, spans)
    assert [(output[start:end], kind) for start, end, kind in found] == [
        ("2", "number"),
        ("12.5", "number"),
        ("2", "number"),
        ("<b>", "tag"),
    ]
    assert all(first[1] <= second[0] for first, second in zip(found, found[1:], strict=False))
