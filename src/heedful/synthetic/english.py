"""English expressions of dates and numbers: cores, carriers and their combinations.

The slots and the domains are those of `heedful.synthetic.dates` and `heedful.synthetic.numbers`;
`heedful.synthetic.grammar` explains the terms.
"""

from functools import partial

from heedful.synthetic.grammar import Family, expand

_dates = partial(Family, "date", "en")
_numbers = partial(Family, "number", "en")

# ------------------------------------------------------------------------------------------- dates: carriers
_LABELS = expand(
    "[Date|Due|Deadline|DOB|Start|End|Issued|Expires|Posted|Updated]: {}",
    "[Born|Signed|Published|Valid until] {}",
    "({})",
)
_PROSE = expand(
    "[on|by|until|since|before|after|as of] {}",
    "[born|due|signed|released|married] on {}",
    "[We met|He arrived|It opens|The exam is] on {}",
    "today is {}",
    "on {}.",
)
_TIMES = expand("{}[,| at] {clock_12}", "{}, {clock_24}", "{clock_24}, {}", "{clock_12} on {}")
_LOWER = expand("[due|date|born|deadline|due by|meeting on|as of|until|since|on|by] {}", "({})")
_SHORT = expand("[on|by|until|since] {}")
_UPPER = expand("[DUE|DATE|DOB|EXP|ISSUED|BEST BEFORE|USE BY|SHIPPED|DEPART] {}", "EXPIRES: {}")

