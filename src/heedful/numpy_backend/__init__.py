"""GRU encoder-decoders in NumPy, greedy and beam search: a command need not import torch for a few lines."""
