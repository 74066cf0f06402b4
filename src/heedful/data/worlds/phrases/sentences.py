"""Sentences of exact length: clauses from a stock that is filed by length, joined by conjunctions.

Nothing is drawn and thrown away when a sentence is made: every plan has one length, whatever words fill it.
"""

from functools import lru_cache
from random import Random

from heedful.data.worlds.phrases import lexicon as lex
from heedful.data.worlds.phrases.lexicon import Fixed
from heedful.data.worlds.phrases.planner import Planner
from heedful.data.worlds.phrases.plans import Clause
from heedful.data.worlds.phrases.world import Chunk, Dice, World, joined

PLANS = 5_000
SHORTEST, LONGEST = 3, 18  # words of a clause
MIDDLE = 14  # words at most of a clause that is not the last
SINGLE = 8  # words up to which a sentence is one clause
LONGEST_JOIN = 3  # words


class Sentences:
    """A stock of plans for one direction; `plans` is how many are drawn for it."""

    def __init__(self, world: World, plans: int = PLANS) -> None:
        self.world = world
        # By length: clauses that may come first; and for after a conjunction, by tense as well.
        self.first: list[list[Clause]] = [[] for _ in range(LONGEST + 1)]
        self.later: list[list[list[Clause]]] = [[[] for _ in range(LONGEST + 1)] for _ in range(3)]
        # By the tense of the clause before: conjunctions and the tense of the clause after.
        self._joins: list[list[tuple[Fixed, int]]] = [[], [], []]
        for join in lex.JOINS:
            for tenses in join.use.split():
                self._joins[int(tenses[0])].append((join, int(tenses[1])))
        dice = Random(f"phrase plans {world.source}").random
        planner = Planner(world.lexicon, world.source, dice)
        for i in range(plans):
            planner.brief = i % 3 == 0  # or short clauses would be few
            self._file(planner.clause(), dice)

    def _file(self, plan: Clause, dice: Dice) -> None:
        length = sum(len(chunk[0]) for chunk in self.world.clause(plan, dice))
        if length <= LONGEST:
            self.first[length].append(plan)
            if not plan.front:
                self.later[plan.tense][length].append(plan)

    def sentence(self, length: int, dice: Dice) -> Chunk:
        """`length` words; the more of them are left, the less likely is the next clause the last."""
        chunks: list[Chunk] = []
        stock = self.first
        join: Fixed | None = None
        while True:
            last = length <= LONGEST and dice() * (LONGEST + 4 - SINGLE) >= length - SINGLE
            most = min(MIDDLE, length - LONGEST_JOIN - SHORTEST)
            size = length if last else SHORTEST + int(dice() * (most - SHORTEST + 1))
            plans = stock[size]
            plan = plans[int(dice() * len(plans))]
            clause = self.world.clause(plan, dice)
            if join:
                chunks.append(self.world.fixed(join, clause[0]))
            chunks += clause
            if last:
                return joined(chunks)
            joins = self._joins[plan.tense]
            join, tense = joins[int(dice() * len(joins))]
            stock = self.later[tense]
            length -= size + len(join.forms[self.world.source][0])


@lru_cache(maxsize=6)
def sentences(source: str, target: str) -> Sentences:
    """The stock of a direction is made once."""
    return Sentences(World(source, target))
