"""The command line: the only part of cfngen that prints.

`application` is the click group of all commands, `commands` holds one module for each command. `input` is what a
command is given: options, the cluster file, the stack and the AWS account. `render` formats results as text, `display`
shows them, as text or JSON. `error_reporting` shows what ends a command, and `exit_codes` decides the exit code.
"""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line of this process and exit with its exit code."""
    # Collect garbage after every 50,000 new objects instead of every 700, Python's default: most of what a command
    # makes stays until its end, and to generate templates takes a quarter less.
    gc.set_threshold(50_000, 20, 20)
    try:
        from cfngen.cli.application import application

        application.main(prog_name="cfngen")
    except KeyboardInterrupt:
        # Ctrl-C before or after a command ran: there is nothing to report.
        from cfngen.cli.exit_codes import INTERRUPTED

        sys.exit(INTERRUPTED)
