#!/usr/bin/env python3
"""Audits the templates of four clusters, and fails if a number is worse than in baseline.json: `make audit`.

    audit.py            count, and have checkov, cloudformation-validate and cdk-nag check the standalone templates
    audit.py --write    write the numbers into baseline.json, and the table of docs/operate/audit.md anew

checkov and cloudformation-validate are installed into build/audit by requirements.txt; cdk-nag by package-lock.json,
where Node is. Where it is not, cdk-nag is skipped, and the output says so.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "audit"
sys.path[:0] = [str(HERE), str(ROOT)]

from counts import counts  # noqa: E402

from cfngen.cluster.load import load  # noqa: E402
from cfngen.lint import lint  # noqa: E402
from cfngen.templates import generate  # noqa: E402

CLUSTERS = {
    "default": None,
    "production": "production.yaml",
    "private": "fully-private.yaml",
    "hardened": "hardened.yaml",
}
BASELINE = HERE / "baseline.json"
PAGE = ROOT / "docs" / "operate" / "audit.md"
START, END = "<!-- Written by `make audit ARGS=--write` -->\n", "<!-- End -->\n"
CHECKOV, VALIDATE, NAG = "failures of checkov", "errors and warnings of cloudformation-validate", "findings of cdk-nag"
Numbers = dict[str, dict[str, int]]
"""Of each cluster, how often something was found, by what it is."""


def main() -> None:
    """Print the numbers and each finding of a checker; exit with 1 if a number is worse than the baseline."""
    numbers, findings = count_templates()
    for checker, check in ((CHECKOV, run_checkov), (VALIDATE, run_validate), (NAG, run_nag)):
        found = check()
        for cluster, lines in found.items():
            numbers[cluster][checker] = len(lines)
            findings += [f"{cluster}: {line}" for line in lines]
    print("\n".join(findings))
    print(table(numbers))
    if "--write" in sys.argv[1:]:
        BASELINE.write_text(json.dumps(numbers, indent=2) + "\n")
        before, _, rest = PAGE.read_text().partition(START)
        PAGE.write_text(before + START + table(numbers) + END + rest.partition(END)[2])
    elif worse := worsened(numbers, json.loads(BASELINE.read_text())):
        sys.exit("Worse than .ci/audit/baseline.json:\n" + "\n".join(worse))


def count_templates() -> tuple[Numbers, list[str]]:
    """Write the standalone templates into the work folder; return what is counted in them, and findings of cfn-lint."""
    WORK.mkdir(parents=True, exist_ok=True)
    numbers: Numbers = {}
    findings: list[str] = []
    for cluster, documents in all_documents().items():
        numbers[cluster] = counts(documents[-1].body["Resources"])
        found = lint(documents, region=documents[0].body["Metadata"]["cfn-lint"]["config"]["regions"][0])
        numbers[cluster]["findings of cfn-lint"] = len(found)
        findings += [f"{cluster}: {each}" for each in found]
        template(cluster).write_text(json.dumps(documents[-1].body))
    return numbers, findings


def all_documents() -> dict[str, Any]:
    """Return the templates of each cluster; the last one is the standalone template."""
    return {
        name: generate(load(ROOT / "examples" / file if file else None, environ={}).cluster)
        for name, file in CLUSTERS.items()
    }


def standalone_resources() -> dict[str, Mapping[str, Any]]:
    """Return the resources of each cluster's standalone template."""
    return {name: documents[-1].body["Resources"] for name, documents in all_documents().items()}


def template(cluster: str) -> Path:
    """Return where the standalone template of a cluster is written for the checkers."""
    return WORK / f"{cluster}.json"


def worsened(numbers: Numbers, baseline: Numbers) -> list[str]:
    """Return what is found more often than in the baseline, or is not in it."""
    return [
        f"{cluster}: {number} {what}, {baseline.get(cluster, {}).get(what, 'none')} before"
        for cluster, measured in numbers.items()
        for what, number in measured.items()
        if number > baseline.get(cluster, {}).get(what, -1)
    ]


def table(numbers: Numbers) -> str:
    """Return the numbers as a table of Markdown."""
    measures = dict.fromkeys(what for measured in numbers.values() for what in measured)
    rows = [["", *numbers], ["---", *("--:" for _ in numbers)]]
    rows += [[what, *(str(measured.get(what, "")) for measured in numbers.values())] for what in measures]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def run_checkov() -> dict[str, list[str]]:
    """Return what checkov finds in each template and the template does not acknowledge."""
    options = ["--framework", "cloudformation", "--output", "json", "--quiet", "--compact", "--skip-download"]
    command = [tools() / "checkov", *options, "--file", *map(template, CLUSTERS)]
    # It exits with 1 if it finds anything.
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    found: dict[str, list[str]] = {cluster: [] for cluster in CLUSTERS}
    for each in json.loads(done.stdout)["results"]["failed_checks"]:
        found[Path(each["file_path"]).stem].append(f"{each['check_id']} {each['resource']}: {each['check_name']}")
    return found


def run_validate() -> dict[str, list[str]]:
    """Return what cloudformation-validate finds in each template, without what only informs."""
    code = (
        "import sys, json; from cloudformation_validate import RegoEngine; engine = RegoEngine()\n"
        "for path in sys.argv[1:]: print(json.dumps([f'{each.rule_id}: {each.message}' for each in "
        "engine.validate_template(path).diagnostics if each.severity.name in ('FATAL', 'ERROR', 'WARN', 'WARNING')]))"
    )
    command = [tools() / "python", "-c", code, *map(template, CLUSTERS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(zip(CLUSTERS, map(json.loads, done.stdout.splitlines()), strict=True))


def run_nag() -> dict[str, list[str]]:
    """Return what cdk-nag finds in each template and the template does not acknowledge; empty where Node is not."""
    if not (shutil.which("node") and shutil.which("npm")):
        print("There is no Node on this machine: cdk-nag was skipped.")
        return {}
    folder = WORK / "nag"
    folder.mkdir(exist_ok=True)
    for name in ("nag.js", "package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    if not (folder / "node_modules" / "cdk-nag").exists():
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
    command = ["node", "nag.js", *map(template, CLUSTERS)]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, list[str]] = {cluster: [] for cluster in CLUSTERS}
    for line in done.stdout.splitlines():
        path, rule, logical_id = json.loads(line)
        found[Path(path).stem].append(f"{rule} {logical_id}")
    return found


def tools() -> Path:
    """Return the folder with the checkers that are written in Python; they are installed if they are not there yet."""
    requirements, venv = HERE / "requirements.txt", WORK / "venv"
    stamp = venv / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != requirements.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        pip = [venv / "bin" / "pip", "--quiet", "--disable-pip-version-check", "install", "--require-hashes"]
        subprocess.run([*pip, "--requirement", requirements], check=True)
        shutil.copy(requirements, stamp)
    return venv / "bin"


if __name__ == "__main__":
    main()
