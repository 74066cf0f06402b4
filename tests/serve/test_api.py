"""The API over real sockets: verbs, traces, changes, models, and errors as problem details."""

from __future__ import annotations

import shutil
import threading
from io import BytesIO
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from PIL import Image

import heedful
from command_line import complaint
from heedful.serve.model_store import ModelStore
from heedful.serve.servables import Servable
from heedful.tasks.model_folder import load_model, save_model
from heedful.trace.schema import Trace
from serve.local import LocalServer, running
from serve.server import TEXTS, Server
from small_models import random_model_folder, small_preset


def picture() -> bytes:
    file = BytesIO()
    Image.fromarray(np.arange(48 * 64 * 3, dtype=np.uint8).reshape(48, 64, 3)).save(file, "PNG")
    return file.getvalue()


def problem(response: Any) -> tuple[int, str]:
    """Return status and detail of problem details, whose form is checked."""
    content = response.json()
    assert response.headers["content-type"] == "application/problem+json"
    assert content["type"].startswith("urn:heedful:problem:")
    assert content["status"] == response.status_code
    assert content["title"]
    assert content["request_id"] == response.headers["x-request-id"]
    return response.status_code, content["detail"]


def test_lists_in_lists_out(server: Server) -> None:
    response = server.post("/v1/translate", {"inputs": TEXTS})
    model = heedful.load("en-fr")
    assert response.json()["model"] == "en-fr"
    assert [output["text"] for output in response.json()["outputs"]] == model(TEXTS)


def test_options_are_those_of_the_command_line(server: Server) -> None:
    body = {"inputs": TEXTS[:1], "options": {"n_best": 2, "beam": 4}, "alignments": True}
    (record,) = server.post("/v1/translate", body).json()["outputs"]
    model: Any = heedful.load("en-fr")
    expected = model.explain(TEXTS[0], n_best=2, beam=4).to_dict()
    assert record["outputs"][0]["text"] == expected["outputs"][0]["text"]
    assert record["tokens"] == expected["tokens"]
    np.testing.assert_allclose(record["outputs"][0]["alignment"], expected["outputs"][0]["alignment"], atol=1e-4)
    assert len(record["outputs"]) == 2


@pytest.mark.parametrize(("verb", "key"), [("classify", "label"), ("read", "bits")])
def test_texts_are_judged(server: Server, verb: str, key: str) -> None:
    outputs = server.post(f"/v1/{verb}", {"inputs": ["where is my card", ""]}).json()["outputs"]
    assert outputs[0][key]
    assert not outputs[1].get(key)


def test_images_are_uploaded(server: Server) -> None:
    files = [("file", ("a.png", picture())), ("file", ("b.png", picture()))]
    response = server.client.post("/v1/caption", files=files, data={"request": '{"options": {"beam": 1}}'})
    texts = [output["text"] for output in response.json()["outputs"]]
    assert texts[0] == texts[1] == heedful.load("photos")(picture(), beam=1)


def test_traces_are_those_of_python(server: Server) -> None:
    response = server.post("/v1/trace", {"input": TEXTS[0], "detail": "weights", "what_if": False})
    trace = Trace.model_validate(response.json())
    own = heedful.load("en-fr").trace(TEXTS[0], detail="weights", what_if=False)
    assert trace.target.text == own.target.text
    np.testing.assert_allclose(trace.matrix(), own.matrix(), atol=1e-5)


def test_an_image_is_traced(server: Server) -> None:
    files, fields = {"file": ("a.png", picture())}, {"request": '{"detail": "weights", "what_if": false}'}
    assert Trace.model_validate(server.client.post("/v1/trace", files=files, data=fields).json()).source.image


def test_faithfulness_says_what_other_weights_would_do(server: Server) -> None:
    body = {"input": TEXTS[0], "detail": "weights", "what_if": False, "faithfulness": True}
    result = server.post("/v1/trace", body).json()["faithfulness"]
    assert result["uniform"]["changed"]
    assert result["uniform"]["logp"] < result["logp"]


