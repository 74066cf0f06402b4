"""The photo view: an image, bright where a word attends to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.errors import TraceError
from heedful.trace.schema import Trace
from heedful.viz.base import View, ViewOptions
from heedful.viz.canvas import subplots
from heedful.viz.image import overlay_weights, unpack_image
from heedful.viz.limits import MAX_PANELS, check_count, figure_label, figure_size
from heedful.viz.page import options_link, page_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS_PER_ROW = 5


def photo_figure(trace: Trace, options: ViewOptions) -> Figure:
    """Draw the image, then one panel per word with the weights of that word."""
    packed = trace.source.image
    if packed is None:
        raise TraceError("photo: the input of this trace is not an image")
    image = unpack_image(packed)
    table = trace.table(options.site, options.head, words=True, specials=False)
    if table.weights.shape[1] != len(trace.source.tokens) or trace.site(options.site).key_side != "source":
        raise TraceError(f"photo: {trace.site(options.site).site} does not attend to the regions of the image")
    n_panels = 1 + len(table.rows)
    check_count(n_panels, MAX_PANELS, "panels")
    n_columns = min(PANELS_PER_ROW, n_panels)
    n_rows = -(-n_panels // n_columns)
    height = image.height / image.width
    size = figure_size(2.5 * n_columns, (2.5 * height + 0.32) * n_rows + 0.5)
    figure, grid = subplots(n_rows, n_columns, figsize=size, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    grid.flat[0].imshow(image)
    grid.flat[0].set_title("input image", color="0.4")
    for axes, word, row in zip(list(grid.flat)[1:], table.rows, table.weights, strict=False):
        axes.imshow(overlay_weights(image, row.reshape(packed.grid), options.smooth))
        axes.set_title(figure_label(word))
    upsampling = "weights upsampled smoothly" if options.smooth else "weights as the raw grid"
    figure.suptitle(f"“{figure_label(trace.target.text)}”   ({upsampling})", y=0.995)
    figure.tight_layout()
    return figure


VIEW = View(
    "an image, bright where each word attends",
    figure=photo_figure,
    page=lambda trace, options: page_html(trace, options_link("photo", trace, options)),
    suits=lambda trace, _: trace.source.image is not None,
)
