"""The command line: the only part of cfngen that prints.

`application` is the group of commands, `commands` holds one module for each, `render` makes text of results. `source`
finds the cluster that a command works on, `target` its stack and account; `screen` shows what goes on, `terminal` knows
how text is shown, and `failures` turns what went wrong into a message and an exit code.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process and leave it with the exit code."""
    try:
        from cfngen.cli.application import application

        application.main(prog_name="cfngen")
    except KeyboardInterrupt:
        # Before or after a command ran, when there is nothing to say.
        sys.exit(130)
