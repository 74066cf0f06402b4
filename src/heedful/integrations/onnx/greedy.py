"""Run an exported folder with NumPy and onnxruntime alone: an example to copy, and what the export is checked with.

folder = OnnxModel("exported")
outputs = folder.generate(source_ids)   # a translator or a captioner
logits, weights = folder.classify(source_ids)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime

Arrays = dict[str, np.ndarray]


class Output(NamedTuple):
    """A generated row: its tokens without the end token, the log-probability of each step, and weights by site.

    Weights are a list of (head, key), one per step, in the encoder's sites one per position of the source.
    """

    tokens: list[int]
    log_probabilities: list[float]
    weights: dict[str, list[np.ndarray]]


class OnnxModel:
    """An exported folder."""

    def __init__(self, folder: str | Path, threads: int = 1) -> None:
        self.manifest = json.loads((Path(folder) / "onnx.json").read_text(encoding="utf-8"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.sessions = {
            name: onnxruntime.InferenceSession(Path(folder) / file, options, providers=["CPUExecutionProvider"])
            for name, file in self.manifest["graphs"].items()
        }

    def run(self, graph: str, inputs: Mapping[str, Any]) -> Arrays:
        """Run a graph; return its outputs by name."""
        session = self.sessions[graph]
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, dict(inputs)), strict=True))

    def classify(self, source: np.ndarray) -> tuple[np.ndarray, Arrays]:
        """Return logits (row, label), and weights (row, query, head, key) by site; `source` is padded with 0."""
        outputs = self.run("model", {"source": source})
        return outputs["logits"], {n.removeprefix("weights."): x for n, x in outputs.items() if n != "logits"}

    def generate(self, source: np.ndarray, max_length: int = 100) -> list[Output]:
        """Return the greedy output of every row; `source` are ids padded with 0, or the features of images."""
        encoded = self.run("encoder", {"source": source})
        memory = {name: x for name, x in encoded.items() if name.startswith("memory.")}
        state = {name: x for name, x in encoded.items() if name.startswith("state.")}
        rows = [
            Output(
                [], [], {n.removeprefix("weights."): list(x[i]) for n, x in encoded.items() if n.startswith("weights.")}
            )
            for i in range(len(source))
        ]
        token, finished = np.full(len(rows), self.manifest["start"]), np.zeros(len(rows), dtype=bool)
        inputs = {graph_input.name for graph_input in self.sessions["decoder"].get_inputs()}
        for step in range(max_length):
            everything = {"token": token, "position": np.array(step), **memory, **state}
            outputs = self.run("decoder", {name: x for name, x in everything.items() if name in inputs})
            state = {f"state.{n.removeprefix('next.')}": x for n, x in outputs.items() if n.startswith("next.")}
            token = outputs["log_probabilities"].argmax(axis=-1)
            for i in np.flatnonzero(~finished):
                rows[i].log_probabilities.append(float(outputs["log_probabilities"][i, token[i]]))
                if token[i] != self.manifest["end"]:
                    rows[i].tokens.append(int(token[i]))
                for name, weights in outputs.items():
                    if name.startswith("weights."):
                        rows[i].weights.setdefault(name.removeprefix("weights."), []).append(weights[i])
            finished |= token == self.manifest["end"]
            if finished.all():
                break
        return rows
