"""Regular expressions of Python as those of JavaScript, so that rules of texts are written once."""

import re
from typing import Final, final

WORD: Final = r"\p{L}\p{N}_"
SPACE: Final = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_IN_CLASS: Final = {"w": WORD, "d": r"\p{Nd}", "s": SPACE}
_ALONE: Final = {name: f"[{content}]" for name, content in _IN_CLASS.items()} | {
    "W": f"[^{WORD}]",
    "D": r"\P{Nd}",
    "S": f"[^{SPACE}]",
    "b": f"(?:(?<=[{WORD}])(?![{WORD}])|(?<![{WORD}])(?=[{WORD}]))",
}
_SYNTAX: Final = frozenset("^$\\.*+?()[]{}|/")
"""Characters that JavaScript lets a backslash stand before, with the flag `u`."""
_OPENING: Final = re.compile(r"\((?:\?(?:P<(\w+)>|<[=!]|[:=!])|(?!\?))")
_QUANTIFIER: Final = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})")


def javascript_pattern(pattern: re.Pattern[str]) -> tuple[str, str]:
    r"""Translate a regular expression.

    Possessive quantifiers become groups within a lookahead, and classes such as \\w those of Python.

    Args:
        pattern: compiled expression without conditions, and without backreferences behind possessive quantifiers.

    Returns:
        Source and flags of the expression in JavaScript.

    Raises:
        ValueError: the expression has something that JavaScript has not.

    Example:
        >>> javascript_pattern(re.compile(r"(?P<mark>[.!?]++)(?=\d)"))
        ('(?<mark>(?=(?<atom1>[.!?]+))\\k<atom1>)(?=\\p{Nd})', 'u')
    """
    return _Translation(pattern).source(), "u" + ("i" if pattern.flags & re.IGNORECASE else "")


@final
class _Translation:
    """Translation of one expression, from left to right."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._text: Final = pattern.pattern
        self._is_verbose: Final = bool(pattern.flags & re.VERBOSE)
        self._index = 0
        self._num_atoms = 0

    def source(self) -> str:
        parts: list[str] = []
        # Number of parts before each open group, whose parts are one atom once it is closed.
        groups: list[int] = []
        while self._index < len(self._text):
            character = self._text[self._index]
            if self._is_verbose and character.isspace():
                self._index += 1
            elif self._is_verbose and character == "#":
                self._index = (self._text.find("\n", self._index) + 1) or len(self._text)
            elif character == "(":
                groups.append(len(parts))
                parts.append(self._group())
            elif character == ")":
                self._index += 1
                start = groups.pop()
                parts[start:] = ["".join(parts[start:]) + ")"]
            elif character == "[":
                parts.append(self._class())
            elif character == "\\":
                parts.append(self._escape())
            elif quantifier := _QUANTIFIER.match(self._text, self._index):
                self._index = quantifier.end()
                parts[-1] = self._repeated(parts[-1], quantifier[0])
            else:
                self._index += 1
                parts.append(character)
        return "".join(parts)

    def _group(self) -> str:
        """Beginning of a group.

        Raises:
            ValueError: it is of another kind.
        """
        opening = _OPENING.match(self._text, self._index)
        if opening is None:
            raise ValueError(f"{self._text[self._index :][:20]!r}: JavaScript has no such group")
        self._index = opening.end()
        return f"(?<{opening[1]}>" if opening[1] else opening[0]

    def _repeated(self, atom: str, quantifier: str) -> str:
        following = self._text[self._index : self._index + 1]
        if following == "+":
            self._index += 1
            self._num_atoms += 1
            name = f"atom{self._num_atoms}"
            return f"(?=(?<{name}>{atom}{quantifier}))\\k<{name}>"
        if following == "?":
            self._index += 1
            return f"{atom}{quantifier}?"
        return atom + quantifier

    def _escape(self) -> str:
        character = self._text[self._index + 1]
        self._index += 2
        if character in _ALONE:
            return _ALONE[character] if character != "d" else r"\p{Nd}"
        if character.isalnum():
            is_reference = character.isdecimal() and not self._num_atoms
            if character not in "ntrfvux" and not is_reference:
                raise ValueError(f"\\{character}: JavaScript has no such escape")
            return f"\\{character}"
        return f"\\{character}" if character in _SYNTAX else character

    def _class(self) -> str:
        """Class of characters; a negated one that has all but words is one of words without the others.

        Raises:
            ValueError: JavaScript would need another class.
        """
        self._index += 1
        is_negated = self._text[self._index] == "^"
        self._index += is_negated
        members: list[str] = []
        is_word = False
        while (character := self._text[self._index]) != "]" or not (members or is_word):
            self._index += 1
            if character != "\\":
                members.append(f"\\{character}" if character in "[]" else character)
                continue
            escaped = self._text[self._index]
            self._index += 1
            if escaped == "W":
                is_word = True
            elif escaped in _IN_CLASS:
                members.append(_IN_CLASS[escaped])
            elif escaped.isalnum() or escaped in _SYNTAX or escaped == "-":
                members.append(f"\\{escaped}")
            else:
                members.append(escaped)
        self._index += 1
        content = "".join(members)
        if not is_word:
            return f"[{'^' if is_negated else ''}{content}]"
        if not is_negated:
            raise ValueError("\\W in a class that is not negated: JavaScript would need another one")
        without = f"(?![{content}])" if content else ""
        return f"(?:{without}[{WORD}])"
