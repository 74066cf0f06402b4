"""The tastes world: users who like some genres, and whose next item is explained by a known part of their history.

Every item has one genre. A user likes one to three genres, the user's tastes. The history has at least three items of
each of them and, as noise, at most one item of any other genre. The held-out positive is another item of one of the
tastes; the gold items are those of the history with the same genre. Within a genre items are drawn uniformly, so
neither the popularity of an item nor its number says more than its genre.

Negatives are items of other genres. So the number of items in the history with the genre of a candidate ranks the
positive first: a model that attends to the right items can be right for every user.
"""

import math
from collections import Counter
from pathlib import Path
from random import Random
from typing import NamedTuple

from heedful.data.worlds.disk import check_folder, check_int, write_lines, write_readme
from heedful.errors import WorldError

GENRES = {  # genre -> nouns for titles
    "Western": "Sheriff Saloon Mustang Canyon Outlaw Stagecoach",
    "Space": "Galaxy Starship Comet Moonbase Nebula Orbit",
    "Mystery": "Detective Alibi Footprint Fingerprint Suspect Clue",
    "Romance": "Kiss Wedding Sweetheart Valentine Honeymoon Bouquet",
    "Horror": "Vampire Crypt Ghost Werewolf Graveyard Scream",
    "Comedy": "Clown Prank Joker Giggle Pratfall Punchline",
    "War": "Battalion Trench Admiral Fortress Siege Platoon",
    "Music": "Piano Melody Trumpet Chorus Guitar Ballad",
    "Sports": "Goalkeeper Marathon Boxer Stadium Champion Sprinter",
    "Fantasy": "Dragon Wizard Elf Unicorn Spellbook Goblin",
    "Crime": "Heist Gangster Forger Smuggler Ransom Getaway",
    "Nature": "Glacier Penguin Rainforest Otter Savanna Coral",
    "Cooking": "Chef Recipe Bakery Kitchen Soufflé Banquet",
    "Sea": "Lighthouse Sailor Schooner Harbour Anchor Tide",
    "Spies": "Agent Cipher Defector Dossier Embassy Mole",
    "History": "Pharaoh Gladiator Emperor Viking Pyramid Scroll",
    "School": "Classroom Teacher Homework Blackboard Pupil Recess",
    "Circus": "Acrobat Trapeze Juggler Ringmaster Tightrope Elephant",
    "Robots": "Android Circuit Automaton Cyborg Gearwheel Mainframe",
    "Racing": "Motorcar Racetrack Gearbox Pitlane Driver Pitstop",
}
TITLE_ADJECTIVES = (
    "Silent Last Golden Hidden Crimson Lonely Midnight Forgotten Broken Distant Secret Little Burning Winter "
    "Second Lucky Paper Velvet Stolen Endless Northern Hollow Electric Wandering Quiet Restless Silver"
).split()
MIN_GENRE_ITEMS = 4  # three for a history and one to hold out
MAX_TASTE_ITEMS = 8  # items of one taste in a history
MAX_NOISE_ITEMS = 4  # items of other genres in a history
MAX_TASTES = 3  # of a user


class TasteUser(NamedTuple):
    """A user; `gold` are the positions of the items in `history` that have the genre of the positive."""

    user: int
    history: tuple[int, ...]
    positive: int
    negatives: tuple[int, ...]
    gold: tuple[int, ...]


class Tastes(NamedTuple):
    """The catalog, by item number, and the users."""

    titles: tuple[str, ...]
    genres: tuple[int, ...]
    users: tuple[TasteUser, ...]


def draw_tastes(n: int, seed: int = 1, items: int = 300, genres: int = 12, negatives: int = 99) -> Tastes:
    """Draw a catalog and `n` users; with the same seed, a larger `n` only adds users at the end.

    >>> world = draw_tastes(1, items=60, genres=6, negatives=3)
    >>> user = world.users[0]
    >>> world.titles[user.positive]
    'The Endless Alibi'
    >>> [world.titles[user.history[position]] for position in user.gold]
    ['The Velvet Alibi', 'The Last Detective', ..., 'The Lonely Alibi']
    """
    check_int("n", n, 1)
    check_int("seed", seed, 0)
    check_int("genres", genres, 2, len(GENRES))
    check_int("items", items, MIN_GENRE_ITEMS * genres)
    check_int("negatives", negatives, 1)
    max_tastes = min(MAX_TASTES, genres - 1)
    max_noise = min(MAX_NOISE_ITEMS, genres - max_tastes)
    n_candidates = items - max_tastes * math.ceil(items / genres) - max_noise
    if n_candidates < negatives:
        raise WorldError(
            f"negatives is {negatives}: {items} items in {genres} genres leave {n_candidates} outside a user's "
            "tastes and history; raise items or lower negatives"
        )
    rng = Random(f"tastes {seed}")
    genre_of = [item % genres for item in range(items)]
    rng.shuffle(genre_of)  # so that the genre does not follow from the number of an item
    by_genre = [[item for item in range(items) if genre_of[item] == genre] for genre in range(genres)]
    users = tuple(_draw_user(rng, user, by_genre, negatives) for user in range(n))
    return Tastes(_draw_titles(Random(f"titles {seed}"), genre_of), tuple(genre_of), users)


