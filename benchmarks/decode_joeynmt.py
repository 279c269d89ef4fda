"""Sentences a processor second of our recurrent models and of JoeyNMT's, of equal size, with beams.

    OMP_NUM_THREADS=1 python benchmarks/decode_joeynmt.py MODEL SOURCE [--limit 500] [--beam 5] [--length 14]

MODEL is an RNNsearch with SentencePiece, and its engines. JoeyNMT gets the same vocabulary, embeddings of the same size
and GRUs of the size that gives it no more parameters; its weights are random, so all outputs are made equally long on
both sides. Both read lines and write lines, and take turns, chunk by chunk. Needs JoeyNMT 2.3.0, best in an environment
of its own.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import yaml

from heedful.cli.options import use_threads
from heedful.config.base import validate
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.search.config import SearchConfig
from heedful.text.tokenizer import PieceTokenizer

CHUNK = 250


def settings(folder: Path, sizes: tuple[int, int], beam: int, length: int) -> dict[str, Any]:
    embedding_size, hidden_size = sizes
    side = {
        "level": "bpe",
        "max_length": 250,
        "lowercase": False,
        "normalize": False,
        "voc_min_freq": 1,
        "voc_file": str(folder / "vocab.txt"),
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(folder / "sp.model"), "pretokenizer": "none"},
    }
    part = {
        "type": "recurrent",
        "rnn_type": "gru",
        "num_layers": 1,
        "hidden_size": hidden_size,
        "dropout": 0.0,
        "embeddings": {"embedding_dim": embedding_size, "scale": False, "dropout": 0.0},
    }
    return {
        "name": "peer",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "joey"),
        "use_cuda": False,
        "fp16": False,
        "random_seed": 42,
        "data": {
            "train": "none",
            "dev": "none",
            "test": "none",
            "dataset_type": "plain",
            "src": {"lang": "de", **side},
            "trg": {"lang": "en", **side},
            "special_symbols": {
                "pad_token": "<pad>",
                "pad_id": 1,
                "unk_token": "<unk>",
                "unk_id": 0,
                "bos_token": "<bos>",
                "bos_id": 2,
                "eos_token": "<eos>",
                "eos_id": 3,
            },
        },
        "testing": {
            "load_model": str(folder / "joey" / "best.ckpt"),
            "n_best": 1,
            "beam_size": beam,
            "beam_alpha": 1.0,
            "batch_size": 2048,
            "batch_type": "token",
            "eval_metrics": ["bleu"],
            "max_output_length": length,
            "min_output_length": length,
        },
        "training": {"optimizer": "adam", "learning_rate": 0.001, "batch_size": 10, "epochs": 1, "updates": 1},
        "model": {
            "initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "embed_initializer": "normal",
            "embed_init_weight": 0.1,
            "init_rnn_orthogonal": True,
            "tied_embeddings": True,
            "tied_softmax": False,
            "encoder": {**part, "bidirectional": True},
            "decoder": {
                **part,
                "hidden_dropout": 0.0,
                "input_feeding": True,
                "init_hidden": "bridge",
                "attention": "bahdanau",
            },
        },
    }


Decode = Callable[[list[str]], list[str]]


def joey(folder: Path, sizes: tuple[int, int], beam: int, length: int) -> tuple[Decode, int]:
    from joeynmt.config import load_config, parse_global_args
    from joeynmt.data import load_data
    from joeynmt.model import build_model
    from joeynmt.prediction import predict, prepare

    (folder / "joey").mkdir(exist_ok=True)
    (folder / "joey" / "best.ckpt").touch()  # looked for before there is a model
    path = folder / "joey.yaml"
    path.write_text(yaml.safe_dump(settings(folder, sizes, beam, length)), encoding="utf-8")
    config = load_config(path)
    arguments = parse_global_args(config, rank=0, mode="translate")
    source_vocabulary, target_vocabulary, *_ = load_data(cfg=arguments.data, datasets=["stream"])
    fresh = build_model(arguments.model, src_vocab=source_vocabulary, trg_vocab=target_vocabulary)
    torch.save({"model_state": fresh.state_dict()}, folder / "joey" / "best.ckpt")
    model, _, _, data = prepare(arguments, rank=0, mode="translate")

    def decode(lines: list[str]) -> list[str]:
        data.reset_cache()
        for line in lines:
            data.set_item(line)
        return predict(
            model=model.eval(),
            data=data,
            compute_loss=False,
            device=arguments.device,
            rank=0,
            n_gpu=0,
            normalization="none",
            num_workers=0,
            args=arguments.test,
            autocast=arguments.autocast,
        )[2]

    return decode, sum(parameter.numel() for parameter in model.parameters())


def ours(translator: Translator, beam: int, length: int) -> Decode:
    tree = {"beam": beam, "max_length_ratio": 0.0, "max_length_offset": length, "min_length": length}
    search = validate(SearchConfig, tree, "search")
    return lambda lines: [found.text for found in translator.stream(lines, search)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--length", type=int, default=14)
    parser.add_argument("--joey-hidden", type=int, default=0, help="0 = so that it has no more parameters than ours")
    given = parser.parse_args()
    use_threads(0)
    torch.set_num_threads(1)
    lines = [line for line in given.source.read_text(encoding="utf-8").split("\n") if line.strip()][: given.limit]
    translator = load(given.model)
    tokenizer, model = translator.source_tokenizer, translator.model()
    if not isinstance(tokenizer, PieceTokenizer):
        raise SystemExit("a model with SentencePiece is needed")
    num_ours = sum(parameter.numel() for parameter in model.parameters())
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "sp.model").write_bytes(tokenizer.model)
        pieces = tokenizer.pieces(range(len(tokenizer)))
        (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
        embedding_size = model.config.embedding_size
        for hidden_size in [given.joey_hidden] if given.joey_hidden else range(512, 64, -32):
            decode, num_theirs = joey(folder, (embedding_size, hidden_size), given.beam, given.length)
            if num_theirs <= num_ours:
                break
        each: dict[str, Decode] = {"JoeyNMT": decode}
        for name in ("torch", *translator.backends.exported):
            each[name] = ours(load(given.model, engine=name), given.beam, given.length)
        seconds = dict.fromkeys(each, 0.0)
        for name, run in each.items():
            print(name, run(lines[:10])[:1], flush=True)  # loads, and warms up
        for start in range(0, len(lines), CHUNK):
            for name, run in each.items():
                started = time.process_time()
                found = run(lines[start : start + CHUNK])
                seconds[name] += time.process_time() - started
                if len(found) != len(lines[start : start + CHUNK]):
                    raise SystemExit(f"{name}: {len(found)} outputs")
    print(f"parameters: ours {num_ours:,}, JoeyNMT's {num_theirs:,} (GRUs of {hidden_size})")
    print(f"{len(lines)} sentences, beam {given.beam}, {given.length} tokens each, {torch.get_num_threads()} thread")
    for name, taken in seconds.items():
        print(f"{name:12} {len(lines) / taken:8.1f} sentences a second   {seconds['JoeyNMT'] / taken:6.2f}x JoeyNMT")


if __name__ == "__main__":
    main()
