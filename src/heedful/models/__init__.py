"""One file per system; `build` is the only place where a config becomes a model."""

from heedful.layers.state import State, Stepped
from heedful.models.build import build, build_classifier, build_reader, build_recommender
from heedful.models.classifier import Classifier
from heedful.models.engine import Engine
from heedful.models.int8 import to_int8
from heedful.models.quickest import quickest as quickest
from heedful.models.reader import Reader
from heedful.models.recommender import Judge, Judged, Popularity, Recommender
from heedful.models.seq2seq import Seq2Seq
from heedful.models.writer import Next, Writer

__all__ = [
    "Classifier",
    "Engine",
    "Judge",
    "Judged",
    "Next",
    "Popularity",
    "Reader",
    "Recommender",
    "Seq2Seq",
    "State",
    "Stepped",
    "Writer",
    "build",
    "build_classifier",
    "build_reader",
    "build_recommender",
    "quickest",
    "to_int8",
]