def _draw_user(rng: Random, user: int, by_genre: list[list[int]], negatives: int) -> TasteUser:
    genres = list(range(len(by_genre)))
    liked = rng.sample(genres, rng.randint(1, min(MAX_TASTES, len(genres) - 1)))
    others = [genre for genre in genres if genre not in liked]
    positive, *history = rng.sample(by_genre[liked[0]], _draw_taste_size(rng, by_genre[liked[0]]) + 1)
    gold = set(history)
    for genre in liked[1:]:
        history += rng.sample(by_genre[genre], _draw_taste_size(rng, by_genre[genre]))
    for genre in rng.sample(others, rng.randint(0, min(MAX_NOISE_ITEMS, len(others)))):
        history.append(rng.choice(by_genre[genre]))
    rng.shuffle(history)
    candidates = [item for genre in others for item in by_genre[genre] if item not in history]
    return TasteUser(
        user,
        tuple(history),
        positive,
        tuple(rng.sample(candidates, negatives)),
        tuple(position for position, item in enumerate(history) if item in gold),
    )


def _draw_taste_size(rng: Random, genre_items: list[int]) -> int:
    """Draw the number of items of a taste: at least three, so that no genre of the noise has as many."""
    return rng.randint(MIN_GENRE_ITEMS - 1, min(MAX_TASTE_ITEMS, len(genre_items) - 1))


def _draw_titles(rng: Random, genre_of: list[int]) -> tuple[str, ...]:
    """Return titles such as "The Silent Sheriff"; repeated ones are numbered, as in "The Silent Sheriff 2"."""
    nouns = [words.split() for words in GENRES.values()]
    uses: Counter[str] = Counter()
    titles = []
    for genre in genre_of:
        name = f"The {rng.choice(TITLE_ADJECTIVES)} {rng.choice(nouns[genre])}"
        uses[name] += 1
        titles.append(name if uses[name] == 1 else f"{name} {uses[name]}")
    return tuple(titles)


ABOUT = """
{users} users with planted tastes, {items} items in {genres} genres. A user's held-out item is of one of the
user's one to three tastes; the history's items of the same genre, and only they, are the reason for it.
Formats as in the leave-one-out MovieLens files of He et al. 2017; ids are 0-based.

- `items.tsv`: a header, then the number, the number again, title, genre, interactions, 1
- `train.tsv`: `user<TAB>item`, the histories ({pairs} pairs)
- `test.rating`: `user<TAB>item<TAB>5<TAB>time`, the held-out item of every user
- `test.negative`: `(user,item)` and {negatives} items that are neither of the user's history nor tastes
- `gold.tsv`: `user<TAB>held-out item<TAB>gold items of the history`, these separated by spaces
"""


def write(out: Path, n: int, seed: int = 1, *, items: int = 300, genres: int = 12) -> dict[str, int]:
    """Write `n` users; return the counts of training pairs and held-out items."""
    world = draw_tastes(n, seed, items, genres)
    check_folder(out, "tastes")
    users = world.users
    interactions = Counter(item for user in users for item in (*user.history, user.positive))
    names = list(GENRES)
    write_lines(
        out / "items.tsv",
        [
            "ncf_item\tmovielens_id\ttitle\tgenres\tinteractions\torder_certain",
            *(
                f"{item}\t{item}\t{title}\t{names[genre]}\t{interactions[item]}\t1"
                for item, (title, genre) in enumerate(zip(world.titles, world.genres, strict=True))
            ),
        ],
    )
    write_lines(out / "train.tsv", (f"{user.user}\t{item}" for user in users for item in user.history))
    # The time of a held-out item is its position in the user's sequence: the last.
    write_lines(out / "test.rating", (f"{user.user}\t{user.positive}\t5\t{len(user.history)}" for user in users))
    write_lines(
        out / "test.negative",
        ("\t".join([f"({user.user},{user.positive})", *map(str, user.negatives)]) for user in users),
    )
    write_lines(
        out / "gold.tsv",
        (
            f"{user.user}\t{user.positive}\t{' '.join(str(user.history[position]) for position in user.gold)}"
            for user in users
        ),
    )
    pairs = sum(len(user.history) for user in users)
    about = ABOUT.format(users=n, items=items, genres=genres, pairs=pairs, negatives=len(users[0].negatives))
    write_readme(out, "tastes", {"n": n, "seed": seed, "items": items, "genres": genres}, about)
    return {"train": pairs, "test": n}
