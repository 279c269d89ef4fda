"""Options of the package in JavaScript: each is followed, or refused with one typed error that names it."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from heedful.export.archive import SETTINGS
from heedful.search.config import MOST_HYPOTHESES, SearchConfig
from tests.export.archives import archive_of
from tests.export.conftest import Make
from tests.export.conftest import exported as exported
from tests.js.node import PACKAGE, Run, answers, needs_node
from tests.js.test_labels import exported as task_archive
from tests.serving.task_models import TaskModels

WRONG: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({"search": {"alpah": 0.6}}, "search.alpah is no setting of this package; it has beam, nbest, length_penalty, "),
    ({"search": {"method": "sampling"}}, "search.method is no setting of this package; it has "),
    ({"search": {"num_groups": 2}}, "search.num_groups is no setting of this package; it has "),
    ({"search": {"constructor": 1}}, "search.constructor is no setting of this package; it has "),
    ({"search": {"stopping": "never"}}, "search.stopping is 'never'; expected one of likely, full, certain"),
    ({"search": {"alpha": "x"}}, "search.alpha is 'x'; expected a number from 0 to 100"),
    ({"search": {"alpha": None}}, "search.alpha is null; expected a number from 0 to 100"),
    ({"search": {"beam": 2.5}}, "search.beam is 2.5; expected a whole number from 1 to 1000"),
    ({"search": {"no_repeat_ngram_size": -1}}, "search.no_repeat_ngram_size is -1; expected a whole number from 0 to "),
    ({"search": {"forbid_unknown": "no"}}, "search.forbid_unknown is 'no'; expected one of true, false"),
    ({"search": {"length_penalty": []}}, "search.length_penalty is a list; expected one of power, gnmt"),
    ({"search": {"beta": {}}}, "search.beta is of type object; expected a number from 0 to 100"),
    ({"search": None}, "search is null; expected an object with some of beam, nbest, "),
    ({"search": "beam"}, "search is 'beam'; expected an object with some of beam, nbest, "),
    ({"beam": -1}, "beam is -1; expected a whole number from 0 to 1000"),
    ({"beam": 1.5}, "beam is 1.5; expected a whole number from 0 to 1000"),
    ({"beam": "x"}, "beam is 'x'; expected a whole number from 0 to 1000"),
    ({"nbest": 0}, "nbest is 0; expected a whole number from 1 to 1000"),
    ({"nbest": 1001}, "nbest is 1001; expected a whole number from 1 to 1000"),
    ({"signal": "stop"}, "signal is 'stop'; expected an AbortSignal"),
)
TRANSPARENT: Final = {"data": "/////w==", "width": 1, "height": 1}


@needs_node
def test_a_setting_that_no_search_follows_is_refused_by_each_method(
    exported: Make, task_models: TaskModels, tmp_path: Path
):
    letters = archive_of(exported("rnnsearch-after")[1], tmp_path)
    _, scenes = task_archive(task_models.captioner, tmp_path)
    methods = (
        ("translate", Run(letters, [["translate", ["abc"], options] for options, _ in WRONG])),
        ("translate", Run(letters, [["translate", [], options] for options, _ in WRONG])),
        ("translateText", Run(letters, [["text", "", options] for options, _ in WRONG])),
        ("caption", Run(scenes, [["caption", [TRANSPARENT], options] for options, _ in WRONG])),
    )
    given = iter(answers(*(run for _, run in methods)))
    for method, _ in methods:
        for (options, message), answer in zip(WRONG, given, strict=False):
            assert answer.get("error") == "usage", f"{method} {options}: {answer}"
            assert answer["message"].startswith(f"{method}: {message}")


@needs_node
def test_outputs_begin_with_the_prefix(exported: Make, tmp_path: Path):
    texts, options = ["fade cab", "", "abc"], {"beam": 3, "nbest": 2}
    prefixes = ("", " ", "V", "WV")
    wrong = ({"prefix": 3}, {"prefix": "\N{SNOWMAN}"}, {"prefix": "V" * 1000})
    calls = [["translate", texts, {"prefix": prefix, **options}] for prefix in prefixes]
    calls += [["translate", texts, one] for one in wrong] + [["text", "abc", {"prefix": "V"}]]
    archive = archive_of(exported("rnnsearch-after")[1], tmp_path)
    (free,) = answers(Run(archive, [["translate", texts, options]]))
    given = answers(Run(archive, calls))
    assert given[:2] == [free] * 2
    for prefix, found in zip(prefixes, given, strict=False):
        assert all(
            one["text"].startswith(prefix.strip()) for each in found for one in each["alternatives"] if each["text"]
        )
        assert found[1]["text"] == ""
    own = answers(
        Run(archive, [["translate", [one["source"]], {"prefix": one["text"][:2], **options}] for one in free])
    )
    assert [one["text"] for (one,) in own] == [one["text"] for one in free]
    assert [one["message"].partition(":")[0] for one in given[-4:]] == ["translate"] * 3 + ["translateText"]
    assert all(one["error"] == "usage" and "prefix" in one["message"] for one in given[-4:])


@needs_node
def test_bounds_are_those_of_python(exported: Make, tmp_path: Path):
    calls: list[list[Any]] = []
    expected: list[bool] = []
    for name in SETTINGS:
        field = SearchConfig.model_fields[name]
        bounds = [getattr(one, side) for one in field.metadata for side in ("ge", "le") if hasattr(one, side)]
        if not bounds:
            continue
        least, most = bounds
        most = min(most, MOST_HYPOTHESES) if name == "nbest" else most
        for value in (least, most, least - 0.5, least - 1, most + 1, least + 0.5):
            is_whole = field.annotation is int
            expected.append(least <= value <= most and not (is_whole and value != int(value)))
            calls.append(["translate", [], {"search": {name: value}}])
    given = answers(Run(archive_of(exported("rnnsearch-after")[1], tmp_path), calls))
    assert [one == [] for one in given] == expected, [*zip(calls, given, strict=True)]
    assert len(expected) == 6 * 10


@needs_node
def test_settings_among_the_others_are_followed_and_undefined_ones_are_the_model_s_own(exported: Make, tmp_path: Path):
    archive, text = archive_of(exported("rnnsearch-after")[1], tmp_path), "fade cab"
    cases = (
        {"beam": 3, "nbest": 3},
        {"search": {"beam": 3, "nbest": 3}},
        {"beam": 3, "nbest": 3, "search": {"beam": 1, "nbest": 1}},
        {"search": {"nbest": 3, "beam": 2}},
    )
    given = answers(Run(archive, [["translate", [text], one] for one in cases]))
    assert [len(one[0]["alternatives"]) for one in given] == [3] * len(cases)
    assert given[1:] == given[:1] * 3
    whole = answers(Run(archive, [["text", text, one] for one in cases]))
    assert [len(one["segments"][0]["alternatives"]) for one in whole] == [3] * len(cases)


@needs_node
def test_options_that_are_no_object_are_refused(exported: Make, task_models: TaskModels, tmp_path: Path):
    letters = archive_of(exported("rnnsearch-after")[1], tmp_path)
    (_, reviews), (_, scenes), (_, stories) = (
        task_archive(path, tmp_path) for path in (task_models.classifier, task_models.captioner, task_models.answerer)
    )
    story = {"facts": ["Ada went home."], "question": "Where is Ada?"}
    runs = [
        Run(letters, [["translate", ["a"], None], ["text", "a", None], ["loadWith", str(letters), None]]),
        Run(reviews, [["classify", ["a"], None], ["encodeTexts", ["a"], None], ["encodeTexts", ["a"], {"signal": 1}]]),
        Run(scenes, [["caption", [TRANSPARENT], None]]),
        Run(stories, [["answer", [story], None], ["answer", [story], {"signal": {}}]]),
    ]
    given = answers(*runs)
    assert [one["error"] for one in given] == ["usage"] * 9, given
    told = "; expected an AbortSignal"
    assert [one["message"].endswith(told) for one in given] == [
        False,
        False,
        False,
        False,
        False,
        True,
        False,
        False,
        True,
    ]
    assert given[0]["message"] == "translate: the options are null; expected an object such as { signal }"


@needs_node
def test_an_option_that_a_method_does_not_have_is_refused(exported: Make, task_models: TaskModels, tmp_path: Path):
    letters = archive_of(exported("rnnsearch-after")[1], tmp_path)
    (_, reviews), (_, scenes), (_, stories) = (
        task_archive(path, tmp_path) for path in (task_models.classifier, task_models.captioner, task_models.answerer)
    )
    searching = "beam, nbest, attention, signal, search"
    own = {"translate": f"{searching}, prefix", "translateText": searching, "loadWith": "ort, signal"}
    own |= {"classify": "signal", "encode": "signal", "answer": "signal", "caption": searching}
    calls = [
        ["call", method, "a" if method == "translateText" else ["a"], {"beem": 3}]
        for method in ("translate", "translateText")
    ]
    runs = [
        Run(letters, [*calls, ["loadWith", str(letters), {"beem": 3}]]),
        Run(reviews, [["call", method, ["a"], {"beem": 3}] for method in ("classify", "encode")]),
        Run(stories, [["answer", [], {"beem": 3}]]),
        Run(scenes, [["caption", [], {"beem": 3}]]),
        Run(letters, [["translate", ["a"], {"alpha": 1}], ["translate", ["a"], {"attension": True}]]),
        Run(reviews, [["classify", ["a"], {"beam": 3}]]),
    ]
    given = answers(*runs)
    assert [one.get("error") for one in given] == ["usage"] * 10, given
    said = [
        f"{name.removesuffix('With')}: beem is no option of this method; it has {names}" for name, names in own.items()
    ]
    assert [one["message"] for one in given[:7]] == said
    assert given[7]["message"].endswith("; alpha is a setting of search: { search: { alpha } }")
    assert given[9]["message"] == "classify: beam is no option of this method; it has signal"


@needs_node
def test_a_method_of_another_task_says_what_the_model_is_for(exported: Make, task_models: TaskModels, tmp_path: Path):
    letters = archive_of(exported("rnnsearch-after")[1], tmp_path)
    _, stories = task_archive(task_models.answerer, tmp_path)
    methods = ("classify", "encode", "answer", "caption")
    given = answers(Run(letters, [["call", method, ["a"]] for method in methods]), Run(stories, [["translate", ["a"]]]))
    assert [one.get("error") for one in given] == ["usage"] * 5, given
    assert given[0]["message"].startswith("classify: ")
    assert given[0]["message"].endswith(" is a model for translation; call its translate or translateText")
    assert given[-1]["message"].endswith(" is a model for answering; call its answer")


@needs_node
def test_a_signal_ends_every_method(exported: Make, task_models: TaskModels, tmp_path: Path):
    """Every method ends where its signal is aborted before the call, or during it."""
    letters = archive_of(exported("rnnsearch-after")[1], tmp_path)
    (_, reviews), (_, scenes), (_, stories) = (
        task_archive(path, tmp_path) for path in (task_models.classifier, task_models.captioner, task_models.answerer)
    )
    story = {"facts": ["Ada went home."], "question": "Where is Ada?"}
    runs = [
        Run(path, [["aborted", when, method, given] for method, given in calls for when in ("before", "during")])
        for path, calls in (
            (letters, [("translate", ["abc"] * 40), ("translateText", "fade cab")]),
            (reviews, [("classify", ["a room"] * 40), ("encode", ["a room"] * 40)]),
            (stories, [("answer", [story] * 40)]),
        )
    ]
    captions = Run(scenes, [["abortedCaption", when, TRANSPARENT] for when in ("before", "during")])
    given = answers(*runs, captions)
    assert given == [{"error": "Error", "message": "enough"}] * 12


@needs_node
@pytest.mark.parametrize("kind", ["bytes", "Blob"])
def test_a_signal_ends_loading_and_frees_what_was_loaded(
    kind: str, exported: Make, task_models: TaskModels, tmp_path: Path
):
    letters = archive_of(exported("rnnsearch-after")[1], tmp_path)
    _, reviews = task_archive(task_models.classifier, tmp_path)
    whens = ["before", "during", "after encode.onnx", "after step.onnx"]
    runs = [Run(letters, [["abortedLoad", when, str(path), kind] for when in whens]) for path in (letters, reviews)]
    for each in answers(*runs):
        assert (each["error"], each["message"], each["open"]) == ("Error", "enough", 0)


@needs_node
def test_a_model_whose_search_is_broken_is_damaged(tmp_path: Path):
    from heedful.export.archive import compressed

    own = SearchConfig().model_dump(mode="json")
    facts = {"format": 1, "task": "translation", "max_tokens": 20}
    wrong = {"beam": 2.5, "stopping": "never", "alpha": "x", "no_repeat_ngram_size": -1, "min_length": None}
    runs: list[Run] = []
    for name, value in wrong.items():
        path = tmp_path / f"{name}.tgz"
        path.write_bytes(compressed({"model.json": json.dumps(facts | {"search": own | {name: value}}).encode()}))
        runs.append(Run(path, [["translate", ["a"]]]))
    given = answers(*runs)
    messages = [f"not a model of heedful: a search cannot follow its {name}" for name in wrong]
    assert given == [{"error": "damaged", "message": one} for one in messages]


def test_the_package_has_the_version_of_heedful():
    from heedful.version import __version__

    npm_form = __version__.replace("rc", "-rc.").replace("b", "-beta.").replace("a", "-alpha.")
    assert json.loads((PACKAGE / "package.json").read_text("utf-8"))["version"] == npm_form
