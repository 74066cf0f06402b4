"""The assets of a recommender: its catalog of users, items and histories."""

from __future__ import annotations

from heedful.data.catalog import Catalog
from heedful.models import Popularity, Recommender
from heedful.tasks.base import LoadedModel

LoadedRecommender = LoadedModel[Catalog, Recommender | Popularity]
