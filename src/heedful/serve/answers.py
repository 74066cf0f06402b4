"""What a server answers to the client: errors it stands for, and content that is checked before it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from heedful.errors import ArgumentError, DecodingTimeoutError, HeedfulError, ServeError, TooLargeError
from heedful.tasks.generation_result import Generation
from heedful.tasks.recommend.predict import Reason, Recommendation

if TYPE_CHECKING:
    import httpx2 as httpx

MAX_WAIT = 30.0  # seconds before a retry
ERRORS: dict[int, type[HeedfulError]] = {
    404: ArgumentError,
    413: TooLargeError,
    422: ArgumentError,
    504: DecodingTimeoutError,
}
UNEXPECTED = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError)
T = TypeVar("T")


@contextmanager
def reading_answer(address: object) -> Iterator[None]:
    """Raise ServeError for content that a server of heedful would not send."""
    try:
        yield
    except HeedfulError:
        raise
    except UNEXPECTED as error:
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:100]}"
        raise ServeError(
            f"{address}: its answer cannot be read; is it a server of heedful, of this version? ({reason})"
        ) from None


def read_json(response: httpx.Response, convert: Callable[[Any], T]) -> T:
    """Return what the JSON of a response is converted to."""
    with reading_answer(response.url):
        return convert(response.json())


def read_records(answer: Any, count: int, convert: Callable[[dict[str, Any]], T]) -> list[T]:
    """Return the outputs of an answer, converted one by one."""
    records: Sequence[Any] = answer["outputs"]
    if len(records) != count:
        raise ValueError(f"{len(records)} outputs for {count} inputs")
    return [convert(record) for record in records]


def read_info(info: Any) -> dict[str, Any]:
    """Return the description of a model if it has what the client needs."""
    if not all(isinstance(info[key], str) and info[key].isprintable() for key in ("name", "task")):
        raise ValueError("its name or task is no text")
    most = info["limits"]["items"]
    if type(most) is not int or most < 1:
        raise ValueError(f"a limit of {most} items per request")
    return dict(info)


def raise_problem(response: httpx.Response) -> None:
    """Raise the error that a response stands for."""
    if response.is_success:
        return
    try:
        detail = str(response.json()["detail"])
    except UNEXPECTED:
        detail = f"{response.url} answered {response.status_code}; is it a server of heedful?"
    raise ERRORS.get(response.status_code, ServeError)(detail)


def retry_after(response: httpx.Response) -> float:
    """Return the seconds after which a busy server wants to be asked again."""
    text = response.headers.get("retry-after", "1")
    return min(MAX_WAIT, float(text)) if text.isdecimal() else 1.0


def read_text(record: dict[str, Any], options: dict[str, Any]) -> Any:
    """Return the best output of a record, or all of them if several were asked for."""
    if options.get("n_best", 1) == 1:
        return str(record["text"])
    return [output["text"] for output in record["outputs"]] or [""]


def read_generation(record: dict[str, Any]) -> Generation:
    """Return an output with its confidence."""
    record = dict(record)
    return Generation(record.pop("text"), record["confidence"], record["unlike_training"], record)


def read_item(item: dict[str, Any]) -> Recommendation:
    """Return an item with its reasons."""
    reasons = [Reason(-1, r["id"], r["title"], r["weight"], r["effect"]) for r in item["reasons"]]
    return Recommendation(-1, item["id"], item["title"], item["score"], reasons)
