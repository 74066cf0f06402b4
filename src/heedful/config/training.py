"""How a model is trained, and how it is searched for outputs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from heedful.config.classifier import BALANCED, class_weight
from heedful.config.section import Section, Share


class TrainingConfig(Section):
    seed: int = Field(1, description="weights, data order and dropout follow from it")
    epochs: PositiveInt = Field(10, description="passes over the training data, at most")
    max_steps: int = Field(0, ge=0, description="updates, at most; 0: as many as the epochs have")
    max_minutes: float = Field(0.0, ge=0.0, description="time, at most; 0: no limit")
    batch_tokens: PositiveInt = Field(
        2_000, description="positions in a batch, padding included, of the longer side"
    )
    negatives: PositiveInt = Field(4, description="recommend: items drawn beside each that was taken")
    accumulate: PositiveInt = Field(1, description="batches (of each process) that make one update")
    optimizer: Literal["adam", "adamw", "sgd", "adadelta", "adagrad"] = Field(
        "adam", description="how gradients become updates; adadelta wants rate = 1"
    )
    rate: float = Field(0.002, gt=0.0, description="the learning rate at its highest")
    betas: Annotated[tuple[Share, Share], Field(strict=False)] = Field(
        (0.9, 0.999), description="adam, adamw: how long they remember; Transformers: 0.9, 0.98"
    )
    momentum: Share = Field(0.0, description="sgd: how much of the last update it keeps")
    weight_decay: float = Field(0.0, ge=0.0, description="how strongly weights are drawn to 0")
    schedule: Literal["constant", "inverse-sqrt", "cosine", "linear", "plateau"] = Field(
        "cosine", description="how the rate goes after its rise"
    )
    warmup: int = Field(100, ge=0, description="steps over which the rate rises")
    decay: float = Field(0.5, gt=0.0, lt=1.0, description="plateau: what the rate is multiplied by")
    decay_after: PositiveInt = Field(2, description="plateau: after so many validations without gain")
    clip: float = Field(1.0, ge=0.0, description="largest norm of the gradient; 0: any")
    smoothing: Share = Field(0.0, description="label smoothing")
    agreement: float = Field(
        0.0, ge=0.0, description="R-Drop: every batch is read twice, and pays where both differ; 0: off"
    )
    unknown: bool = Field(
        True, description="models that write: is <unk> learnt? false: it is hardly ever written"
    )
    sampling: float = Field(
        0.0, ge=0.0, le=1.0, description="scheduled sampling: how often the model reads its own word"
    )
    even: float = Field(
        0.0, ge=0.0, description="price of positions read too little or too much in all (Xu 2015, eq. 14)"
    )
    reinforce: float = Field(1.0, ge=0.0, description="hard attention: strength of what draws are taught")
    entropy: float = Field(0.01, ge=0.0, description="hard attention: pay for weights that stay open")
    expected: float = Field(
        0.5, ge=0.0, le=1.0, description="hard attention: share of sentences that read the expectation"
    )
    reward: Literal["none", "cider"] = Field(
        "none", description="caption: cider: learn from captions drawn from the model itself (Rennie 2017)"
    )
    draws: int = Field(5, ge=2, description="reward: captions drawn for each picture")
    class_weights: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        (), description='classify: what a text counts by its label, as in ["neutral=3"]; or ["balanced"]'
    )
    teachers: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        (), description="classify: folders of models; the mean of what they say is learnt too (Hinton 2015)"
    )
    teaching: float = Field(
        0.5, ge=0.0, le=1.0, description="teachers: the share of what they say beside the labels"
    )
    start_from: str = Field("", description="a model folder to begin with, to be taught more")
    hold_vectors: bool = Field(False, description="classify: the vectors of data.vectors are not trained")
    ema: Share = Field(0.0, description="use a moving average of the weights with this decay; 0: off")
    average: int = Field(0, ge=0, description="use the mean of the weights of the last validations; 0: off")
    validate_every: int = Field(0, ge=0, description="steps between validations; 0: once an epoch")
    validate_pairs: int = Field(0, ge=0, description="validation pairs used, from the first on; 0: all")
    metric: str = Field("loss", description="the figure that says which weights are best")
    patience: int = Field(0, ge=0, description="validations without gain that end it; 0: never")
    keep_best: bool = Field(False, description="end with the best weights, not the last; so does patience")
    checkpoint_every: PositiveInt = Field(500, description="steps between saved states, to go on from")
    threads: int = Field(0, ge=0, le=1_024, description="of the CPU; 0: torch chooses")
    device: Literal["cpu", "auto", "cuda", "gpu", "mps", "tpu"] = Field(
        "cpu", description="where to compute; tested on the CPU only"
    )
    precision: Literal["32-true", "64-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true"] = Field(
        "32-true",
        description="of the numbers; bf16-mixed on a CPU: products in bfloat16; the rest is tested little",
    )
    tensorboard: bool = Field(False, description="write curves for TensorBoard (heedful[tensorboard])")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.ema and self.average:
            raise ValueError("ema and average: both average the weights; take one")
        for text in self.class_weights:
            if class_weight(text) is None and self.class_weights != (BALANCED,):
                raise ValueError(f'class_weights = ["{text}"]: expected "label=weight", or only "{BALANCED}"')
        return self


class DecodingConfig(Section):
    method: Literal["greedy", "beam", "sample"] = Field("greedy", description="how the output is searched")
    beam: PositiveInt = Field(5, description="beam: hypotheses side by side")
    alpha: float = Field(1.0, ge=0.0, description="beam: strength of the length penalty")
    beta: float = Field(0.0, ge=0.0, description="beam: strength of the coverage penalty")
    exact: bool = Field(False, description="beam: go on until nothing could change the result; slower")
    n_best: PositiveInt = Field(1, description="beam, sample: outputs for each input")
    temperature: float = Field(1.0, gt=0.0, description="sample: below 1 is tamer, above wilder")
    top_k: int = Field(0, ge=0, description="sample: only from the likeliest so many words; 0: all")
    top_p: float = Field(1.0, gt=0.0, le=1.0, description="sample: only from this share of the mass")
    seed: int = Field(1, description="sample: the same seed draws the same words")
    max_length: PositiveInt = Field(100, description="longest output, in tokens")
    replace_unknown: bool = Field(False, description="write the source word looked at in place of <unk>")
    batch: PositiveInt = Field(64, description="sentences searched together")
