"""Site: documents are cut into pages of both languages with the same addresses, and links follow the cut."""

import html
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.architecture.package import ROOT

LONGEST = 15_000
MEASURED = ("behind/results/", "behind/performance/", "behind/reliability/")
DATED = ("behind/log/", "behind/changelog/")
SENTENCE = re.compile(r"(?:\*\*)?(?:[A-Z][a-z]*|[A-Z]|\[[A-Z]|[\d,]+ )(?!\w*:).*?\w.*?[.](?:\*\*)?(?=\s|$)", re.DOTALL)
"""Sentence that begins with a word or a number, not with code, a date or a word before a colon."""
COMMAND = re.compile(r"(?:[A-Z_]+=\S+ )*(?:python|make|heedful|pytest) \S|(?:benchmarks|tests)/\S")
"""Code that begins with a command, or names a file that is one."""


@pytest.fixture(scope="module")
def site() -> Iterator[Any]:
    """The module that cuts documents."""
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("site_pages")
    sys.path.remove(str(ROOT / "docs"))


@pytest.fixture(scope="module")
def pages(site: Any) -> list[Any]:
    """All pages of the English site."""
    return [page for tab in importlib.import_module("make_site").parts("en") for page in site.walk(tab.children)]


@pytest.fixture(scope="module")
def hook() -> Iterator[Callable[[str], str]]:
    """The function that rewrites the HTML of a page."""
    pytest.importorskip("latex2mathml")
    sys.path.insert(0, str(ROOT / "docs/site"))
    yield importlib.import_module("hooks").on_page_content
    sys.path.remove(str(ROOT / "docs/site"))


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        (r"x \log p", ['<mo lspace="0.17em" rspace="0.17em">log</mo>']),
        (r"\max(a, b)", ['<mo lspace="0" rspace="0">max</mo>']),
        (r"|y|^\alpha", ['form="prefix" lspace="0" rspace="0">|', 'form="postfix" lspace="0" rspace="0">|']),
        (r"\lVert q \rVert^2", ['form="prefix" stretchy="false"', 'form="postfix" stretchy="false"']),
        (r"p(y | x)", ['<mo stretchy="false">|</mo>']),
        (r"n'", ['<mo lspace="0" rspace="0">′</mo>']),
    ],
)
def test_names_of_functions_bars_and_primes_have_their_room(hook: Callable[[str], str], source: str, parts: list[str]):
    text = hook(f'<p><span class="arithmatex">\\({source}\\)</span>, so</p>')
    assert [part for part in parts if part not in text] == []
    assert re.search(r'<span class="whole"><math.*</math>,</span> so', text, re.DOTALL)  # no comma begins a line


def test_a_line_may_break_before_code_in_chinese(hook: Callable[[str], str]):
    assert "</code>、<wbr><code>" in hook("<td><code>/languages</code>、<code>/health</code></td>")
    assert '。<wbr><code><span class="option">--wait</span></code>' in hook("<p>等待。<code>--wait</code></p>")


def test_names_in_headings_may_break(hook: Callable[[str], str]):
    assert hook('<h1 id="a_b">rnn_encoder_decoder</h1>') == '<h1 id="a_b">rnn_<wbr>encoder_<wbr>decoder</h1>'
    assert "<wbr>" not in hook("<p>rnn_encoder_decoder</p>")


def test_chinese_is_not_slanted_and_has_its_own_words(hook: Callable[[str], str]):
    assert hook("<p>一个<em>查询</em></p>") == '<p>一个<em class="stressed">查询</em></p>'
    assert hook("<p><em>左边 <code>p</code></em></p>") == '<p><em class="caption">左边 <code>p</code></em></p>'
    assert hook("<p>a <em>query</em></p>") == "<p>a <em>query</em></p>"
    assert "异常：" in hook('<span class="doc-section-title">引发：</span>')


def test_cells_are_measured_by_their_text_and_numbers_stay_whole(hook: Callable[[str], str]):
    assert "several" not in hook("<td>\n                  <code>value</code>\n                </td>")
    text = hook("<p><code>mix_share=0.7</code></p>")
    assert "share=" in text.replace('<wbr class="narrow">', "")
    assert "0.7" in text


def test_a_number_stays_with_its_percent(hook: Callable[[str], str]):
    assert hook("<p>95 % of 100 texts, <code>95 % x</code></p>") == "<p>95&nbsp;% of 100 texts, <code>95 % x</code></p>"


