"""`cfngen completion`: the completion script for a shell."""

from __future__ import annotations

import click

from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.display.typography import print_verbatim

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    short_help="Print a shell completion script.",
    epilog=examples_epilog(
        """echo 'eval "$(cfngen completion bash)"' >> ~/.bashrc""",
        """echo 'eval "$(cfngen completion zsh)"' >> ~/.zshrc""",
        "cfngen completion fish > ~/.config/fish/completions/cfngen.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL, so that the Tab key completes cfngen's commands and options."""
    from click.shell_completion import get_completion_class

    generator = get_completion_class(shell)
    if generator is None:
        raise click.UsageError(f"the installed version of click does not support completion for {shell}")
    print_verbatim(generator(context.find_root().command, {}, "cfngen", "_CFNGEN_COMPLETE").source())
