import random
import re
from datetime import date, datetime, timedelta

import pytest

from heedful.synthetic.dates import DOMAINS, FIRST_DATE, LAST_DATE, SLOTS, draw_date
from heedful.synthetic.grammar import SPLITS, SlotTexts

MOMENT = datetime(2005, 10, 21, 12, 5)


@pytest.mark.parametrize(
    ("template", "written"),
    [
        ("{weekday}, {month_name} {day_ordinal}, {year}", "Friday, October 21st, 2005"),
        ("{weekday_abbr} {dd} {MONTH_ABBR} '{yy}", "Fri 21 OCT '05"),
        ("{day_words} of {month_lower} {year_spoken}", "twenty-first of october two thousand and five"),
        ("{month_dotted} {month_short} {year_oh}", "Oct. Oct twenty oh five"),
        ("{year_thousand_and} / {year_thousand}", "two thousand and five / two thousand five"),
        ("{year_han}年{month_han}月{day_han}日", "二〇〇五年十月二十一日"),
        ("{year_han_ling} {year_han_circle} {year_han_spoken}", "二零零五 二○○五 两千零五"),
        ("{yy_han}年{day_nian}日 {yy_han_ling}", "〇五年廿一日 零五"),
        ("{year_formal}年{month_cheque}月{day_cheque}日", "贰零零伍年零壹拾月贰拾壹日"),
        ("{year_wide}．{mm_wide}．{dd_wide} {month_wide}/{day_wide}", "２００５．１０．２１ １０/２１"),
        ("星期{ri} 礼拜{tian}", "星期五 礼拜五"),
        ("{clock_24} {clock_12} {clock_han}", "12:05 12:05 pm 中午12点"),
    ],
)
def test_slots_of_a_friday(template: str, written: str) -> None:
    assert template.format_map(SlotTexts(SLOTS, MOMENT)) == written


@pytest.mark.parametrize(
    ("year", "spoken"),
    [
        (1950, "nineteen fifty"),
        (1998, "nineteen ninety-eight"),
        (2000, "two thousand"),
        (2009, "two thousand and nine"),
        (2010, "twenty ten"),
        (2021, "twenty twenty-one"),
    ],
)
def test_years_are_spoken_in_pairs_but_for_the_first_of_the_century(year: int, spoken: str) -> None:
    assert SLOTS["year_spoken"](datetime(year, 1, 1)) == spoken


@pytest.mark.parametrize(
    ("month", "day", "written"),
    [
        (1, 1, "零壹月零壹日"),
        (2, 10, "零贰月零壹拾日"),
        (3, 15, "叁月壹拾伍日"),
        (12, 20, "壹拾贰月零贰拾日"),
        (11, 31 - 1, "壹拾壹月零叁拾日"),
    ],
)
def test_cheques_write_zero_before_what_a_stroke_could_change(month: int, day: int, written: str) -> None:
    moment = datetime(2021, month, day)
    assert f"{SLOTS['month_cheque'](moment)}月{SLOTS['day_cheque'](moment)}日" == written


@pytest.mark.parametrize(
    ("hour", "minute", "english", "chinese"),
    [
        (0, 0, "12 am", "上午12点"),
        (9, 30, "9:30 am", "上午9点半"),
        (13, 0, "1 pm", "下午1点"),
        (18, 55, "6:55 pm", "晚上6点半"),
    ],
)
def test_clocks(hour: int, minute: int, english: str, chinese: str) -> None:
    moment = datetime(2021, 3, 5, hour, minute)
    assert (SLOTS["clock_12"](moment), SLOTS["clock_han"](moment)) == (english, chinese)


def test_sunday_has_two_names_in_chinese() -> None:
    sunday = datetime(2021, 3, 7)
    assert (SLOTS["ri"](sunday), SLOTS["tian"](sunday)) == ("日", "天")


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        ("day above 12", "2021-03-13", "2021-03-12"),
        ("day from 20", "2021-03-20", "2021-03-19"),
        ("year 00 or above 31", "2032-03-05", "2031-03-05"),
        ("year 00 or above 31", "2000-03-05", "2001-03-05"),
        ("day above 12, year 00 or above 31", "1998-03-13", "2031-03-13"),
        ("day above 12, year 00 or above 31", "1998-03-13", "1998-03-12"),
        ("since 2000", "2000-01-01", "1999-12-31"),
        ("2001 to 2009", "2001-01-01", "2000-12-31"),
        ("2001 to 2009", "2009-12-31", "2010-01-01"),
    ],
)
def test_domains_end_where_they_say(domain: str, inside: str, outside: str) -> None:
    assert DOMAINS[domain](date.fromisoformat(inside))
    assert not DOMAINS[domain](date.fromisoformat(outside))


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("domain", DOMAINS)
def test_draws_stay_in_their_domain(domain: str, split: str) -> None:
    source = random.Random(2)
    drawn = [date.fromisoformat(draw_date("{year}", domain, split, source)[1]) for _ in range(200)]
    assert all(DOMAINS[domain](day) for day in drawn)
    assert len(set(drawn)) > 80


def test_the_three_splits_are_all_dates_of_a_hundred_years_once() -> None:
    source = random.Random(5)
    drawn = {draw_date("{year}", "any date", split, source)[1] for split in SPLITS for _ in range(60_000)}
    days = {(FIRST_DATE + timedelta(days=offset)).isoformat() for offset in range((LAST_DATE - FIRST_DATE).days + 1)}
    assert drawn <= days
    assert {day[:4] for day in drawn} == {str(year) for year in range(1950, 2050)}
    assert len(drawn) > 0.8 * len(days)


def test_the_time_of_day_does_not_depend_on_the_date() -> None:
    source = random.Random(1)
    clocks = {draw_date("{clock_24}", "2001 to 2009", "test", source)[0] for _ in range(2000)}
    assert len(clocks) == 15 * 12
    assert all(re.fullmatch(r"(0[7-9]|1\d|2[01]):[0-5][05]", clock) for clock in clocks)
