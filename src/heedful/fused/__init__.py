"""Training operations that run many steps as one autograd function, with their own backward pass."""
