"""Placements: which part of the source a query may attend to, and how its weights are used.

One module per placement, found by its file name: `local_p.py` defines "local-p" by its constant `PLACEMENT`. A
placement receives the scores, the mask and the normalizer, and returns the weights and the extras of the output (a
center, a sample and its log-probability).
"""
