"""Draws a sample of mutants, runs the tests that call the changed function against each, and reports which noticed."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue
from typing import Any

import calls
import pytest
from forks import UNFIT, UNNOTICED, Trial, confine, run_forks
from mutations import Mutation, modules, mutated, mutations

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))
from sampled import SAMPLED_ROWS  # noqa: E402 - as a program this has only its own folder on the path

PARTS = ["cfngen/deploy", "cfngen/boot", "cfngen/templates", "cfngen/permissions", "cfngen/cluster"]
EQUIVALENT = Path(__file__).parent / "equivalent.json"
# Tests that compare with what was reviewed, or with pages that are generated: they notice any change at all.
GOLDEN = {
    "tests/cli/test_json_output.py::test_the_schema_and_its_page_are_those_of_the_code",
    "tests/cluster/documents/test_documents_of_the_cluster_file.py::test_a_reference_page_is_up_to_date",
    "tests/golden/test_golden.py::test_the_default_case_is_as_reviewed",
    "tests/golden/test_golden.py::test_what_another_case_has_otherwise_is_as_reviewed",
    "tests/graph/test_pictures_of_docs.py::test_a_picture_of_the_pages_is_current",
    "tests/permissions/test_documented_policies.py::test_the_files_are_what_the_code_says",
    "tests/permissions/test_explanations.py::test_the_page_is_up_to_date",
}
# Tests that boot containers, read the project's own files, or are about the emulator and other programs.
NOT_RUN = re.compile(
    "tests/(bootlab|mutants|lint|sandbox)/|tests/test_(?!audit)|tests/cli/test_pages.py|tests/aws/test_(?!templ)"
)
# Tests of whole lives, as `make drills` runs them, and what is run elsewhere.
DRILL = "drill"
ELSEWHERE = "not bootlab and not soak"
FIRST = 60


@dataclass
class Verdict:
    """What became of a mutant.

    Attributes:
        mutation: the fault.
        outcome: `behaviour`, `golden`, `lived` or `equivalent`.
        by: the test that noticed, the reason of an equivalent one, or how many tests did not notice.
        seconds: how long it took.
    """

    mutation: Mutation
    outcome: str
    by: str
    seconds: float


class Chosen:
    """A plug-in of pytest: runs some tests in an order, stops at the first that fails, and remembers it.

    Attributes:
        order: the tests' ids.
        failed: the test that failed, or the module that could not be collected.
    """

    def __init__(self, order: list[str]) -> None:
        self.place = {name: place for place, name in enumerate(order)}
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.place), key=lambda item: self.place[item.nodeid]
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


def main() -> int:
    """Run the command line."""
    options = _options()
    preload()
    with tempfile.TemporaryDirectory(prefix="cfngen-mutants-") as folder:
        root = Path(folder) / "checkout"
        copy(root)
        notes = Path(options.calls or Path(folder) / "calls")
        files = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests").rglob("test_*.py"))]
        files = [file for file in files if not NOT_RUN.search(file)]
        calls.record(root, files, notes / "tests", f"not {DRILL} and {ELSEWHERE}", options.processes)
        known = calls.read(notes / "tests")
        drills: dict[str, dict[str, Any]] = {}
        if options.drill_seconds:
            sampled = {f"tests/{row.partition('::')[0]}" for row in SAMPLED_ROWS}
            marked = [file for file in files if file in sampled or f"mark.{DRILL}" in (ROOT / file).read_text("utf-8")]
            calls.record(root, marked, notes / "drills", f"{DRILL} and {ELSEWHERE}", options.processes)
            drills = calls.read(notes / "drills")
        verdicts = []
        for verdict in judged(sample(root, options), root, Path(folder), known, drills, options):
            verdicts.append(verdict)
            print(f"{len(verdicts):4} {row(verdict)}", flush=True)
    report(verdicts, options)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=100, help="how many mutants (100)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--only", action="append", help="a folder or module, e.g. cfngen/boot; may be repeated")
    parser.add_argument("--seconds", type=float, default=60, help="how much time of tests a mutant gets at most (60)")
    parser.add_argument("--calls", help="a folder that keeps which test calls what, for further runs")
    parser.add_argument("--processes", type=int, default=1, help="how many files of tests, or mutants, at once (1)")
    parser.add_argument("--drill-seconds", type=float, default=120, help="how much time of drills, at most (120)")
    parser.add_argument("--json", help="a file for the verdicts")
    return parser.parse_args()


def sample(root: Path, options: argparse.Namespace) -> list[Mutation]:
    """Return the mutants of a seed: every place of the modules is as likely as any other, and has one fault."""
    places: dict[tuple[str, int], list[Mutation]] = {}
    for path in modules(root, options.only or PARTS):
        for mutation in mutations(path, root):
            places.setdefault((mutation.path, mutation.number), []).append(mutation)
    chance = random.Random(options.seed)
    drawn = chance.sample(sorted(places), min(options.sample, len(places)))
    return [chance.choice(places[place]) for place in drawn]


def preload() -> None:
    """Import what every process would import anew, but nothing of cfngen."""
    for name in ("boto3", "moto", "troposphere", "awacs", "cfnlint", "pydantic", "cryptography.x509", "click", "yaml"):
        __import__(name)


def copy(root: Path) -> None:
    """Copy what git knows of the checkout, as it is now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        file = ROOT / name
        if name and (file.is_file() or file.is_symlink()):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, root / name, follow_symlinks=False)


