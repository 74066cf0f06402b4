"""Traces of captioners."""

from __future__ import annotations

from heedful.config import DecodingOptions
from heedful.data.images.features import extract_features
from heedful.data.images.files import ImageSource
from heedful.errors import TraceError
from heedful.tasks.base import TraceRequest
from heedful.tasks.caption.assets import LoadedCaptioner, all_regions
from heedful.tasks.caption.predict import load_backbone
from heedful.tasks.generation_trace import EncodedSource, trace_source
from heedful.trace.schema import Side, SourceImage, Token, Trace
from heedful.viz.image import pack_image


def trace_image(loaded: LoadedCaptioner, image: ImageSource, request: TraceRequest, decoding: DecodingOptions) -> Trace:
    """Generate a caption for an image (or force the given one), and record every step."""
    if any(edit.op == "source" for edit in request.edits):
        raise TraceError("source: an image has no words to replace; use onehot, zero or uniform")
    backbone, pixels = load_backbone(loaded), image.open()
    side = _region_side(image.name, pack_image(pixels, backbone.grid))
    source = EncodedSource(all_regions(extract_features(backbone, [pixels])), side)
    return trace_source(loaded, source, request, decoding)


def _region_side(name: str, photo: SourceImage) -> Side:
    """Return the regions as tokens, named by row and column from 1."""
    rows, columns = photo.grid
    names = [f"r{row + 1}c{column + 1}" for row in range(rows) for column in range(columns)]
    tokens = [Token(text=text, word=index) for index, text in enumerate(names)]
    return Side(text=name, tokens=tokens, words=names, image=photo)
