"""One readable loop on Lightning Fabric (imported by `loop` only); it is given a task and knows none."""

from heedful.training.types import (
    Loss,
    Outcome,
    Report,
    Sample,
    Trainable,
    TrainingStopped,
    Validation,
    leads,
)

__all__ = ["Loss", "Outcome", "Report", "Sample", "Trainable", "TrainingStopped", "Validation", "leads"]
