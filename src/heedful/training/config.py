"""The settings of a training."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from heedful.config import Config
from heedful.training.optimizer import OptimizerConfig
from heedful.training.precision import Precision


class TrainingConfig(Config):
    """How a model is trained. Limits that are 0 do not limit."""

    seed: int = Field(default=1, ge=0, lt=1 << 31)
    batch_tokens: int = Field(default=0, ge=0)
    """Most positions of a batch on its longer side; 0 chooses from the corpus."""
    accumulate: int = Field(default=1, ge=1)
    """Batches whose gradients make one update."""
    label_smoothing: float = Field(default=0.1, ge=0.0, lt=1.0)
    alignment_weight: float = Field(default=0.0, ge=0.0)
    """Of a loss that teaches attention which words belong together, found in the training pairs; 0 = none."""
    clip_norm: float = Field(default=1.0, ge=0.0)
    """Gradients of a larger L2 norm are scaled down to it; 0 = never."""
    optimizer: OptimizerConfig = OptimizerConfig()
    average: float = Field(default=8.0, ge=0.0)
    """Validate and keep an average of the weights over about the last 1/average of the steps; 0 = the last weights."""
    precision: Precision = "auto"
    parallel: Literal["data", "sharded"] = "data"
    """Of several processes, each has the whole model, or a part of it (for models too large for one)."""
    max_steps: int = Field(default=0, ge=0)
    max_epochs: int = Field(default=0, ge=0)
    max_target_tokens: int = Field(default=0, ge=0)
    """Real ones, end marks included, of all epochs together."""
    max_minutes: float = Field(default=0.0, ge=0.0)
    tensorboard: bool = False
    """Write what is reported to run/tensorboard in the model's folder too."""
    validate_every: int = Field(default=0, ge=0)
    """Steps between validations; 0 = about an epoch."""
    patience: int = Field(default=8, ge=1)
    """Validations in a row without a better score after which training ends."""
    select_by: str = "auto"
    """Score of the task that decides which model is kept; auto: what suits the data, such as BLEU of pieces, token
    error rate of words, chrF of characters, accuracy of labels."""

    @model_validator(mode="before")
    @classmethod
    def _drop_execution(cls, values: Any) -> Any:
        # Runs of earlier versions name the one way to run a step that is left.
        if isinstance(values, dict) and values.get("execution") == "eager":
            return {key: value for key, value in values.items() if key != "execution"}
        return values

    @model_validator(mode="after")
    def _check_horizon(self) -> Self:
        kind = self.optimizer.schedule.kind
        if kind in ("linear", "cosine") and not self.max_steps:
            raise ValueError(f"the {kind} schedule falls to zero at the last step: set training.max_steps")
        return self
