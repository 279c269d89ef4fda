"""Settings of training."""

from typing import Literal, Self

from pydantic import Field, model_validator

from heedful.config.base import MOST_STEPS, Config
from heedful.training.optimizer import OptimizerConfig
from heedful.training.precision import Precision

AlignmentStep = Literal["predicted", "read"]
"""Decoder step whose attention aligns a target word: the one that predicts it, or the next one, which reads it."""


class TrainingConfig(Config):
    """Settings of training; a limit of 0 means no limit."""

    seed: int = Field(default=1, ge=0, lt=1 << 31)
    """Seed of weights, order and dropout."""
    batch_tokens: int = Field(default=0, ge=0, le=MOST_STEPS)
    """Largest number of positions of a batch on its longer side; 0 = chosen from the corpus."""
    accumulate: int = Field(default=1, ge=1, le=100_000)
    """Number of batches whose gradients make one update."""
    label_smoothing: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Share of probability that the loss spreads evenly over all tokens. Szegedy et al. 2016, arXiv:1512.00567."""
    split_pieces: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Probability that a subword piece is split in two, drawn again in each epoch, and each part again with the same
    probability, so that a model of few pairs learns less by heart; 0 = none. See `heedful.data.resegmentation`."""
    noise: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the pairs that are changed as people write texts (other case, typing errors, missing marks, several
    sentences on a line), or of the pictures that are shifted, slanted and blurred by noise; other ones in each epoch,
    so that the model learns to read them; 0 = none. A Transformer of sentences has 0.25 by itself where it sees each
    of 10,000 pairs or more ten times. See `heedful.data.noise` and `heedful.data.picture_changes`."""
    term_share: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the sources into which translations of some of their words are written, other ones in each epoch, so
    that the model learns to inflect the terms that `translate --terms` gives it; 0 = none. See
    `heedful.data.term_pairs`."""
    alignment_weight: float = Field(default=0.0, ge=0.0, le=1e6)
    """Weight of guided alignment, a loss that teaches attention the alignment links of the pairs, or the places of
    words in pictures; 0 = none."""
    alignment_model: Literal["ibm1", "ibm2"] = "ibm1"
    """IBM model 1 or 2, which finds the alignment links of the pairs."""
    links: str = ""
    """File of word links corrected by hand, which guided alignment teaches in place of those that the model finds; for
    captions, file of boxes of words."""
    alignment_step: AlignmentStep = "predicted"
    """Decoder step whose attention aligns a target word: the one that predicts the word, or the one that reads it."""
    train: list[str] = Field(default=[], max_length=1000)
    """Patterns of the names of the parameters that are trained, such as "decoder*"; the others stay as they are. None =
    all are trained."""
    mix: list[str] = Field(default=[], max_length=2)
    """Files of older pairs that are mixed into each epoch, so that a trained model forgets less; none = no pairs."""
    mix_share: float = Field(default=0.5, gt=0.0, lt=1.0)
    """Share of older pairs among the pairs of an epoch."""
    clip_norm: float = Field(default=1.0, ge=0.0, le=1e6)
    """Largest L2 norm of the gradient, which is scaled down to it; 0 = no limit."""
    optimizer: OptimizerConfig = OptimizerConfig()
    average: float = Field(default=8.0, ge=0.0, le=1e6)
    """Exponent g of the polynomial average of the weights, which covers about the last 1/g of all steps; 0 = no
    average."""
    soft_start: int = Field(default=0, ge=0, le=MOST_STEPS)
    """Number of first steps in which all attention is softmax, against poor local optima of hard, drawn and structured
    attention; validation has the attention of the model throughout."""
    soft_share: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Share of the later steps, drawn at random, in which all attention is softmax, too: 0.5 in Xu et al. 2015,
    arXiv:1502.03044, section 4.1, who put the expectation in the place of a draw (in their code for a whole batch)."""
    start_share: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Share of the weights of the model of --from in the weights that are validated and kept, so that the model forgets
    less; 0 = none."""
    precision: Precision = "auto"
    """Number format of products: float32, bfloat16, or the faster one that trains as well (auto)."""
    execution: Literal["auto", "eager"] = "auto"
    """Way to run a step on a CUDA device: recorded once for each padded shape and replayed as a CUDA graph, where the
    model allows it (auto), or launched operation by operation (eager)."""
    has_few_shapes: bool = False
    """Few shapes of batches, the same in every epoch, at the price of more padding; true on a GPU, unless it is set."""
    parallel: Literal["data", "sharded"] = "data"
    """Distribution over several processes: each has the whole model (data), or a part of it (sharded)."""
    max_steps: int = Field(default=0, ge=0, le=MOST_STEPS)
    """Largest number of updates; 0 = no limit."""
    max_epochs: int = Field(default=0, ge=0, le=MOST_STEPS)
    """Largest number of passes over the training data; 0 = no limit."""
    max_target_tokens: int = Field(default=0, ge=0, le=MOST_STEPS)
    """Largest number of target tokens to train on, over all epochs, with EOS and without padding."""
    max_minutes: float = Field(default=0.0, ge=0.0, le=1e6)
    """Longest time of training, validation and test, in minutes; 0 = no limit."""
    export: bool = True
    """Whether training ends by exporting the model to the engines that run it without PyTorch."""
    tensorboard: bool = False
    """Whether to write progress for TensorBoard, to run/tensorboard in the model folder."""
    validate_every: int = Field(default=0, ge=0, le=MOST_STEPS)
    """Steps between validations; 0 = about an epoch."""
    validation_items: int = Field(default=0, ge=0, le=MOST_STEPS)
    """Number of validation items that are used, evenly spaced; 0 = the usual number of the task."""
    patience: int = Field(default=8, ge=1, le=MOST_STEPS)
    """Number of consecutive validations without a better score after which training ends."""
    select_by: str = "auto"
    """Score of the task that selects the best model; auto: chosen by the data, such as BLEU for pieces, token error
    rate for words, character error rate for characters, accuracy for labels."""

    @property
    def is_limited(self) -> bool:
        """Whether training has a limit besides patience."""
        return bool(self.max_steps or self.max_epochs or self.max_target_tokens or self.max_minutes)

    def share_done(self, step: int, epochs: float, tokens: int, seconds: float) -> float:
        """Compute the part of the training that is done, by the limit that is nearest.

        Args:
            step: number of steps so far.
            epochs: number of epochs so far, with fractions.
            tokens: number of target tokens so far.
            seconds: time so far.

        Returns:
            The part in [0, 1]; 0 without a limit.

        Example:
            >>> TrainingConfig(max_steps=200, max_minutes=10).share_done(50, 0.0, 0, 300.0)
            0.5
        """
        limits = (self.max_steps, self.max_epochs, self.max_target_tokens, 60.0 * self.max_minutes)
        done = zip((step, epochs, tokens, seconds), limits, strict=True)
        return min(1.0, max(number / limit if limit else 0.0 for number, limit in done))

    @model_validator(mode="after")
    def _check_sharding(self) -> Self:
        if self.parallel == "sharded" and self.optimizer.kind == "muon":
            raise ValueError("muon needs whole matrices: set training.parallel=data, or training.optimizer.kind=adam")
        return self

    @model_validator(mode="after")
    def _check_horizon(self) -> Self:
        kind = self.optimizer.schedule.kind
        if kind in ("linear", "cosine") and not self.is_limited:
            raise ValueError(
                f"the {kind} schedule falls to zero at the end of training: set a limit, such as training.max_steps or "
                "training.max_minutes"
            )
        return self
