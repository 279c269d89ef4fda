"""Section "Use" of a model card: lines that run the model in Python, JavaScript and C++, as far as its form allows."""

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

Form = Literal["heedful", "heedful.js", "transformers", "transformers.js", "onnx", "ctranslate2"]
"""Form of a model, named after the library that loads it, as the Hub of Hugging Face knows it."""
_PYTHON: Final = {
    "translation": 'print(model.translate(["…"])[0].text)',
    "classification": 'print(model.classify(["…"])[0].label)',
    "captioning": 'print(model.caption(["picture.jpg"])[0].text)',
    "answering": 'print(model.answer([{"facts": ["…"], "question": "…"}])[0].answer)',
}
_JAVASCRIPT: Final = {
    "translation": "const [one] = await model.translate(['…']);\nconsole.log(one.text);",
    "classification": "const [one] = await model.classify(['…']);\nconsole.log(one.label);",
    "captioning": "const [one] = await model.caption([picture]); // a Blob, such as a file\nconsole.log(one.text);",
    "answering": "const [one] = await model.answer([{ facts: ['…'], question: '…' }]);\nconsole.log(one.answer);",
}
"""Calls of a loaded model by its task."""
_PAGE: Final = 'the page "ONNX graphs of a model" (`docs/engines.md` in the sources of heedful)'


def use_of(form: Form, name: str, facts: Mapping[str, Any]) -> list[str]:
    """Write how a model is run.

    Args:
        name: file or folder that the card lies in, as its user calls it; an engine as MODEL/engines/ENGINE.
        facts: content of the model's `heedful.json`.

    Returns:
        Lines of Markdown, with a blank line at the end.
    """
    return [line for block in _FORMS[form](name, facts) for line in (*block.split("\n"), "")]


def _code(language: str, *lines: str) -> str:
    return "\n".join((f"```{language}", *lines, "```"))


def _loaded(name: str, facts: Mapping[str, Any], engine: str = "") -> str:
    """Lines of Python that load a model's folder and call it."""
    call = _PYTHON.get(_task(facts), "print(model)")
    named = f", engine={_quoted(engine)}" if engine else ""
    return _code("python", "import heedful", "", f"model = heedful.load({_quoted(name)}{named})", call)


def _task(facts: Mapping[str, Any]) -> str:
    return str(facts.get("task", "translation"))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _heedful(name: str, facts: Mapping[str, Any]) -> list[str]:
    return [
        "In Python, with heedful (`pip install heedful`):",
        _loaded(name, facts),
        "In browsers and Node: `heedful export MODEL --to js` writes `model.tgz`, which the npm package heedful loads: "
        "`await load('model.tgz')`. In C++ and other languages with ONNX Runtime: `heedful export MODEL --to onnx` "
        f"writes graphs; {_PAGE} says in which order they run.",
    ]


def _archive(name: str, facts: Mapping[str, Any]) -> list[str]:
    load = f"const model = await load({_quoted(name)}); // its address; in Node its bytes: await readFile(…)"
    call = _JAVASCRIPT.get(_task(facts), "console.log(model.name);")
    return [
        "In browsers and in Node 20 or newer, with the npm packages heedful and onnxruntime-web:",
        _code("javascript", "import { load } from 'heedful';", "", load, *call.split("\n")),
        "The archive is for JavaScript alone. For Python, ask its makers for the model as `heedful pack MODEL -o "
        "OUT.zip` writes it; for C++, for its graphs, as `heedful export MODEL --to onnx` writes them.",
    ]


def _transformers(name: str, _: Mapping[str, Any]) -> list[str]:
    lines = (
        "from transformers import MarianMTModel, MarianTokenizer",
        "",
        f"model = MarianMTModel.from_pretrained({_quoted(name)})",
        f"tokenizer = MarianTokenizer.from_pretrained({_quoted(name)})",
        'outputs = model.generate(**tokenizer(["…"], return_tensors="pt"))',
        "print(tokenizer.batch_decode(outputs, skip_special_tokens=True))",
    )
    return [
        "In Python, with transformers, sentencepiece and PyTorch:",
        _code("python", *lines),
        "For browsers, `heedful export MODEL --to transformers.js OUT` writes another folder; for C++, "
        "`heedful export MODEL --to ctranslate2` or `--to onnx` an engine.",
    ]


