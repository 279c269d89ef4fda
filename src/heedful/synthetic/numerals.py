"""Whole numbers from 0 to 99,999 in English words and in Chinese numerals, in usual spellings."""

from heedful.errors import UsageError

_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_HAN_DIGITS = "零一二三四五六七八九"
_HAN_UNITS = ("", "十", "百", "千", "万")
LARGEST_NUMBER = 99_999

# Numerals of cheques and receipts; a stroke added to 一 would make it 二 or 十.
FORMAL = str.maketrans("一二三四五六七八九十百千", "壹贰叁肆伍陆柒捌玖拾佰仟")
TRADITIONAL = str.maketrans("两万负点贰叁陆参圆", "兩萬負點貳參陸參圓")
FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")


def english_cardinal(number: int, *, joiner: str = " and ", comma: str = "") -> str:
    """Spell a whole number in English words.

    Args:
        number: 0 to 99,999.
        joiner: text before the last two digits: " and " in British English, " " in American.
        comma: text between "thousand" and hundreds: "," or nothing.

    Returns:
        Lower-case words; tens and ones are joined by a hyphen.

    Raises:
        UsageError: the number is out of range.

    Example:
        >>> english_cardinal(3205), english_cardinal(3205, joiner=" ", comma=",")
        ('three thousand two hundred and five', 'three thousand, two hundred five')
    """
    _check_range(number)
    thousands, rest = divmod(number, 1000)
    hundreds, below = divmod(rest, 100)
    words = f"{_below_hundred(thousands)} thousand" if thousands else ""
    if hundreds:
        words += f"{comma} " if words else ""
        words += f"{_ONES[hundreds]} hundred"
    if below or not words:
        words += joiner if words else ""
        words += _below_hundred(below)
    return words


def english_ordinal(number: int, *, joiner: str = " and ") -> str:
    """Spell an ordinal number in English words.

    Args:
        number: 0 to 99,999.
        joiner: as in `english_cardinal`.

    Raises:
        UsageError: the number is out of range.

    Example:
        >>> english_ordinal(21), english_ordinal(112), english_ordinal(40)
        ('twenty-first', 'one hundred and twelfth', 'fortieth')
    """
    cardinal = english_cardinal(number, joiner=joiner)
    start = max(cardinal.rfind(" "), cardinal.rfind("-")) + 1
    head, last = cardinal[:start], cardinal[start:]
    if last in _IRREGULAR_ORDINALS:
        return head + _IRREGULAR_ORDINALS[last]
    return head + (last[:-1] + "ieth" if last.endswith("y") else last + "th")


def ordinal_suffix(number: int) -> str:
    """Return the suffix of an ordinal in digits: "st", "nd", "rd" or "th".

    Args:
        number: 0 or more.

    Example:
        >>> [f"{n}{ordinal_suffix(n)}" for n in (1, 2, 3, 4, 11, 112, 22)]
        ['1st', '2nd', '3rd', '4th', '11th', '112th', '22nd']
    """
    if 11 <= number % 100 <= 13:
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def chinese_cardinal(number: int, *, has_liang: bool = False) -> str:
    """Spell a whole number in simplified Chinese numerals.

    Args:
        number: 0 to 99,999.
        has_liang: whether a 2 before 百, 千 or 万, or alone as before a measure word, is 两 rather than 二.

    Returns:
        Numerals with 零 where digits are skipped; 10 to 19 start with 十.

    Raises:
        UsageError: the number is out of range.

    Example:
        >>> chinese_cardinal(12), chinese_cardinal(1005), chinese_cardinal(2210, has_liang=True)
        ('十二', '一千零五', '两千两百一十')
    """
    _check_range(number)
    if has_liang and number == 2:
        return "两"
    digits = str(number)
    words = ""
    for index, digit in enumerate(digits):
        power = len(digits) - 1 - index
        if digit == "0":
            words += "零" if int(digits[index:]) and not words.endswith("零") else ""
        elif has_liang and digit == "2" and power >= 2:
            words += "两" + _HAN_UNITS[power]
        else:
            words += _HAN_DIGITS[int(digit)] + _HAN_UNITS[power]
    return (words[1:] if 10 <= number < 20 else words) or "零"


def chinese_formal(number: int) -> str:
    """Spell a whole number as on a cheque, in simplified characters.

    Args:
        number: 0 to 99,999.

    Returns:
        Numerals such as 叁佰壹拾贰; unlike `chinese_cardinal`, 10 is 壹拾.

    Raises:
        UsageError: the number is out of range.

    Example:
        >>> chinese_formal(12), chinese_formal(3205)
        ('壹拾贰', '叁仟贰佰零伍')
    """
    cardinal = chinese_cardinal(number)
    return ("一" + cardinal if cardinal.startswith("十") else cardinal).translate(FORMAL)


def chinese_digits(digits: str, *, zero: str = "〇") -> str:
    """Replace each digit by its Chinese numeral, as in years and room numbers.

    Args:
        digits: any text; characters other than 0 to 9 stay.
        zero: character for 0: 〇, 零 or ○ (a circle, typed where 〇 is missing).

    Returns:
        A text of the same length.

    Example:
        >>> chinese_digits("2005"), chinese_digits("2005", zero="零")
        ('二〇〇五', '二零零五')
    """
    return digits.translate(str.maketrans("0123456789", zero + _HAN_DIGITS[1:]))


def _below_hundred(number: int) -> str:
    if number < 20:
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return f"{_TENS[tens]}-{_ONES[ones]}" if ones else _TENS[tens]


def _check_range(number: int) -> None:
    if not 0 <= number <= LARGEST_NUMBER:
        raise UsageError(f"cannot spell {number}: give a whole number from 0 to {LARGEST_NUMBER}")
