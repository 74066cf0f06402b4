"""The verbs. What is heavy is imported inside them, so that `--help` answers at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.world import worlds

app = typer.Typer(
    name="heedful",
    help="Train, use, see and measure models that decide where to look.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(worlds, name="world")

RecipeFile = Annotated[
    Path, typer.Argument(metavar="RECIPE", help="A recipe: a TOML file.", show_default=False)
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SECTION.KEY=VALUE]...", help="Settings that win over the recipe's."),
]
Model = Annotated[
    Path | None,
    typer.Option("-m", "--model", help="A model: a folder, or a bundled one's name.", show_default=False),
]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"heedful {version('heedful')}")
        raise typer.Exit


@app.callback()
def heedful(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train, use, see and measure models that decide where to look."""


@app.command()
def check(recipe: RecipeFile, overrides: Overrides = None) -> None:
    """Check a recipe and print every resolved value, what it means and where it was set."""
    from heedful.config import load_recipe, recipe_toml
    from heedful.config.unread import unread

    loaded = load_recipe(recipe, overrides or [])
    print(recipe_toml(loaded.recipe, loaded.origins), end="")
    for line in unread(loaded):
        print(f"note: {line}", file=sys.stderr)


@app.command()
def train(
    recipe: RecipeFile,
    overrides: Overrides = None,
    *,
    out: Annotated[Path, typer.Option("-o", "--out", help="Where the model goes.", show_default=False)],
) -> None:
    """Train a model as a recipe says; the same command again goes on where it was stopped."""
    from heedful.config import load_recipe

    loaded = load_recipe(recipe, overrides or [])
    from heedful.cli.progress import training
    from heedful.tasks.train import run

    with training() as listener:
        new = run(loaded, out, listener)
    print(f"the model is in {out}" if new else f"{out} is already trained to the end of this recipe")


Models = Annotated[
    list[Path] | None,
    typer.Option(
        "-m",
        "--model",
        help="A model: a folder, or a bundled one's name; several write as one (default: the bundled one).",
        show_default=False,
    ),
]
Input = Annotated[list[Path] | None, typer.Argument(help="Text, one item a line (default: stdin).")]
BeamSize = Annotated[int | None, typer.Option("--beam", min=1, help="Beam search this wide; 1 is greedy.")]
NBest = Annotated[int, typer.Option("--n-best", min=1, help="So many outputs a line, one below the other.")]
Draw = Annotated[bool, typer.Option("--sample", help="Draw the words instead of searching.")]
Temperature = Annotated[float | None, typer.Option(help="With --sample: below 1 tamer, above wilder.")]
TopK = Annotated[int | None, typer.Option(min=0, help="With --sample: from the likeliest so many.")]
TopP = Annotated[float | None, typer.Option(help="With --sample: from this share of the mass.")]
SeedOf = Annotated[int | None, typer.Option("--seed", help="With --sample.")]
Alpha = Annotated[float | None, typer.Option("--length-penalty", help="With a beam.")]
Beta = Annotated[float | None, typer.Option("--coverage-penalty", help="With a beam.")]
Longest = Annotated[int | None, typer.Option("--max-length", min=1, help="Longest output, in tokens.")]
Unknown = Annotated[
    bool, typer.Option("--replace-unknown", help="Copy the word looked at in place of <unk>.")
]
Bytes = Annotated[
    bool, typer.Option("--int8", help="With large matrices in bytes: quicker, nearly the same outputs.")
]
Threads = Annotated[int, typer.Option(min=0, help="Of the CPU; 0: as many as there are.")]
Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data", help="A TSV, or twice: source and target, pictures and captions (default: the recipe's)."
    ),
]
Split = Annotated[str, typer.Option(help="Of the recipe's data: train, valid or test.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line: tokens, scores, alignments.")]
Numbers = Annotated[bool, typer.Option("--json", help="All of it as JSON.")]


def _write(task: str) -> Callable[..., None]:
    """A verb that turns lines into lines with a model trained for `task`."""

    def verb(
        files: Input = None,
        *,
        model: Models = None,
        beam: BeamSize = None,
        n_best: NBest = 1,
        sample: Draw = False,
        temperature: Temperature = None,
        top_k: TopK = None,
        top_p: TopP = None,
        seed: SeedOf = None,
        alpha: Alpha = None,
        beta: Beta = None,
        max_length: Longest = None,
        replace_unknown: Unknown = False,
        int8: Bytes = False,
        threads: Threads = 0,
        json: Json = False,
    ) -> None:
        from heedful.cli.write import write
        from heedful.config import check_decoding

        options = {
            "method": "sample" if sample else None if beam is None else "beam" if beam > 1 else "greedy",
            "beam": beam if beam and beam > 1 else None,
            "n_best": n_best,
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "seed": seed,
            "alpha": alpha,
            "beta": beta,
            "max_length": max_length,
            "replace_unknown": replace_unknown or None,
        }
        asked = {key: value for key, value in options.items() if value is not None}
        check_decoding(asked)
        write(task, files or [], model or [], asked, json, int8, threads)

    return verb


