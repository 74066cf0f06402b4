"""Captions of scenes, with gold regions for every content word.

A phrase ("two small red stars") refers to *all* objects that match it, and its number word counts them; so every
phrase is true and its regions are exact. A relation ("left of") holds between complete boxes: all of one side end
before any of the other begins. A place ("in the top left corner", "on the left", "in the middle") follows from the
thirds of the image that contain the centers.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from heedful.data.worlds.scenes.drawing import COLORS, SHAPES, SIZES, Box, SceneObject, gaps

Boxes = tuple[Box, ...]
GroundedWords = list[tuple[str, Boxes]]  # words with the boxes they refer to

NUMBERS = ("no", "a", "two", "three", "four")
RELATIONS = {
    "left": ("left of", "to the left of"),
    "right": ("right of", "to the right of"),
    "above": ("above",),
    "below": ("below", "under"),
}
DETAIL_WEIGHTS = {"full": 4, "color": 4, "size": 1, "shape": 1, "only color": 1}  # of what a phrase mentions
NOUNS = {noun: shape for shape in (*SHAPES, "shape") for noun in (shape, f"{shape}s", f"{shape}es")}
CONTENT_WORDS = frozenset((*SIZES, *COLORS, *NOUNS, *NUMBERS[2:]))  # number, size, color, shape
FUNCTION_WORDS = frozenset("a an and at here in is are of on the there to".split())
MAX_REDRAWS = 50  # of a caption that repeats another of the same scene

ORDERS: dict[str, Callable[[Random, Sequence[SceneObject]], SceneObject]] = {  # which object comes first
    "any": Random.choice,
    "left": lambda _, objects: min(objects, key=lambda item: (item.box.x, item.box.y)),
}


def _ground(text: str, boxes: Boxes) -> GroundedWords:
    return [(word, () if word in FUNCTION_WORDS else boxes) for word in text.split()]


class _Phrase(NamedTuple):
    words: GroundedWords
    boxes: Boxes

    @property
    def hull(self) -> Box:
        left, top = min(box.x for box in self.boxes), min(box.y for box in self.boxes)
        right, bottom = max(box.x + box.w for box in self.boxes), max(box.y + box.h for box in self.boxes)
        return Box(left, top, right - left, bottom - top)

    @property
    def verb(self) -> str:
        return "is" if len(self.boxes) == 1 else "are"


def _phrase(rng: Random, objects: Sequence[SceneObject], chosen: SceneObject) -> _Phrase:
    """Return a noun phrase that matches `chosen`, with the boxes of every object it matches."""
    detail = rng.choices(list(DETAIL_WEIGHTS), list(DETAIL_WEIGHTS.values()))[0]
    size = chosen.size if detail in ("full", "size") else None
    color = chosen.color if detail in ("full", "color", "only color") else None
    shape = chosen.shape if detail != "only color" else None
    boxes = _matching_boxes(objects, size, color, shape)
    noun = shape or "shape"
    if len(boxes) > 1:
        noun += "es" if noun == "cross" else "s"
    words = " ".join(filter(None, (size, color, noun)))
    number = "an" if len(boxes) == 1 and words.startswith("o") else NUMBERS[len(boxes)]
    return _Phrase(_ground(f"{number} {words}", boxes), boxes)


def _matching_boxes(objects: Sequence[SceneObject], size: str | None, color: str | None, shape: str | None) -> Boxes:
    return tuple(
        item.box
        for item in objects
        if size in (None, item.size) and color in (None, item.color) and shape in (None, item.shape)
    )


def _relation(one: _Phrase, other: _Phrase) -> str | None:
    """Return the side of `other` on which all of `one` lies, where the gap is widest; None if they overlap."""
    a, b = one.hull, other.hull
    across, down = gaps(a, b)
    if max(across, down) < 0:
        return None
    if across >= down:
        return "left" if a.x < b.x else "right"
    return "above" if a.y < b.y else "below"


def _place(phrase: _Phrase, size: int) -> str | None:
    """Return the third of the image in which all boxes lie; None if they lie in different ones."""
    cells = {
        (min(2, 3 * (2 * box.y + box.h) // (2 * size)), min(2, 3 * (2 * box.x + box.w) // (2 * size)))
        for box in phrase.boxes
    }
    if len(cells) > 1:
        return None
    row, column = cells.pop()
    vertical, horizontal = ("top", "", "bottom")[row], ("left", "", "right")[column]
    if vertical and horizontal:
        return f"in the {vertical} {horizontal} corner"
    return f"at the {vertical}" if vertical else f"on the {horizontal}" if horizontal else "in the middle"


def _caption(rng: Random, objects: Sequence[SceneObject], size: int, order: str) -> GroundedWords:
    """Return one true sentence, or part of a sentence, about some of the objects."""
    first = ORDERS[order]
    one = _phrase(rng, objects, first(rng, objects))
    rest = [item for item in objects if item.box not in one.boxes]
    other = _phrase(rng, objects, first(rng, rest)) if rest else None
    if other and set(one.boxes) & set(other.boxes):
        other = None  # "a red star left of two stars" would mention the red one twice
    relation, place = other and _relation(one, other), _place(one, size)
    if other and relation and rng.random() < 0.75:
        text = f"{rng.choice(('', one.verb))} {rng.choice(RELATIONS[relation])}"
        return [*one.words, *_ground(text, one.boxes + other.boxes), *other.words]
    if other and rng.random() < 0.7:
        words = [*one.words, *_ground("and", ()), *other.words]
    elif place and rng.random() < 0.6:
        words = [*one.words, *_ground(place, one.boxes)]
    else:
        words = one.words
    return [*_ground(rng.choice(("", "", f"there {one.verb}", f"here {one.verb}")), ()), *words]


def draw_captions(
    rng: Random, objects: Sequence[SceneObject], size: int, count: int, order: str
) -> list[GroundedWords]:
    """Draw captions of a scene, different ones as long as any are left."""
    captions: list[GroundedWords] = []
    for _ in range(count):
        caption = _caption(rng, objects, size, order)
        for _ in range(MAX_REDRAWS):
            if caption not in captions:
                break
            caption = _caption(rng, objects, size, order)
        captions.append(caption)
    return captions


class _PhraseMatch(NamedTuple):
    """A noun phrase of a caption, and the boxes of the objects that match it."""

    start: int
    end: int
    boxes: Boxes


def ground_caption(words: Sequence[str], objects: Sequence[SceneObject]) -> tuple[Boxes, ...]:
    """Return for every word of any caption of a scene the boxes it refers to; none where it is wrong.

    >>> from heedful.data.worlds.scenes import draw_scene
    >>> example = draw_scene(0)
    >>> ground_caption(example.captions[1], example.objects) == example.regions[1]
    True
    """
    matches = list(_match_phrases(words, objects))
    regions: list[Boxes] = [()] * len(words)
    for match in matches:
        regions[match.start : match.end] = [match.boxes] * (match.end - match.start)
    for at, word in enumerate(words):
        if word in FUNCTION_WORDS:
            regions[at] = ()
        elif not any(match.start <= at < match.end for match in matches):
            before = [match for match in matches if match.end <= at][-1:]
            after = [match for match in matches if match.start > at][:1]
            regions[at] = tuple(box for match in before + after for box in match.boxes)
    return tuple(regions)


def _match_phrases(words: Sequence[str], objects: Sequence[SceneObject]) -> Iterator[_PhraseMatch]:
    """Yield every sequence of a number, an optional size, an optional color, and a noun."""
    at = 0
    while at < len(words):
        start = at
        at += 1
        if words[start] not in (*NUMBERS, "an"):
            continue
        size = words[at] if at < len(words) and words[at] in SIZES else None
        at += size is not None
        color = words[at] if at < len(words) and words[at] in COLORS else None
        at += color is not None
        if at < len(words) and words[at] in NOUNS:
            shape = NOUNS[words[at]]
            at += 1
            yield _PhraseMatch(start, at, _matching_boxes(objects, size, color, None if shape == "shape" else shape))
