"""Recommendation from a user's history."""
