"""Joins the alignments of both directions (Och & Ney 2003; Koehn, Och & Marcu 2003)."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Literal, get_args

from heedful.trace.schema.links import Link

Symmetrization = Literal["grow-diag-final-and", "grow-diag", "intersection", "union", "forward", "reverse"]
SYMMETRIZATIONS: tuple[Symmetrization, ...] = get_args(Symmetrization)
NEIGHBORS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))  # in the order of Koehn 2003


def symmetrize(forward: Iterable[Link], reverse: Iterable[Link], method: Symmetrization) -> set[Link]:
    """Return the links (source, target) of both directions joined.

    `forward` links each target word to one source word at most, `reverse` each source word to one target word.

    >>> forward, reverse = {(0, 0), (1, 1), (1, 2)}, {(0, 0), (1, 1), (2, 2)}
    >>> sorted(symmetrize(forward, reverse, "intersection")), sorted(symmetrize(forward, reverse, "union"))
    ([(0, 0), (1, 1)], [(0, 0), (1, 1), (1, 2), (2, 2)])
    >>> sorted(symmetrize(forward, reverse, "grow-diag-final-and"))
    [(0, 0), (1, 1), (1, 2), (2, 2)]
    """
    forward, reverse = set(forward), set(reverse)
    match method:
        case "forward":
            return forward
        case "reverse":
            return reverse
        case "union":
            return forward | reverse
        case "intersection":
            return forward & reverse
    links = _grow_diagonally(forward & reverse, forward | reverse)
    if method == "grow-diag-final-and":
        for direction in (forward, reverse):
            _add_unaligned(links, direction)
    return links


def _grow_diagonally(links: set[Link], union: set[Link]) -> set[Link]:
    """Add links of the union beside those of the intersection if they align a word that is not aligned yet.

    The published algorithm scans all links again and again, in order. A word once aligned stays aligned, so the
    neighbors of a link can only lose their right to be added: it is enough to visit each link once, in the order in
    which the scans reach it. A link that is added behind the scan's position waits for the next scan.
    """
    grown = set(links)
    sources, targets = {link[0] for link in grown}, {link[1] for link in grown}
    this_scan, next_scan = list(grown), list[Link]()
    heapify(this_scan)
    while this_scan:
        link = heappop(this_scan)
        for down, right in NEIGHBORS:
            other = (link[0] + down, link[1] + right)
            if other in union and other not in grown and not (other[0] in sources and other[1] in targets):
                grown.add(other)
                sources.add(other[0])
                targets.add(other[1])
                heappush(this_scan if other > link else next_scan, other)
        if not this_scan:
            this_scan, next_scan = next_scan, []
    return grown


def _add_unaligned(links: set[Link], direction: set[Link]) -> None:
    """Add, in order, the links of one direction whose words are both not aligned yet."""
    sources, targets = {link[0] for link in links}, {link[1] for link in links}
    for link in sorted(direction):
        if link[0] not in sources and link[1] not in targets:
            links.add(link)
            sources.add(link[0])
            targets.add(link[1])
