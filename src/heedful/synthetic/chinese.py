"""Chinese expressions of dates and numbers: cores, carriers and their combinations.

Simplified and traditional characters are not mixed within one family. The slots and the domains are those of
`heedful.synthetic.dates` and `heedful.synthetic.numbers`; `heedful.synthetic.grammar` explains the terms.
"""

from functools import partial

from heedful.synthetic.grammar import Family, expand

_dates = partial(Family, "date", "zh")
_numbers = partial(Family, "number", "zh")

# ------------------------------------------------------------------------------------------- dates: carriers
_LABELS = expand(
    "[日期|时间|截止日期|出生日期|签订日期|发布时间|生产日期|入职时间|到期日|有效期至]：{}",
    "[日期|时间|生日|截止]:{}",
    "（{}）",
)
_PROSE = expand(
    "[会议定于|生于|写于|摄于|截至|截止到|定于|始于|今天是|婚礼定在|考试在|工期至]{}",
    "{}[出生|见|开始|截止|前提交|起施行|到货|放假|开学|结束|之前]",
    "自{}起[|施行]",
    "会议定于{}召开",
    "本店{}开业",
    "我{}到北京",
    "他于{}去世",
    "北京，{}",
    "{}于上海",
)
_TIMES = expand("{} {clock_24}", "{}{clock_han}", "{}[上午|下午|晚上]")
_DIARY = expand("{} [晴|阴|多云|小雨|大雪]")
_NOTICES = expand("[会议定于|定于|今天是|考试在|婚礼定在]{}", "{}[见|开会|放假|开学|截止]", "会议定于{}召开")
_TRADITIONAL = expand(
    "[時間|發布日期|製造日期|開會日期|有效期限|繳費期限|報名截止|會議時間]：{}",
    "[會議訂於|生於|寫於|攝於|婚禮訂於|展期至|訂於]{}",
    "{}[開幕|開學|開始|起實施|結婚|前繳交|見面]",
    "會議訂於{}召開",
)
_FILES = expand("{}[会议纪要|周报|日报|作业|照片|备份]", "[周报|会议纪要|简历|备份]{}", "[周报|照片|备份]_{}")