def test_links_of_the_page_of_missing_addresses_stay_on_the_site(hook: Callable[[str], str]):
    mended = importlib.import_module("hooks").on_post_template
    assert mended('<a href="//./zh/index.html">', "404.html") == '<a href="/zh/index.html">'


def test_the_front_page_of_a_tab_lists_all_pages_of_the_tab(site: Any):
    make = importlib.import_module("make_site")
    for language in ("en", "zh"):
        tabs = make.parts(language)
        guide = tabs[1].children
        where = site.addresses([page for tab in tabs for page in tab.children])
        text = site.rendered(guide[0], where, set(), "", make.LEADS[language])
        below = text[text.index(make.LEADS[language]) :]
        assert [*re.findall(r"\]\((.*)\)", below)] == [
            page.address.removeprefix("guide/") + ".md" for page in (*guide[0].children, *guide[1:])
        ]


TEXT = """# All

[中文](all.zh.md)

See [two](#two-things), [code](../src/a.py), [other](other.md#there) and `[not](a-link)`.

## One

```sh
## no heading
```

## Two `things`

![drawn](../docs/pictures/heads.svg)

### Deep

- item

  ```text
  code
  ```
"""


def made(site: Any, longest: int | None) -> list[Any]:
    documents = [
        site.Document("docs/all.md", "guide/index", TEXT, longest=longest),
        site.Document("docs/other.md", "other", "# Other\n\n## There\n\n## There\n", longest=None),
    ]
    return [site.pages_of(document, document.text) for document in documents]


def test_a_document_is_cut_at_its_headings(site: Any):
    pages = list(site.walk(made(site, LONGEST)))
    assert [page.address for page in pages] == ["guide/index", "guide/one", "guide/two-things", "other"]
    assert [page.title for page in pages] == ["All", "One", "Two things", "Other"]
    pages = list(site.walk(made(site, 10)))
    assert [page.address for page in pages][2:4] == ["guide/two-things/index", "guide/two-things/deep"]


@pytest.mark.parametrize(
    ("address", "language", "title"),
    [("index.html", "en", r"heedful: \w"), ("index.html", "zh", r"heedful：\w"), ("guide/index.html", "en", "usual$")],
)
def test_the_home_page_has_a_title_of_its_own(address: str, language: str, title: str):
    jinja = pytest.importorskip("jinja2")
    usual = jinja.DictLoader({"base.html": "{% block htmltitle %}<title>usual</title>{% endblock %}"})
    own = jinja.FileSystemLoader(ROOT / "docs/site/overrides")
    template = jinja.Environment(loader=jinja.ChoiceLoader([own, usual]), autoescape=True).get_template("main.html")
    text = template.render(page={"url": address}, config={"site_name": "heedful", "extra": {"language": language}})
    assert re.match(title, re.sub("<[^>]*>", "", text).strip())


def test_the_start_leads_to_the_course(site: Any):
    course = importlib.import_module("site_course")
    for language, name in (("en", "README.md"), ("zh", "README.zh.md")):
        text = (course.FOLDER / name).read_bytes().decode("utf-8")
        first = site.Document("docs/course/README.md", f"{course.ADDRESS}/index", text, longest=None)
        start, _ = importlib.import_module("make_site").document("docs/start.md", "index", None, language)
        both = [site.pages_of(one, one.text) for one in (start, first)]
        assert f"]({course.ADDRESS}/index.md)" in site.rendered(both[0], site.addresses(both), set())


def test_links_follow_the_cut(site: Any):
    pages = made(site, LONGEST)
    where = site.addresses(pages)
    pictures: set[str] = set()
    first, _, two, other = [site.rendered(page, where, pictures) for page in site.walk(pages)]
    assert "# All { #all }" in first
    assert "中文" not in first
    assert "[two](two-things.md), code, [other](../other.md#there) and `[not](a-link)`" in first
    assert "- [One](one.md)" in first
    assert two.startswith("# Two `things` { #two-things }")
    assert "![drawn](../pictures/heads.svg)" in two
    assert pictures == {"docs/pictures/heads.svg"}
    assert "## Deep { #deep }" in two
    assert "\n    ```text\n    code\n    ```" in two
    assert "## There { #there }" in other
    assert "## There { #there-1 }" in other


def test_languages_with_other_headings_are_refused(site: Any):
    document = site.Document("docs/all.md", "guide/index", TEXT.replace("## One", "One"))
    with pytest.raises(ValueError, match="sections in the two languages"):
        site.pages_of(document, TEXT)


