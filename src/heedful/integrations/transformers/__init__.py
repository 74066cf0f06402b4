"""Models of Hugging Face transformers: every attention site recorded, edited, measured and shown like our own.

`implementation.py` is the seam: an attention function and a mask function that transformers calls while something is
recorded. `sites.py` names the sites, `seq2seq.py`, `encoder.py` and `decoder.py` are models in terms of decoding,
traces and probes.
"""
