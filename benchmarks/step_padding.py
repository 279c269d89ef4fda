"""Padding of recorded steps: positions that are computed for nothing, and the number of shapes.

    heedful train train.de train.en --preset base --out base.model --set training.max_steps=1
    python benchmarks/step_padding.py base.model 4096 16384 32768

For batches of each number of positions, in eight epochs, of any shapes and of few (`training.has_few_shapes`): the
share of padding in batches as they are drawn, and padded to the shapes of recorded steps; how many shapes there are;
and the share of steps that are replayed, as far as `RARE` and `MOST_SHAPES` allow.
"""

import itertools
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from heedful.config.base import merge, validate
from heedful.runs.request import merged_settings
from heedful.runs.settings import load_experiment
from heedful.tasks.experiment import Experiment
from heedful.tasks.table import find_task
from heedful.training.padded_batches import padded_sources, padded_targets
from heedful.training.recorded_step import MOST_SHAPES, RARE

NUM_EPOCHS: Final = 8


def main(folder: Path, sizes: Sequence[int]) -> None:
    experiment = load_experiment(settings=merged_settings(folder / "config.toml"))
    for size, has_few_shapes in itertools.product(sizes, (False, True)):
        changed = {"training": {"batch_tokens": size, "has_few_shapes": has_few_shapes}}
        larger = validate(Experiment, merge(experiment.model_dump(mode="json"), changed))
        sampler = find_task(larger.task).sampler(larger, folder, None)
        real = drawn = padded = num_replayed = num_steps = 0
        seen = Counter[tuple[int, ...]]()
        for batch in itertools.islice(iter(sampler), NUM_EPOCHS * sampler.num_batches(0)):
            source, lengths, target, _ = batch.arrays()
            wide, *_ = padded_sources([source, lengths])
            wide_target = padded_targets(target)
            real += int(lengths.sum()) + batch.num_units
            drawn += source.size + target.size
            padded += wide.size + wide_target.size
            key = (*wide.shape, *wide_target.shape)
            seen[key] += 1
            num_recorded = sum(count > RARE for count in seen.values())
            num_replayed += seen[key] > RARE and num_recorded <= MOST_SHAPES
            num_steps += 1
        way = "few shapes" if has_few_shapes else "any shapes"
        shares = f"padding {1 - real / drawn:.1%} as drawn, {1 - real / padded:.1%} as recorded"
        print(f"{size:,} positions, {way}: {shares}; {len(seen)} shapes, {num_replayed / num_steps:.0%} replayed")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]])