def test_tables_cut_a_document_however_short(site: Any):
    table = "\n\n| a |\n|---|\n| 1 |\n"
    text = f"# All{table}\n## One{table}\n## Two\n\n### Deep{table}\n### Last{table}"
    document = site.Document("docs/all.md", "all/index", text, tables=1)
    cut = [page.address for page in site.walk([site.pages_of(document, text)])]
    assert cut == ["all/index", "all/one", "all/two/index", "all/two/deep", "all/two/last"]
    assert not site.is_to_be_cut(table, LONGEST, 1)
    assert site.is_to_be_cut(table + table, LONGEST, 1)
    assert not site.is_to_be_cut(f"```{table}{table}```{table}", LONGEST, 1)


def test_no_page_has_much_prose(pages: list[Any]):
    prose = {
        page.address: sum(len(line.encode()) for line in page.text.split("\n") if not line.lstrip().startswith("|"))
        for page in pages
    }
    assert len(prose) > 200
    assert {address: size for address, size in prose.items() if size > LONGEST} == {}
    measured = MEASURED[1:]
    assert {address: size for address, size in prose.items() if address.startswith(measured) and size > 8_000} == {}


def has_command(text: str) -> bool:
    """True for a page with a fenced block, or with a command in its text."""
    return "\n```" in text or any(COMMAND.match(code) for code in re.findall(r"`([^`\n]+)`", text))


def test_a_page_of_measurements_is_one_table_with_its_command(site: Any, pages: list[Any]):
    measured = [page for page in pages if page.address.startswith(MEASURED)]
    assert len(measured) > 80
    assert {page.address: n for page in measured if (n := site.tables_of(page.text)) > 1} == {}
    # A page above others introduces them, and may leave the commands to them.
    alone = [page for page in measured if site.tables_of(page.text) or not page.children]
    assert [page.address for page in alone if not has_command(page.text)] == []


def begins_with_a_sentence(text: str) -> bool:
    """True for a page whose first paragraph below the title begins with a plain sentence."""
    _, _, below = text.strip().partition("\n")
    return bool(SENTENCE.match(below.strip().partition("\n\n")[0]))


def test_a_page_of_measurements_or_of_a_date_begins_with_a_sentence(site: Any, pages: list[Any]):
    behind = [page for page in pages if page.address.startswith((*MEASURED, *DATED))]
    assert len(behind) > 180
    texts = {page.address: site.COMMENT.sub("", page.text) for page in behind}
    assert [address for address, text in texts.items() if not begins_with_a_sentence(text)] == []


@pytest.mark.parametrize(
    "lead", ["The time is measured.", "**Reason.** It was slow.", "[Models](a.md) differ.", "2,000 rows."]
)
def test_a_sentence_is_seen(lead: str):
    assert begins_with_a_sentence(f"## Time\n\n{lead}\n\n| a |\n|---|\n")


@pytest.mark.parametrize(
    "lead",
    [
        "| a |\n|---|",
        "- One.",
        "1. One.",
        "```sh\nls.\n```",
        "### Added",
        "`ls` lists.",
        "2026-11-29, alone.",
        "Times:",
    ],
)
def test_a_page_without_a_first_sentence_is_refused(lead: str):
    assert not begins_with_a_sentence(f"## Time\n\n{lead}\n\nThe time is measured.\n")


def shared(titles: list[str]) -> set[str]:
    """Titles that two pages have."""
    return {title for title in titles if titles.count(title) > 1}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_two_pages_of_a_language_have_one_title(site: Any, language: str):
    tabs = importlib.import_module("make_site").parts(language)
    titles = [page.title for tab in tabs for page in site.walk(tab.children)]
    course = importlib.import_module("site_course")
    lessons = [course.title_of_lesson(path, language) for path in course.lesson_files()]
    assert len(titles) > 400
    assert len(lessons) > 8
    assert shared(titles + lessons) == set()


@pytest.mark.parametrize(("language", "shown"), [("en", "no answer yet"), ("zh", "还没有答案")])
def test_a_lesson_shows_remarks_in_its_own_language(language: str, shown: str, site: Any):
    pytest.importorskip("jupytext")
    pytest.importorskip("nbclient")
    formats = pytest.importorskip("nbformat.v4")
    course = importlib.import_module("site_course")
    checking = importlib.import_module("heedful.course.checking")
    printed = " ".join(checking.remark_on("averages.mean", ...))
    output = formats.new_output("stream", text=f"averages.mean: {printed}\n")
    cell = formats.new_code_cell("check(...)", outputs=[output])
    text = course.as_markdown("scores", formats.new_notebook(cells=[cell]), language)
    assert f"averages.mean: {shown}\n" in text


