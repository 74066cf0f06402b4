"""Replay of encoder-decoders: from contexts to output log-probabilities in plain loops."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from heedful.data.tokenizer import PAD, START
from heedful.trace.plain_math import (
    Rows,
    Vector,
    add,
    affine,
    layer_norm,
    log_softmax,
    max_difference,
    relu,
    sigmoid,
    tanh,
)
from heedful.trace.replay import OutputErrors, Replay
from heedful.trace.schema import SiteRecord

COPY = "copy"  # the site of the pointer
RECURRENT = ("rnn", "gru", "lstm")
EMBEDDINGS = (  # may be one tied matrix, which a model folder stores once
    "decoder.embedding.weight",
    "embedding.weight",
    "decoder.read_out.output.weight",
    "decoder.output.weight",
)


class GenerationReplay(Replay):
    """The equations of every decoder, after its attention."""

    def module_name(self, record: SiteRecord) -> str:
        if record.site == COPY:
            return "copying.attention"
        parts = record.site.split(".")
        if len(parts) == 2:  # cross.N of a convolutional decoder
            return f"decoder.attentions.{parts[1]}"
        return super().module_name(record)

    def values(self, record: SiteRecord, queries: Rows) -> Rows:
        if record.kind == "cross" and self.settings["decoder"]["kind"] == "abs" and record.site != COPY:
            return self._smoothed_source(int(self.settings["decoder"]["smoothing_window"]))
        return super().values(record, queries)

    def _smoothed_source(self, window: int) -> Rows:
        """ABS: the mean of the source vectors within the window on each side (Rush 2015, eq. 7)."""
        smoothed = []
        for i in range(len(self.source)):
            near = self.source[max(0, i - window) : i + window + 1]
            smoothed.append([sum(column) / len(near) for column in zip(*near, strict=True)])
        return smoothed

    def output_errors(self) -> OutputErrors:
        inputs = {name: self.intermediate(name) for name in self.trace.intermediates}
        features_error = output_error = 0.0
        for t in range(len(self.trace.steps)):
            step = {name: rows[t] for name, rows in inputs.items()}
            features = self.features(step, t)
            if "features" in step:  # not recorded for a linear read-out
                features_error = max(features_error, max_difference(features, np.asarray(step["features"])))
            if "context" in step:
                features_error = max(features_error, self._gate_error(step["context"], t))
            output_error = max(output_error, self.logp_error(t, self.log_probabilities(features, step, t)))
        return OutputErrors(features_error, output_error)

    def features(self, step: Mapping[str, Vector], t: int) -> list[float]:
        """Return what the output matrix is applied to."""
        kind = self.settings["decoder"]["kind"]
        if kind == "transformer":
            return self._transformer(step)
        if kind == "conv":
            return self._convolutional(step)
        return self._abs(step, t) if kind == "abs" else self._read_out(step, t)

    def _read_out(self, step: Mapping[str, Vector], t: int) -> list[float]:
        """A recurrent decoder's read-out: `linear`, `tanh`, `affine`, `deep`, `added` or `maxout`."""
        kind = self.settings["decoder"]["read_out"]
        inputs = [*step["state"], *step.get("context", [])]
        if kind == "linear":
            return inputs
        if kind in ("deep", "maxout"):
            inputs += self._embedding(self.trace.steps[t].input)
        projected = self.linear("decoder.read_out.projection", inputs)
        if kind == "affine":
            return projected
        if kind == "maxout":
            return [max(projected[2 * i], projected[2 * i + 1]) for i in range(len(projected) // 2)]
        if kind == "added":
            projected = add(projected, self._embedding(self.trace.steps[t].input))
        return tanh(projected)

    def _gate_error(self, context: Vector, t: int) -> float:
        """Xu 2015, §4.2.1: the read-out's context is the attention's times `sigmoid(w s_{t-1} + b)`."""
        if not self.settings["decoder"].get("gate"):
            return 0.0
        record = self.trace.site()
        assert record.query is not None
        assert record.context is not None
        gate = sigmoid(self.linear("decoder.gate", self.trace.array(record.query)[t].tolist())[0])
        return max_difference(context, gate * self.trace.by_head(record.context)[t].ravel())

    def _transformer(self, step: Mapping[str, Vector]) -> list[float]:
        """The last layer after its cross-attention: residual, feed-forward, final norm (Vaswani 2017)."""
        decoder = self.settings["decoder"]
        layer = f"decoder.layers.{decoder['layers'] - 1}"
        pre_norm = decoder["norm"] == "pre"

        def norm(x: Vector, name: str) -> list[float]:
            weight, bias = self.parameter(f"{name}.weight"), self.parameter(f"{name}.bias")
            return layer_norm(x, weight, bias, decoder["norm_epsilon"])

        x = add(step["residual"], step["context"])
        x = x if pre_norm else norm(x, f"{layer}.cross_residual.norm")
        inner = norm(x, f"{layer}.feed_forward_residual.norm") if pre_norm else x
        inner = relu(self.linear(f"{layer}.feed_forward.0", inner))
        x = add(x, self.linear(f"{layer}.feed_forward.3", inner))
        x = norm(x, "decoder.final_norm" if pre_norm else f"{layer}.feed_forward_residual.norm")
        return self._project_output(x)

    def _convolutional(self, step: Mapping[str, Vector]) -> list[float]:
        """The last layer after its attention; each sum is scaled by `sqrt(0.5)` (Gehring 2017, §3.5)."""
        layer = f"decoder.context_projections.{self.settings['decoder']['layers'] - 1}"
        context = self.linear(layer, step["context"])
        scale = math.sqrt(0.5)
        terms = zip(step["glu"], context, step["residual"], strict=True)
        return self._project_output([((g + c) * scale + r) * scale for g, c, r in terms])

    def _abs(self, step: Mapping[str, Vector], t: int) -> list[float]:
        """A feed-forward language model of the last words, concatenated with the context (Rush 2015, eq. 2)."""
        n_words = int(self.settings["decoder"]["context_words"])
        inputs = [step.input for step in self.trace.steps[: t + 1]]
        recent = ([START] * n_words + inputs)[-n_words:]
        words = [value for token in recent for value in self._embedding(token)]
        return self._project_output([*tanh(self.linear("decoder.hidden", words)), *step["context"]])

    def _project_output(self, x: Vector) -> list[float]:
        """Apply the projection to the width of the embeddings, where the decoder has one."""
        name = "decoder.output_projection"
        return self.linear(name, x) if f"{name}.weight" in self.parameters else list(x)

    def log_probabilities(self, features: Vector, step: Mapping[str, Vector], t: int) -> list[float]:
        """Return the log-probability of every token; padding and start are never generated."""
        recurrent = self.settings["decoder"]["kind"] in RECURRENT
        layer = "decoder.read_out.output" if recurrent else "decoder.output"
        logits = affine(self.parameter(self._stored_name(f"{layer}.weight")), features, self.parameter(f"{layer}.bias"))
        if "copy_gate" in self.trace.intermediates:
            gate = self.trace.array(self.trace.intermediates["copy_gate"])[t]
            logits = self._with_copies(logits, sigmoid(float(gate)), t)
        logits[PAD] = logits[START] = -math.inf
        return log_softmax(logits)

    def _with_copies(self, logits: Vector, share: float, t: int) -> list[float]:
        """Mix the vocabulary's distribution with the pointer's (Gu 2016): `(1 - g) p(w) + g sum_{i: x_i = w} a_i`."""
        p = [math.exp(value) * (1 - share) for value in log_softmax(logits)]
        for weight, token in zip(self.trace.weights(COPY)[t, 0], self.trace.source.tokens, strict=True):
            assert token.id is not None
            p[token.id] += share * float(weight)
        return [math.log(max(value, 1e-38)) for value in p]

    def _embedding(self, token: int | None) -> list[float]:
        assert token is not None
        row: list[float] = self.parameter(self._stored_name("decoder.embedding.weight"))[token]
        return row

    def _stored_name(self, name: str) -> str:
        """Return the name under which the model folder stores a matrix that may be tied to others."""
        if name in self.parameters or name not in EMBEDDINGS:
            return name
        return next((other for other in EMBEDDINGS if other in self.parameters and self._tied(name, other)), name)

    def _tied(self, name: str, other: str) -> bool:
        tie = self.settings["tie_embeddings"]
        return tie == "all" or (tie == "output" and "embedding.weight" not in (name, other))
