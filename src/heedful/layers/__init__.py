"""Encoders, decoders and cells built from attention and torch."""
