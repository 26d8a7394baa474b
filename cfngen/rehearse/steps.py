"""The steps of the rehearsal, cheapest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import PLUGINS
from cfngen.errors import CfngenError
from cfngen.rehearse import clusters
from cfngen.templates import Document, generate

Zones = tuple[str, ...]
ObservationKind = Literal["", "empty-stacks", "masters", "secret-ids", "deleted-secrets"]


class UnknownStepError(CfngenError):
    """There is no step of that name."""

    code = "unknown-rehearsal-step"


@dataclass(frozen=True)
class Deployable:
    """What an action deploys.

    Attributes:
        documents: all or some of the cluster's templates, including a root.
    """

    cluster: Cluster
    documents: tuple[Document, ...]


@dataclass(frozen=True)
class StepAction:
    """One operation of a step.

    Attributes:
        name: its name, e.g. `create`; unique among the steps that share a stack.
        verb: the operation; `plan` creates a change set and deletes it again.
        make: returns the templates for three zones; None for a deletion.
        observe: what to observe afterwards; empty for nothing.
    """

    name: str
    verb: Literal["plan", "deploy", "delete"]
    make: Callable[[Zones], Deployable] | None = None
    observe: ObservationKind = ""


@dataclass(frozen=True)
class RehearsalStep:
    """A step of the rehearsal.

    Attributes:
        name: its name, for `--up-to`.
        shows: what the step verifies that only AWS, not the emulator, can show.
        actions: its operations, in order, without the final deletion of the stack.
        stack: name of the step that created the stack which this step uses; the expectations are recorded under it.
    """

    name: str
    title: str
    shows: str
    actions: tuple[StepAction, ...]
    stack: str


def _roles_and_groups(zones: Zones) -> Deployable:
    clusters_by_plugin = {plugin: clusters.with_plugin(zones, plugin) for plugin in PLUGINS}
    return Deployable(clusters.default_cluster(zones), clusters.roles_and_groups(clusters_by_plugin))


def _one_master(zones: Zones) -> Deployable:
    cluster = clusters.default_cluster(zones)
    return Deployable(cluster, clusters.one_master(cluster, turn=1))


def _one_master_with_changed_user_data(zones: Zones) -> Deployable:
    """Return the same stacks as `_one_master` with other user data, so that an update replaces the instance."""
    cluster = clusters.default_cluster(zones)
    return Deployable(cluster, clusters.one_master(cluster, turn=2))


def _secrets(zones: Zones) -> Deployable:
    cluster = clusters.default_cluster(zones)
    return Deployable(cluster, clusters.key_and_secrets(cluster))


def _whole_cluster(cluster_of: Callable[[Zones], Cluster]) -> Callable[[Zones], Deployable]:
    """Return a function that returns all templates of a cluster; `cluster_of` returns the cluster for three zones."""

    def make(zones: Zones) -> Deployable:
        cluster = cluster_of(zones)
        return Deployable(cluster, generate(cluster))

    return make


_DEFAULT_CLUSTER = _whole_cluster(clusters.default_cluster)
DELETE = StepAction(name="delete", verb="delete")
STEPS: tuple[RehearsalStep, ...] = (
    RehearsalStep(
        name="network-plugins",
        title="IAM and security-group stacks of every network plug-in",
        shows="whether IAM and EC2 take each policy, rule, description and tag",
        actions=(StepAction(name="create", verb="deploy", make=_roles_and_groups),),
        stack="network-plugins",
    ),
    RehearsalStep(
        name="change-set",
        title="change set of the whole default cluster, which is not executed",
        shows="whether CloudFormation plans nested stacks that are not there yet, and what is left of it",
        actions=(StepAction(name="plan", verb="plan", make=_DEFAULT_CLUSTER, observe="empty-stacks"),),
        stack="change-set",
    ),
    RehearsalStep(
        name="program",
        title="an instance that reads its program from the stack and signals",
        shows="metadata of the program's size, DescribeStackResource and SignalResource with a master's role; an Auto "
        "Scaling group of one on a network interface that exists already",
        actions=(StepAction(name="create", verb="deploy", make=_one_master, observe="masters"),),
        stack="program",
    ),
    RehearsalStep(
        name="roll",
        title="the instance is replaced on its network interface",
        shows="when the new instance gets the interface of the old one, and how often a launch fails until then",
        actions=(StepAction(name="roll", verb="deploy", make=_one_master_with_changed_user_data, observe="masters"),),
        stack="program",
    ),
    RehearsalStep(
        name="secrets",
        title="a key, secrets and a bucket, made, deleted and made again",
        shows="names in use, and what a deletion leaves",
        actions=(
            StepAction(name="create", verb="deploy", make=_secrets, observe="secret-ids"),
            StepAction(name="delete at once", verb="delete", observe="deleted-secrets"),
            StepAction(name="create again", verb="deploy", make=_secrets),
        ),
        stack="secrets",
    ),
    RehearsalStep(
        name="cluster",
        title="the default cluster",
        shows="whether a cluster comes up",
        actions=(StepAction(name="create", verb="deploy", make=_DEFAULT_CLUSTER, observe="masters"),),
        stack="cluster",
    ),
    RehearsalStep(
        name="update",
        title="an update that replaces the master's instance",
        shows="phases, and a master that resumes from its volume",
        actions=(
            StepAction(
                name="update", verb="deploy", make=_whole_cluster(clusters.with_larger_root_volume), observe="masters"
            ),
        ),
        stack="cluster",
    ),
    RehearsalStep(
        name="three-masters",
        title="a cluster of three masters behind a load balancer",
        shows="masters that start together, and their load balancer",
        actions=(
            StepAction(name="create", verb="deploy", make=_whole_cluster(clusters.three_masters), observe="masters"),
        ),
        stack="three-masters",
    ),
)
PARAMETER_VALUES: Mapping[str, str] = {"ApiAllowedCidr": "203.0.113.7/32"}
"""Parameter values: the API is opened only to an address of TEST-NET-3, reserved for documentation, so to nobody."""


def steps_up_to(name: str) -> tuple[RehearsalStep, ...]:
    """Return the steps up to and including the named one; all steps if the name is empty.

    Args:
        name: name or number of a step.

    Raises:
        UnknownStepError: there is no such step.
    """
    names = [step.name for step in STEPS]
    if not name:
        return STEPS
    if name.isdecimal() and 0 < int(name) <= len(STEPS):
        return STEPS[: int(name)]
    if name not in names:
        raise UnknownStepError(
            f"the rehearsal has no step {name!r}", hint=f"the steps are {', '.join(names)}, or their numbers."
        )
    return STEPS[: names.index(name) + 1]


def ends_stack(step: RehearsalStep, steps: Sequence[RehearsalStep]) -> bool:
    """Return whether a step is the last of these steps that uses its stack."""
    return [other for other in steps if other.stack == step.stack][-1] is step
