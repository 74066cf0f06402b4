"""A client of `heedful serve`, whose models are called like those of `heedful.load`."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from time import sleep
from typing import Any, Self

from heedful.arguments import as_list, as_texts, is_several
from heedful.data.images.files import ImageFile, image_source
from heedful.errors import ArgumentError, DecodingTimeoutError, HeedfulError, ServeError, TooLargeError
from heedful.tasks.classify.predict import Classification
from heedful.tasks.generation_result import Generation
from heedful.tasks.recommend.predict import Reason, Recommendation
from heedful.trace.schema import Edit, Trace

try:
    import httpx2 as httpx
except ModuleNotFoundError:
    raise ServeError("heedful.Client needs httpx2: pip install 'heedful[serve]'") from None

MAX_RETRIES = 5  # of a server that is busy
MAX_WAIT = 30.0  # seconds before a retry
ERRORS: dict[int, type[HeedfulError]] = {
    404: ArgumentError,
    413: TooLargeError,
    422: ArgumentError,
    504: DecodingTimeoutError,
}


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

    def models(self) -> list[dict[str, Any]]:
        """Return the served models: names, tasks, languages, options and limits."""
        models: list[dict[str, Any]] = self.request("GET", "/v1/models").json()["models"]
        return models

    def load(self, name: str | None = None, *, task: str | None = None) -> RemoteModel:
        """Return a model of the server: by its name, or the first one for a task (default: "translate")."""
        if name is None:
            wanted = task or "translate"
            names = [model["name"] for model in self.models() if model["task"] == wanted]
            if not names:
                raise ServeError(f"the server has no model for {wanted}")
            name = names[0]
        info = self.request("GET", f"/v1/models/{name}").json()
        if task is not None and info["task"] != task:
            raise ArgumentError(f"{name} was trained to {info['task']}, not to {task}")
        kinds = {
            "classify": RemoteClassifier,
            "caption": RemoteCaptioner,
            "read": RemoteLanguageModel,
            "recommend": RemoteRecommender,
        }
        return kinds.get(info["task"], RemoteTextGenerator)(self, info)

    def request(self, method: str, path: str, **content: Any) -> httpx.Response:
        """Return the response to a request; raise an error of heedful if it is a problem."""
        for attempt in range(MAX_RETRIES + 1):
            try:
                response = self._http.request(method, path, **content)
            except httpx.HTTPError as error:
                raise ServeError(f"{self._http.base_url}: {str(error) or type(error).__name__}") from None
            if response.status_code not in (429, 503) or attempt == MAX_RETRIES:
                break
            sleep(_retry_after(response))
        raise_problem(response)
        return response

    def stream(self, path: str, content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name and content of each server-sent event."""
        with self._http.stream("POST", path, json=content) as response:
            if response.status_code != 200:
                response.read()
            raise_problem(response)
            name = ""
            for line in response.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, json.loads(value)

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
        return Trace.model_validate(self._send("/v1/trace", inputs, options).json())

    def trace_change(
        self, inputs: Any, edits: Any = (), *, prefix: str | Sequence[int] = (), candidates: int = 8, **options: Any
    ) -> tuple[Trace, Trace]:
        """Return the traces before and after a change; arguments as in `heedful.Model.trace_change`."""
        fields = {"edits": edits, "prefix": prefix, "top_k": candidates, **options}
        result = self._send("/v1/whatif", inputs, fields).json()
        return Trace.model_validate(result["before"]), Trace.model_validate(result["after"])

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
        self, inputs: Sequence[Any], options: dict[str, Any], alignments: bool = False
    ) -> list[dict[str, Any]]:
        """Return a record per input, of as many requests as the server's limit makes necessary."""
        most, records = int(self.info["limits"]["items"]), list[dict[str, Any]]()
        for begin in range(0, len(inputs), most):
            content = {"inputs": list(inputs[begin : begin + most]), "options": options, "alignments": alignments}
            response = self.client.request("POST", f"/v1/{self.task}", json={"model": self.name, **content})
            records += response.json()["outputs"]
        return records

    def __repr__(self) -> str:
        return f"<heedful model {self.name} of a server: {self.task}>"


class RemoteTextGenerator(RemoteModel):
    """Lines to lines."""

    def __call__(self, inputs: str | Iterable[str], **options: Any) -> Any:
        answers = [_answer(record, options) for record in self._records(as_texts(inputs), options)]
        return answers[0] if isinstance(inputs, str) else answers

    def explain(self, inputs: str | Iterable[str], **options: Any) -> Any:
        """Return the output of a line, or of each of several, with its confidence and all details."""
        lines = as_texts(inputs)
        records = self._records(lines, options, alignments=True)
        results = [_generation({"source": line, **record}) for line, record in zip(lines, records, strict=True)]
        return results[0] if isinstance(inputs, str) else results

    def stream(self, line: str, **options: Any) -> Iterator[str]:
        """Yield the words of an output as they are written."""
        content = {"model": self.name, "inputs": [line], "options": options, "stream": True}
        sent = 0
        for name, event in self.client.stream(f"/v1/{self.task}", content):
            if name == "word":
                sent += 1
                yield event["word"]
            elif name == "output":
                yield from event["text"].split()[sent:]
            elif name == "error":
                raise ERRORS.get(event["status"], ServeError)(event["detail"])


