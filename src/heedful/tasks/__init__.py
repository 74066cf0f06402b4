"""The tasks: each package connects data, model, decoding and metrics."""
