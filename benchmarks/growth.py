"""How time grows with the number of node groups: generating, and on request linting."""

from __future__ import annotations

import argparse
import sys

from timing import best, machine, show

PROGRAM = """
import sys
from cfngen.cluster.load import parse
from cfngen.output import render
from cfngen.templates import generate
from cfngen.userdata import roles
count, with_lint = int(sys.argv[1]), sys.argv[2] == "lint"
groups = [{"name": f"group-{number}", "minSize": 1, "maxSize": 1} for number in range(count)]
cluster = parse({"nodeGroups": groups})
documents = generate(cluster)
render(documents, roles(cluster), "json")
if with_lint:
    from cfngen.lint import lint
    lint(documents, region=cluster.region)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run (default 3)")
    parser.add_argument("--lint", action="store_true", help="lint too, without a cache")
    parser.add_argument(
        "counts", type=int, nargs="*", default=[1, 2, 5, 10, 20, 50, 100], help="numbers of node groups"
    )
    arguments = parser.parse_args()
    print(machine())
    first: float | None = None
    for count in arguments.counts:
        command = [sys.executable, "-c", PROGRAM, str(count), "lint" if arguments.lint else "no"]
        seconds = best(command, rounds=arguments.rounds)
        first = first if first is not None else seconds
        per_group = (
            f"{(seconds - first) / (count - arguments.counts[0]) * 1000:.1f} ms for each more"
            if seconds != first
            else ""
        )
        show(f"{count:4} node groups", seconds, per_group)


if __name__ == "__main__":
    main()