class RemoteCaptioner(RemoteModel):
    """Images to captions; an image is a path, an image of Pillow, an array, or the bytes of a file."""

    def __call__(self, inputs: Any, **options: Any) -> Any:
        answers = [_answer(record, options) for record in self._captions(inputs, options)]
        return answers if is_several(inputs) else answers[0]

    def explain(self, inputs: Any, **options: Any) -> Any:
        """Return the caption of an image, or of each of several, with its confidence."""
        results = [_generation({"image": "", **record}) for record in self._captions(inputs, options)]
        return results if is_several(inputs) else results[0]

    def _captions(self, inputs: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
        most, images, records = int(self.info["limits"]["items"]), as_list(inputs), list[dict[str, Any]]()
        for begin in range(0, len(images), most):
            files = [("file", ("image", image_bytes(image))) for image in images[begin : begin + most]]
            fields = {"request": json.dumps({"model": self.name, "options": options})}
            records += self.client.request("POST", "/v1/caption", files=files, data=fields).json()["outputs"]
        return records

    def _send(self, path: str, item: Any, fields: dict[str, Any]) -> httpx.Response:
        data = {"request": json.dumps(self._trace_fields(fields))}
        return self.client.request("POST", path, files=[("file", ("image", image_bytes(item)))], data=data)


class RemoteClassifier(RemoteModel):
    """Texts to labels."""

    def __call__(self, inputs: str | Iterable[str], **options: Any) -> Any:
        labels = [record["label"] or "" for record in self._records(as_texts(inputs), options)]
        return labels[0] if isinstance(inputs, str) else labels

    def explain(self, inputs: str | Iterable[str]) -> Any:
        """Return the probabilities of all labels and the attention weight of each word."""
        records = self._records(as_texts(inputs), {}, alignments=True)
        results = [Classification(**{key: record[key] for key in Classification._fields}) for record in records]
        return results[0] if isinstance(inputs, str) else results


class RemoteLanguageModel(RemoteModel):
    """Lines to the surprisal of their words."""

    def __call__(self, inputs: str | Iterable[str], **options: Any) -> Any:
        records = self._records(as_texts(inputs), options)
        answers = [[(word["word"], word["bits"]) for word in record["words"]] for record in records]
        return answers[0] if isinstance(inputs, str) else answers


class RemoteRecommender(RemoteModel):
    """Users or histories to items."""

    def __call__(self, *inputs: Any, user: Any = None, items: Any = None, top: int = 10, **options: Any) -> Any:
        several, histories = _histories(inputs, user, items)
        records = self._records(histories, {"top": top, **options})
        answers = [[_recommendation(item) for item in record["items"]] for record in records]
        return answers if several else answers[0]

    def trace(self, inputs: Any = None, *, user: Any = None, items: Any = None, **options: Any) -> Any:
        """Record how items are scored for a user or a history."""
        several, histories = _histories(() if inputs is None else (inputs,), user, items)
        traces = [Trace.model_validate(self._send("/v1/trace", item, dict(options)).json()) for item in histories]
        return traces if several else traces[0]


def raise_problem(response: httpx.Response) -> None:
    """Raise the error that a response stands for."""
    if response.status_code < 400:
        return
    try:
        detail = str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = f"{response.url} answered {response.status_code}; is it a server of heedful?"
    raise ERRORS.get(response.status_code, ServeError)(detail)


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


def _retry_after(response: httpx.Response) -> float:
    text = response.headers.get("retry-after", "1")
    return min(MAX_WAIT, float(text)) if text.isdecimal() else 1.0


def _answer(record: dict[str, Any], options: dict[str, Any]) -> Any:
    if options.get("n_best", 1) == 1:
        return record["text"]
    return [output["text"] for output in record["outputs"]] or [""]


def _generation(record: dict[str, Any]) -> Generation:
    return Generation(record.pop("text"), record["confidence"], record["unlike_training"], record)


def _histories(inputs: tuple[Any, ...], user: Any, items: Any) -> tuple[bool, list[dict[str, Any]]]:
    """Return whether several users or histories are meant, and each as the server takes it."""
    if inputs or (user is None) == (items is None):
        raise ArgumentError("say what it is: user=7 for a user, items=[...] for a history of items")
    if user is not None:
        return is_several(user), [{"user": name} for name in as_list(user)]
    listed = as_list(items)
    several = any(map(is_several, listed))
    return several, [{"items": as_list(names)} for names in (listed if several else [listed])]


def _recommendation(item: dict[str, Any]) -> Recommendation:
    reasons = [Reason(-1, r["id"], r["title"], r["weight"], r["effect"]) for r in item["reasons"]]
    return Recommendation(-1, item["id"], item["title"], item["score"], reasons)
