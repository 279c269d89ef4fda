"""HTML entities in outputs for plain text."""

import pytest

from heedful.text.entities import decoded_entities


@pytest.mark.parametrize(
    ("source", "output", "plain"),
    [
        ("Fisch & Brot", "fish &amp; &lt;&quot;x&#39;&gt; bread", "fish & <\"x'> bread"),
        ("A&B", "&amp;&amp;&amp. Here", "&&&. Here"),
        ("Fisch & Brot", "a &apos bread", "a ' bread"),
        ("Fisch &amp; Brot", "fish &amp; bread", "fish &amp; bread"),
        ("Fisch & Brot", "fish & bread", "fish & bread"),
        ("Fisch & Brot", "fish &ampere; &lto", "fish &ampere; &lto"),
    ],
)
def test_entities_that_the_source_lacks_are_decoded(source: str, output: str, plain: str):
    decoded, indices = decoded_entities(source, output)
    assert decoded == plain
    assert len(indices) == len(output) + 1
    assert indices == sorted(indices)
    assert indices[-1] == len(plain)
    assert plain[indices[output.rfind("e")] :] == output[output.rfind("e") :]