def test_a_change_of_weights_generates_the_rest_again(server: Server) -> None:
    body = {"input": TEXTS[0], "edits": ["onehot:step=1,position=3"], "top_k": 3, "detail": "weights"}
    result = server.post("/v1/whatif", body).json()
    before, after = (Trace.model_validate(result[side]) for side in ("before", "after"))
    assert after.parent == before.id
    assert after.target.tokens[0] == before.target.tokens[0]
    assert result["changed"] == (before.target.text != after.target.text)
    assert after.weights()[1, 0, 3] == 1
    assert [len(step["top"]) for step in result["steps"]] == [3] * len(after.steps)


def test_an_edit_may_be_an_object_of_the_trace_schema(server: Server) -> None:
    edit = {"op": "onehot", "site": "cross", "step": 1, "head": 0, "position": 3}
    result = server.post("/v1/whatif", {"input": TEXTS[0], "edits": [edit], "detail": "weights"}).json()
    assert Trace.model_validate(result["after"]).weights()[1, 0, 3] == 1


def test_an_alternative_is_forced_by_its_id(server: Server) -> None:
    first = server.post("/v1/trace", {"input": TEXTS[0], "detail": "weights", "what_if": False}).json()
    chosen = first["steps"][0]["top"][1]
    result = server.post("/v1/whatif", {"input": TEXTS[0], "prefix": [chosen["id"]], "detail": "weights"}).json()
    assert result["after"]["target"]["tokens"][0]["id"] == chosen["id"]
    assert [step["forced"] for step in result["after"]["steps"]][:2] == [True, False]


def test_models_are_described(server: Server) -> None:
    listed = {model["name"]: model for model in server.get("/v1/models").json()["models"]}
    assert {"en-fr", "intents", "novels", "photos"} <= set(listed)
    model = server.get("/v1/models/en-fr").json()
    assert model["sites"] == [{"id": "cross", "kind": "cross", "heads": 1, "mass": "one"}]
    assert model["languages"] == ["en", "fr"]
    assert model["options"]["method"] == "beam"
    assert model["metrics"]["bleu"] > 30


def test_a_trace_becomes_a_page_and_a_figure(server: Server) -> None:
    trace = server.post("/v1/trace", {"input": TEXTS[0], "detail": "weights", "what_if": False}).json()
    html = server.post("/v1/page", {"trace": trace, "format": "html"})
    assert html.text.startswith("<!doctype html>")
    assert "sandbox" in html.headers["content-security-policy"]
    assert server.post("/v1/page", {"trace": trace, "format": "png"}).content.startswith(b"\x89PNG")
    assert problem(server.post("/v1/page", {"trace": {}}))[0] == 422


def test_the_schema_of_traces(server: Server) -> None:
    assert server.get("/v1/schema/trace").json()["title"] == "Trace"


def test_clients_of_libretranslate_work(server: Server) -> None:
    form = {"q": TEXTS[0], "source": "en", "target": "fr", "format": "text", "api_key": ""}
    expected = heedful.load("en-fr")(TEXTS[:2])
    assert server.client.post("/translate", data=form).json() == {"translatedText": expected[0]}
    body = {"q": TEXTS[:2], "source": "auto", "target": "fr", "alternatives": 1}
    answer = server.post("/translate", body).json()
    assert len(answer["translatedText"]) == len(answer["alternatives"]) == len(answer["detectedLanguage"]) == 2
    assert server.get("/languages").json() == [{"code": "en", "name": "English", "targets": ["fr"]}]
    refused = server.post("/translate", {"q": "Hallo", "source": "de", "target": "fr"})
    assert "known: en-fr" in refused.json()["error"]


VERBS = ("summarize", "reply", "transduce")


@pytest.mark.parametrize("verb", VERBS)
def test_other_verbs_that_generate(folder: Path, tmp_path: Path, verb: str) -> None:
    loaded, model = load_model(folder), tmp_path / verb
    task = loaded.recipe.task.model_copy(update={"kind": verb})
    save_model(model, loaded.recipe.model_copy(update={"task": task}), loaded.assets, loaded.model, {})
    with running(model) as local:
        body = {"inputs": TEXTS, "options": {"max_length": 5}}
        outputs = local.post(f"/v1/{verb}", body).json()["outputs"]
        assert [output["text"] for output in outputs] == heedful.load(model)(TEXTS, max_length=5)
        assert local.get("/v1/models").json()["models"][0]["verb"] == f"/v1/{verb}"