for _verb, _help in (
    ("translate", "Translate: one line in, one line out; empty lines stay empty."),
    ("summarise", "Summarise: one text a line in, one headline out."),
    ("reply", "Reply: one utterance in, one out."),
    ("transduce", "Rewrite lines, such as spellings to sounds: one line in, one line out."),
):
    app.command(_verb, help=_help)(_write(_verb))


@app.command()
def caption(
    images: Annotated[
        list[Path] | None, typer.Argument(help="Pictures or folders of them (default: one from stdin).")
    ] = None,
    *,
    model: Model = None,
    beam: BeamSize = None,
    n_best: NBest = 1,
    sample: Draw = False,
    temperature: Temperature = None,
    seed: SeedOf = None,
    show: Annotated[
        bool, typer.Option("--show", help="Draw what was read for each word (NAME-attention.png).")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="Draw it to .png, .svg or .pdf, or as a page (.html).", show_default=False
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Weights as the grid they are, not smooth.")] = False,
    threads: Threads = 0,
    json: Numbers = False,
) -> None:
    """Caption pictures, and show where the model looked."""
    from heedful.cli.caption import Asked, run
    from heedful.config import check_decoding

    options = {
        "method": "sample" if sample else None if beam is None else "beam" if beam > 1 else "greedy",
        "beam": beam if beam and beam > 1 else None,
        "n_best": n_best,
        "temperature": temperature,
        "seed": seed,
    }
    asked = {key: value for key, value in options.items() if value is not None}
    check_decoding(asked)
    run(Asked(images or [], asked, out, show, raw, json, threads), model)


@app.command()
def classify(
    files: Input = None,
    *,
    model: Model = None,
    threads: Threads = 0,
    json: Annotated[
        bool,
        typer.Option("--json", help="One JSON object a line: all probabilities, the weight of each word."),
    ] = False,
) -> None:
    """Say which label each text has, and how sure that is: one line in, one line out."""
    from heedful.cli.classify import run

    run(files or [], model, json, threads)


@app.command()
def recommend(
    *,
    model: Model = None,
    user: Annotated[str | None, typer.Option(help="A user that the model knows.", show_default=False)] = None,
    items: Annotated[
        str | None,
        typer.Option(help='Somebody new, by what they took: "Title A; Title B".', show_default=False),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="So many items.")] = 10,
    reasons: Annotated[int, typer.Option(min=0, help="Items of the history named for each.")] = 3,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="Draw why: bars over the history (.png, .svg, .pdf), or a page of all (.html).",
        ),
    ] = None,
    about: Annotated[
        str | None, typer.Option(help="With -o: the item to explain (default: the first).")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Items, scores, weights and effects.")] = False,
) -> None:
    """Recommend items by a history, and say which items of it spoke for each."""
    from heedful.cli.recommend import Asked, run

    run(Asked(user, items, top, reasons, about, out, json), model)


