"""Normalizers turn scores and a mask into weights.

One module per normalizer, found by its file name: `smoothed_softmax.py` defines "smoothed-softmax" by its constant
`NORMALIZER`. All of them give exactly 0 to a key where `keep` is False, and a row of zeros to a query without any
allowed key; they compute half precision in float32 and return it in its own dtype.
"""
