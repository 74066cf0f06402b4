"""What SECURITY.md promises about the source: nothing in it can run code from a file. And the audit's report."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from audit import Vulnerabilities, describe, runtime_packages

SOURCE = Path(__file__).parent.parent / "src" / "heedful"
FORBIDDEN_CALLS = {
    "eval",
    "exec",
    "__import__",
    "os.system",
    "os.popen",
    "pickle.load",
    "pickle.loads",
    "yaml.load",
    "marshal.loads",
}
EXCEPTIONS = ("UnpicklingError", "PickleError")  # what torch.load raises for a damaged file
PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def call_name(node: ast.expr) -> str:
    """Return the dotted name of what is called, such as `torch.load`."""
    if isinstance(node, ast.Attribute):
        return f"{call_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def is_true(call: ast.Call, keyword: str) -> bool:
    return any(k.arg == keyword and isinstance(k.value, ast.Constant) and k.value.value is True for k in call.keywords)


def problems(text: str) -> list[str]:
    """Return what in a module could run code from a file."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in PICKLES:
            found += [call_name(node)] if node.attr not in EXCEPTIONS else []
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PICKLES:
            found += [f"from {node.module}" for name in node.names if name.name not in EXCEPTIONS]
        elif isinstance(node, ast.Call):
            name = call_name(node.func)
            if name in FORBIDDEN_CALLS:
                found.append(name)
            if name == "torch.load" and not is_true(node, "weights_only"):
                found.append("torch.load without weights_only=True")
            found += [keyword for keyword in ("shell", "allow_pickle", "trust_remote_code") if is_true(node, keyword)]
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_can_run_code_from_a_file(path: Path) -> None:
    assert problems(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "eval(x)",
        "pickle.Unpickler(file)",
        "from pickle import loads",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "subprocess.run(x, shell=True)",
        "np.load(x, allow_pickle=True)",
    ],
)
def test_a_dangerous_call_is_noticed(text: str) -> None:
    assert problems(text)
    assert not problems("torch.load(path, weights_only=True)\nfrom pickle import UnpicklingError")


def test_the_audit_says_what_it_could_not_look_up() -> None:
    assert "NO vulnerabilities were looked up" in describe(Vulnerabilities([], ["torch"], {}, ""))
    assert "no network" in describe(Vulnerabilities([], [], {}, "no network"))
    text = describe(Vulnerabilities(["numpy", "pillow"], ["torch"], {"pillow": ["CVE-1"]}, ""))
    assert text == "2 packages looked up, 1 with known vulnerabilities\npillow: CVE-1\nnot looked up: torch"


def test_the_audit_lists_direct_and_indirect_dependencies() -> None:
    packages = {package.name: package for package in runtime_packages()}
    assert {"torch", "numpy", "pydantic", "pydantic-core", "pillow"} <= set(packages)
    assert packages["numpy"].license