def _transformers_js(name: str, _: Mapping[str, Any]) -> list[str]:
    lines = (
        "import { env, pipeline } from '@huggingface/transformers';",
        "",
        "env.localModelPath = '.';",
        "const options = { dtype: 'fp32', local_files_only: true };",
        f"const translate = await pipeline('translation', {_quoted(name)}, options);",
        "const [output] = await translate('…');",
        "console.log(output.translation_text);",
    )
    for_pages = (
        "env.allowLocalModels = true;",
        "env.backends.onnx.wasm.wasmPaths = './'; // the folder of the page's script",
    )
    bundle = (
        "npx --yes esbuild@0.28 page.js --bundle --format=esm --outfile=dist/page.js",
        f"cp -r {shlex.quote(name)} node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded.* dist/",
    )
    return [
        "In Node and in browsers, with `@huggingface/transformers` 4, beside the folder:",
        _code("javascript", *lines),
        "A web page needs two more lines before `pipeline`: without them it looks for the model and ONNX Runtime on "
        "the network.",
        _code("javascript", *for_pages),
        "A bundler makes one script of it; this folder and the files of ONNX Runtime lie beside it, on any server:",
        _code("sh", *bundle),
        "It searches greedily; `num_beams` changes nothing there. For Python, `heedful export MODEL --to huggingface "
        "OUT` writes another folder; for C++, `heedful export MODEL --to onnx` an engine.",
    ]


def _loaded_engine(name: str, facts: Mapping[str, Any]) -> list[str]:
    """Lines of Python that run an engine by heedful."""
    model, *_, engine = name.split("/")
    return [
        f"In Python, with heedful, in the folder of the model (this one is `engines/{engine}` in it):",
        _loaded(model, facts, engine),
    ]


def _onnx(name: str, facts: Mapping[str, Any]) -> list[str]:
    order = (
        "`encode.onnx` runs once for a source. `step.onnx` then runs for every token of the output: it takes the "
        "last token, what `encode.onnx` gave, and the state of the step before, and gives the log probabilities of the "
        "next token and the next state. The other graphs serve a beam."
    )
    if _task(facts) not in ("translation", "captioning"):
        order = (
            "A single graph, `classify.onnx`, gives `log_probs` for the tokens of a text; of documents, `words.onnx` "
            "runs on each sentence and `sentences.onnx` on the results. The inputs and outputs are named in the graphs."
        )
    return [
        *_loaded_engine(name, facts),
        "In C++ and other languages, with ONNX Runtime alone:",
        f"{order} Inputs and outputs, with a decoder of 25 lines, are on {_PAGE}.",
        _tokens(facts),
    ]


def _ctranslate2(name: str, facts: Mapping[str, Any]) -> list[str]:
    folder = _quoted(name.rpartition("/")[2])
    python = (
        "import ctranslate2",
        "",
        f"translator = ctranslate2.Translator({folder})  # this folder",
        'source = ["5", "9", "</s>"]  # ids of the tokens of a source, and its end',
        "print(translator.translate_batch([source], beam_size=1)[0].hypotheses[0])",
    )
    cpp = (
        "#include <iostream>",
        "#include <ctranslate2/translator.h>",
        "",
        "int main() {",
        f"  const ctranslate2::models::ModelLoader loader({folder});  // this folder",
        "  ctranslate2::Translator translator(loader);",
        "  ctranslate2::TranslationOptions options;",
        "  options.beam_size = 1;",
        '  const auto results = translator.translate_batch({{"5", "9", "</s>"}}, options);',
        "  for (const auto& token : results[0].output())",
        "    std::cout << token << ' ';",
        "}",
    )
    return [
        *(block.replace('["…"]', '["…"], beam=1') for block in _loaded_engine(name, facts)),
        "In Python and in C++, with CTranslate2 alone:",
        _code("python", *python),
        _code("cpp", *cpp),
        "Tokens are written as their ids, `4` and upwards; `<unk>` is 1 and `</s>`, the end of every source, is 3. "
        + _tokens(facts),
    ]


def _tokens(facts: Mapping[str, Any]) -> str:
    """Sentence about where texts become ids."""
    roles = ("source_tokenizer", "target_tokenizer", "tokenizer")
    names = dict.fromkeys(str(facts[role]) for role in roles if facts.get(role))
    files = " and ".join(f"`{name}`" for name in names) or "tokenizer files"
    return (
        f"Texts become ids, and ids texts, by {files} of the model's folder, which must come along: an id is "
        "the place of a token in the list `tokens` of a .json, or the id of a piece in a .model of SentencePiece."
    )


_FORMS: Final[Mapping[Form, Callable[[str, Mapping[str, Any]], list[str]]]] = {
    "heedful": _heedful,
    "heedful.js": _archive,
    "transformers": _transformers,
    "transformers.js": _transformers_js,
    "onnx": _onnx,
    "ctranslate2": _ctranslate2,
}
"""Blocks of Markdown of each form."""
