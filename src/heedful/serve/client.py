"""A client of `heedful serve`, whose models are called like those of `heedful.load`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from time import sleep
from typing import Any, Self, TypeVar
from urllib.parse import quote

from heedful.arguments import as_list, as_texts, is_several
from heedful.data.images.files import ImageFile, image_source
from heedful.errors import ArgumentError, ServeError
from heedful.serve.answers import (
    ERRORS,
    raise_problem,
    read_generation,
    read_info,
    read_item,
    read_json,
    read_records,
    read_text,
    reading_answer,
    retry_after,
)
from heedful.tasks.classify.predict import Classification
from heedful.tasks.recommend.predict import Recommendation
from heedful.trace.schema import Edit, Trace

try:
    import httpx2 as httpx
except ModuleNotFoundError:
    raise ServeError("heedful.Client needs httpx2: pip install 'heedful[serve]'") from None

MAX_RETRIES = 5  # of a server that is busy
T = TypeVar("T")


class Client:
    """A connection to a server.

        client = heedful.Client("http://127.0.0.1:8000", key="...")
        model = client.load("en-fr")
        model("The cat sleeps.")
        model.trace("The cat sleeps.").show()

    A server that is busy says when to come back, and the client waits so long, a few times. It can be used by several
    threads, and as a context manager, which closes its connections.
    """

    def __init__(self, url: str = "http://127.0.0.1:8000", *, key: str | None = None, timeout: float = 120.0) -> None:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        try:
            self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout)
        except (httpx.InvalidURL, ValueError) as error:
            raise ArgumentError(f"url={url!r}: {error}") from None

    @property
    def address(self) -> str:
        """The address of the server."""
        return str(self._http.base_url)

    def models(self) -> list[dict[str, Any]]:
        """Return the served models: names, tasks, languages, options and limits."""
        return self.ask("GET", "/v1/models", lambda answer: [dict(model) for model in answer["models"]])

    def load(self, name: str | None = None, *, task: str | None = None) -> RemoteModel:
        """Return a model of the server: by its name, or the first one for a task (default: "translate")."""
        if name is None:
            wanted = task or "translate"
            names = [str(model.get("name")) for model in self.models() if model.get("task") == wanted]
            if not names:
                raise ServeError(f"the server has no model for {wanted}")
            name = names[0]
        info = self.ask("GET", f"/v1/models/{quote(name, safe='')}", read_info)
        if task is not None and info["task"] != task:
            raise ArgumentError(f"{name} was trained to {info['task']}, not to {task}")
        kinds = {
            "classify": RemoteClassifier,
            "caption": RemoteCaptioner,
            "read": RemoteLanguageModel,
            "recommend": RemoteRecommender,
        }
        return kinds.get(info["task"], RemoteTextGenerator)(self, info)

    def ask(self, method: str, path: str, convert: Callable[[Any], T], **content: Any) -> T:
        """Return what the JSON of the answer is converted to; raise ServeError if it is something else."""
        return read_json(self.request(method, path, **content), convert)

    def request(self, method: str, path: str, **content: Any) -> httpx.Response:
        """Return the response to a request; raise an error of heedful if it is a problem."""
        for attempt in range(MAX_RETRIES + 1):
            try:
                response = self._http.request(method, path, **content)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise self._noread_text(error) from None
            if response.status_code not in (429, 503) or attempt == MAX_RETRIES:
                break
            sleep(retry_after(response))
        raise_problem(response)
        return response

    def stream(self, path: str, content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name and content of each server-sent event."""
        try:
            with self._http.stream("POST", path, json=content) as response:
                if not response.is_success:
                    response.read()
                raise_problem(response)
                name = ""
                for line in response.iter_lines():
                    field, _, value = line.partition(": ")
                    if field == "event":
                        name = value
                    elif field == "data":
                        with reading_answer(response.url):
                            event = dict(json.loads(value))
                        yield name, event
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._noread_text(error) from None

    def _noread_text(self, error: Exception) -> ServeError:
        return ServeError(f"{self.address}: {str(error) or type(error).__name__}")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RemoteModel:
    """A model of a server."""

    def __init__(self, client: Client, info: dict[str, Any]) -> None:
        self.client, self.info = client, info

    @property
    def name(self) -> str:
        """The name of the model."""
        return str(self.info["name"])

    @property
    def task(self) -> str:
        """The task it was trained for."""
        return str(self.info["task"])

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Return the model's output, as the same model of `heedful.load` does."""
        raise NotImplementedError

    def trace(self, inputs: Any = None, **options: Any) -> Any:
        """Record every step of the model on one input, or on each of several; arguments as in `heedful.Model.trace`."""
        if is_several(inputs):
            return [self.trace(item, **options) for item in inputs]
        return read_json(self._send("/v1/trace", inputs, options), Trace.model_validate)

    def trace_change(
        self, inputs: Any, edits: Any = (), *, prefix: str | Sequence[int] = (), candidates: int = 8, **options: Any
    ) -> tuple[Trace, Trace]:
        """Return the traces before and after a change; arguments as in `heedful.Model.trace_change`."""
        fields = {"edits": edits, "prefix": prefix, "top_k": candidates, **options}
        return read_json(
            self._send("/v1/whatif", inputs, fields),
            lambda answer: (Trace.model_validate(answer["before"]), Trace.model_validate(answer["after"])),
        )

    def _send(self, path: str, item: Any, fields: dict[str, Any]) -> httpx.Response:
        return self.client.request("POST", path, json={"input": item, **self._trace_fields(fields)})

    def _trace_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a request for a trace; what it does not know are options of decoding."""
        known = ("detail", "target", "edits", "prefix", "what_if", "top_k", "faithfulness")
        content: dict[str, Any] = {name: fields.pop(name) for name in known if name in fields}
        if "edits" in content:
            edits = content["edits"]
            listed = [edits] if isinstance(edits, str | Edit) else edits
            content["edits"] = [e.model_dump(exclude_none=True) if isinstance(e, Edit) else e for e in listed]
        if "prefix" in content and not isinstance(content["prefix"], str):
            content["prefix"] = list(content["prefix"])
        return {"model": self.name, "options": fields, **content}

    def _records(
        self,
        inputs: Sequence[Any],
        options: dict[str, Any],
        convert: Callable[[dict[str, Any]], T],
        alignments: bool = False,
    ) -> list[T]:
        """Return what the record of each input is converted to, in as many requests as the server's limit asks for."""
        most, results = self.info["limits"]["items"], list[T]()
        for begin in range(0, len(inputs), most):
            part = list(inputs[begin : begin + most])
            content = {"model": self.name, "inputs": part, "options": options, "alignments": alignments}
            results += self.client.ask(
                "POST",
                f"/v1/{quote(self.task, safe='')}",
                partial(read_records, count=len(part), convert=convert),
                json=content,
            )
        return results

    def __repr__(self) -> str:
        return f"<heedful model {self.name} of a server: {self.task}>"


