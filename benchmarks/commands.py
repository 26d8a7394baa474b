"""What a person waits for: `cfngen --help`, generating, `cfngen templates` cold and again, beside `cfn-lint` alone."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from timing import best, machine, program, show

REPOSITORY = Path(__file__).parents[1]
GENERATE = """
from cfngen.cluster.load import parse
from cfngen.output import render
from cfngen.templates import generate
from cfngen.userdata import roles
cluster = parse({})
render(generate(cluster), roles(cluster), "json")
"""


def ratio(times: Sequence[Sequence[float]], column: int) -> float:
    """Return the median of what a column of times is of the last one."""
    return statistics.median(row[column] / row[-1] for row in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each command is run (default 5)")
    rounds = parser.parse_args().rounds
    print(machine())
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        cache, output = here / "cache", here / "output"
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "HOME": scratch, "PYTHONPATH": str(REPOSITORY)}
        environment.pop("AWS_REGION", None)
        at = {"cwd": here, "env": environment}

        def cold() -> None:
            shutil.rmtree(cache, ignore_errors=True)
            shutil.rmtree(output, ignore_errors=True)

        cfngen = program("cfngen", "cfngen")
        templates = [*cfngen, "templates", "--output-dir", str(output)]
        show("python -c pass", best([sys.executable, "-c", "pass"], rounds=rounds, **at))
        show("cfngen --help", best([*cfngen, "--help"], rounds=rounds, **at), "goal: under 0.25 s")
        show("generate and render", best([sys.executable, "-c", GENERATE], rounds=rounds, **at), "goal: under 0.5 s")
        cfn_lint = [*program("cfn-lint", "cfnlint"), "--regions", "us-west-2", "--"]
        times = []
        for _ in range(rounds):
            # One after the other, so that all three ran on a machine that was equally busy.
            first = best(templates, rounds=1, before=cold, **at)
            again = best(templates, rounds=1, **at)
            files = sorted(map(str, output.glob("*.json")))
            times.append((first, again, best([*cfn_lint, *files], rounds=1, **at)))
        first, again, alone = (min(column) for column in zip(*times, strict=True))
        show("cfngen templates, cold", first, f"{ratio(times, 0):.2f} of cfn-lint; goal: 0.6")
        show("cfngen templates, again, with nothing changed", again, f"{ratio(times, 1):.2f} of cfn-lint; goal: 0.15")
        show(f"cfn-lint alone, on the same {len(files)} files", alone)
        show("cfngen templates --check", best([*templates, "--check"], rounds=rounds, **at))


if __name__ == "__main__":
    main()