# ---------------------------------------------------------------------------------------- dates: cores
_MONTH_FIRST = expand(
    "[{weekday}, |{weekday_abbr}, |]{month_name} {day}, {year}",
    "[{weekday}, |]{month_name} {day_ordinal}, {year}",
    "{month_name} [{day}|{day_ordinal}] {year}",
    "{weekday} {month_name} [{day}|{day_ordinal}][,|] {year}",
    "[{weekday}, |{weekday_abbr}, |{weekday_abbr} |]{month_abbr} [{day}|{day_ordinal}][,|] {year}",
    "[{month_dotted}|{month_short}] {day}[,|] {year}",
    "[{weekday}|{weekday_abbr}.], {month_dotted} {day}, {year}",
    "[{month_name}|{month_abbr}] [{day}|{day_ordinal}][,|] ['|’]{yy}",
    "[{weekday}, |]{month_name} the {day_ordinal}, {year}",
    "{month_name} {day}, {year} ([{weekday}|{weekday_abbr}])",
    "[{month_name}|{month_abbr}] {dd}, {year}",
    "[{month_name}|{month_abbr}] {day},{year}",
    "{month_name} {day_ordinal} of {year}",
)
_DAY_FIRST = expand(
    "[{weekday}, |{weekday} |][{day}|{day_ordinal}] [{month_name}|{month_abbr}] {year}",
    "{weekday_abbr}[,|] [{day}|{day_ordinal}] [{month_name}|{month_abbr}] {year}",
    "[{day}|{day_ordinal}] {month_name}, {year}",
    "[{day}|{day_ordinal}] [{month_name}|{month_abbr}] ['|’]{yy}",
    "{dd} [{month_name}|{month_abbr}] {year}",
    "{weekday_abbr}[,|] {dd} {month_abbr} {year}",
    "{day} {month_dotted} {year}",
    "{day} {month_name} {year} ([{weekday}|{weekday_abbr}])",
    "{day} {month_name} {year}, {weekday}",
)
_IN_PROSE = expand(
    "[{weekday} |]the {day_ordinal} of {month_name}[,|] {year}",
    "{weekday}, the {day_ordinal} of {month_name}, {year}",
    "the {day_ordinal} of {month_name} '{yy}",
    "the {day_ordinal} of {month_abbr}[,|] {year}",
    "the {day_words} of {month_name}[,|] {year}",
    "{month_name} {day_words}[,|] {year}",
)
_JOINED = expand(
    "{year}[,|] {month_name} {day}",
    "{year} {month_name} {day_ordinal}",
    "{year} {month_abbr} [{day}|{dd}|{day_ordinal}]",
    "{year}-{month_abbr}-{dd}",
    "[{day}|{dd}]-[{month_abbr}|{month_name}]-{year}",
    "[{day}|{dd}]/{month_abbr}/{year}",
    "{dd}.{month_abbr}.{year}",
    "{dd}{month_abbr}{year}",
    "{month_abbr}[-{dd}-|/{dd}/]{year}",
)
_CLEAR_DAY = expand(
    "[{weekday}, |{weekday_abbr} |]{day}[/{mm}/|/{month}/|.{mm}.|.{month}.|-{mm}-|-{month}-]{year}",
    "[{weekday}, |{weekday_abbr} |][{mm}/{day}/|{month}/{day}/|{mm}-{day}-|{month}-{day}-]{year}",
    "{day}[/{mm}/|.{mm}.|-{mm}-]{year} ({weekday_abbr})",
    "[{mm}/{day}/|{month}/{day}/]{year} ({weekday_abbr})",
    "{day} {mm} {year}",
    "{day}. {month}. {year}",
)
_LOWER_CASE = expand(
    "[{weekday_lower} |][{month_lower}|{month_abbr_lower}] [{day}|{day_ordinal}][,|] {year}",
    "[{weekday_lower} |][{day}|{day_ordinal}] [{month_lower}|{month_abbr_lower}] {year}",
    "[the |]{day_ordinal} of {month_lower} {year}",
    "{month_lower} [{day}|{day_ordinal}] '{yy}",
)
_UPPER_CASE = expand(
    "[{WEEKDAY}, |]{MONTH} [{day}|{DAY_ORDINAL}], {year}",
    "[{WEEKDAY} |][{day}|{DAY_ORDINAL}] {MONTH} {year}",
    "[{WEEKDAY_ABBR} |]{dd} {MONTH_ABBR} {year}",
    "{MONTH_ABBR} [{day}|{dd}][,|] {year}",
    "{dd}[-{MONTH_ABBR}-|{MONTH_ABBR}|/{MONTH_ABBR}/]{year}",
)
_ISO_WITH_WEEKDAY = expand(
    "{year}-{mm}-{dd} ([{weekday}|{weekday_abbr}])",
    "{year}-{mm}-{dd}[,|] [{weekday}|{weekday_abbr}]",
    "[{weekday}|{weekday_abbr}][,|] {year}-{mm}-{dd}",
    "{weekday_abbr} {year}/{mm}/{dd}",
    "{year}/{mm}/{dd} ({weekday_abbr})",
)
_FILE_NAMES = expand(
    "[IMG|VID|scan|notes|report|backup|invoice|minutes|log]_{}",
    "[report|backup|photo|slides|draft]-{}",
    "{}[_notes|_final|.txt|.pdf|.jpg|.csv|.log]",
)