def test_concepts_are_linked_by_the_titles_of_lessons(site: Any):
    course = importlib.import_module("site_course")
    for language in ("en", "zh"):
        table = course.concept_table(language)
        for path in course.lesson_files():
            name = course.name_of(path)
            title = course.title_of_lesson(path, language)
            assert f'[{title.split()[0]}]({name}.md "{title}")' in table
            assert f"[{name}](" not in table


def test_a_title_of_two_pages_is_refused():
    assert shared(["Time", "Memory", "Time"]) == {"Time"}


def test_a_document_that_code_names_is_a_link(site: Any):
    codes = "`other.md`, `docs/other.md`, `docs/none.md`, `docs/all.md`, [`other.md`](other.md#there)"
    text = f"# A `docs/other.md`\n\n{codes}\n"
    page = site.pages_of(site.Document("docs/all.md", "all", text, longest=None), text)
    _, other = made(site, None)
    shown = site.rendered(page, site.addresses([page, other]), set())
    assert "# A `docs/other.md` {" in shown
    assert "[`other.md`](other.md), [`docs/other.md`](other.md), `docs/none.md`, `docs/all.md`, [`other.md`](" in shown


def test_no_link_goes_on_in_the_next_line(site: Any):
    """Links are rewritten line by line, so the site would keep such a link as it is."""
    broken = [
        f"{path.name}: {line}"
        for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for line, is_code in site.lines_with_code(path.read_bytes().decode("utf-8"))
        if not is_code
        if (text := re.sub(r"`+[^`]*`+", "code", line)).count("](") != len(site.LINK.findall(text))
    ]
    assert broken == []


@pytest.mark.parametrize("text", ["`OMP_NUM_THREADS=1 python a.py`", "`make prove-web`", "a\n```sh\nls\n```"])
def test_a_command_is_seen(text: str):
    assert has_command(text)


@pytest.mark.parametrize("text", ["`heedful`", "`heedful.json`", "`pythonic`", "`make`", "heedful train"])
def test_what_is_no_command_is_not_taken_for_one(text: str):
    assert not has_command(text)


def test_every_page_of_measurements_has_a_chinese_title(pages: list[Any]):
    titles = importlib.import_module("make_site").CHINESE_TITLES
    assert [page.title for page in pages if page.address.startswith(MEASURED) and page.title not in titles] == []


@pytest.mark.parametrize("name", ["results", "performance", "reliability"])
def test_every_page_of_a_folder_is_listed_by_its_document(site: Any, name: str):
    maker = importlib.import_module("make_site")
    listed = maker.pages_below(f"docs/{name}.md")
    assert sorted(listed) == sorted(path.stem for path in (ROOT / "docs" / name).glob("*.md"))
    assert [
        f"{name}/{each}.md" for each in listed if len((ROOT / "docs" / name / f"{each}.md").read_bytes()) > LONGEST
    ] == []


@pytest.mark.parametrize("name", ["guide", "attention"])
def test_both_languages_have_the_same_addresses_and_no_page_is_long(site: Any, name: str):
    english, chinese = ((ROOT / "docs" / f"{name}{part}.md").read_bytes().decode("utf-8") for part in ("", ".zh"))
    pages = [
        list(site.walk([site.pages_of(site.Document(f"docs/{name}.md", f"{name}/index", text), english)]))
        for text in (english, chinese)
    ]
    assert [page.address for page in pages[0]] == [page.address for page in pages[1]]
    assert len(pages[0]) > 8
    assert [page.address for both in pages for page in both if len(page.text.encode()) > LONGEST] == []


def test_a_heading_with_a_link_or_brackets_has_a_plain_title(site: Any):
    assert site.title_of("# Steps (see [0042](0042-again.md))") == "Steps (see 0042)"
    document = site.Document("docs/all.md", "all", "# [0.9.0] - 2026-11-29\n", longest=None)
    page = site.pages_of(document, document.text)
    assert page.title == "0.9.0 - 2026-11-29"
    text = site.rendered(page, site.addresses([page]), set())
    assert text.startswith("# 0.9.0 - 2026-11-29 { #090---2026-11-29 }")


