"""Everyday pairs for the English-French translator: our own phrases, words, and sentences from patterns.

Patterns put names, places, numbers, times and prices into sentences, so that the model learns to copy or to convert
them. `phrasebook.tsv` has a phrase per line; `phrasebook_words.txt` has words by kind, `@m` and `@f` being exceptions
from the gender of their list.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

Pair = tuple[str, str]
FOLDER = Path(__file__).parent
NAMES = (
    "Anna Peter Paul Maria Tom Mary Sophie Julia Lucas Emma Marc Claire David Sarah Alice Martin Nicolas Laura"
    " Robert Jane Michael Linda James Susan Daniel Karen Kevin Lisa Brian Nancy Oliver Amy Eric Helen Thomas Ruth"
    " Simon Nina Felix Eva Carlos Elena Ahmed Fatima Yuki Ivan Olga Giulia Marco Hans Ingrid Lars Sven Ali Leila"
    " Omar Mei Raj Priya Kofi Chloe George Henry Jack Harry Charlie Grace Lily Noah Liam Ethan Mia Zoe Leo Hugo"
    " Louis Camille Manon Pierre Jean Luc"
).split()
SURNAMES = (
    "Smith Martin Brown Dupont Durand Miller Johnson Wilson Lefevre Moreau Garcia Rossi Schmidt Novak Taylor Leroy Roux"
    " Clark Evans Thomas Bernard Petit Lambert Fontaine Walker Young Baker Cooper Morgan Dubois"
).split()
CITIES = {
    name: name
    for name in "Paris Berlin Madrid Rome Tokyo Boston Chicago Toronto Lyon Nice Marseille Bordeaux Nantes Munich"
    " Oslo Prague Milan Dublin Sydney Montreal Amsterdam Strasbourg Toulouse Lille Zurich Helsinki Stockholm"
    " Budapest".split()
} | {
    "London": "Londres", "Brussels": "Bruxelles", "Geneva": "Genève", "Vienna": "Vienne", "Lisbon": "Lisbonne",
    "Barcelona": "Barcelone", "Venice": "Venise", "Moscow": "Moscou", "Athens": "Athènes", "Warsaw": "Varsovie",
    "Edinburgh": "Édimbourg", "Hamburg": "Hambourg", "Beijing": "Pékin", "Naples": "Naples", "Florence": "Florence",
}  # fmt: skip
COUNTRIES = {  # name, "in" or "to", "from"
    "France": ("la France", "en France", "de France"), "Spain": ("l'Espagne", "en Espagne", "d'Espagne"),
    "Italy": ("l'Italie", "en Italie", "d'Italie"), "Germany": ("l'Allemagne", "en Allemagne", "d'Allemagne"),
    "England": ("l'Angleterre", "en Angleterre", "d'Angleterre"), "Canada": ("le Canada", "au Canada", "du Canada"),
    "Japan": ("le Japon", "au Japon", "du Japon"), "Portugal": ("le Portugal", "au Portugal", "du Portugal"),
    "Greece": ("la Grèce", "en Grèce", "de Grèce"), "China": ("la Chine", "en Chine", "de Chine"),
    "India": ("l'Inde", "en Inde", "d'Inde"), "Brazil": ("le Brésil", "au Brésil", "du Brésil"),
    "Mexico": ("le Mexique", "au Mexique", "du Mexique"), "Belgium": ("la Belgique", "en Belgique", "de Belgique"),
    "Switzerland": ("la Suisse", "en Suisse", "de Suisse"), "Russia": ("la Russie", "en Russie", "de Russie"),
    "Morocco": ("le Maroc", "au Maroc", "du Maroc"), "Poland": ("la Pologne", "en Pologne", "de Pologne"),
    "Australia": ("l'Australie", "en Australie", "d'Australie"), "Egypt": ("l'Égypte", "en Égypte", "d'Égypte"),
    "Scotland": ("l'Écosse", "en Écosse", "d'Écosse"), "Ireland": ("l'Irlande", "en Irlande", "d'Irlande"),
    "Vietnam": ("le Vietnam", "au Vietnam", "du Vietnam"), "Sweden": ("la Suède", "en Suède", "de Suède"),
    "the United States": ("les États-Unis", "aux États-Unis", "des États-Unis"),
    "the Netherlands": ("les Pays-Bas", "aux Pays-Bas", "des Pays-Bas"),
}  # fmt: skip
WEEKDAYS = dict(zip(
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "lundi mardi mercredi jeudi vendredi samedi dimanche".split(), strict=True,
))  # fmt: skip
MONTHS = dict(zip(
    "January February March April May June July August September October November December".split(),
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split(), strict=True,
))  # fmt: skip
ENGLISH_NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
FRENCH_NUMBERS = "un deux trois quatre cinq six sept huit neuf dix onze douze".split()
FEMALE = set(
    "Anna Maria Mary Sophie Julia Emma Claire Sarah Alice Laura Jane Linda Susan Karen Lisa Nancy Amy Helen Ruth Nina"
    " Eva Elena Fatima Yuki Olga Giulia Ingrid Leila Mei Priya Chloe Grace Lily Mia Zoe Camille Manon".split()
)
PATTERNS = """
My name is {name}.|Je m'appelle {name}.
My name is {name} {surname}.|Je m'appelle {name} {surname}.
Hello, my name is {name}.|Bonjour, je m'appelle {name}.
Hi, I'm {name}.|Salut, je suis {name}.
I'm {name} and this is {name2}.|Je suis {name} et voici {name2}.
My name is {name} and I live in {city}.|Je m'appelle {name} et j'habite à {city_fr}.
My name is {name} and I come from {country}.|Je m'appelle {name} et je viens {from}.
My name is {name} and I am {age} years old.|Je m'appelle {name} et j'ai {age} ans.
Nice to meet you, {name}.|Enchanté, {name}.
Hello, {name}!|Bonjour, {name} !
Hi {name}, how are you?|Salut {name}, comment vas-tu ?
Good morning, {name}.|Bonjour, {name}.
Good evening, {name}.|Bonsoir, {name}.
Good evening, Mr. {surname}.|Bonsoir, monsieur {surname}.
Good morning, Mrs. {surname}.|Bonjour, madame {surname}.
Good night, {name}.|Bonne nuit, {name}.
Thank you, {name}.|Merci, {name}.
Happy birthday, {name}!|Joyeux anniversaire, {name} !
Dear {name},|Bonjour {name},
Dear Mr. {surname},|Monsieur {surname},
Mr. {surname} lives in {city}.|M. {surname} habite à {city_fr}.
Mrs. {surname} works in {city}.|Mme {surname} travaille à {city_fr}.
Mr. {surname} works in {country}.|M. {surname} travaille {in}.
Is Mr. {surname} there?|Est-ce que M. {surname} est là ?
{name} and {name2} are friends.|{name} et {name2} sont amis.
{name} and {name2} live in {city}.|{name} et {name2} habitent à {city_fr}.
{name} and {name2} went to {country} last year.|{name} et {name2} sont allés {in} l'année dernière.
{name} lives in {country}.|{name} vit {in}.
{name} is {age} years old.|{name} a {age} ans.
{name} is taller than {name2}.|{name} est plus {tall} que {name2}.
{name} loves {name2}.|{name} aime {name2}.
{name} called {name2} yesterday.|{name} a appelé {name2} hier.
{name} is my {friend_en}.|{name} est {friend_fr}.
{name} was born in {city} in {year}.|{name} est {born} à {city_fr} en {year}.
{name} was born in {country} in {year}.|{name} est {born} {in} en {year}.
{name} was born on {day} {month} {year}.|{name} est {born} le {day} {month_fr} {year}.
I was born on {month} {day}, {year}.|Je suis né le {day} {month_fr} {year}.
Where is {name}?|Où est {name} ?
Do you know {name}?|Connais-tu {name} ?
Have you seen {name}?|As-tu vu {name} ?
Tell {name} that I'm here.|Dis à {name} que je suis là.
Say hello to {name}.|Dis bonjour à {name}.
I live in {city}.|J'habite à {city_fr}.
I'm from {city}.|Je viens de {city_fr}.
I come from {country}.|Je viens {from}.
We live in {country}.|Nous vivons {in}.
We are going to {country} next summer.|Nous allons {in} l'été prochain.
She moved to {city} in {year}.|Elle a déménagé à {city_fr} en {year}.
Have you ever been to {country_not_ca}?|Êtes-vous déjà allé {in} ?
Have you ever been to {city}?|Es-tu déjà allé à {city_fr} ?
I would like to visit {country}.|J'aimerais visiter {the}.
{country} is a beautiful country.|{the} est un beau pays.
{city} is a beautiful city.|{city_fr} est une belle ville.
{city} is bigger than {city2}.|{city_fr} est plus grand que {city2_fr}.
{city} is smaller than {city2}.|{city_fr} est plus petit que {city2_fr}.
How far is it from {city} to {city2}?|Quelle est la distance entre {city_fr} et {city2_fr} ?
When does the next train to {city} leave?|Quand part le prochain train pour {city_fr} ?
What time is the last bus to {city}?|À quelle heure est le dernier bus pour {city_fr} ?
A ticket to {city}, please.|Un billet pour {city_fr}, s'il vous plaît.
The train from {city} is late.|Le train de {city_fr} est en retard.
We flew from {city} to {city2}.|Nous avons pris l'avion de {city_fr} à {city2_fr}.
The flight to {city} has been cancelled.|Le vol pour {city_fr} a été annulé.
The ticket costs {n} dollars.|Le billet coûte {n} dollars.
The book costs {n} euros.|Le livre coûte {n} euros.
This shirt costs {n} euros.|Cette chemise coûte {n} euros.
It costs {n} euros.|Ça coûte {n} euros.
It costs €{n}.|Ça coûte {n} €.
It costs ${n}.|Ça coûte {n} dollars.
That will be {n} euros, please.|Ça fera {n} euros, s'il vous plaît.
I paid {n} pounds for it.|Je l'ai payé {n} livres.
The room costs {n} euros per night.|La chambre coûte {n} euros par nuit.
She is {age} years old.|Elle a {age} ans.
He is {age} years old.|Il a {age} ans.
I am {age} years old.|J'ai {age} ans.
My son is {age}.|Mon fils a {age} ans.
There are {n} people in the room.|Il y a {n} personnes dans la salle.
There are {n} pages in this book.|Il y a {n} pages dans ce livre.
There are {n} students in my class.|Il y a {n} élèves dans ma classe.
The meeting starts at {time}.|La réunion commence à {time_fr}.
The lesson starts at {time}.|Le cours commence à {time_fr}.
The train leaves at {time}.|Le train part à {time_fr}.
The shop opens at {hour} o'clock.|Le magasin ouvre à {hour_fr}.
It's {hour} o'clock.|Il est {hour_fr}.
It's half past {hour}.|Il est {hour_fr} et demie.
Call me at {time}.|Appelle-moi à {time_fr}.
See you at {hour} o'clock.|On se voit à {hour_fr}.
I get up at {hour}.|Je me lève à {hour_fr}.
The meeting has been moved to {weekday_not_thu}.|La réunion a été déplacée à {weekday_not_thu_fr}.
See you on {weekday}.|À {weekday_fr}.
Today is {weekday}.|Aujourd'hui, c'est {weekday_fr}.
I work on {weekday}s.|Je travaille le {weekday_fr}.
{weekday} or {weekday2}|{Weekday_fr} ou {weekday2_fr}
{weekday} and {weekday2}|{Weekday_fr} et {weekday2_fr}
Today is {month} {day}.|Nous sommes le {day} {month_fr}.
My birthday is on {month} {day}.|Mon anniversaire est le {day} {month_fr}.
The party is on {day} {month}.|La fête a lieu le {day} {month_fr}.
The exam is in {month}.|L'examen est en {month_fr}.
In {year} I lived in {city}.|En {year}, j'habitais à {city_fr}.
The house was built in {year}.|La maison a été construite en {year}.
I have {few} brothers.|J'ai {few_fr} frères.
I have {few} cousins.|J'ai {few_fr} cousins.
I have {few} sisters and one brother.|J'ai {few_fr} sœurs et un frère.
She has {few} cats and one dog.|Elle a {few_fr} chats et un chien.
We have {few} children.|Nous avons {few_fr} enfants.
We need {few} eggs and some butter.|Il nous faut {few_fr} œufs et du beurre.
You need {n} grams of flour.|Il vous faut {n} grammes de farine.
A table for {few_not_4}, please.|Une table pour {few_not_4_fr}, s'il vous plaît.
I would like a room for {few_not_2} nights.|Je voudrais une chambre pour {few_not_2_fr} nuits.
I'll be back in {few} days.|Je serai de retour dans {few_fr} jours.
We waited for {few} hours.|Nous avons attendu {few_fr} heures.
It takes {n} minutes.|Cela prend {n} minutes.
It is {n} kilometers from here.|C'est à {n} kilomètres d'ici.
My phone number is {phone}.|Mon numéro de téléphone est le {phone}.
Room {n}|Chambre {n}
Page {n}|Page {n}
{n}|{n}
{n} euros|{n} euros
{name}|{name}
{city}|{city_fr}
{name} {surname}|{name} {surname}
{name}, {name2} and {name3}|{name}, {name2} et {name3}
""".strip().splitlines()


def read_words() -> Iterator[Pair]:
    """Yield words alone, and nouns with their articles."""
    for line in (FOLDER / "phrasebook_words.txt").read_text(encoding="utf-8").splitlines():
        kind, _, entries = line.partition(": ")
        for english, _, french in (entry.partition("=") for entry in entries.split(";")):
            french, _, exception = french.partition("@")
            if kind in ("m", "f"):
                yield from _with_articles(english, french, exception or kind)
            else:
                yield english, french
                yield _capital(english), _capital(french)


def _with_articles(english: str, french: str, gender: str) -> Iterator[Pair]:
    if french.endswith("vacances") or english in ("trousers", "police"):
        return
    vowel = french[0] in "aeiouâéèêîœ" or french in (
        "hôtel",
        "homme",
        "hôpital",
        "hiver",
        "heure",
        "histoire",
        "horloge",
        "herbe",
    )
    definite = "l'" if vowel else {"m": "le ", "f": "la "}[gender]
    indefinite = {"m": "un ", "f": "une "}[gender]
    article = "an " if english[0] in "aeio" or english == "hour" else "a "
    pairs = [(english, french), (f"the {english}", definite + french), (article + english, indefinite + french)]
    for source, target in pairs:
        yield source, target
        yield _capital(source), _capital(target)
    yield f"Where is the {english}?", f"Où est {definite}{french} ?"
    yield f"This is {article}{english}.", f"C'est {indefinite}{french}."
    yield f"I see {article}{english}.", f"Je vois {indefinite}{french}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def read_phrases() -> list[Pair]:
    lines = (FOLDER / "phrasebook.tsv").read_text(encoding="utf-8").splitlines()
    return [(english, french) for english, french in (line.split("\t") for line in lines)]


def fill_patterns(rng: Random, count: int) -> Iterator[Pair]:
    """Yield sentences of every pattern, `count` of each."""
    for pattern in PATTERNS:
        english, _, french = pattern.partition("|")
        for _ in range(count):
            values = _draw(rng)
            yield _capital(english.format(**values)), _capital(french.format(**values))


def _draw(rng: Random) -> dict[str, str]:
    name, name2, name3 = rng.sample(NAMES, 3)
    city, city2 = rng.sample(list(CITIES), 2)
    weekday, weekday2 = rng.sample(list(WEEKDAYS), 2)
    moved = rng.choice([day for day in WEEKDAYS if day != "Thursday"])
    country = rng.choice([name for name in COUNTRIES if name != "Canada"])
    month, hour, few = rng.choice(list(MONTHS)), rng.randrange(12), rng.randrange(1, 8)
    clock = rng.randrange(6, 23), rng.choice((0, 5, 10, 15, 20, 30, 40, 45, 50))
    few_not_2, few_not_4 = (rng.choice([i for i in range(1, 9) if i != left_out]) for left_out in (1, 3))
    the, into, out_of = COUNTRIES[country]
    female = name in FEMALE
    number = rng.choice((rng.randrange(2, 100), rng.randrange(100, 1_000), 5 * rng.randrange(1, 100)))
    return {
        "name": name, "name2": name2, "name3": name3, "surname": rng.choice(SURNAMES),
        "tall": "grande" if female else "grand", "born": "née" if female else "né",
        "friend_en": "best friend" if number % 2 else "cousin",
        "friend_fr": ("ma meilleure amie" if female else "mon meilleur ami") if number % 2
        else ("ma cousine" if female else "mon cousin"),
        "city": city, "city_fr": CITIES[city], "city2": city2, "city2_fr": CITIES[city2],
        "country": country, "country_not_ca": country, "the": the, "in": into, "from": out_of,
        "n": str(number), "age": str(rng.randrange(3, 99)), "year": str(rng.randrange(1920, 2026)),
        "day": str(rng.randrange(2, 29)), "month": month, "month_fr": MONTHS[month],
        "weekday": weekday, "weekday_fr": WEEKDAYS[weekday], "Weekday_fr": _capital(WEEKDAYS[weekday]),
        "weekday2": weekday2, "weekday2_fr": WEEKDAYS[weekday2],
        "weekday_not_thu": moved, "weekday_not_thu_fr": WEEKDAYS[moved],
        "time": f"{clock[0]}:{clock[1]:02}", "time_fr": f"{clock[0]} h {clock[1]:02}" if clock[1] else f"{clock[0]} h",
        "hour": ENGLISH_NUMBERS[hour],
        "hour_fr": "une heure" if hour == 0 else f"{FRENCH_NUMBERS[hour]} heures",
        "few": ENGLISH_NUMBERS[few], "few_fr": FRENCH_NUMBERS[few],
        "few_not_2": ENGLISH_NUMBERS[few_not_2], "few_not_2_fr": FRENCH_NUMBERS[few_not_2],
        "few_not_4": ENGLISH_NUMBERS[few_not_4], "few_not_4_fr": FRENCH_NUMBERS[few_not_4],
        "phone": " ".join(f"{rng.randrange(100):02}" for _ in range(5)),
    }  # fmt: skip


def read_phrasebook(rng: Random, count: int = 40) -> list[Pair]:
    """Return all phrases and words, and `count` sentences of each pattern."""
    return [*read_phrases(), *read_words(), *fill_patterns(rng, count)]
