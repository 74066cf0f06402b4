"""Traces: capture, check, replay and edit what a model attended to. `trace.schema` holds the record types."""