# ---------------------------------------------------------------------------------------- dates: families
_DATES = (
    _dates("any date", 20, _MONTH_FIRST, (*_LABELS, *_PROSE, *_TIMES)),
    _dates("any date", 20, _DAY_FIRST, (*_LABELS, *_PROSE, *_TIMES)),
    _dates("any date", 8, _IN_PROSE, (*_PROSE, "{} at {clock_12}")),
    _dates(
        "any date",
        1,
        expand("[the|this] {day_ordinal} day of {month_name}[,|] {year}"),
        expand("[on|signed on|signed|dated|done] {}"),
    ),
    _dates("any date", 5, _JOINED, (*_LABELS, "on {}", "by {}")),
    _dates("any date", 1, expand("{weekday_abbr} {month_abbr} {day} {clock_24}[:00|] {year}"), (), 1),
    _dates(
        "any date",
        6,
        ("{year}-{mm}-{dd}", "{year}-{month}-{day}", "{year}{mm}{dd}", "{year} {mm} {dd}"),
        (*_LABELS, *_LOWER[:-1]),
    ),
    _dates(
        "any date",
        3,
        ("{year}/{mm}/{dd}", "{year}/{month}/{day}", "{year}.{mm}.{dd}"),
        (*_LABELS, *_LOWER[:-1]),
        0,
    ),
    _dates("any date", 2, ("{year}-{mm}-{dd}",), expand("{}[T| ]{clock_24}[Z|:00|]", "{} {clock_24} UTC"), 0),
    _dates("any date", 3, _ISO_WITH_WEEKDAY, (*_LABELS[:-1], "{}, {clock_24}", "{} at {clock_12}")),
    _dates("any date", 2, ("{year}-{mm}-{dd}", "{year}{mm}{dd}"), _FILE_NAMES, 0),
    _dates("any date", 1, ("{year}_{mm}_{dd}",), tuple(name for name in _FILE_NAMES if "-" not in name)),
    _dates("day above 12", 10, _CLEAR_DAY, (*_LABELS, *_LOWER[:-1])),
    _dates(
        "day above 12, year 00 or above 31",
        3,
        expand(
            "{day}[/{mm}/|/{month}/|.{mm}.|.{month}.|-{mm}-]{yy}",
            "[{mm}/{day}/|{month}/{day}/|{mm}-{day}-|{month}-{day}-]{yy}",
        ),
        (*_LABELS, *_LOWER[:-1]),
    ),
    _dates(
        "year 00 or above 31",
        3,
        expand(
            "[{day}|{dd}]-{month_abbr}-{yy}",
            "{day} [{month_abbr}|{month_name}] {yy}",
            "[{month_abbr}|{month_name}] {day}, {yy}",
            "{dd}{MONTH_ABBR}{yy}",
        ),
        (*_LABELS, "born on {}", "signed on {}", "on {}"),
    ),
    _dates("any date", 7, _LOWER_CASE, _LOWER),
    _dates("any date", 4, _UPPER_CASE, _UPPER),
    _dates(
        "any date",
        6,
        expand(
            "{month_name} [the |]{day_words}[,|] {year_spoken}",
            "{month_name} {day_ordinal}, {year_spoken}",
            "[the |]{day_words} of {month_name}[,|] {year_spoken}",
            "{month_lower} [the |]{day_words} {year_spoken}",
            "[the |]{day_words} of {month_lower} {year_spoken}",
            "{day_words} {month_lower} {year_spoken}",
        ),
        _SHORT,
        0.8,
    ),
    _dates("any date", 1, expand("[{Day_words}|The {day_words}] of {month_name}[,|] {year_spoken}"), (), 1),
    _dates(
        "since 2000",
        3,
        expand(
            "{month_name} {day_ordinal}[,|] [{year_thousand_and}|{year_thousand}]",
            "{month_name} {day_words}[,|] [{year_thousand_and}|{year_thousand}]",
            "{day_words} of {month_name} {year_thousand}",
            "{day_ordinal} [|of ]{month_name} [{year_thousand_and}|{year_thousand}]",
        ),
        _SHORT,
        0.8,
    ),
    _dates(
        "2001 to 2009",
        2,
        expand(
            "{month_name} {day_ordinal}, {year_oh}",
            "{month_name} {day_words}[,|] {year_oh}",
            "[the |]{day_words} of {month_name} {year_oh}",
        ),
        _SHORT,
        0.7,
    ),
)


# ------------------------------------------------------------------------------------------------------------ numbers
_COUNTED = expand(
    "{} [people|pages|books|days|votes|copies|km|points|students|miles|euros|dollars|tickets|steps|items]",
    "[total|count|score|quantity|attendance|amount]: {}",
    "[we sold|I counted|there were|a total of|they need|all|exactly] {}",
)
_MEASURED = expand(
    "{} [km|kg|metres|litres|miles|hours|points|seconds|inches|points per game]",
    "[average|score|ratio|weight|height|distance]: {}",
    "[it weighs|it took|she ran|multiply by] {}",
)
_RANKED = expand(
    "the {} [floor|time|day|page|anniversary|visitor|chapter|edition|customer]",
    "[his|her|our] {} [win|goal|visit|post]",
    "{} place",
)
_LABELLED = expand("[No. |no. |#|number |room |page |p. |bus |gate |lot |chapter |item |Room |Flight |Section ]{}")
_READ_OUT = expand("[room|code|bus|flight|extension|house number] {}")
_PRICED = expand("[price|total|due|paid|cost|balance]: {}", "it costs {}")
_COLD = expand("[it was|temperature|temp:|low of|tonight:] {}", "{} [degrees|°C|outside]")
_CHANGED = expand("[balance|profit|result|change|difference|net income]: {}", "answer = {}")
_FOLLOWED = expand("{} [followers|views|steps|downloads|users|people|copies]")

