"""Audit what is installed: licenses of dependencies (docs/dependencies.md), known vulnerabilities (pip-audit)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "dependencies.md"
EXTRAS = ("", "caption")  # what the bundled models need
LONGEST = 60  # characters; a longer license field is the license itself
HEAD = """# Dependencies

Every package that `pip install 'heedful[caption]'` brings, with the license that it declares. Written by `make audit`,
which also asks pip-audit for known vulnerabilities.

| package | version | license |
|---|---|---|
"""


class Package(NamedTuple):
    """An installed package."""

    name: str
    version: str
    license: str


class Vulnerabilities(NamedTuple):
    """What pip-audit found, by package; `skipped` could not be looked up, and `error` says why nothing could."""

    checked: list[str]
    skipped: list[str]
    found: dict[str, list[str]]
    error: str


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(requirement: str, extra: str) -> str | None:
    """Return the name in a requirement, or None where it does not apply to this system and extra."""
    from packaging.requirements import Requirement

    parsed = Requirement(requirement)
    if parsed.marker is not None and not parsed.marker.evaluate({"extra": extra}):
        return None
    return parsed.name


def license_of(package: Distribution) -> str:
    """Return the license that a package declares: the expression, a short text, or its classifiers."""
    metadata = package.metadata
    for field in ("License-Expression", "License"):
        text = " ".join(" ".join(metadata.get_all(field) or []).split())
        if text and text != "UNKNOWN" and (field == "License-Expression" or len(text) <= LONGEST):
            return text
    classifiers = [
        text.rpartition(" :: ")[2] for text in metadata.get_all("Classifier") or [] if text.startswith("License ::")
    ]
    return ", ".join(classifiers) or "not declared"


def runtime_packages() -> list[Package]:
    """Return heedful's dependencies and theirs, as installed."""
    queue = [
        name for extra in EXTRAS for text in distribution("heedful").requires or [] if (name := needed(text, extra))
    ]
    packages: dict[str, Package] = {}
    while queue:
        name = canonical(queue.pop())
        if name in packages:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:
            packages[name] = Package(name, "not installed", "")
            continue
        packages[name] = Package(name, package.version, license_of(package))
        queue += [child for text in package.requires or [] if (child := needed(text, ""))]
    return [packages[name] for name in sorted(packages)]


def look_up() -> Vulnerabilities:
    """Ask pip-audit about everything that is installed."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--format", "json", "--progress-spinner", "off"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        dependencies = json.loads(process.stdout)["dependencies"]
    except (ValueError, KeyError):
        lines = process.stderr.strip().splitlines()
        return Vulnerabilities([], [], {}, lines[-1][:300] if lines else "pip-audit printed nothing")
    skipped = [row["name"] for row in dependencies if "skip_reason" in row]
    found = {row["name"]: [v["id"] for v in row["vulns"]] for row in dependencies if row.get("vulns")}
    return Vulnerabilities([row["name"] for row in dependencies if "vulns" in row], skipped, found, "")


def describe(result: Vulnerabilities) -> str:
    """Return what the audit says, plainly."""
    if result.error or not result.checked:
        reason = result.error or f"{len(result.skipped)} packages, none of them found in the database"
        return f"NO vulnerabilities were looked up: pip-audit could not reach its database ({reason})"
    lines = [f"{name}: {', '.join(ids)}" for name, ids in sorted(result.found.items())]
    if result.skipped:
        lines.append(f"not looked up: {', '.join(result.skipped)}")
    return "\n".join(
        [f"{len(result.checked)} packages looked up, {len(result.found)} with known vulnerabilities", *lines]
    )


def main() -> int:
    packages = runtime_packages()
    rows = "".join(f"| {package.name} | {package.version} | {package.license} |\n" for package in packages)
    PAGE.write_text(HEAD + rows, encoding="utf-8")
    undeclared = [package.name for package in packages if package.license == "not declared"]
    print(f"{PAGE.relative_to(ROOT)}: {len(packages)} packages; no license declared: {', '.join(undeclared) or 'none'}")
    result = look_up()
    print(describe(result))
    return int(bool(result.found))


if __name__ == "__main__":
    sys.exit(main())
