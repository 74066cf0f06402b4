"""Scores: how well a query matches a key, before mask and normalizer.

One module per score, found by its file name: `scaled_dot.py` defines the score "scaled-dot" by its constant `SCORE`.
Nothing else lists them.
"""