_NUMBERS = (
    _numbers("0 to 9999", 16, ("{words_and}", "{words}", "{Words_and}", "{Words}", "{WORDS}", "{int}"), (), 1),
    _numbers("2 to 9999", 14, ("{words_and}", "{words}", "{int}"), _COUNTED, 0),
    _numbers("2 to 9999", 4, ("{Words_and}", "{Words}"), expand("{} [people came|days later|dollars only|only]"), 0),
    _numbers("1000 to 99999", 10, ("{grouped}", "{spaced}"), _COUNTED, 0.4),
    _numbers("1000 to 9999", 4, ("{words_comma}", "{words_and_comma}"), expand("{} [people|pages|euros]"), 0.7),
    _numbers("1100 to 9950, fifties, hundreds not 0", 3, ("{hundreds_words}", "{hundreds_words_and}"), _FOLLOWED),
    _numbers("100 to 199 or 1000 to 1999", 3, ("{a_words}",), _COUNTED),
    _numbers("1 to 999", 8, ("{int}{suffix}", "{ordinal_words_and}", "{ordinal_words}"), _RANKED),
    _numbers("1 to 9999", 6, ("{int}",), _LABELLED, 0),
    _numbers("100 to 9999", 5, ("{digits_zero}", "{digits_oh}"), _READ_OUT),
    _numbers(
        "0.01 to 999.99",
        10,
        ("{int}.{fraction}", "{words} point {fraction_zero}", "{words_and} point {fraction_oh}"),
        _MEASURED,
    ),
    _numbers("0.001 to 0.999", 2, (".{fraction}", "point {fraction_oh}", "nought point {fraction_zero}"), _MEASURED),
    _numbers(
        "1.5 to 99.5", 3, expand("[{words}|{int}] and a half", "{int} 1/2", "{int}½"), expand("{} [hours|miles|cups]")
    ),
    _numbers(
        "1.25 to 99.25", 1, expand("[{words}|{int}] and a quarter", "{int} 1/4", "{int}¼"), expand("{} [hours|cups]")
    ),
    _numbers(
        "1.75 to 99.75", 1, expand("[{words}|{int}] and three quarters", "{int} 3/4", "{int}¾"), ("{} hours", "{} cups")
    ),
    _numbers(
        "1.00 to 9999.50", 6, expand("[$|£|€|US$]{grouped}.{cents}", "{grouped}.{cents} [USD|EUR|euros]"), _PRICED
    ),
    _numbers("2 to 9999", 2, expand("[$|£|€]{int}"), _PRICED),
    _numbers("2.02 to 99.99, cents from 2", 1, ("{words} dollars and {cents_words} cents",), (), 1),
    _numbers("1000 to 99900, whole hundreds", 3, ("{thousands}k", "{thousands}K", "{thousands} thousand"), _FOLLOWED),
    _numbers(
        "2 to 9999", 3, ("{words} ({int})", "{words_and} ({int})", "{Words} ({int})"), expand("{} [days|copies|shares]")
    ),
    _numbers("-9999 to -1", 5, expand("[-|−|minus |negative ]{int}", "[minus|negative] {words}"), _CHANGED),
    _numbers(
        "-999.9 to -0.01",
        4,
        expand("[-|−|minus ]{int}.{fraction}", "[minus|negative] {words} point {fraction_zero}"),
        _CHANGED,
    ),
    _numbers("-99 to -2", 3, ("-{int}", "minus {int}", "minus {words}"), _COLD, 0),
    _numbers("-99.9 to -1.1", 1, ("-{int}.{fraction}", "minus {words} point {fraction_zero}"), _COLD, 0),
    _numbers("-99 to -2", 1, expand("[{int}|{words}] [|degrees ]below zero"), expand("[it was|down to|at] {}")),
)

FAMILIES = (*_DATES, *_NUMBERS)
