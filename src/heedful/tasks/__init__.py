"""One file per task joins reader, model, decoder and metric."""