# ---------------------------------------------------------------------------------------- dates: cores
_DIGITS = expand(
    "{year}年{month}月{day}[日|号]",
    "{year}年{mm}月{dd}日",
    "{year} 年 {month} 月 {day} 日",
    "{year}年 {month}月 {day}日",
)
_NUMERALS = expand(
    "[{year_han}|{year_han_ling}]年{month_han}月{day_han}[日|号]",
    "{year_han_circle}年{month_han}月{day_han}日",
    "{year}年{month_han}月{day_han}[日|号]",
)
_TWO_DIGIT_YEAR = expand(
    "{yy}年{month}月{day}[日|号]",
    "{yy}年{mm}月{dd}日",
    "[{yy_han}|{yy_han_ling}]年{month_han}月{day_han}[日|号]",
)
_WITH_WEEKDAY = expand(
    "{year}年{month}月{day}日[（星期{ri}）|（周{ri}）|(周{ri})|(星期{ri})|（礼拜{ri}）]",
    "{year}年{month}月{day}日[ 星期{ri}| 星期{tian}| 周{ri}|，星期{ri}|，周{ri}]",
    "{year}年{month}月{day}号[（星期{tian}）|（周{ri}）| 周{ri}|，星期{tian}|，周{ri}|，礼拜{tian}|星期{tian}]",
    "{year}年{mm}月{dd}日[（星期{ri}）| 星期{ri}|（周{ri}）]",
    "{year_han}年{month_han}月{day_han}日[（星期{ri}）| 星期{ri}|，星期{ri}]",
    "{yy}年{month}月{day}[日|号][（周{ri}）|，周{ri}| 星期{tian}]",
    "[星期{ri}，|周{ri}，|周{ri} |星期{tian} ]{year}年{month}月{day}日",
    "[星期{tian}，|周{ri}，|周{ri} |礼拜{tian}，]{year}年{month}月{day}号",
)
_AFTER_ERA = expand("{year}年{month}月{day}日", "{year_han}年{month_han}月{day_han}日")
_NUMERIC = expand("{year}[.{month}.|/{month}/]{day}", "{year}[.{mm}.|/{mm}/]{dd}")
_NUMERIC_WITH_WEEKDAY = expand(
    "{year}.{month}.{day}[（周{ri}）|（星期{ri}）| 周{ri}| 星期{ri}]",
    "{year}/{month}/{day}[（周{ri}）|(周{ri})|({ri})| 周{ri}| 星期{ri}]",
    "{year}-{mm}-{dd}[（周{ri}）|（星期{ri}）| 周{ri}| 星期{ri}|，星期{ri}]",
    "{year}/{mm}/{dd}[（周{ri}）|({ri})| 星期{ri}]",
    "[周{ri} |星期{ri} ][{year}.{month}.{day}|{year}/{month}/{day}|{year}-{mm}-{dd}]",
)
_FULL_WIDTH = expand(
    "{year_wide}年[{month_wide}月{day_wide}|{mm_wide}月{dd_wide}]日",
    "{year_wide}年{month_wide}月{day_wide}号",
    "{year_wide}．{month_wide}．{day_wide}",
    "{year_wide}[／{mm_wide}／|－{mm_wide}－]{dd_wide}",
    "{year}[．{month}．|。{month}。]{day}",
    "{year}[－{mm}－|／{mm}／]{dd}",
)
# Always with 日 or 号, because a bare 三月廿五 would be a day of the lunar calendar.
_SHORT_TENS = expand(
    "[{year_han}|{year_han_ling}|{year}|公元{year_han}|{yy_han}]年{month_han}月{day_nian}日",
    "[{year_han}|{year}]年{month_han}月{day_nian}号",
)
_TRADITIONAL_MARKED = expand(
    "{year}年{month}月{day}號",
    "{year_han}年{month_han}月{day_han}號",
    "{year}年{month_han}月{day_han}號",
    "{year}年{month}月{day}日[（週{ri}）| 週{ri}|，週{ri}|（禮拜{ri}）|({ri})|（{ri}）]",
    "{year}年{month}月{day}號[（週{ri}）|，禮拜{tian}| 週{ri}]",
    "{year}/{month}/{day}[（週{ri}）| 週{ri}|（{ri}）]",
    "{year}/{mm}/{dd}[（週{ri}）| 週{ri}|（{ri}）]",
)
_TRADITIONAL_PLAIN = expand(
    "{year}年{month}月{day}日",
    "{year}年{mm}月{dd}日",
    "{year} 年 {month} 月 {day} 日",
    "[{year_han}|{year_han_ling}|{year}]年{month_han}月{day_han}日",
    "{year}/{month}/{day}",
    "{year}/{mm}/{dd}",
    "{year}.{mm}.{dd}",
)

