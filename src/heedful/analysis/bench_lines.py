"""Input lines for `heedful bench` when the model's own data is not on this machine."""

from __future__ import annotations

from itertools import cycle, islice

SENTENCES = (
    "A dog runs across the grass.",
    "Two children are playing in the park.",
    "The train to the city leaves at seven.",
    "She reads a book by the window.",
    "He has never seen the sea before.",
    "A man in a blue shirt is standing on a ladder and cleaning a window.",
    "Three women sit at a small table outside a café and drink coffee.",
    "The old house at the end of the street was sold last winter.",
    "We would like to order two bowls of soup and some bread, please.",
    "A young girl with a red umbrella waits for the bus in the rain.",
    "The museum is closed on Mondays, but the garden is open every day.",
    "My brother works in a hospital and comes home late at night.",
    "Can you tell me how to get to the nearest station?",
    "A group of people walks along the beach while the sun goes down.",
    "The teacher asked the students to open their books and read the first page.",
    "He forgot his keys, so he had to wait until his neighbor came home.",
    "Several boats lie in the harbor, and fishermen are mending their nets.",
    "The weather was cold and windy, and nobody wanted to go outside.",
    "An elderly couple dances slowly to the music of a street band.",
    "She bought apples, bread and cheese at the market this morning.",
    "If it does not rain tomorrow, we will climb the hill behind the village.",
    "The boy in the yellow jacket kicks the ball over the fence into the neighbor's yard.",
    "Many visitors come to the valley in spring, when the cherry trees are in bloom.",
    "A worker with a helmet and gloves repairs the roof of a tall building in the center of town.",
    "After the concert, the musicians packed their instruments and drove through the night to the next city.",
    "I think that the letter was written by someone who knew the family very well.",
    "The committee will meet again in September to discuss the plans for the new library.",
    "Because the bridge was closed, the drivers had to take the long road around the lake.",
    "A black and white cat sleeps on a pile of newspapers next to the stove.",
    "The company announced that it would build a second factory and hire two hundred people over the next three years.",
    "When the storm had passed, the villagers came out of their houses and began to clear the branches from the road.",
    "Two cyclists ride up a steep mountain road while a crowd of spectators cheers from behind the barriers.",
)

DIALOGUE = (
    "Hello, how are you today?",
    "What time does the shop open?",
    "I am not sure what you mean.",
    "Where did you go last weekend?",
    "Could you help me with my bags?",
    "That sounds like a good idea to me.",
    "Do you want to come with us to the cinema tonight?",
    "I have been waiting here for almost an hour.",
    "Why did nobody tell me about the meeting?",
    "My phone is broken, so please write me a message instead.",
    "Have you ever been to the mountains in winter?",
    "I would rather stay at home and read, if you do not mind.",
)

ARTICLES = (
    "The city council voted on Tuesday to turn the old railway yard into a public park. The plan, which was first"
    " presented five years ago, foresees two thousand trees, a playground and a small stage for concerts. Work is"
    " expected to begin next spring and to take about three years.",
    "Scientists have found a new species of frog in the forests of the northern highlands. The animal is barely two"
    " centimeters long and lives in the water that collects in the leaves of plants. Because the forest is shrinking,"
    " the researchers ask for the area to be protected.",
    "Heavy snow closed roads and schools across the region on Friday. Several villages were without electricity for"
    " most of the day, and trains ran with long delays. Forecasters expect the weather to improve over the weekend.",
    "The national team won its third match in a row on Saturday evening. After a quiet first half, two goals within"
    " ten minutes decided the game. The coach praised the defense, but warned that the most difficult opponents are"
    " still to come.",
    "A bakery that has served the same street for ninety years will close at the end of the month. The owner says that"
    " she has found nobody to take over the business. Neighbors have collected more than a thousand signatures to"
    " keep the shop open.",
    "The price of coffee has risen to its highest level in a decade. Traders point to a dry summer in the growing"
    " countries and to higher costs of transport. Roasters say that they will have to raise their prices before the"
    " end of the year.",
)

WORDS = tuple(
    "house water mountain yesterday through language quiet knight orange table bridge science island psychology"
    " garden leather ocean rhythm window thought market elephant journey cousin harvest bicycle shadow theater"
    " cathedral honest butterfly century winter machine favorite umbrella".split()
)

BENCH_LINES = {"translate": SENTENCES, "reply": DIALOGUE, "summarize": ARTICLES, "transduce": WORDS}


def built_in_lines(task: str, count: int) -> list[str]:
    """Return `count` inputs for a task, repeated as often as needed.

    >>> built_in_lines("transduce", 2), len(built_in_lines("reply", 100))
    (['house', 'water'], 100)
    """
    return list(islice(cycle(BENCH_LINES[task]), count))