@app.command()
def read(
    text: Annotated[
        list[str] | None, typer.Argument(help="A sentence, or files with one a line (default: stdin).")
    ] = None,
    *,
    model: Model = None,
    view: Annotated[str, typer.Option(help="With -o: arcs or matrix.")] = "arcs",
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="Draw it to .png, .svg or .pdf, or as a page (.html).", show_default=False
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Read sentences word by word: how surprising each is, and which earlier words it read."""
    from heedful.cli.read import Asked, run

    run(Asked(text or [], out, view, json), model)


@app.command("models")
def list_models(
    json: Annotated[bool, typer.Option("--json", help="Everything their cards say.")] = False,
) -> None:
    """List the models that come with heedful: what they are for, what they reach, their licence."""
    from heedful.cli.models import run

    run(json)


@app.command()
def evaluate(
    *,
    model: Models = None,
    data: Data = None,
    split: Split = "test",
    metric: Annotated[list[str] | None, typer.Option("--metric", help="May be given several times.")] = None,
    beam: BeamSize = None,
    alpha: Alpha = None,
    against: Annotated[
        Path | None, typer.Option(help="Another model, to be compared by paired bootstrap.")
    ] = None,
    gallery: Annotated[
        Path | None, typer.Option(help="Captions: a page of the best, typical and worst ones (.html).")
    ] = None,
    int8: Bytes = False,
    threads: Threads = 0,
    json: Numbers = False,
) -> None:
    """Measure a model: metrics with signatures, quality by source length and by place."""
    from heedful.cli.evaluate import run
    from heedful.config import check_decoding
    from heedful.tasks.kind import Question

    how: dict[str, object] = (
        {} if beam is None else {"method": "beam" if beam > 1 else "greedy", "beam": beam}
    )
    if alpha is not None:
        how["alpha"] = alpha
    check_decoding(how)
    run(model or [], Question(data or [], split, metric or [], how, int8, threads, gallery), against, json)


@app.command()
def compare(
    recipe: RecipeFile,
    *,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", help="section.key=value,value,...; may be given several times."),
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option("--variant", help='Settings that go together: "a.b=1 c.d=2"; one for each variant.'),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings of each variant.")] = 3,
    budget: Annotated[str, typer.Option(help="Of each training: 90s, 10m, 1h; or 2000steps.")] = "10m",
    jobs: Annotated[int, typer.Option(min=1, help="Trainings side by side, which share the cores.")] = 1,
    baselines: Annotated[bool, typer.Option(help="Also the same task without attention.")] = True,
    out: Annotated[Path, typer.Option("-o", "--out", help="Where all of it goes.", show_default=False)],
) -> None:
    """Compare variants fairly: same data order, equal budget, cost beside quality."""
    from rich.console import Console

    from heedful.studies.compare import compare as run
    from heedful.studies.compare import markdown

    console = Console(stderr=True, highlight=False)
    rows = run(recipe, vary or [], seeds, budget, out, console.print, variant or [], jobs, baselines)
    print(markdown(rows), end="")


@app.command()
def bench(
    file: Annotated[
        Path | None, typer.Argument(help="Lines to write (default: the model's test data).")
    ] = None,
    *,
    model: Models = None,
    lines: Annotated[int, typer.Option(min=1, help="At most so many.")] = 500,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each way.")] = 3,
    threads: Threads = 0,
    json: Numbers = False,
) -> None:
    """Measure how fast a model writes here: greedy, traced, beam, one by one; in floats and in bytes."""
    from heedful.cli.bench import run

    run(model or [], file, lines, rounds, threads, json)


@app.command()
def measure(
    *,
    model: Models = None,
    data: Data = None,
    split: Split = "test",
    gold: Annotated[
        Path | None, typer.Option(help="Gold word links, a line a pair (3-4 sure, 3p4 possible).")
    ] = None,
    gold_base: Annotated[int, typer.Option(min=0, max=1, help="The first word's number in it.")] = 0,
    links: Annotated[Path | None, typer.Option(help="Links to be scored against --gold; no model.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Only the first so many pairs; 0: all.")] = 500,
    test: Annotated[
        list[str] | None,
        typer.Option(
            "--test",
            help="correlation, permutation, uniform, erasure, words, counterfactual (slow), all or none.",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Decisions drawn from each sentence.")] = 4,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="All numbers.")] = False,
) -> None:
    """Measure where a model looks: against gold, and whether it matters (the honesty tests)."""
    from heedful.cli.measure import run, score_links
    from heedful.errors import DataError

    if links is not None:
        if gold is None:
            raise DataError("--links: needs --gold, the file to score against")
        score_links(links, gold, gold_base, json)
        return
    run(model or [], data or [], split, gold, gold_base, limit, test or [], steps, seed, json)


Detail = Annotated[
    str, typer.Option(help="weights; steps: what they were made from, too; full: of every site.")
]
Site = Annotated[str | None, typer.Option(help="Where in the model (default: the alignment's).")]
Head = Annotated[int | None, typer.Option(min=0, help="One head (default: the mean of all).")]


@app.command()
def trace(
    text: Annotated[
        str, typer.Argument(help="A sentence, a picture's file, or user:ID.", show_default=False)
    ],
    *,
    model: Model = None,
    beam: BeamSize = None,
    sample: Draw = False,
    seed: SeedOf = None,
    target: Annotated[str | None, typer.Option(help="Write this, whatever the model would write.")] = None,
    reference: Annotated[str | None, typer.Option(help="What somebody else wrote, to show beside.")] = None,
    gold: Annotated[str | None, typer.Option(help='Gold word links from 0, such as "0-0 1-2".')] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="What if: onehot:step=3,position=0, uniform, source:position=2,text=dog"),
    ] = None,
    detail: Detail = "steps",
    replay: Annotated[
        bool, typer.Option(help="Compute it all again in plain loops, and write down how far apart.")
    ] = False,
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Also what each position would change, for the page.")
    ] = False,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Where the trace goes (JSON).", show_default=False)
    ],
) -> None:
    """Write down all that a model does with a sentence; with --set, what changes if it looks elsewhere."""
    from heedful.cli.trace import Asked, run

    asked = {
        "method": "sample" if sample else None if beam is None else "beam" if beam > 1 else "greedy",
        "beam": beam if beam and beam > 1 else None,
        "seed": seed,
    }
    how = {key: value for key, value in asked.items() if value is not None}
    run(Asked(text, target, reference, gold, tuple(change or ()), detail, replay, what_if), model, how, out)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="TRACE", help="A trace.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="Make a page (.html), draw to .png, .svg or .pdf, or export to .csv, .npz or .links.",
            show_default=False,
        ),
    ] = None,
    *,
    view: Annotated[
        str | None,
        typer.Option(
            help="alignment, lines, heads, steps, beam, photo, words, arcs, history (default: the usual).",
            show_default=False,
        ),
    ] = None,
    site: Site = None,
    head: Head = None,
    pieces: Annotated[bool, typer.Option("--pieces", help="Pieces as the model reads them.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Without start and end tokens.")] = False,
    reading: Annotated[
        str, typer.Option(help=".links: naive, shift or shared (docs/measures.md says what they are).")
    ] = "naive",
) -> None:
    """Draw a trace: in the terminal, as a page to walk through, or as a picture."""
    from heedful.cli.show import Chosen, run

    run(file, out, Chosen(view, site, head, not pieces, not plain, reading))
