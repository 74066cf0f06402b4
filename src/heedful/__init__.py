"""heedful: train, use, see and measure models that decide where to look."""