def test_items_are_recommended(server: Server) -> None:
    inputs = [{"items": ["Toy Story"]}, {"items": ["id:0120363", "Toy Story"]}]
    outputs = server.post("/v1/recommend", {"inputs": inputs, "options": {"top": 3, "reasons": 1}}).json()["outputs"]
    films = heedful.load("films")
    for output, history in zip(outputs, inputs, strict=True):
        assert [item["id"] for item in output["items"]] == [item.id for item in films(items=history["items"], top=3)]
        assert [len(item["reasons"]) for item in output["items"]] == [1, 1, 1]
    trace = Trace.model_validate(server.post("/v1/trace", {"input": inputs[1], "detail": "weights"}).json())
    assert trace.model.task == "recommend"


def test_any_site_head_and_step_is_edited(tmp_path: Path) -> None:
    config = small_preset("transformer", encoder__layers=2, decoder__layers=2)
    with running(random_model_folder(tmp_path / "m", config).path) as local:
        sites = {site["id"]: site["heads"] for site in local.get("/v1/models/m").json()["sites"]}
        assert len(sites) == 6  # of the encoder, of the decoder, and between them, in two layers each
        for site, heads in sites.items():
            edit = {"op": "onehot", "site": site, "step": 1, "head": heads - 1, "position": 0}
            body = {"input": "the black cat", "edits": [edit], "detail": "weights", "options": {"max_length": 5}}
            result = local.post("/v1/whatif", body)
            assert result.status_code == 200, result.text
            after = Trace.model_validate(result.json()["after"])
            assert after.weights(site)[1, heads - 1, 0] == 1


def test_sentences_are_those_of_the_command_line(local: LocalServer, folder: Path, tmp_path: Path) -> None:
    for edit in ("onehot:step=1,position=99", "onehat:step=1", "uniform:site=cross2"):
        said = complaint("trace", "-m", folder, "the cat", "-o", tmp_path / "t.json", "--set", edit)
        detail = problem(local.post("/v1/trace", {"input": "the cat", "edits": [edit]}))[1]
        assert detail.splitlines()[0] in said


WRONG = [
    ({"inputs": ["a"], "options": {"beem": 3}}, 422, 'options.beem: no such argument; did you mean "beam"?'),
    ({"inputs": ["a"], "options": {"beam": 0}}, 422, "options.beam=0: must be more than 0"),
    ({"inputs": ["a"], "options": {"batch_size": 2}}, 422, "the server chooses its batches"),
    ({"inputs": ["a"], "options": {"beam": 33}}, 413, "options.beam=33: this server computes at most 32"),
    ({"inputs": ["a"], "options": {"max_seconds": -1}}, 422, "options.max_seconds=-1"),
    ({"inputs": []}, 422, "inputs: "),
    ({"inputs": ["a"], "imputs": 1}, 422, "imputs: there is no such field"),
    ({"inputs": ["a", 3]}, 422, "inputs[1]: "),
    ({"inputs": ["a"], "model": "en-ff"}, 404, 'did you mean "en-fr"?'),
    ({"inputs": ["a"], "model": "../en-fr"}, 404, "no model"),
    ({"inputs": ["a"], "model": "intents"}, 422, "intents was trained to classify; use /v1/classify"),
    ({"inputs": ["word " * 1_200]}, 413, "inputs[0] has 1,201 tokens, but en-fr reads at most 1,000"),
    ({"inputs": ["a"] * 129}, 413, "129 are too many; send at most 128"),
    ({"inputs": ["a" * 100_001]}, 413, "100,001 characters are too many"),
]


@pytest.mark.parametrize(("body", "status", "detail"), WRONG, ids=[row[2][:30] for row in WRONG])
def test_errors_are_problem_details(server: Server, body: Any, status: int, detail: str) -> None:
    answer = problem(server.post("/v1/translate", body))
    assert answer[0] == status
    assert detail in answer[1]