class RemoteTextGenerator(RemoteModel):
    """Lines to lines."""

    def __call__(self, inputs: str | Iterable[str], **options: Any) -> Any:
        answers = self._records(as_texts(inputs), options, lambda record: read_text(record, options))
        return answers[0] if isinstance(inputs, str) else answers

    def explain(self, inputs: str | Iterable[str], **options: Any) -> Any:
        """Return the output of a line, or of each of several, with its confidence and all details."""
        lines = as_texts(inputs)
        results = self._records(lines, options, read_generation, alignments=True)
        named = [one._replace(record={"source": line, **one.record}) for line, one in zip(lines, results, strict=True)]
        return named[0] if isinstance(inputs, str) else named

    def stream(self, line: str, **options: Any) -> Iterator[str]:
        """Yield the words of an output as they are written."""
        content = {"model": self.name, "inputs": [line], "options": options, "stream": True}
        sent = 0
        for name, event in self.client.stream(f"/v1/{quote(self.task, safe='')}", content):
            if name == "error":
                raise ERRORS.get(event.get("status", 0), ServeError)(str(event.get("detail")))
            with reading_answer(self.client.address):
                words = [str(event["word"])] if name == "word" else event["text"].split() if name == "output" else []
            yield from words[sent if name == "output" else 0 :]
            sent += len(words)


