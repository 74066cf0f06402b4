"""The section [training]: optimization, regularization, validation, checkpoints and hardware."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from heedful.config.guided import GuidedConfig
from heedful.section import Count, Fraction, Section, Texts
from heedful.tasks.classify.config import BALANCED, parse_class_weight


class TrainingConfig(Section):
    """How a model is trained."""

    seed: int = Field(1, ge=-(2**63), lt=2**63, description="random seed of weights, data order and dropout")
    epochs: Count = Field(10, description="maximum number of epochs")
    max_steps: int = Field(0, ge=0, le=1_000_000_000, description="maximum number of updates; 0: no limit")
    max_minutes: float = Field(0.0, ge=0.0, description="maximum training time, in minutes; 0: no limit")
    batch_tokens: Count = Field(
        2_000, description="maximum tokens per batch, padding included, counted on the longer side"
    )
    negatives: int = Field(4, gt=0, le=10_000, description="recommend: sampled negative items per positive item")
    accumulate_grad_batches: Count = Field(1, description="batches per update (of each process)")
    optimizer: Literal["adam", "adamw", "sgd", "adadelta", "adagrad"] = Field(
        "adam", description="optimizer; adadelta usually needs learning_rate = 1"
    )
    learning_rate: float = Field(0.002, gt=0.0, description="peak learning rate")
    adam_betas: Annotated[tuple[Fraction, Fraction], Field(strict=False)] = Field(
        (0.9, 0.999), description="adam, adamw: betas; for Transformers often [0.9, 0.98]"
    )
    momentum: Fraction = Field(0.0, description="sgd: momentum")
    weight_decay: float = Field(0.0, ge=0.0, description="weight decay")
    schedule: Literal["constant", "inverse-sqrt", "cosine", "linear", "plateau"] = Field(
        "cosine", description="learning-rate schedule after warm-up"
    )
    warmup_steps: int = Field(100, ge=0, le=1_000_000_000, description="steps of linear warm-up")
    plateau_factor: float = Field(
        0.5, gt=0.0, lt=1.0, description="plateau: factor by which the learning rate is lowered"
    )
    plateau_patience: Count = Field(2, description="plateau: validations without improvement before it is lowered")
    grad_clip: float = Field(1.0, ge=0.0, description="maximum norm of the gradient; 0 disables clipping")
    label_smoothing: Fraction = Field(0.0, description="label smoothing; 0 disables it")
    rdrop: float = Field(0.0, ge=0.0, description="R-Drop weight; 0 disables it (Liang 2021)")
    train_unk: bool = Field(
        True, description="generation: include <unk> targets in the loss; false: outputs rarely contain <unk>"
    )
    scheduled_sampling: float = Field(
        0.0,
        ge=0.0,
        le=1.0,
        description="probability of feeding the model's own previous word instead of the target (Bengio 2015)",
    )
    doubly_stochastic: float = Field(
        0.0, ge=0.0, description="weight of the doubly stochastic attention penalty; 0 disables it (Xu 2015, eq. 14)"
    )
    reinforce_weight: float = Field(1.0, ge=0.0, description="hard attention: weight of the REINFORCE loss")
    entropy_weight: float = Field(0.01, ge=0.0, description="hard attention: weight of the entropy bonus")
    soft_fraction: float = Field(
        0.5, ge=0.0, le=1.0, description="hard attention: fraction of sentences trained with soft attention"
    )
    reward: Literal["none", "cider"] = Field(
        "none", description="caption: reward of self-critical training on sampled captions (Rennie 2017)"
    )
    reward_samples: int = Field(5, ge=2, le=1_000, description="with reward: captions sampled per image")
    class_weights: Texts = Field(
        (), description='classify: loss weight of each label, e.g. ["neutral=3"]; or ["balanced"]'
    )
    teachers: Texts = Field(
        (),
        description="classify: model folders of the teachers, whose mean probabilities are distilled (Hinton 2015)",
    )
    distill_weight: float = Field(
        0.5,
        ge=0.0,
        le=1.0,
        description="with teachers: weight of the distillation loss; the loss of the labels has 1 minus this",
    )
    guided: GuidedConfig | None = Field(None, description="known links as targets of the attention weights")
    init_from: str = Field("", description="model folder with the initial weights")
    freeze_embeddings: bool = Field(False, description="classify: do not train the word vectors of data.vectors")
    ema: Fraction = Field(0.0, description="decay of the moving average of the weights; 0 disables it")
    average_last: int = Field(
        0, ge=0, le=1_000_000_000, description="average the weights at the last n validations; 0 disables it"
    )
    validate_every: int = Field(0, ge=0, le=1_000_000_000, description="steps between validations; 0: once per epoch")
    validate_pairs: int = Field(0, ge=0, le=1_000_000_000, description="use the first n validation pairs; 0: all")
    metric: str = Field("loss", description="validation metric for the best weights, patience and plateau")
    patience: int = Field(
        0, ge=0, le=1_000_000_000, description="stop after n validations without improvement; 0: never"
    )
    keep_best: bool = Field(
        False, description="save the weights of the best validation, not the last; implied by patience"
    )
    checkpoint_every: Count = Field(500, description="steps between checkpoints")
    threads: int = Field(0, ge=0, le=1_024, description="CPU threads; 0: torch decides")
    device: Literal["cpu", "auto", "cuda", "gpu", "mps", "tpu"] = Field(
        "cpu", description="device; only the CPU is tested"
    )
    precision: Literal["32-true", "64-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true"] = Field(
        "32-true",
        description="number format; bf16-mixed on a CPU: matrix products in bfloat16; the others are less tested",
    )
    tensorboard: bool = Field(False, description="write TensorBoard logs (needs heedful[tensorboard])")

    @model_validator(mode="after")
    def _check_conflicts(self) -> Self:
        if self.ema and self.average_last:
            raise ValueError("ema, average_last: both average the weights; use one of them")
        for text in self.class_weights:
            if parse_class_weight(text) is None and self.class_weights != (BALANCED,):
                raise ValueError(f'class_weights = ["{text}"]: expected "label=weight", or only "{BALANCED}"')
        return self