def test_errors_of_the_protocol_are_problem_details(server: Server) -> None:
    assert problem(server.get("/nothing"))[0] == 404
    assert problem(server.post("/health"))[0] == 405
    json = {"content-type": "application/json"}
    assert problem(server.client.post("/v1/translate", content=b"{", headers=json))[0] == 422
    half = problem(server.client.post("/v1/translate", content=b'{"inputs":["\\ud800"]}', headers=json))
    assert "surrogate" in half[1]
    assert problem(server.post("/v1/trace", {"input": "The cat", "edits": ["onehat:step=1"]}))[0] == 422
    assert problem(server.post("/v1/trace", {"input": "The cat", "model": "photos"}))[1].endswith("an uploaded image")
    assert problem(server.post("/v1/summarize", {"inputs": ["a"]}))[0] == 404


def test_an_image_with_too_many_pixels_is_refused(server: Server) -> None:
    png = picture()
    header = png[12:16] + (60_000).to_bytes(4, "big") * 2 + png[24:29]
    bomb = png[:12] + header + crc32(header).to_bytes(4, "big") + png[33:]
    status, detail = problem(server.client.post("/v1/caption", files={"file": ("a.png", bomb)}))
    assert (status, "pixels" in detail) == (413, True)


def test_it_is_ready_when_its_models_are_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loading = threading.Event()

    def load(self: ModelStore, name: str) -> Servable:
        loading.wait(60)
        return get(self, name)

    get = ModelStore.get
    monkeypatch.setattr(ModelStore, "get", load)
    with running(folder, ready=False) as local:
        assert local.get("/health").status_code == 200
        waiting = local.get("/ready")
        assert problem(waiting) == (503, "models are being loaded")
        assert int(waiting.headers["retry-after"]) >= 1
        loading.set()
        local.wait_until(lambda: local.get("/ready").status_code == 200)
        assert local.get("/ready").json()["loaded"] == ["m"]


def test_it_is_not_ready_if_its_model_cannot_be_loaded(folder: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    (broken / "model.safetensors").unlink()
    with running(broken) as local:
        status, detail = problem(local.get("/ready"))
        assert (status, "model.safetensors" in detail) == (503, True)


def test_what_does_not_fit_into_the_queue_is_refused(folder: Path) -> None:
    body = {"inputs": ["the black cat"] * 3, "options": {"beam": 32, "max_length": 200}}
    with running(folder, limits={"queue": 4}) as busy:
        answers: list[Any] = []
        threads = [threading.Thread(target=lambda: answers.append(busy.post("/v1/translate", body))) for _ in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        refused = [answer for answer in answers if answer.status_code != 200]
        assert refused
        for answer in refused:
            assert problem(answer)[0] == 503
            assert int(answer.headers["retry-after"]) >= 1


def test_health_metrics_and_request_ids(server: Server) -> None:
    assert server.get("/health").json() == {"status": "alive"}
    assert server.get("/health", headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert server.get("/health", headers={"x-request-id": "no spaces"}).headers["x-request-id"] != "no spaces"
    server.post("/v1/translate", {"inputs": TEXTS})
    numbers = server.get("/metrics").text
    for name in (
        "requests_total",
        "request_seconds_bucket",
        "queue_length",
        "batch_size_bucket",
        "source_tokens_total",
    ):
        assert f"heedful_{name}" in numbers


def test_the_log_has_no_texts_of_users(server: Server) -> None:
    secret = "Xylophone"
    server.post("/v1/translate", {"inputs": [secret]}, headers={"x-request-id": "look-1"})
    server.post("/v1/classify", {"inputs": [secret, f"{secret} {secret}"]})
    server.post("/v1/read", {"inputs": [secret], "model": secret})
    server.get(f"/{secret}", params={"q": secret})
    server.post("/v1/trace", {"input": secret, "edits": [secret]}, headers={"x-request-id": "look-2"})
    server.wait_until(lambda: any(line.get("request_id") == "look-2" for line in server.log()))
    (line,) = (line for line in server.log() if line.get("request_id") == "look-1")
    assert (line["path"], line["status"], line["model"], line["inputs"]) == ("/v1/translate", 200, "en-fr", 1)
    assert secret not in "".join(server.lines)
