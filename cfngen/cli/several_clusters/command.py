"""The class of commands that take several cluster files."""

from __future__ import annotations

from pathlib import Path

import click

from cfngen.cli.input.options import Option
from cfngen.cli.input.paths import PathArgument

_ARGUMENTS = "cfngen.arguments"  # where a context's `meta` has the words that were typed
# Arguments of commands that are for one cluster; of several, each would overwrite what it did for the one before.
_FOR_ONE_CLUSTER = ("explicit_stack_name", "graph_path", "authorities_file", "context_name", "print_only", "files")

canary_option = Option(
    "--canary",
    metavar="FILE",
    type=PathArgument("give one of the cluster files"),
    help="Of several cluster files, deploy this one first, and the others only if its cluster is valid then.",
)
parallel_option = Option(
    "--parallel",
    metavar="NUMBER",
    type=click.IntRange(min=1),
    help="How many of several clusters are worked on at the same time; needs --yes. Default: one after the other.",
)


class SeveralClustersCommand(click.Command):
    """A command that takes several cluster files: it is run for each cluster as if it had been typed for that one.

    With one file it is an ordinary command. Its parameters `canary` and `parallel`, if it has them, are for several
    files; the function of the command does not get them.
    """

    def __init__(self, *arguments: object, **settings: object) -> None:
        super().__init__(*arguments, **settings)  # type: ignore[arg-type]  # as click declares them
        for parameter in self.params:
            if parameter.name == "file" and isinstance(parameter, click.Option):
                parameter.help = f"{parameter.help} Repeatable; a folder stands for its files *.yaml."

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments as click does, and keep them as they were typed."""
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command for its cluster, or for each of several clusters."""
        options = {name: ctx.params.pop(name) for name in ("canary", "parallel") if name in ctx.params}
        paths: Path | tuple[Path, ...] | None = ctx.params["file"]
        if not isinstance(paths, tuple):
            if names := [f"--{name}" for name, value in options.items() if value is not None]:
                raise click.UsageError(f"{names[0]} is for several cluster files; name them with -f.")
            return super().invoke(ctx)
        if ctx.params.get("defaults"):
            raise click.UsageError("--defaults and --cluster cannot be used together; remove one of them.")
        for parameter in self.params:
            if parameter.name in _FOR_ONE_CLUSTER and ctx.params[parameter.name]:
                name = max(parameter.opts, key=len).replace("files", "FILES")
                raise click.UsageError(f"only one cluster file can be used with {name}; name one with -f.")
        from cfngen.cli.several_clusters.runs import run_for_clusters

        raise click.exceptions.Exit(run_for_clusters(ctx, ctx.meta[_ARGUMENTS], paths, **options))
