"""The colors of figures."""

COLORMAP = "Blues"  # larger weights have more contrast with the page, also in gray and to the color-blind
STRONG, PALE = "#00204d", "#a8a8a8"  # of emphasized elements, and of all others
GOLD = "#d55e00"  # gold links and gold words
INK, NOTE = "#1b1b1b", "#555555"  # of labels, of side notes
BAR, POSITIVE, NEGATIVE = "#4878a8", "#5a9367", "#b5651d"  # of bars: a quantity, and one with a sign
