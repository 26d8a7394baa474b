"""`cfngen version`: cfngen's version, the Kubernetes versions that it knows, and what it runs with."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import click

from cfngen import __version__
from cfngen.cli.display.messages import show_message
from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.input.target import output_option

_PACKAGES = ("cfn-lint", "troposphere", "boto3")


@dataclass(frozen=True)
class Versions:
    """The version of cfngen, and those of what it installs and runs with.

    Attributes:
        cfngen: version of cfngen.
        default_kubernetes_version: version of Kubernetes for a cluster file that names none.
        kubernetes_versions: versions of Kubernetes that cfngen can install, oldest first.
        python: version of Python.
        packages: version of each Python package on which templates, their checks and deployments depend most.
    """

    kind: ClassVar[str] = "versions"

    cfngen: str
    default_kubernetes_version: str
    kubernetes_versions: tuple[str, ...]
    python: str
    packages: Mapping[str, str]


@click.command(
    "version",
    short_help="Show the version of cfngen, and the Kubernetes versions it knows.",
    epilog=examples_epilog("cfngen version", "cfngen version --output json | jq -r '.kubernetesVersions[-1]'"),
)
@output_option
def command(output: str) -> None:
    """Show the version of cfngen, the Kubernetes versions that it can install, and what it runs with."""
    from importlib.metadata import version

    from cfngen import releases
    from cfngen.cluster.model import Cluster

    versions = Versions(
        cfngen=__version__,
        default_kubernetes_version=releases.exact_version(Cluster.model_fields["kubernetes_version"].default),
        kubernetes_versions=tuple(patch for patches in releases.patches_by_minor().values() for patch in patches),
        python=platform.python_version(),
        packages={name: version(name) for name in _PACKAGES},
    )
    show_message(versions, json=output == "json")
