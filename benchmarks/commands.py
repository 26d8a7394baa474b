"""What a person waits for: `cfngen --help`, generating, `cfngen templates` cold and again, beside `cfn-lint` alone."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
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
        own = best(templates, rounds=rounds, before=cold, **at)
        show("cfngen templates, cold", own, "goal: no slower than the next line")
        files = sorted(map(str, output.glob("*.json")))
        alone = best([*program("cfn-lint", "cfnlint"), "--regions", "us-west-2", "--", *files], rounds=rounds, **at)
        show(f"cfn-lint alone, on the same {len(files)} files", alone)
        show("cfngen templates, again", best(templates, rounds=rounds, **at), "goal: under 0.6 s")
        show("cfngen templates --check", best([*templates, "--check"], rounds=rounds, **at))


if __name__ == "__main__":
    main()
