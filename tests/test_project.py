"""The files around the source agree with one another: pins, versions, links, what `make clean` deletes."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from heedful.config.migrate import KEYS

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("*.md")),
]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def load_yaml(path: str) -> dict[str, object]:
    loaded = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_pre_commit_uses_the_pinned_tools() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", text, re.MULTILINE))
    hooks = re.findall(r"\[([\w-]+)==([^\]]+)\]", (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert hooks
    assert [(name, version) for name, version in hooks if pins.get(name, version) != version] == []


def test_classifiers_and_the_test_matrix_name_the_same_python_versions() -> None:
    prefix = "Programming Language :: Python :: "
    classifiers = [text.removeprefix(prefix) for text in PYPROJECT["project"]["classifiers"] if prefix in text]
    text = (ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"python: (\[.*\])", text)
    assert tuple(classifiers) == tuple(yaml.safe_load(listed)) == VERSIONS


def test_the_changelog_starts_with_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == PYPROJECT["project"]["version"]


def test_design_names_every_room() -> None:
    """DESIGN.md has a row for each package and module directly below `src/heedful`."""
    source = ROOT / "src" / "heedful"
    packages = {f"{path.parent.name}/" for path in source.glob("*/__init__.py")}
    modules = {path.name for path in source.glob("*.py")} - {"__main__.py"}
    text = (ROOT / "DESIGN.md").read_text(encoding="utf-8")
    assert {name for name in packages | modules if f"`{name}`" not in text} == set()


def test_the_changelog_names_every_renamed_setting() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    renamed = {f"`{old}`": f"`{new}`" for keys in KEYS.values() for old, new in keys.items()}
    assert [old for old, new in renamed.items() if old not in text or new not in text] == []


@pytest.mark.parametrize("path", sorted(p.name for p in (ROOT / ".github/workflows").glob("*.yml")))
def test_workflows_run_make_targets_and_scripts_that_exist(path: str) -> None:
    text = (ROOT / ".github/workflows" / path).read_text(encoding="utf-8")
    assert load_yaml(f".github/workflows/{path}")["jobs"]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"run: make ([a-z-]+)", text)) <= set(targets)


def test_make_clean_deletes_only_what_make_built(tmp_path: Path) -> None:
    """Trained models of the user, wherever they are, survive: only the demo's own folders are named."""
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    (tmp_path / "studio").mkdir()
    models = [tmp_path / folder / "model.json" for folder in ("build/figures/sst2-1", "build/mine", "runs/en-fr")]
    built = [tmp_path / folder / "model.json" for folder in ("build/demo", "build/demo-output", "dist")]
    for path in models + built:
        path.parent.mkdir(parents=True)
        path.touch()
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert [path for path in models if not path.exists()] == []
    assert [path for path in built if path.exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_no_registry_is_named() -> None:
    """Packages come from the registry that pip, uv and npm are configured for."""
    hosts = re.compile(r"index-url|INDEX_URL|find-links|FIND_LINKS|pypi\.org|pytorch\.org|npmjs\.|\"resolved\"")
    patterns = ("*.toml", ".github/**/*.yml", "Makefile", "constraints.txt", "studio/package*.json")
    files = [path for pattern in patterns for path in ROOT.glob(pattern)]
    assert len(files) >= 7
    assert [path.name for path in files if hosts.search(path.read_text(encoding="utf-8"))] == []
