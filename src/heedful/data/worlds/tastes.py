"""Users with planted tastes, whose next item is explained by a known part of their history.

Every item has one genre. A user has one to three genres for tastes and a few items of each, among them noise:
at most one item of any other genre. The held-out positive is one more item of one of the tastes; the gold
items are the history's items of that same genre. Within a genre items are drawn alike, so that no popularity
and no number tells more than the genre does.

Negatives come from outside the user's tastes. Counting the history's items of a candidate's genre therefore
puts the positive first, alone: a model that looks at the right items can be right for every user.
"""

from collections import Counter
from pathlib import Path
from random import Random
from typing import NamedTuple

from heedful.data.worlds.disk import claim, in_range, write_readme, write_text
from heedful.errors import WorldError

GENRES = {  # the nouns let a reader guess the genre from the title
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
LEADS = (
    "Silent Last Golden Hidden Crimson Lonely Midnight Forgotten Broken Distant Secret Little Burning Winter "
    "Second Lucky Paper Velvet Stolen Endless Northern Hollow Electric Wandering Quiet Restless Silver"
).split()
LEAST = 4  # items a genre needs: three for a history and one to hold out
MOST = 8  # items of one taste in a history
NOISE = 4


class Taste(NamedTuple):
    """A user. `gold` are positions in `history`: its items of the positive's genre."""

    user: int
    history: tuple[int, ...]
    positive: int
    negatives: tuple[int, ...]
    gold: tuple[int, ...]


class Tastes(NamedTuple):
    """The catalogue, by item number, and the users."""

    titles: tuple[str, ...]
    genres: tuple[int, ...]
    users: tuple[Taste, ...]


def tastes(n: int, seed: int = 1, items: int = 300, genres: int = 12, negatives: int = 99) -> Tastes:
    """Draw a catalogue and `n` users; more users of the same seed begin with the same ones.

    >>> world = tastes(1, items=60, genres=6, negatives=3)
    >>> user = world.users[0]
    >>> world.titles[user.positive]
    'The Endless Alibi'
    >>> [world.titles[user.history[place]] for place in user.gold]
    ['The Velvet Alibi', 'The Last Detective', ..., 'The Lonely Alibi']
    """
    in_range("n", n, 1)
    in_range("seed", seed, 0)
    in_range("genres", genres, 2, len(GENRES))
    in_range("items", items, LEAST * genres)
    in_range("negatives", negatives, 1)
    most_tastes = min(3, genres - 1)
    noise = min(NOISE, genres - most_tastes)
    outside = items - most_tastes * -(-items // genres) - noise
    if outside < negatives:
        raise WorldError(
            f"negatives is {negatives}: {items} items in {genres} genres leave {outside} outside a user's "
            "tastes and history; make more items or fewer negatives"
        )
    rng = Random(f"tastes {seed}")
    kinds = [item % genres for item in range(items)]
    rng.shuffle(kinds)  # else an item's number would tell its genre
    shelves = [[item for item in range(items) if kinds[item] == genre] for genre in range(genres)]
    users = tuple(_user(rng, user, shelves, negatives) for user in range(n))
    return Tastes(_titles(Random(f"titles {seed}"), kinds), tuple(kinds), users)


def _user(rng: Random, user: int, shelves: list[list[int]], negatives: int) -> Taste:
    genres = list(range(len(shelves)))
    liked = rng.sample(genres, rng.randint(1, min(3, len(genres) - 1)))
    others = [genre for genre in genres if genre not in liked]
    positive, *history = rng.sample(shelves[liked[0]], _amount(rng, shelves[liked[0]]) + 1)
    gold = set(history)
    for genre in liked[1:]:
        history += rng.sample(shelves[genre], _amount(rng, shelves[genre]))
    for genre in rng.sample(others, rng.randint(0, min(NOISE, len(others)))):
        history.append(rng.choice(shelves[genre]))
    rng.shuffle(history)
    strangers = [item for genre in others for item in shelves[genre] if item not in history]
    return Taste(
        user,
        tuple(history),
        positive,
        tuple(rng.sample(strangers, negatives)),
        tuple(place for place, item in enumerate(history) if item in gold),
    )


def _amount(rng: Random, shelf: list[int]) -> int:
    """How many items of a taste: three at least, more than noise gives any genre."""
    return rng.randint(LEAST - 1, min(MOST, len(shelf) - 1))


def _titles(rng: Random, kinds: list[int]) -> tuple[str, ...]:
    """Names such as "The Silent Sheriff"; a name that is taken gets a sequel's number."""
    nouns = [words.split() for words in GENRES.values()]
    taken: Counter[str] = Counter()
    titles = []
    for genre in kinds:
        name = f"The {rng.choice(LEADS)} {rng.choice(nouns[genre])}"
        taken[name] += 1
        titles.append(name if taken[name] == 1 else f"{name} {taken[name]}")
    return tuple(titles)


ABOUT = """
{users} users with planted tastes, {items} items in {genres} genres. A user's held-out item is of one of the
user's one to three tastes; the history's items of the same genre, and only they, are the reason for it.
Formats as in the leave-one-out MovieLens files of He et al. 2017; ids are 0-based.

- `items.tsv`: a header, then number, number again, title, genre, interactions, 1
- `train.tsv`: `user<TAB>item`, the histories ({pairs} pairs)
- `test.rating`: `user<TAB>item<TAB>5<TAB>time`, the held-out item of every user
- `test.negative`: `(user,item)` and {negatives} items that are neither of the user's history nor tastes
- `gold.tsv`: `user<TAB>held-out item<TAB>gold items of the history`, these separated by spaces
"""


def write(out: Path, n: int, seed: int = 1, *, items: int = 300, genres: int = 12) -> dict[str, int]:
    """Write `n` users; counts are training pairs and held-out items."""
    world = tastes(n, seed, items, genres)
    claim(out, "tastes")
    users = world.users
    seen = Counter(item for user in users for item in (*user.history, user.positive))
    names = list(GENRES)
    write_text(
        out / "items.tsv",
        [
            "ncf_item\tmovielens_id\ttitle\tgenres\tinteractions\torder_certain",
            *(
                f"{item}\t{item}\t{title}\t{names[genre]}\t{seen[item]}\t1"
                for item, (title, genre) in enumerate(zip(world.titles, world.genres, strict=True))
            ),
        ],
    )
    write_text(out / "train.tsv", (f"{user.user}\t{item}" for user in users for item in user.history))
    # The time of a held-out item is its place in the user's sequence: the last.
    write_text(
        out / "test.rating", (f"{user.user}\t{user.positive}\t5\t{len(user.history)}" for user in users)
    )
    write_text(
        out / "test.negative",
        ("\t".join([f"({user.user},{user.positive})", *map(str, user.negatives)]) for user in users),
    )
    write_text(
        out / "gold.tsv",
        (
            f"{user.user}\t{user.positive}\t{' '.join(str(user.history[place]) for place in user.gold)}"
            for user in users
        ),
    )
    pairs = sum(len(user.history) for user in users)
    about = ABOUT.format(users=n, items=items, genres=genres, pairs=pairs, negatives=len(users[0].negatives))
    write_readme(out, "tastes", {"n": n, "seed": seed, "items": items, "genres": genres}, about)
    return {"train": pairs, "test": n}
