"""From files and generated worlds to batches; a tensor always travels with its mask."""
