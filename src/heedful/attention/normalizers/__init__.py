"""Normalizers: from scores and a mask to weights.

One module per normalizer, found by its file name: `smoothed_softmax.py` defines "smoothed-softmax" by its constant
`NORMALIZER`. All agree on three things: a key that `keep` forbids gets exactly 0; a query without any allowed key gets
a row of zeros; half precision is computed in float32 and returned in its own dtype.
"""
