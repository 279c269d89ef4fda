import pytest

from heedful.text.durations import duration


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (59.6, "1 min 00 s"), (3599, "59 min 59 s"), (3600, "1 h 00 min")]
)
def test_duration(seconds: float, text: str):
    assert duration(seconds) == text
