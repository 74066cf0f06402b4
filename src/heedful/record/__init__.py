"""What is written down about a look: sites and traces. Numpy and pydantic only, so that it loads at once."""

from heedful.record.site import Kind, Mass, Site
from heedful.record.trace import SCHEMA, Looks, Step, Token, Trace

__all__ = ["SCHEMA", "Kind", "Looks", "Mass", "Site", "Step", "Token", "Trace"]