# ---------------------------------------------------------------------------------------- dates: families
_DATES = (
    _dates("any date", 22, _DIGITS, (*_LABELS, *_PROSE, *_TIMES)),
    _dates("any date", 18, _NUMERALS, (*_LABELS, *_PROSE, *_TIMES)),
    _dates("any date", 8, _TWO_DIGIT_YEAR, (*_LABELS, *_PROSE, *_TIMES)),
    _dates("any date", 14, _WITH_WEEKDAY, (*_LABELS[:-1], *_NOTICES, *_TIMES, *_DIARY)),
    _dates("any date", 8, _NUMERIC, (*_LABELS, *_PROSE, "{} {clock_24}", "{} {clock_han}")),
    _dates("any date", 4, ("{year}-{mm}-{dd}", "{year}-{month}-{day}"), (*_LABELS, *_PROSE), 0),
    _dates("any date", 6, _NUMERIC_WITH_WEEKDAY, (*_LABELS[:-1], *_NOTICES, "{} {clock_24}", *_DIARY)),
    _dates("any date", 5, _FULL_WIDTH, _LABELS),
    _dates(
        "any date",
        4,
        tuple(era + core for era in ("公元", "公历") for core in _AFTER_ERA),
        expand("[生于|卒于|始建于]{}", "（{}）", "自{}起", "[出生日期|日期]：{}"),
    ),
    _dates(
        "any date",
        2,
        tuple(era + core for era in ("西元", "公曆") for core in _AFTER_ERA),
        expand("[生於|卒於|始建於]{}", "（{}）", "自{}起", "[出生日期|時間]：{}"),
    ),
    _dates("day from 20", 3, _SHORT_TENS, expand("[写于|摄于|生于|日期：]{}")),
    _dates(
        "day from 20",
        1,
        expand("[{year_han}|西元{year_han}|{year}]年{month_han}月{day_nian}[日|號]"),
        expand("[寫於|攝於|生於|時間：]{}"),
        0,
    ),
    _dates("any date", 6, _TRADITIONAL_MARKED, (*_TRADITIONAL, "{} {clock_24}")),
    _dates("any date", 5, _TRADITIONAL_PLAIN, _TRADITIONAL, 0),
    _dates(
        "any date",
        3,
        ("{year_formal}年{month_cheque}月{day_cheque}日",),
        expand("[出票日期|日期|开票日期|出票日期（大写）|签发日期]：{}"),
    ),
    _dates(
        "since 2000",
        2,
        expand("{year_han_spoken}年{month_han}月{day_han}[日|号]"),
        expand("{}[{clock_han}|见|开始|出生]", "今天是{}"),
    ),
    _dates(
        "year 00 or above 31",
        3,
        ("{yy}.{month}.{day}", "{yy}/{month}/{day}", "{yy}.{mm}.{dd}", "{yy}/{mm}/{dd}", "{yy}-{mm}-{dd}"),
        (*_LABELS, *expand("[生于|写于|摄于|截至]{}", "{}[出生|入职|毕业]")),
    ),
    _dates("any date", 2, ("{year}{mm}{dd}", "{year}-{mm}-{dd}", "{year}.{mm}.{dd}"), _FILES, 0),
)

# ------------------------------------------------------------------------------------------------------------ numbers
_COUNTED = expand(
    "{}[人|个|元|本|天|页|次|公里|块钱|票|分|字]",  # not 米: 三千米 is 3 km as well as 3000 m
    "[共|一共|总共|合计]{}[人|个|元|页|次]",
    "[人数|总数|数量|票数|页数]：{}",
)
_MEASURED = expand(
    "{}[公里|公斤|米|吨|秒|倍|度|升|小时]",  # not 分: 八点五分 is a time of day
    "[平均|身高|体重|得分|距离|均分]：{}",
)
_RANKED = expand("{}[名|页|章|届|次|天|号|回|条|期|位]")
_LABELLED = expand("[房间号|房号|门牌号|密码|编号|尾号|车次]：{}", "{}[房间|室|路公交|次列车|号楼]")
_LARGE = expand("{}[人|元|次|字|粉丝|公里|册|股]", "[销量|播放量|阅读量|人口]：{}")
_ROUND = expand("{}[元|块|人|字|块钱]", "[工资|月薪|一共]{}")
_PAID = expand("[单价|售价|合计|实付|余额]：{}")
_RECEIPTS = expand("[大写|金额|金额大写|合计（大写）|实收]：{}")

