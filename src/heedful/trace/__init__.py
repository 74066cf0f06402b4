"""From a model and what it wrote to a trace, and back: capture, check, replay, what-if."""

from heedful.trace.capture import Captured, capture
from heedful.trace.check import check
from heedful.trace.replay import replay
from heedful.trace.whatif import edit_of

__all__ = ["Captured", "capture", "check", "edit_of", "replay"]
