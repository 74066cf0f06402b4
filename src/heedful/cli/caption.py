"""`heedful caption`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.console import print_json
from heedful.cli.options import Figure, JsonLines, Model, Threads, parse_decoding, with_decoding
from heedful.errors import DataError, DecodingTimeoutError

if TYPE_CHECKING:
    from heedful.config import DecodingOptions
    from heedful.data.images.files import ImageSource
    from heedful.tasks.caption.assets import LoadedCaptioner

CHUNK = 64  # images opened at once: memory stays bounded
STDIN = Path("-")


@with_decoding(without=("replace_unknown",))
def caption(
    images: Annotated[
        list[Path] | None,
        typer.Argument(metavar="IMAGE", help="Image files or folders of images (default: one image from stdin)."),
    ] = None,
    *,
    model: Model = None,
    show: Annotated[
        bool, typer.Option("--show", help="Draw the attention of each word to NAME-attention.png.")
    ] = False,
    out: Figure = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Draw the raw attention grid instead of smoothed weights.")
    ] = False,
    threads: Threads = 0,
    json: JsonLines = False,
    **decoding: Any,
) -> None:
    """Caption images. Can also draw the regions that each word attends to."""
    options, max_seconds = parse_decoding(decoding), decoding["max_seconds"]
    if json and (show or out is not None):
        raise DataError("--json cannot be combined with --show or -o: choose one")
    from heedful.tasks.bundled import find_models
    from heedful.tasks.license_notice import show_license_once
    from heedful.tasks.model_folder import load_model_for

    (folder,) = find_models([] if model is None else [model], "caption")
    loaded: LoadedCaptioner = load_model_for(folder, "caption")
    show_license_once(loaded)
    options = loaded.recipe.decoding.override(options)
    sources = list(_open_sources(images or []))
    if out is not None or show:
        _draw(loaded, sources, options, out, max_seconds, smooth=not raw)
        return
    failures = _print_captions(loaded, sources, options, threads, max_seconds, json)
    if failures:
        print(f"{failures:,} of {len(sources):,} images could not be captioned", file=sys.stderr)
        raise typer.Exit(1)


def _open_sources(images: Sequence[Path]) -> Iterator[ImageSource]:
    """Yield the given files, the images in given folders, or the image on stdin."""
    from heedful.data.images.files import IMAGE_SUFFIXES, MAX_IMAGE_BYTES, ImageBytes, ImageFile

    if not images or images == [STDIN]:
        data = sys.stdin.buffer.read(MAX_IMAGE_BYTES + 1)
        if len(data) > MAX_IMAGE_BYTES:
            raise DataError(f"stdin: more than {MAX_IMAGE_BYTES:,} bytes are too many for an image")
        if not data:
            raise DataError("no images: name files or folders, or pipe one image to stdin")
        yield ImageBytes("stdin", data)
        return
    for path in images:
        if not path.is_dir():
            yield ImageFile(path)
            continue
        files = sorted(p for p in path.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES)
        if not files:
            raise DataError(f"{path}: no images in this folder ({', '.join(IMAGE_SUFFIXES)})")
        yield from map(ImageFile, files)


def _print_captions(
    loaded: LoadedCaptioner,
    sources: Sequence[ImageSource],
    options: DecodingOptions,
    threads: int,
    max_seconds: float | None,
    as_json: bool,
) -> int:
    """Print the captions of all images that can be opened; return the number of those that cannot."""
    from heedful.cli.progress import lines_progress
    from heedful.decoding import StopCondition
    from heedful.parallel import available_cpus
    from heedful.tasks.caption.predict import caption_records, load_backbone, open_pixels
    from heedful.tasks.generation_result import UnlikeNotes

    backbone, failures, stop = load_backbone(loaded), 0, StopCondition(max_seconds)
    notes = UnlikeNotes("images")
    with lines_progress(len(sources)) as on_progress:
        for first in range(0, len(sources), CHUNK):
            opened = []
            for source in sources[first : first + CHUNK]:
                try:
                    opened.append((source, open_pixels(source, backbone)))
                except DataError as error:
                    failures += 1
                    print(f"error: {error}", file=sys.stderr)
            images = [image for _, image in opened]
            try:
                names = [str(getattr(source, "path", source.name)) for source, _ in opened]
                records = caption_records(
                    loaded, backbone, names, images, options, threads or available_cpus(), stop, notes
                )
            except DecodingTimeoutError as error:
                print(f"error: --max-seconds: {error}", file=sys.stderr)
                return failures + len(sources) - first
            for record in records:
                _print_caption(record, as_json, with_name=len(sources) > 1)
            sys.stdout.flush()
            on_progress(len(sources[first : first + CHUNK]))
    notes.finish()
    return failures


def _print_caption(record: dict[str, Any], as_json: bool, with_name: bool) -> None:
    if as_json:
        print_json(record)
        return
    texts = [output["text"] for output in record["outputs"]]
    print("\n".join(f"{record['image']}\t{text}" if with_name else text for text in texts))


def _draw(
    loaded: LoadedCaptioner,
    sources: Sequence[ImageSource],
    options: DecodingOptions,
    out: Path | None,
    max_seconds: float | None,
    smooth: bool,
) -> None:
    """Draw one image with the attention for each word of its caption."""
    if len(sources) != 1:
        raise DataError(f"--show and -o take one image, got {len(sources):,}")
    from heedful.decoding import StopCondition
    from heedful.tasks.base import TraceRequest
    from heedful.tasks.caption.trace import trace_image

    options = options.model_copy(update={"n_best": 1})
    request = TraceRequest(sources[0].name, stop=StopCondition(max_seconds))
    trace = trace_image(loaded, sources[0], request, options)
    print(trace.target.text)
    out = out or Path(f"{Path(sources[0].name).stem}-attention.png")
    if out.suffix == ".html":
        from heedful.viz.page import page_link, write_page

        write_page(trace, out, page_link("photo" if trace.alignment_site else "walk"))
    elif out.suffix == ".json":
        trace.save(out)
    else:
        from heedful.viz.base import ViewOptions
        from heedful.viz.figure import draw

        draw(trace, out, "photo", ViewOptions(smooth=smooth))
    print(f"attention written to {out}", file=sys.stderr)
