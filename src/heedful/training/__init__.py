"""One readable loop on Lightning Fabric (imported by `loop` only); it is given a task and knows none."""

from heedful.training.types import Loss, Report, Trainable

__all__ = ["Loss", "Report", "Trainable"]
