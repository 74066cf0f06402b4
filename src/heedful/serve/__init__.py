"""The HTTP server: `heedful serve`. FastAPI over models in memory, with a micro-batcher; needs the extra `serve`."""
