"""What a command shows while CloudFormation works: messages, progress, and the question after Ctrl-C.

Progress is a tree that is redrawn in place on a terminal, one line for each event elsewhere, and JSON lines with
`--output json`. Results go to standard output, progress to standard error.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import click

from cfngen.cli.exit_codes import TERMINATED
from cfngen.cli.json_output import emit
from cfngen.cli.suggested_commands import next_line
from cfngen.hints import Line, suggest

if TYPE_CHECKING:
    from cfngen.cli.render.live import LiveScreen
    from cfngen.cli.target import Target
    from cfngen.deploy.account import Account
    from cfngen.deploy.messages import Consent, Finished, Message, Question
    from cfngen.deploy.recovery import Interaction
    from cfngen.deploy.watching.watch import Choice


@contextmanager
def screen(target: Target, account: Account, *, full: bool = False) -> Iterator[Screen]:
    """Yield a screen that shows messages; restore the terminal at the end."""
    display = Screen(target, account, full=full)
    previous_handler = signal.signal(signal.SIGTERM, _exit_on_sigterm)
    try:
        yield display
    finally:
        display.close()
        signal.signal(signal.SIGTERM, previous_handler)


def _exit_on_sigterm(number: int, frame: object) -> NoReturn:
    """Exit through an exception, so that context managers still clean up."""
    sys.exit(TERMINATED)


class Screen:
    """Shows messages as text, as a live tree, or as JSON.

    Args:
        target: tells whether the output is JSON.
        account: provides the clock.
        full: whether plans show long values completely.
    """

    def __init__(self, target: Target, account: Account, *, full: bool = False) -> None:
        self._full = full
        self._target = target
        self._account = account
        self._live: LiveScreen | None = None
        self._status = ""

    def report(self, message: Message) -> None:
        """Show a message."""
        from cfngen.deploy.messages import Event
        from cfngen.deploy.watching.progress import Progress

        message = self._target.complete_commands(message)
        if isinstance(message, Progress):
            self._status = message.status
        if self._target.json:
            # Progress that only shows the time passing is left out of JSON.
            if not isinstance(message, Progress) or message.fresh:
                emit(message)
        elif isinstance(message, (Event, Progress)):
            self._screen().show(message)
        else:
            self.close()
            self._show(message)

    def _show(self, message: Message) -> None:
        from cfngen.cli.render import deletion, diagnosis, etcd, plan, validation
        from cfngen.deploy.deletion.leftovers import Remains
        from cfngen.deploy.deletion.orphaned_resource import Removed
        from cfngen.deploy.deletion.plan import DeletionPlan
        from cfngen.deploy.deletion.result import Deleted
        from cfngen.deploy.deletion.stack_removal import DeletionFailed
        from cfngen.deploy.etcd.backup import BackupTaken
        from cfngen.deploy.etcd.restore import Restored, RestorePlan
        from cfngen.deploy.etcd.watch import RestoreProgress
        from cfngen.deploy.inspection.validation import Validation, ValidationChange
        from cfngen.deploy.messages import Finished
        from cfngen.deploy.preview.plan import Plan
        from cfngen.deploy.watching.diagnosis import Diagnosis

        lines: Sequence[Line]
        if isinstance(message, Plan):
            lines = plan.lines(message, full=self._full)
        elif isinstance(message, Diagnosis):
            lines = diagnosis.lines(message)
        elif isinstance(message, Finished):
            lines = _summary(message)
        elif isinstance(message, Validation):
            lines = validation.result(message)
        elif isinstance(message, ValidationChange):
            lines = validation.change(message)
        elif isinstance(message, DeletionPlan):
            lines = deletion.plan_lines(message)
        elif isinstance(message, Deleted):
            lines = ["", *deletion.result(message)]
        elif isinstance(message, Remains):
            lines = deletion.remains(message)
        elif isinstance(message, Removed):
            lines = deletion.removed(message)
        elif isinstance(message, DeletionFailed):
            lines = deletion.failed(message)
        elif isinstance(message, BackupTaken):
            lines = etcd.taken(message)
        elif isinstance(message, RestorePlan):
            lines = etcd.plan(message)
        elif isinstance(message, RestoreProgress):
            lines = etcd.progress(message)
        elif isinstance(message, Restored):
            lines = etcd.restored(message)
        else:
            self._target.report(message)
            return
        # Progress goes to standard error, results to standard output.
        is_progress = isinstance(message, (ValidationChange, Removed, DeletionFailed, RestoreProgress))
        click.echo("\n".join(str(self._target.complete_commands(line)) for line in lines), err=is_progress)

    def interaction(self, consent: Consent) -> Interaction:
        """Return how an operation reports and asks: through this screen, with the given consent."""
        from cfngen.deploy.recovery import Interaction

        def ask(question: Question) -> bool:
            self.close()
            return consent(question)

        return Interaction(self.report, ask, self.interrupted)

    def interrupted(self) -> Choice:
        """Ask what to do after Ctrl-C; a second Ctrl-C, and standard input that is no terminal, detach.

        Cancelling is only offered where CloudFormation can cancel: not for a deletion or a rollback.
        """
        from cfngen.deploy.status import StackStatus
        from cfngen.deploy.watching.watch import Choice

        self.close()
        if not sys.stdin or not sys.stdin.isatty():
            return Choice.DETACH
        click.echo("\nCloudFormation goes on whether cfngen watches or not.", err=True)
        choices = {"w": Choice.WAIT, "d": Choice.DETACH}
        question = "Go on (w)atching, or (d)etach and leave it alone"
        if not self._status or StackStatus(self._status).can_be_ended:
            choices["c"] = Choice.CANCEL
            question = "Go on (w)atching, (d)etach and leave it alone, or (c)ancel it"
        try:
            letter = click.prompt(
                question,
                type=click.Choice(tuple(choices)),
                default="w",
                show_choices=False,
                err=True,
            )
        except click.Abort:
            return Choice.DETACH
        return choices[letter]

    def close(self) -> None:
        """Keep what is drawn on the screen, and continue below it."""
        if self._live is not None:
            self._live.close()

    def _screen(self) -> LiveScreen:
        if self._live is None:
            from cfngen.cli.render.live import LiveScreen

            terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
            self._live = LiveScreen(
                lambda text: click.echo(text, err=True, nl=False, color=terminal or None),
                size=shutil.get_terminal_size if terminal else None,
                clock=self._account.clock,
            )
        return self._live


def _summary(finished: Finished) -> list[Line]:
    """Return the last lines of a command: how the operation ended, and what to do next."""
    name = finished.stack
    if finished.in_progress:
        text = f"{name}: {finished.status}; it goes on without cfngen."
        return [text, "", next_line(suggest("watch", stack=name), "   attaches again.")]
    if finished.action == "none":
        return [click.style(f"{name} is up to date: nothing was changed.", fg="green")]
    from cfngen.cli.render.durations import duration

    elapsed = duration(finished.seconds)
    if not finished.succeeded:
        return [click.style(f"{name}: {finished.status or 'deleted'} after {elapsed}.", fg="red", bold=True)]
    lines: list[Line] = [click.style(f"{name}: {finished.status} after {elapsed}.", fg="green", bold=True)]
    if finished.action == "delete":
        purpose = "   removes what Kubernetes has made and left, and lists what stays."
        return [*lines, "", next_line(suggest("delete", stack=name), purpose)]
    if finished.action == "rollback" and finished.outputs:
        command = suggest("validate cluster", stack=name)
        lines += ["", next_line(command, "   looks whether everything runs.")]
    elif endpoint := finished.outputs.get("ApiEndpoint"):
        lines += [
            f"Kubernetes API: {endpoint}",
            "",
            next_line(suggest("kubeconfig"), " && kubectl get nodes"),
            "",
        ]
    return lines
