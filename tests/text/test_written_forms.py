"""Written forms in texts."""

import pytest

from heedful.text.written_forms import written_form_spans


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("", []),
        ("No number at all, Mr Li.", []),
        ("I have 25. And 30, then (40)!", ["25", "30", "40"]),
        ("It was 5th of the F-16s, A320s, v3.2 and COVID-19", ["5th"]),
        ("3-4 pm, -5°C, 8MB, 12 km/h; 5kmx", ["3-4 pm", "-5°C", "8MB", "12 km/h"]),
        ("Dr. No saw no. 5 and #6 & left", ["Dr.", "no. 5", "#6", "&"]),
        ("AT&T, R&D, etc.", ["etc."]),
        ("May 5th, 2021 or 5 May; may 6", ["May 5th, 2021", "5 May", "6"]),
        ("user_5 {5} a.b5@example.com https://example.org/5 `5` <b>5</b>", ["5"]),
        ("从3点到5点30分，第2章，2021年3月", ["3点", "5点30分", "第2", "2021年3月"]),
    ],
)
def test_forms_are_found_and_nothing_else(text: str, forms: list[str]):
    assert [text[start:end] for start, end in written_form_spans(text)] == forms
