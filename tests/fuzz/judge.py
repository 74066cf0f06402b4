"""The property that every case must have; a failure has a signature, by which failures are grouped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from fuzz.case import WORK, Case

SECONDS, MEMORY = 20.0, 1_500_000_000
EXIT_CODES = (0, 1, 2, 130)  # done, some inputs failed, the user's mistake, interrupted
LONGEST_MESSAGE = 20_000  # characters
TERMINAL = ("check", "show", "measure", "evaluate", "recommend", "trace", "models", "world", "train")  # for people


MEANT_FOR_USERS = ("UserWarning at viz/fonts: no installed font has", "UserWarning at generation/")  # of transformers
OWN_PROGRAMS = ("subprocess.Popen in metrics.meteor:",)  # Java, for METEOR, where it is installed


@dataclass(frozen=True)
class Outcome:
    """The worker's reply, the files that the case created and changed, and what it left in the temporary folder."""

    reply: dict[str, Any]
    created: list[str]
    changed: list[str]
    temporary: list[str]


@dataclass(frozen=True)
class Failure:
    """What is wrong with a case: a signature for grouping, and a text for people."""

    signature: str
    text: str


def judge(case: Case, outcome: Outcome) -> Failure | None:
    """Return the worst failure of a case, or None."""
    for check in (_died, _excess, _foreign_code, _ending, _files, _messages):
        failure = check(case, outcome)
        if failure is not None:
            return failure
    return None


def _died(case: Case, outcome: Outcome) -> Failure | None:
    reply = outcome.reply
    if reply["killed"]:
        kind = {"time": "hang", "memory": "memory"}.get(reply["killed"], reply["killed"])
        place = f"of {case.argv[0]}" if kind == "hang" else f"in {reply['frame']}"
        size = f"{reply['seconds']:.1f} s, {reply['peak'] / 1e9:.1f} GB"
        text = f"{kind} in {reply['frame']} after {size}; {reply['native'][-500:]}"
        return Failure(f"{kind} {place}", text)
    if reply["exception"]:
        return Failure(f"{reply['exception']} in {reply['frame']}", reply["traceback"])
    if "panicked" in reply["native"]:
        return Failure("panic message on stderr", reply["native"])
    return None


def _excess(case: Case, outcome: Outcome) -> Failure | None:
    reply = outcome.reply
    if reply["peak"] > MEMORY:
        return Failure(f"memory in {reply['frame'] or case.argv[:1]}", f"{reply['peak'] / 1e9:.2f} GB")
    if reply["cpu"] > SECONDS:
        return Failure(f"hang of {case.argv[0]}", f"{reply['cpu']:.1f} s")
    return None


def _foreign_code(case: Case, outcome: Outcome) -> Failure | None:
    for event in outcome.reply["events"]:
        if event.startswith(OWN_PROGRAMS):
            continue
        if not event.startswith("opened"):
            return Failure(f"{event} ({case.argv[0]})", str(outcome.reply["stderr"]))
        if case.private:
            return Failure("opened a file outside the case's folder", f"{event}: {case.argv}")
    return None


def _ending(case: Case, outcome: Outcome) -> Failure | None:
    reply = outcome.reply
    if reply["code"] not in EXIT_CODES:
        return Failure(f"exit code {reply['code']} of {case.argv[:1]}", reply["stderr"])
    if "Traceback (most recent call last)" in reply["stderr"]:
        return Failure(f"traceback printed by {case.argv[:1]}", reply["stderr"])
    if reply["code"] and not reply["stderr"].strip():
        return Failure(f"exit code {reply['code']} without a message ({case.argv[:1]})", reply["stdout"])
    if reply.get("bad_json"):
        return Failure(f"--json of {case.argv[0]} is not JSON", f"{reply['bad_json']}\n{reply['stdout'][:1_000]}")
    messages = re.findall(r"^(?:error|Error):.*", reply["stderr"], re.MULTILINE)
    if reply["code"] == 2 and len([text for text in messages if not re.search(r", line \d+: ", text)]) > 1:
        return Failure(f"several error messages ({case.argv[:1]})", reply["stderr"])
    return None


def _files(case: Case, outcome: Outcome) -> Failure | None:
    allowed = tuple(f"{WORK}/{path}" for path in case.outputs)
    done = outcome.reply["code"] in (0, 1)
    verb = case.argv[0] if case.argv else ""
    parts = verb == "batch"  # those that are done stay, and the same command goes on
    created = [
        name for name in outcome.created if not ((done or (parts and not name.endswith("/"))) and _below(name, allowed))
    ]
    changed = [name for name in outcome.changed if not ((done or parts) and _below(name, allowed))]
    if changed:
        return Failure(f"input changed by {verb}", ", ".join(changed))
    if created:
        return Failure(f"left behind by {verb}", ", ".join(created))
    if outcome.temporary:
        return Failure(f"temporary file left behind by {verb}", ", ".join(outcome.temporary))
    return None


def _below(name: str, allowed: tuple[str, ...]) -> bool:
    return any(name.rstrip("/") == path or name.startswith(f"{path}/") for path in allowed)


def _messages(case: Case, outcome: Outcome) -> Failure | None:
    reply, verb = outcome.reply, case.argv[0] if case.argv else ""
    unexpected = [text for text in reply["warnings"] if not text.startswith(MEANT_FOR_USERS)]
    if unexpected:
        return Failure(f"warning: {unexpected[0].partition(':')[0]}", "\n".join(unexpected[:3]))
    if reply["controls"][1]:
        return Failure(f"control character on stderr ({verb})", f"{reply['controls'][1]} {reply['stderr'][:500]!r}")
    if reply["controls"][0] and verb in TERMINAL:
        return Failure(f"control character on stdout ({verb})", f"{reply['controls'][0]} {reply['stdout'][:500]!r}")
    if reply["sizes"][1] > LONGEST_MESSAGE:
        return Failure(f"message of more than {LONGEST_MESSAGE} characters ({verb})", reply["stderr"][:500])
    return None
