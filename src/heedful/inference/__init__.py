"""Faster forms of trained models: fused engines and int8 weights."""
