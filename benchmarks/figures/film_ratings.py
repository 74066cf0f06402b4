"""Write the part of MovieTweetings that recommenders are trained on: users and films with at least five ratings.

    python benchmarks/figures/film_ratings.py        # runs:figures/films/ratings.tsv: user, film, rating, time

Users and films are removed in turn until all that are left have five.
"""

from __future__ import annotations

import gzip
from collections import Counter

from run import MODELS

from heedful.data.paths import locate

SOURCE = "data:movietweetings_143k/ratings.tsv.gz"
MIN_RATINGS = 5


def read_ratings() -> list[list[str]]:
    with gzip.open(locate(SOURCE, MODELS), "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def keep_frequent(ratings: list[list[str]]) -> list[list[str]]:
    """Remove users (column 0) and films (column 1) with too few ratings until none is left."""
    while True:
        users, films = (Counter(row[column] for row in ratings) for column in (0, 1))
        kept = [row for row in ratings if users[row[0]] >= MIN_RATINGS and films[row[1]] >= MIN_RATINGS]
        if len(kept) == len(ratings):
            return kept
        ratings = kept


def main() -> None:
    folder = MODELS / "films"
    folder.mkdir(parents=True, exist_ok=True)
    ratings = keep_frequent(read_ratings())
    (folder / "ratings.tsv").write_text("".join("\t".join(row) + "\n" for row in ratings), encoding="utf-8")
    n_users, n_films = (len({row[column] for row in ratings}) for column in (0, 1))
    print(f"{len(ratings):,} ratings, {n_users:,} users, {n_films:,} films")


if __name__ == "__main__":
    main()
