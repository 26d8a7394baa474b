"""What a command shows while CloudFormation works: messages, progress, and the question after Ctrl-C.

Progress is a tree that is redrawn in place on a terminal, one line for each event elsewhere, and JSON lines with
`--output json`. Results go to standard output, progress to standard error.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import click

from cfngen.cli.display.terminal import echo
from cfngen.cli.settings import Settings
from cfngen.hints import CommandText, SuggestedCommand, suggest

if TYPE_CHECKING:
    from cfngen.cli.input.target import Target
    from cfngen.cli.render.live import LiveScreen
    from cfngen.deploy.aws.account import Account
    from cfngen.deploy.messages.message import Consent, Message, Question
    from cfngen.deploy.operations.interaction import Interaction
    from cfngen.deploy.watching.watch import InterruptChoice


@contextmanager
def screen(target: Target, account: Account, *, full: bool = False) -> Iterator[Screen]:
    """Yield a screen that shows messages; restore the terminal at the end.

    SIGTERM interrupts the command as Ctrl-C does, but without a question: after either, an operation says what goes on,
    and cleans up.

    Raises:
        OperationInterruptedError: the command was interrupted after something had begun in AWS.
    """
    settings = click.get_current_context().find_object(Settings)
    display = Screen(target, account, settings, full=full)
    previous_handler = signal.signal(signal.SIGTERM, display.terminate)
    try:
        yield display
    except KeyboardInterrupt:
        display.raise_if_begun()
        raise
    finally:
        display.close()
        signal.signal(signal.SIGTERM, previous_handler)


class Screen:
    """Shows the messages of a command in the format of --output; progress as text is a live tree or a log."""

    def __init__(
        self, target: Target, account: Account, settings: Settings | None = None, *, full: bool = False
    ) -> None:
        self._full = full
        self._target = target
        self._account = account
        self._live: LiveScreen | None = None
        self._settings = settings or Settings()
        self._stack_status = ""
        self._has_consent = False

    def report(self, message: Message) -> None:
        """Show a message."""
        from cfngen.deploy.messages.message import Event
        from cfngen.deploy.watching.progress import Progress

        if isinstance(message, Progress):
            self._stack_status = message.status
        if self._target.json:
            # Progress that only updates the elapsed time is not printed as JSON.
            if not isinstance(message, Progress) or message.fresh:
                self._target.show(message)
        elif isinstance(message, (Event, Progress)):
            self._live_screen().show(self._target.complete_commands(message))
        else:
            self.close()
            self._target.show(message, full=self._full)

    def interaction(self, consent: Consent) -> Interaction:
        """Return the functions with which an operation shows messages and asks questions on this screen."""
        from cfngen.deploy.operations.interaction import Interaction

        def ask_below_tree(question: Question) -> bool:
            self.close()
            place = "the sandbox" if self._target.sandbox else f"account {self._account.id}"
            text = f"{question.text} ({place}, {self._account.region})"
            self._has_consent = consent(dataclasses.replace(question, text=text))
            return self._has_consent

        return Interaction(report=self.report, consent=ask_below_tree, on_interrupt=self.interrupted)

    def interrupted(self) -> InterruptChoice:
        """Ask what to do after Ctrl-C; return DETACH after a second Ctrl-C, or without a terminal to ask on.

        To cancel is only offered where CloudFormation can cancel: not for a deletion or a rollback.

        Raises:
            KeyboardInterrupt: it was SIGTERM, which is not a question.
        """
        from cfngen.deploy.messages.stack_status import StackStatus
        from cfngen.deploy.watching.watch import InterruptChoice

        self.close()
        if self._settings.terminated:
            raise KeyboardInterrupt
        if not sys.stdin or not sys.stdin.isatty():
            return InterruptChoice.DETACH
        echo("\nCloudFormation continues whether cfngen watches or not.", err=True)
        choice_by_letter = {"w": InterruptChoice.WAIT, "d": InterruptChoice.DETACH}
        question = "Continue (w)atching, or (d)etach and let it continue"
        if not self._stack_status or StackStatus(self._stack_status).can_be_ended:
            choice_by_letter["c"] = InterruptChoice.CANCEL
            question = "Continue (w)atching, (d)etach and let it continue, or (c)ancel it"
        try:
            letter = click.prompt(
                question, type=click.Choice(tuple(choice_by_letter)), default="w", show_choices=False, err=True
            )
        except click.Abort:
            return InterruptChoice.DETACH
        return choice_by_letter[letter]

    def terminate(self, number: int, frame: object) -> NoReturn:
        """Interrupt the command; a handler of SIGTERM."""
        self._settings.terminated = True
        raise KeyboardInterrupt

    def raise_if_begun(self) -> None:
        """Raise an error that says how to go on, if the command was interrupted after something had begun in AWS.

        Raises:
            OperationInterruptedError: CloudFormation is at work, or the user has agreed to the operation.
        """
        from cfngen.deploy.messages.stack_status import StackStatus
        from cfngen.deploy.operations.runner import OperationInterruptedError

        command = SuggestedCommand(click.get_current_context().command_path.partition(" ")[2])
        if StackStatus(self._stack_status).in_progress:
            if self._stack_status != "DELETE_IN_PROGRESS":
                command = suggest("watch")
            hint = CommandText(command, " attaches again, and watches until the end.")
            raise OperationInterruptedError("interrupted; CloudFormation continues without cfngen", hint=hint)
        if self._has_consent:
            hint = CommandText(command, " continues; ", suggest("status"), " shows how far it is.")
            raise OperationInterruptedError("interrupted; what has begun in AWS continues without cfngen", hint=hint)

    def close(self) -> None:
        """Keep the drawn tree on the screen; further output appears below the tree."""
        if self._live is not None:
            self._live.close()

    def _live_screen(self) -> LiveScreen:
        if self._live is None:
            from cfngen.cli.render.live import LiveScreen

            can_redraw = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
            self._live = LiveScreen(
                # Without color=True, click would strip the control sequences that redraw the tree.
                lambda text: click.echo(text, err=True, nl=False, color=can_redraw or None),
                size=shutil.get_terminal_size if can_redraw else None,
                clock=self._account.clock,
            )
        return self._live