def test_a_page_with_pages_below_is_their_section(site: Any):
    page = made(site, 10)[0]
    assert site.navigation([page]) == [
        {
            "All": [
                {"All": "guide/index.md"},
                {"One": "guide/one.md"},
                {"Two things": [{"Two things": "guide/two-things/index.md"}, {"Deep": "guide/two-things/deep.md"}]},
            ]
        }
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("c_tj and s_{i-1}, y_&lt;i", "c<sub>tj</sub> and s<sub>i-1</sub>, y<sub>&lt;i</sub>"),
        ("(W q)_j, [a; b]_j", "(W q)<sub>j</sub>, [a; b]<sub>j</sub>"),
        ("Σ_{j: x_j = w} 10000^(2j/d)", "Σ<sub>j: x<sub>j</sub> = w</sub> 10000<sup>2j/d</sup>"),
        (
            "has_copy, <code>x_i</code>, <a href='a_b'>",
            "has_copy, <code>x_<wbr class=\"narrow\">i</code>, <a href='a_b'>",
        ),
        ("<pre><code>--a x_i</code></pre>", "<pre><code>--a x_i</code></pre>"),
        ("<code>--set a=b</code>", '<code><span class="option">--set</span> a=<wbr class="narrow">b</code>'),
        ("<code>/a/{b}</code>", '<code>/a/<wbr class="narrow">{b}</code>'),
        ("<td>[1.5, 2]</td>", "<td>[1.5,&nbsp;2]</td>"),
        (f"<td style='a'>{'x' * 61}</td>", f"<td class=\"long\" style='a'>{'x' * 61}</td>"),
        (f"<td>{'字' * 31}</td>", f'<td class="long">{"字" * 31}</td>'),
    ],
)
def test_what_the_generator_leaves_is_rewritten(hook: Callable[[str], str], text: str, shown: str):
    assert hook(text) == shown


def test_docstrings_have_no_marks_but_code(hook: Callable[[str], str]):
    pytest.importorskip("griffe")
    module = importlib.import_module("docstrings")
    text = "[*batch] of `[*batch]`, [a; b]_j, h_{j-1}\n\nExample:\n    >>> [*x] {}"
    assert module.as_markdown(text) == "[\\*batch] of `[*batch]`, [a; b]\\_j, h_\\{j-1}\n\nExamples:\n    >>> [*x] {}"


def test_formulas_beside_each_other_are_elements_of_their_own(hook: Callable[[str], str]):
    shown = hook(r'<div class="arithmatex">\[\mathrm{softmax}_t(x), \qquad y\]</div>')
    assert shown.count('<div tabindex="0"><math') == 2
    assert ">softmax</mo>" in shown


def test_every_formula_is_known_to_the_converter(hook: Callable[[str], str]):
    """Formulas with an unknown command stay TeX, which no reader should see."""
    texts = [
        path.read_bytes().decode("utf-8") for path in (ROOT / "docs").glob("**/*") if path.suffix in (".md", ".py")
    ]
    formulas = [
        one for text in texts for one in re.findall(r"(?<![\w$`])\$\$?([^$`\n]*\\[^$`\n]*)\$\$?(?![\w$`])", text)
    ]
    assert len(formulas) > 50
    assert [one for one in formulas if "\\" in hook(rf'<span class="arithmatex">\({html.escape(one)}\)</span>')] == []


@pytest.mark.parametrize(
    ("lesson", "page", "address"),
    [
        ("scores", "", "bahdanau-page.html#view=learn&score=additive&language=zh"),
        ("trust", "page", "trust-page.html#language=zh"),
    ],
)
def test_a_lesson_begins_with_a_page_to_play_with(lesson: str, page: str, address: str, site: Any):
    pytest.importorskip("jupytext")
    pytest.importorskip("nbclient")
    formats = pytest.importorskip("nbformat.v4")
    cell = formats.new_markdown_cell("# 课程\n正文", metadata={"lang": "zh"})
    course = importlib.import_module("site_course")
    code = formats.new_code_cell("1", metadata={"page": page} if page else {})
    text = course.as_markdown(lesson, formats.new_notebook(cells=[cell, code]), "zh")
    assert text.startswith(f'# 课程\n\n<div class="beside"><a href="{address}">')
    assert f'<a href="{lesson}.ipynb" download>笔记本</a>' in text