def judged(
    drawn: list[Mutation],
    root: Path,
    folder: Path,
    known: dict[str, dict[str, Any]],
    drills: dict[str, dict[str, Any]],
    options: argparse.Namespace,
) -> Iterator[Verdict]:
    """Yield what became of each mutant: those that forks notice first; the others meet processes of their own."""
    equivalent = json.loads(EQUIVALENT.read_text())
    trials = []
    for mutation in drawn:
        if reason := why_equivalent(mutation, equivalent):
            yield Verdict(mutation, "equivalent", reason, 0.0)
            continue
        behaviour = [name for name in selected(mutation, known, options.seconds) if not is_golden(name)]
        drilled = selected(mutation, drills, options.drill_seconds)
        patience = patience_of(behaviour, known) + patience_of(drilled, drills)
        trials.append(Trial(mutation, [*behaviour, *drilled], patience))
    unnoticed: list[Mutation] = []
    for trial, answer, seconds in run_forks(root, trials, ELSEWHERE, options.processes):
        if answer in (UNNOTICED, UNFIT):
            unnoticed.append(trial.mutation)
        else:
            yield Verdict(trial.mutation, "behaviour", answer, seconds)
    roots: Queue[Path] = Queue()
    for number in range(options.processes):
        shutil.copytree(root, folder / str(number), symlinks=True)
        roots.put(folder / str(number))

    def judge_one(mutation: Mutation) -> Verdict:
        begin, own_root = time.monotonic(), roots.get()
        outcome, by = judge(own_root, mutation, known, options.seconds, drills, options.drill_seconds)
        roots.put(own_root)
        return Verdict(mutation, outcome, by, round(time.monotonic() - begin, 1))

    with ThreadPoolExecutor(options.processes) as pool:
        yield from pool.map(judge_one, unnoticed)


def judge(
    root: Path,
    mutation: Mutation,
    known: dict[str, dict[str, Any]],
    seconds: float,
    drills: dict[str, dict[str, Any]],
    drill_seconds: float,
) -> tuple[str, str]:
    """Return a mutant's outcome, and who noticed; only one that no other test notices meets the drills."""
    path = root / mutation.path
    source = path.read_text("utf-8")
    path.write_text(mutated(source, mutation), "utf-8")
    try:
        behaviour = [name for name in selected(mutation, known, seconds) if not is_golden(name)]
        # Most die by the first few, for which it is not worth while to import all that might be needed.
        for some in (behaviour[:FIRST], behaviour[FIRST:]):
            if noticed := run(root, some, known):
                return "behaviour", noticed
        drilled = selected(mutation, drills, drill_seconds)
        if noticed := run(root, drilled, drills, DRILL):
            return "behaviour", noticed
        golden = [name for name in selected(mutation, known, 1e9) if is_golden(name)]
        golden.sort(key=lambda name: known[name.partition("::")[0]]["tests"][name]["seconds"])
        if noticed := run(root, golden, known):
            return "golden", noticed
        return "lived", f"{len(behaviour)} tests and {len(drilled)} drills did not notice"
    finally:
        path.write_text(source, "utf-8")


