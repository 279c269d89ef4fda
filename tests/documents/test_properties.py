"""Texts of Java programs."""

from tests.documents.changed import in_capitals, texts

FILE = "# no\na.b=hi {0}\nc : long \\\n   text\n\n! no\nd=\\u00e4h\nempty=\nkey\n"


def test_values_are_translated_and_all_else_stays():
    assert texts(".properties", FILE) == ["hi {0}", "long text", "äh"]
    assert in_capitals(".properties", FILE) == ("# no\na.b=HI {0}\nc : LONG TEXT\n\n! no\nd=\\u00c4H\nempty=\nkey\n")
    assert in_capitals(".properties", "a=ä\r\nb=x\\ty\\\\\r\n") == "a=Ä\r\nb=X\\tY\\\\\r\n"