class RemoteCaptioner(RemoteModel):
    """Images to captions; an image is a path, an image of Pillow, an array, or the bytes of a file."""

    def __call__(self, inputs: Any, **options: Any) -> Any:
        answers = self._captions(inputs, options, lambda record: read_text(record, options))
        return answers if is_several(inputs) else answers[0]

    def explain(self, inputs: Any, **options: Any) -> Any:
        """Return the caption of an image, or of each of several, with its confidence."""
        results = self._captions(inputs, options, lambda record: read_generation({"image": "", **record}))
        return results if is_several(inputs) else results[0]

    def _captions(self, inputs: Any, options: dict[str, Any], convert: Callable[[dict[str, Any]], T]) -> list[T]:
        most, images, results = self.info["limits"]["items"], as_list(inputs), list[T]()
        fields = {"request": json.dumps({"model": self.name, "options": options})}
        for begin in range(0, len(images), most):
            files = [("file", ("image", image_bytes(image))) for image in images[begin : begin + most]]
            results += self.client.ask(
                "POST",
                "/v1/caption",
                partial(read_records, count=len(files), convert=convert),
                files=files,
                data=fields,
            )
        return results

    def _send(self, path: str, item: Any, fields: dict[str, Any]) -> httpx.Response:
        data = {"request": json.dumps(self._trace_fields(fields))}
        return self.client.request("POST", path, files=[("file", ("image", image_bytes(item)))], data=data)


class RemoteClassifier(RemoteModel):
    """Texts to labels."""

    def __call__(self, inputs: str | Iterable[str], **options: Any) -> Any:
        labels = self._records(as_texts(inputs), options, lambda record: record["label"] or "")
        return labels[0] if isinstance(inputs, str) else labels

    def explain(self, inputs: str | Iterable[str]) -> Any:
        """Return the probabilities of all labels and the attention weight of each word."""

        def convert(record: dict[str, Any]) -> Classification:
            return Classification(**{key: record[key] for key in Classification._fields})

        results = self._records(as_texts(inputs), {}, convert, alignments=True)
        return results[0] if isinstance(inputs, str) else results


class RemoteLanguageModel(RemoteModel):
    """Lines to the surprisal of their words."""

    def __call__(self, inputs: str | Iterable[str], **options: Any) -> Any:
        def convert(record: dict[str, Any]) -> list[tuple[str, float]]:
            return [(word["word"], word["bits"]) for word in record["words"]]

        answers = self._records(as_texts(inputs), options, convert)
        return answers[0] if isinstance(inputs, str) else answers


class RemoteRecommender(RemoteModel):
    """Users or histories to items."""

    def __call__(self, *inputs: Any, user: Any = None, items: Any = None, top: int = 10, **options: Any) -> Any:
        several, histories = _histories(inputs, user, items)

        def convert(record: dict[str, Any]) -> list[Recommendation]:
            return [read_item(item) for item in record["items"]]

        answers = self._records(histories, {"top": top, **options}, convert)
        return answers if several else answers[0]

    def trace(self, inputs: Any = None, *, user: Any = None, items: Any = None, **options: Any) -> Any:
        """Record how items are scored for a user or a history."""
        several, histories = _histories(() if inputs is None else (inputs,), user, items)
        answers = (self._send("/v1/trace", item, dict(options)) for item in histories)
        traces = [read_json(answer, Trace.model_validate) for answer in answers]
        return traces if several else traces[0]


def image_bytes(image: Any) -> bytes:
    """Return an image as the content of a file."""
    if isinstance(image, bytes | bytearray | memoryview):
        return bytes(image)
    source = image_source(image)
    if isinstance(source, ImageFile):
        try:
            return source.path.read_bytes()
        except OSError as error:
            raise ArgumentError(f"{source.path}: cannot be read: {error.strerror}") from None
    file = io.BytesIO()
    source.open().save(file, "PNG")
    return file.getvalue()


def _histories(inputs: tuple[Any, ...], user: Any, items: Any) -> tuple[bool, list[dict[str, Any]]]:
    """Return whether several users or histories are meant, and each as the server takes it."""
    if inputs or (user is None) == (items is None):
        raise ArgumentError("say what it is: user=7 for a user, items=[...] for a history of items")
    if user is not None:
        return is_several(user), [{"user": name} for name in as_list(user)]
    listed = as_list(items)
    several = any(map(is_several, listed))
    return several, [{"items": as_list(names)} for names in (listed if several else [listed])]