def selected(mutation: Mutation, known: dict[str, dict[str, Any]], seconds: float) -> list[str]:
    """Return the tests that a mutant meets, in order.

    Files whose path has words of the module's come first; of files that have as many, tests that call little else, a
    few of each at a time. Where something that several tests share calls the function, all tests of the file count.
    Further tests of these files follow: what one test makes and keeps may be what another one looks at.
    """
    block = f"{mutation.path}::{mutation.block}"
    about = words(mutation.path.removeprefix("cfngen/"))
    rounds: list[tuple[bool, int, int, int, str, int, str, float]] = []
    for file, note in known.items():
        shared = block in note["shared"]
        tests = {name: test for name, test in note["tests"].items() if test["passed"]}
        direct = {name for name, test in tests.items() if shared or block in test["functions"]}
        if not direct:
            continue
        order = sorted(tests, key=lambda name: (name not in direct, len(tests[name]["functions"])))
        least = len(tests[order[0]]["functions"])
        for rank, name in enumerate(order):
            late = name not in direct
            strange = -len(about & words(file.removeprefix("tests/")))
            rounds.append((late, strange, rank // 15, least, file, rank, name, tests[name]["seconds"]))
    spent, found = 0.0, []
    for *_, name, cost in sorted(rounds):
        if spent + cost <= seconds:
            spent += cost
            found.append(name)
    return found


def is_golden(name: str) -> bool:
    return name.partition("[")[0] in GOLDEN


def words(path: str) -> set[str]:
    """Return the words of a path, in the singular."""
    return {word.rstrip("s") for word in re.split(r"[/_.]", path.removesuffix(".py"))} - {"test", "__init__", ""}


def run(root: Path, tests: list[str], known: dict[str, dict[str, Any]], marked: str = f"not {DRILL}") -> str:
    """Run tests in a process of their own; return the first that failed, or nothing."""
    if not tests:
        return ""
    context = multiprocessing.get_context("fork")
    there, here = context.Pipe()
    patience = patience_of(tests, known)
    process = context.Process(target=_run, args=(root, tests, here, patience, marked))
    process.start()
    here.close()
    process.join(60 + 10 * patience)
    if process.is_alive():
        os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
        return "(time is up)"
    try:
        return str(there.recv())
    except EOFError:
        return "(the process ended)"


def patience_of(tests: list[str], known: dict[str, dict[str, Any]]) -> int:
    """Return how many seconds of the processor's time tests may take: a mutant may wait for what never comes."""
    return int(20 + 2 * sum(known[name.partition("::")[0]]["tests"][name]["seconds"] for name in tests))


def _run(root: Path, tests: list[str], answer: Any, patience: int, marked: str) -> None:
    confine(patience)
    calls.enter(root)
    chosen = Chosen(tests)
    files = list(dict.fromkeys(name.partition("::")[0] for name in tests))
    arguments = ["-q", "-x", "-n", "0", "-m", marked, "-p", "no:cacheprovider", "--tb=no", *files]
    code = pytest.main(arguments, plugins=[chosen])
    answer.send(chosen.failed or ("" if code == 0 else f"(pytest ended with {code})"))
    answer.close()
    os._exit(0)


def why_equivalent(mutation: Mutation, entries: list[dict[str, str]]) -> str:
    """Return why a mutant does the same as the program, if an entry says so; lines may have moved."""
    found = asdict(mutation)
    return next(
        (
            entry["reason"]
            for entry in entries
            if all(found[name] == value for name, value in entry.items() if name != "reason")
        ),
        "",
    )


def row(verdict: Verdict) -> str:
    """Return a verdict as one line."""
    mutation = verdict.mutation
    where = f"{mutation.path.removeprefix('cfngen/')}:{mutation.line} {mutation.function}"
    return f"{verdict.outcome:10} {verdict.seconds:6.1f} s  {where}: {mutation.kind}: {mutation.change}  [{verdict.by}]"


def report(verdicts: list[Verdict], options: argparse.Namespace) -> None:
    """Print who lived, and the summary."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    for outcome in ("lived", "golden"):
        print(f"\n{outcome}: {counts[outcome]}")
        for verdict in verdicts:
            if verdict.outcome == outcome:
                print("  " + row(verdict))
    counted = len(verdicts) - counts["equivalent"]
    share = f" ({100 * counts['behaviour'] / counted:.0f} %)" if counted else ""
    print(
        f"\nseed {options.seed}: {len(verdicts)} mutants, {counts['equivalent']} of them equivalent; of {counted},"
        f" {counts['behaviour']}{share} died by a behaviour test, {counts['golden']} by a golden comparison only,"
        f" {counts['lived']} lived"
    )
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
