"""The training loop on Lightning Fabric; it trains any task that implements `Trainable`.

Only `loop`, `devices` and `checkpoint_manager` import Fabric, which takes over a second to load: importing this
package, as every task does, stays fast.
"""

from heedful.errors import TrainingStopped
from heedful.training.types import (
    Callbacks,
    Loss,
    Report,
    Sample,
    Trainable,
    TrainingResult,
    Validation,
    is_main_process,
)

__all__ = [
    "Callbacks",
    "Loss",
    "Report",
    "Sample",
    "Trainable",
    "TrainingResult",
    "TrainingStopped",
    "Validation",
    "is_main_process",
]
