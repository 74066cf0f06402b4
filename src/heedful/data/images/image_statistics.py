"""Statistics of the training images of a captioner, by which an image that is unlike them is recognized.

They are a mean, a few principal components of the pooled features, and one threshold; no image is stored.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors
from safetensors.numpy import load, save

from heedful.data.asset_files import asset_file
from heedful.errors import ModelError

FILE_NAME = "image.statistics.safetensors"
N_COMPONENTS = 64
QUANTILE = 0.93  # of the validation images are below the threshold
N_TRAIN, N_VALID = 2_000, 1_000  # images used at most
MIN_IMAGES = 10  # of validation data; fewer give no threshold
MAX_BYTES = 2 * (N_COMPONENTS + 2) * 65_536 + 10_000  # half precision, widest features, header
Floats = npt.NDArray[np.float64]


class ImageStatistics(NamedTuple):
    """The subspace of the pooled features of training images, and the threshold of the distance from it."""

    mean: Floats  # (width,)
    components: Floats  # (component, width)
    threshold: float

    @classmethod
    def fit(cls, train: Floats, valid: Floats) -> ImageStatistics | None:
        """Return the principal components of pooled features (image, width); None if there are too few images."""
        if min(len(train), len(valid)) < MIN_IMAGES:
            return None
        features = _normalize(train)
        mean = features.mean(axis=0)
        centered = features - mean
        n_components = min(N_COMPONENTS, len(train) // 4, train.shape[1] // 4)
        if n_components < 1:
            return None
        if len(train) < train.shape[1]:  # eigenvectors of the smaller of both products
            values, vectors = np.linalg.eigh(centered @ centered.T)
            components = (centered.T @ vectors[:, -n_components:]).T
        else:
            values, vectors = np.linalg.eigh(centered.T @ centered)
            components = vectors[:, -n_components:].T
        components = components[values[-n_components:] > 1e-9]
        components /= np.linalg.norm(components, axis=1, keepdims=True)
        if not len(components):
            return None
        rounded = cls(_round(mean), _round(components), 0.0)  # as it will be loaded
        return rounded._replace(threshold=float(np.quantile(rounded.scores(valid), QUANTILE)))

    def scores(self, pooled: Floats) -> Floats:
        """Return the squared distance of normalized features (image, width) from the subspace; higher is stranger."""
        centered = _normalize(pooled) - self.mean
        distances: Floats = np.sum((centered - (centered @ self.components.T) @ self.components) ** 2, axis=1)
        return distances

    def save(self, folder: Path) -> None:
        """Write the file."""
        arrays = {"mean": self.mean.astype(np.float16), "components": self.components.astype(np.float16)}
        data = save({**arrays, "threshold": np.array([self.threshold], dtype=np.float64)})
        (folder / FILE_NAME).write_bytes(data)

    @classmethod
    def load(cls, folder: Path, width: int) -> ImageStatistics | None:
        """Read what `save` wrote; None if the folder has no such file, as those of earlier versions."""
        path = asset_file(folder, FILE_NAME)
        if not path.is_file():
            return None
        try:
            return cls._parse(path, width)
        except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError):
            raise ModelError(f"{path}: damaged: not the statistics of features of width {width:,}") from None

    @classmethod
    def _parse(cls, path: Path, width: int) -> ImageStatistics:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError("too large")
        arrays = load(data)
        mean, components, threshold = arrays["mean"], arrays["components"], arrays["threshold"]
        rows = components.shape[0] if components.ndim == 2 else 0
        if mean.shape != (width,) or not 1 <= rows <= N_COMPONENTS or components.shape != (rows, width):
            raise ValueError("wrong shapes")
        if threshold.shape != (1,) or {mean.dtype, components.dtype} != {np.dtype(np.float16)}:
            raise ValueError("wrong types")
        if not all(np.isfinite(array).all() and (np.abs(array) <= 10).all() for array in arrays.values()):
            raise ValueError("impossible numbers")
        return cls(mean.astype(np.float64), components.astype(np.float64), float(threshold[0]))


def _normalize(pooled: Floats) -> Floats:
    normalized: Floats = pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)
    return normalized


def _round(array: Floats) -> Floats:
    return array.astype(np.float16).astype(np.float64)
