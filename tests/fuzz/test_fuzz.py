"""A short campaign, every case that failed once, and the harness itself."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.campaign import Progress, failure_list, report, run_campaign
from fuzz.case import Case, decode_case, encode_case, refresh_hashes
from fuzz.corpus import Corpus, load_corpus
from fuzz.generate import GENERATORS, make_case, one_of_each
from fuzz.http_requests import ANSWERS, INFO, SESSION
from fuzz.http_target import BrokenPromiseError, check_answer
from fuzz.judge import Outcome, judge
from fuzz.minimize import minimize
from fuzz.supervisor import Supervisor

SEED, CASES = 7, 800
TRANSLATED = json.dumps(ANSWERS["translate"]).encode()
REGRESSIONS = sorted(Path(__file__).with_name("regressions").glob("*.json"))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory and time are read from /proc")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus()


@pytest.fixture(scope="module")
def supervisor(corpus: Corpus) -> Iterator[Supervisor]:
    with Supervisor(corpus.models) as started:
        yield started


def check(case: Case, supervisor: Supervisor) -> None:
    failure = judge(case, supervisor.run(case))
    assert failure is None, f"{case.name}: heedful {case.argv}: {failure.signature}\n{failure.text}"


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: str(path.stem))
def test_cases_that_failed_once(path: Path, corpus: Corpus, supervisor: Supervisor) -> None:
    check(decode_case(path.read_text(encoding="utf-8"), corpus.models), supervisor)


def test_a_short_campaign(corpus: Corpus, supervisor: Supervisor) -> None:
    failures = []
    for case in one_of_each(corpus, SEED, CASES):
        failure = judge(case, supervisor.run(case))
        if failure is not None:
            failures.append(f"{case.name} heedful {case.argv}: {failure.signature}: {failure.text[-600:]!a}")
    assert failures == [], "\n\n".join(failures)


# The harness itself


def test_intact_inputs_pass(corpus: Corpus, supervisor: Supervisor) -> None:
    """The files that cases are made from are good ones, so that a refusal is due to the change."""
    for name, trace in corpus.traces.items():
        outcome = supervisor.run(Case("trace", ("show", "t.json"), {"t.json": trace}))
        assert outcome.reply["code"] == 0, (name, outcome.reply["stderr"])
    for argv, stdin in (
        (("http",), ASKED.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")),
        (("client", "translate", json.dumps({"status": 200, "headers": {}, "info": INFO})), TRANSLATED),
    ):
        outcome = supervisor.run(Case(argv[0], argv, stdin=stdin))
        assert outcome.reply["code"] == 0, (argv, outcome.reply["stderr"])
    files = {f"m/{name}": data for name, data in corpus.models["translate"].items()}
    outcome = supervisor.run(Case("model", ("translate", "-m", "m"), files, b"the cat\n", folders={"m": "translate"}))
    assert outcome.reply["code"] == 0, outcome.reply["stderr"]


def test_a_case_depends_on_its_seed_and_number_only(corpus: Corpus) -> None:
    cases = [make_case(corpus, 3, number) for number in range(200)]
    assert cases == [make_case(corpus, 3, number) for number in range(200)]
    assert cases != [make_case(corpus, 4, number) for number in range(200)]
    assert {case.kind for case in one_of_each(corpus, 3, len(GENERATORS))} >= {"recipe", "trace", "model", "picture"}


def test_a_case_survives_being_stored(corpus: Corpus) -> None:
    for number in range(100):
        case = make_case(corpus, 5, number)
        assert decode_case(encode_case(case, corpus.models), corpus.models) == case


def test_hashes_are_refreshed(corpus: Corpus) -> None:
    intact = corpus.models["classify"]
    files = {f"m/{name}": data for name, data in intact.items()}
    files["m/model.safetensors"] = b"changed"
    assert refresh_hashes(files, "m", intact)["m/model.json"] != intact["model.json"]


BAD: dict[str, tuple[str, str]] = {
    "exception": ("raise KeyError('x')", "KeyError in "),
    "exit code": ("raise SystemExit(7)", "exit code 7"),
    "no message": ("raise SystemExit(2)", "without a message"),
    "left behind": ("open('left', 'w').close(); raise SystemExit(0)", "left behind"),
    "input changed": ("open('r.toml', 'w').close(); raise SystemExit(0)", "input changed"),
    "crash": ("import ctypes; ctypes.string_at(0)", "died: SIGSEGV"),
    "memory": ("x = bytearray(3_000_000_000)", "memory in "),
    "stranger": ("import importlib; importlib.import_module('stranger.evil')", "imported a stranger's module"),
    "process": ("import subprocess; subprocess.run(['true'])", "subprocess.Popen"),
    "control": ("import sys; print('\\x1b[1m', file=sys.stderr); raise SystemExit(0)", "control character"),
    "warning": ("import warnings; warnings.warn('x'); raise SystemExit(0)", "warning: UserWarning"),
}


@pytest.fixture(scope="module")
def faulty(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    """A worker whose program runs the recipe as Python."""
    folder = tmp_path_factory.mktemp("faulty")
    main = "def main():\n    exec(open('r.toml').read(), {})\n"
    (folder / "sitecustomize.py").write_text(f"import heedful.cli\n{main}heedful.cli.main = main\n")
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    with pytest.MonkeyPatch.context() as patch, Supervisor(corpus.models) as started:
        patch.setenv("PYTHONPATH", path)
        yield started


@pytest.mark.parametrize("fault", BAD)
def test_a_fault_is_noticed(fault: str, faulty: Supervisor) -> None:
    code, signature = BAD[fault]
    case = Case("recipe", ("check", "r.toml"), {"r.toml": code.encode()}, private=True)
    failure = judge(case, faulty.run(case))
    assert failure is not None
    assert signature in failure.signature


@pytest.mark.parametrize(
    ("code", "limit"), [("while True: pass", "SECONDS"), ("import time; time.sleep(60)", "IDLE_SECONDS")]
)
def test_a_hang_is_noticed(code: str, limit: str, faulty: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"fuzz.supervisor.{limit}", 0.5)
    case = Case("recipe", ("check", "r.toml"), {"r.toml": code.encode()}, private=True)
    failure = judge(case, faulty.run(case))
    assert failure is not None
    assert failure.signature == "hang of check"


HEAD = (
    b"content-type: application/json\r\nx-content-type-options: nosniff\r\ncontent-security-policy: x\r\n"
    b"x-request-id: 1\r\n"
)
ASKED = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\ncookie: heedful_session=" + SESSION.encode() + b"\r\n\r\n"
PROBLEM = b'{"type": "x", "title": "x", "status": 422, "detail": "x"}'
BROKEN = {  # request and answer -> what is wrong with it
    "status 500": (ASKED, b"HTTP/1.1 500 x\r\n" + HEAD + b"\r\n{}"),
    "an answer without a session": (ASKED.replace(b"fuzz", b"fizz"), b"HTTP/1.1 200 x\r\n" + HEAD + b"\r\n{}"),
    "another host": (ASKED.replace(b"localhost", b"evil.example"), b"HTTP/1.1 200 x\r\n" + HEAD + b"\r\n{}"),
    "a path of the server": (ASKED, b"HTTP/1.1 200 x\r\n" + HEAD + b'\r\n{"x": "/secret/folder"}'),
    "no header content-security-policy": (
        ASKED,
        b"HTTP/1.1 200 x\r\n" + HEAD.replace(b"content-security", b"x") + b"\r\n{}",
    ),
    "NaN in JSON": (ASKED, b"HTTP/1.1 200 x\r\n" + HEAD + b"\r\nNaN"),
    "an error that is no problem": (ASKED, b"HTTP/1.1 422 x\r\n" + HEAD + b"\r\n" + PROBLEM),
    "lacks a field": (ASKED, b"HTTP/1.1 422 x\r\n" + HEAD.replace(b"json", b"problem+json") + b"\r\n{}"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_promise_of_the_server_is_noticed(fault: str) -> None:
    with pytest.raises(BrokenPromiseError, match=fault):
        check_answer(*BROKEN[fault], "/secret")


def test_good_answers_of_the_server_pass() -> None:
    check_answer(ASKED, b"HTTP/1.1 200 x\r\n" + HEAD + b"\r\n{}", "/secret")
    with pytest.raises(SystemExit):  # with the exit code of a mistake
        check_answer(
            ASKED, b"HTTP/1.1 422 x\r\n" + HEAD.replace(b"json", b"problem+json") + b"\r\n" + PROBLEM, "/secret"
        )


def test_minimize_keeps_the_failure(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(case: Case) -> Outcome:
        failed = b"bad" in case.files.get("r.toml", b"") and "x=1" in case.argv
        reply = {"killed": "", "exception": "KeyError" if failed else "", "frame": "f", "traceback": "", "native": ""}
        rest = {
            "peak": 0,
            "cpu": 0.0,
            "events": [],
            "code": 0,
            "stderr": "",
            "warnings": [],
            "controls": ["", ""],
            "sizes": [0, 0],
        }
        return Outcome({**reply, **rest}, [], [], [])

    with Supervisor(corpus.models) as unused:
        monkeypatch.setattr(unused, "run", run)
        case = Case(
            "recipe", ("check", "r.toml", "x=1", "y=2"), {"r.toml": b"a" * 90 + b"bad" + b"c" * 70, "other": b"x"}
        )
        small = minimize(case, unused, "KeyError in f")
    assert (small.argv, dict(small.files)) == (("check", "x=1"), {"r.toml": b"bad"})


def test_a_campaign_resumes_where_it_stopped(corpus: Corpus, supervisor: Supervisor, tmp_path: Path) -> None:
    path, lines = tmp_path / "state.json", list[str]()
    progress = Progress(seed=9)
    run_campaign(corpus, [supervisor], progress, 3, path, lines.append, ("recipe",))
    progress = Progress.load(path, 9)
    assert progress.done == 3
    run_campaign(corpus, [supervisor], progress, 5, path, lines.append, ("recipe",))
    assert Progress.load(path, 9).kinds == {"recipe": 5}
    assert "5 cases" in failure_list(progress)
    assert "| recipe | 5 |" in report(progress, "make fuzz")


# Traces are written and read again exactly; hypothesis shrinks what fails.


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_traces_of_any_words_and_weights_survive(data: st.DataObject, tmp_path: Path) -> None:
    from heedful.trace.schema import Trace

    words = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=1, max_size=4)
    source, target = data.draw(words), data.draw(words)
    number = st.floats(0, 1, width=32)
    row = st.lists(number, min_size=len(source), max_size=len(source))
    weights = data.draw(st.lists(row, min_size=len(target), max_size=len(target)))
    trace = Trace.from_weights(source, target, weights)
    path = tmp_path / data.draw(st.sampled_from(["t.json", "t.json.gz"]))
    trace.save(path)
    assert Trace.load(path) == trace
