"""Outputs of `heedful.pipeline` against those of the pipeline of Transformers 4, on the same Marian folder.

    python -m tests.prove.prove_pipeline FOLDER SENTENCES --transformers PYTHON [--beams 1 4] [--limit 1000]

PYTHON is the interpreter of an environment with `transformers<5` and PyTorch: Transformers 5 has no such pipeline.
Each text that differs is printed with both outputs.
"""

import argparse
import json
import subprocess
from pathlib import Path

OTHER = """
import json, sys
from transformers import pipeline
folder, texts, beam = sys.argv[1], json.load(sys.stdin), int(sys.argv[2])
outputs = pipeline("translation", model=folder, device="cpu")(texts, num_beams=beam, max_length=128, batch_size=16)
print(json.dumps([each["translation_text"] for each in outputs]))
"""


def main() -> int:
    """Print the number of equal texts for each beam, and every text that differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a model that `heedful export --to huggingface` wrote")
    parser.add_argument("sentences", type=Path, help="one text per line")
    parser.add_argument("--transformers", required=True, metavar="PYTHON", help="interpreter that has Transformers 4")
    parser.add_argument("--beams", type=int, nargs="+", default=(1, 4))
    parser.add_argument("--limit", type=int, default=1000, help="number of texts")
    options = parser.parse_args()
    texts = options.sentences.read_text(encoding="utf-8").rstrip("\n").split("\n")[: options.limit]
    return max(differing(options.folder, texts, beam, options.transformers) for beam in options.beams)


def differing(folder: Path, texts: list[str], beam: int, python: str) -> int:
    """Compare the outputs of one beam; 1 if a text differs."""
    from heedful import pipeline

    command = [python, "-c", OTHER, str(folder), str(beam)]
    answer = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True).stdout
    results = pipeline("translation", str(folder))(texts, num_beams=beam, max_length=128)
    triples = zip(texts, (each["translation_text"] for each in results), json.loads(answer), strict=True)
    different = [each for each in triples if each[1] != each[2]]
    print(f"beam {beam}: {len(texts) - len(different):,} of {len(texts):,} texts equal", flush=True)
    for text, ours, theirs in different:
        print(f"  {text}\n    heedful:      {ours}\n    Transformers: {theirs}")
    return int(bool(different))


if __name__ == "__main__":
    raise SystemExit(main())
