"""Sentences of an exact length: clauses from a stock indexed by length, joined by conjunctions.

No draw is discarded when a sentence is generated: every plan has one length, whatever words fill it.
"""

from functools import lru_cache
from random import Random

from heedful.data.worlds.phrases import lexicon as lex
from heedful.data.worlds.phrases.lexicon import Invariant
from heedful.data.worlds.phrases.planner import Planner
from heedful.data.worlds.phrases.plans import Clause
from heedful.data.worlds.phrases.world import Chunk, Uniform, World, concatenate

N_PLANS = 5_000  # clauses in the stock
MIN_CLAUSE, MAX_CLAUSE = 3, 18  # words of a clause
MAX_INNER_CLAUSE = 14  # words of a clause that is not the last
MAX_SINGLE_CLAUSE = 8  # words of a sentence that is always one clause
MAX_CONJUNCTION = 3  # words


class Sentences:
    """The stock of plans of one direction of translation."""

    def __init__(self, world: World, n_plans: int = N_PLANS) -> None:
        self.world = world
        # Clauses that may come first, by length; those after a conjunction, by tense and length.
        self.first: list[list[Clause]] = [[] for _ in range(MAX_CLAUSE + 1)]
        self.later: list[list[list[Clause]]] = [[[] for _ in range(MAX_CLAUSE + 1)] for _ in range(3)]
        # Conjunctions and the tense of the clause after, by the tense of the clause before.
        self._joins: list[list[tuple[Invariant, int]]] = [[], [], []]
        for join in lex.CONJUNCTIONS:
            for tenses in join.use.split():
                self._joins[int(tenses[0])].append((join, int(tenses[1])))
        uniform = Random(f"phrase plans {world.source}").random
        planner = Planner(world.lexicon, world.source, uniform)
        for i in range(n_plans):
            planner.brief = i % 3 == 0  # else short clauses would be rare
            self._add(planner.clause(), uniform)

    def _add(self, plan: Clause, uniform: Uniform) -> None:
        length = sum(len(chunk[0]) for chunk in self.world.clause(plan, uniform))
        if length <= MAX_CLAUSE:
            self.first[length].append(plan)
            if not plan.front:
                self.later[plan.tense][length].append(plan)

    def sentence(self, length: int, uniform: Uniform) -> Chunk:
        """Generate a sentence of `length` words; the more are left, the less likely the next clause is the last."""
        chunks: list[Chunk] = []
        stock = self.first
        join: Invariant | None = None
        while True:
            last = (
                length <= MAX_CLAUSE and uniform() * (MAX_CLAUSE + 4 - MAX_SINGLE_CLAUSE) >= length - MAX_SINGLE_CLAUSE
            )
            longest = min(MAX_INNER_CLAUSE, length - MAX_CONJUNCTION - MIN_CLAUSE)
            size = length if last else MIN_CLAUSE + int(uniform() * (longest - MIN_CLAUSE + 1))
            plans = stock[size]
            plan = plans[int(uniform() * len(plans))]
            clause = self.world.clause(plan, uniform)
            if join:
                chunks.append(self.world.invariant(join, clause[0]))
            chunks += clause
            if last:
                return concatenate(chunks)
            joins = self._joins[plan.tense]
            join, tense = joins[int(uniform() * len(joins))]
            stock = self.later[tense]
            length -= size + len(join.forms[self.world.source][0])


@lru_cache(maxsize=6)
def sentences(source: str, target: str) -> Sentences:
    """Return the stock of a direction, built once."""
    return Sentences(World(source, target))
