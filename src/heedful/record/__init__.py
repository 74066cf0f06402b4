"""What is written down about a look: sites and traces. Numpy and pydantic only, so that it loads at once."""

from heedful.record.site import Kind, Mass, Site

__all__ = ["Kind", "Mass", "Site"]