_NUMBERS = (
    _numbers("0 to 99999", 12, ("{han}", "{liang}", "{int_wide}"), (), 1),
    _numbers("2 to 99999", 12, ("{liang}", "{int}"), _COUNTED, 0),
    _numbers("100 to 99999", 4, ("{han}",), _COUNTED, 0),
    _numbers("110 to 9999, hundreds not 0, tens 1", 3, ("{han_dropping_one}",), _COUNTED),
    _numbers("110 to 99000, last unit not needed", 5, ("{han_dropping_unit}",), (), 1),
    _numbers("100 to 9999", 5, ("{digits_han}", "{digits_ling}"), _LABELLED),
    _numbers("1 to 9999", 3, ("{int}",), _LABELLED, 0),
    _numbers("1 to 9999", 6, expand("{formal}", "[人民币|]{formal}元整", "人民币{formal}圆整"), _RECEIPTS),
    _numbers(
        "1 to 9999",
        3,
        expand("{formal_traditional}", "{formal_traditional}[元|圓]整", "新臺幣{formal_traditional}[元|圓]整"),
        expand("[大寫|金額|金額大寫|實收]：{}"),
    ),
    _numbers("100 to 99000, one or two digits, then zeros", 6, ("{digits_and_units}",), _ROUND),
    _numbers("1100 to 99000, two digits, then zeros", 2, ("{digits_dropping_unit}",), expand("[工资|月薪|一共]{}")),
    _numbers("10000 to 99900, whole hundreds", 5, ("{ten_thousands}万", "{ten_thousands_han}万"), _LARGE),
    _numbers("10000 to 99900, whole hundreds", 1, ("{ten_thousands}萬",), expand("{}[人|元|次|字]")),
    _numbers("20 to 999, tens 2 or 3", 2, ("{short_tens}",), expand("{}[人|回|元|个]")),
    _numbers("1000 to 99999", 4, ("{grouped}",), expand("{}[元|人|股|次|册]", "[人数|销量|总数]：{}"), 0),
    _numbers("1000 to 99999", 1, ("{grouped_wide}",), (), 1),
    _numbers("1 to 999", 6, ("第{han}", "第{int}", "第 {int} ", "第{int_wide}"), _RANKED, 0),
    _numbers("1 to 999", 2, ("第{han}", "第{int}"), (), 1),
    _numbers(
        "0.01 to 999.99",
        8,
        ("{han}点{fraction_han}", "{int}点{fraction}", "{int_wide}．{fraction_wide}"),
        _MEASURED,
    ),
    _numbers("0.01 to 999.99", 3, ("{int}.{fraction}",), _MEASURED, 0),
    _numbers(
        "1.5 to 99.5",
        4,
        expand(
            "[{liang}|{int}]个半[小时|月|]",
            "[{liang}|{int}][年|天|斤|米|块|岁]半",
            "{int}小时半",
        ),
        (),
        1,
    ),
    _numbers(
        "1.1 to 99.9",
        5,
        expand(
            "{liang}块{jiao_han}[|毛]",
            "{int}块{jiao}[|毛]",
            "{liang}元{jiao_han}角",
            "{int}元{jiao}角",
            "{formal}元{jiao_formal}角整",
        ),
        expand("[一共|找您|单价|售价]{}"),
    ),
    _numbers(
        "1.11 to 99.99, no 0 after the point",
        3,
        expand(
            "{liang}块{jiao_han}毛{fen_han}",
            "{han}元{jiao_han}角{fen_han}分",
            "{int}元{jiao}角{fen}分",
            "{formal}元{jiao_formal}角{fen_formal}分",
            "人民币{formal}元{jiao_formal}角{fen_formal}分",
        ),
        expand("[合计|实收]：{}"),
    ),
    _numbers("1.00 to 9999.50", 4, expand("[￥|¥]{grouped}.{cents}", "{int}.{cents}元"), _PAID),
    _numbers("-9999 to -1", 4, expand("[负|－]{int}", "负{han}", "負{liang_traditional}"), expand("[余额|结果]：{}")),
    _numbers("-9999 to -1", 1, ("-{int}",), expand("[余额|结果|温差|利润]：{}"), 0),
    _numbers("-99 to -2", 2, expand("[零下{int}|零下{han}|-{int}]"), expand("{}[度|摄氏度|℃]", "气温{}度"), 0),
    _numbers(
        "-999.9 to -0.01",
        3,
        expand("负{han}点{fraction_han}", "[负|－]{int}.{fraction}"),
        expand("[结果|余额]：{}"),
    ),
    _numbers("-999.9 to -0.01", 1, ("-{int}.{fraction}",), expand("[结果|余额|利润|涨幅]：{}"), 0),
    _numbers("-99.9 to -1.1", 1, ("零下{int}.{fraction}", "零下{han}点{fraction_han}"), expand("{}[度|摄氏度]"), 0),
    _numbers("2 to 9999", 4, ("{liang_traditional}",), expand("[共|總共]{}[人|個|元|頁]", "{}[頁|個|票|張]"), 0.3),
)

FAMILIES = (*_DATES, *_NUMBERS)
