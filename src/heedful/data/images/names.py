"""The names of the built-in backbones, in a module that does not import torch."""

from __future__ import annotations

from collections.abc import Mapping

BACKBONES: Mapping[str, int] = {f"efficientnet-lite{n}": n for n in range(5)}  # name -> variant of EfficientNet-Lite
