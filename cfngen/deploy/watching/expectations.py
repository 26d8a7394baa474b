"""How long operations on resources usually take, so that a user can tell whether an operation hangs.

The durations are estimates from experience, rounded up. AWS promises none of them. They are only shown to the user: no
code relies on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cfngen.deploy.aws.consoles import BOOT_SECONDS
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, NESTED_STACK
from cfngen.deploy.aws.types import TemplatePart
from cfngen.templates.evaluation import EvaluatedTemplate
from cfngen.templates.expressions import references

ResourceAction = Literal["create", "update", "replace", "delete"]
StackPath = tuple[str, ...]

DEFAULT_SECONDS = 15  # of an operation on a resource of a type that is not listed below, in the total
DRAIN_SECONDS = 60  # seconds to drain a node
# Seconds to create an Auto Scaling group if CloudFormation does not wait for its instances.
UNAWAITED_GROUP_SECONDS = 20


class UsualSeconds(NamedTuple):
    """How many seconds operations on a resource usually take."""

    create: int
    update: int
    delete: int


SECONDS_BY_RESOURCE_TYPE: Mapping[str, UsualSeconds] = {
    # Creation ends when every instance has sent its signal, deletion when every instance is terminated.
    AUTO_SCALING_GROUP: UsualSeconds(create=BOOT_SECONDS, update=BOOT_SECONDS, delete=120),
    # Waits for the signal of a master (creation policy).
    "AWS::CloudFormation::WaitCondition": UsualSeconds(create=BOOT_SECONDS, update=5, delete=5),
    "AWS::CloudFormation::WaitConditionHandle": UsualSeconds(create=5, update=5, delete=5),
    # CloudFront has to reach all of its edge locations, and disables a distribution before it deletes it.
    "AWS::CloudFront::Distribution": UsualSeconds(create=300, update=300, delete=300),
    "AWS::CloudFront::OriginAccessControl": UsualSeconds(create=5, update=5, delete=5),
    "AWS::EC2::CapacityReservation": UsualSeconds(create=15, update=15, delete=15),
    "AWS::EC2::DHCPOptions": UsualSeconds(create=15, update=15, delete=10),
    "AWS::EC2::EIP": UsualSeconds(create=20, update=20, delete=20),
    "AWS::EC2::EIPAssociation": UsualSeconds(create=20, update=20, delete=20),
    "AWS::EC2::FlowLog": UsualSeconds(create=5, update=5, delete=5),
    "AWS::EC2::InternetGateway": UsualSeconds(create=20, update=10, delete=20),
    "AWS::EC2::KeyPair": UsualSeconds(create=5, update=5, delete=5),
    "AWS::EC2::LaunchTemplate": UsualSeconds(create=10, update=10, delete=5),
    "AWS::EC2::NatGateway": UsualSeconds(create=130, update=10, delete=80),
    "AWS::EC2::NetworkInterface": UsualSeconds(create=20, update=20, delete=20),
    "AWS::EC2::Route": UsualSeconds(create=5, update=5, delete=5),
    "AWS::EC2::RouteTable": UsualSeconds(create=15, update=10, delete=10),
    "AWS::EC2::SecurityGroup": UsualSeconds(create=10, update=10, delete=10),
    "AWS::EC2::SecurityGroupIngress": UsualSeconds(create=5, update=5, delete=5),
    "AWS::EC2::Subnet": UsualSeconds(create=10, update=10, delete=10),
    "AWS::EC2::SubnetRouteTableAssociation": UsualSeconds(create=5, update=5, delete=5),
    "AWS::EC2::VPC": UsualSeconds(create=15, update=10, delete=10),
    "AWS::EC2::VPCCidrBlock": UsualSeconds(create=15, update=15, delete=15),
    "AWS::EC2::VPCDHCPOptionsAssociation": UsualSeconds(create=10, update=10, delete=5),
    # An interface endpoint; a gateway endpoint takes seconds only.
    "AWS::EC2::VPCEndpoint": UsualSeconds(create=90, update=30, delete=80),
    "AWS::EC2::VPCGatewayAttachment": UsualSeconds(create=15, update=10, delete=15),
    # Deletion first takes a snapshot, which needs minutes for each of the first gigabytes.
    "AWS::EC2::Volume": UsualSeconds(create=15, update=60, delete=180),
    "AWS::ECR::Repository": UsualSeconds(create=5, update=5, delete=5),
    "AWS::ElasticLoadBalancingV2::Listener": UsualSeconds(create=10, update=10, delete=5),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": UsualSeconds(create=180, update=20, delete=30),
    "AWS::ElasticLoadBalancingV2::TargetGroup": UsualSeconds(create=15, update=15, delete=10),
    # CloudFormation waits two minutes until an instance profile is known everywhere.
    "AWS::IAM::InstanceProfile": UsualSeconds(create=130, update=10, delete=5),
    "AWS::IAM::ManagedPolicy": UsualSeconds(create=20, update=20, delete=10),
    "AWS::IAM::OIDCProvider": UsualSeconds(create=10, update=10, delete=10),
    "AWS::IAM::Role": UsualSeconds(create=20, update=20, delete=10),
    "AWS::KMS::Key": UsualSeconds(create=130, update=10, delete=10),
    "AWS::Logs::LogGroup": UsualSeconds(create=5, update=5, delete=5),
    # CloudFormation waits until all of Route 53's name servers have a change.
    "AWS::Route53::HostedZone": UsualSeconds(create=60, update=30, delete=60),
    "AWS::Route53::RecordSet": UsualSeconds(create=60, update=60, delete=60),
    "AWS::S3::Bucket": UsualSeconds(create=25, update=25, delete=10),
    "AWS::S3::BucketPolicy": UsualSeconds(create=25, update=25, delete=10),
    "AWS::SecretsManager::Secret": UsualSeconds(create=10, update=10, delete=10),
}


@dataclass(frozen=True)
class ExpectedResource:
    """One resource that an operation will create, update, replace or delete.

    Attributes:
        path: logical ids from the root to the resource's stack; empty for a resource of the root.
        signals: number of instance signals that CloudFormation waits for; 0 if none or not known.
        seconds: how long the action usually takes.
    """

    path: StackPath
    logical_id: str
    type: str
    action: ResourceAction
    signals: int = 0
    seconds: int = 0


@dataclass(frozen=True)
class Expectation:
    """What an operation will do and how long that usually takes.

    Attributes:
        resources: every resource that the operation works on, nested stacks included.
        seconds: how long the whole operation usually takes; 0 if not known.
    """

    resources: tuple[ExpectedResource, ...] = ()
    seconds: int = 0

    def of(self, path: StackPath) -> tuple[ExpectedResource, ...]:
        """Return the resources of one stack."""
        return tuple(resource for resource in self.resources if resource.path == path)

    def find(self, path: StackPath, logical_id: str) -> ExpectedResource | None:
        """Return what is expected of one resource; None if nothing is."""
        return next(
            (resource for resource in self.resources if (resource.path, resource.logical_id) == (path, logical_id)),
            None,
        )


def usual_seconds(resource_type: str, action: ResourceAction, signals: int = 0) -> int:
    """Return how many seconds CloudFormation usually takes for an action on one resource.

    Args:
        signals: number of instances whose signals CloudFormation waits for; an update replaces them one by one.
    """
    seconds = SECONDS_BY_RESOURCE_TYPE.get(
        resource_type, UsualSeconds(create=DEFAULT_SECONDS, update=DEFAULT_SECONDS, delete=DEFAULT_SECONDS)
    )
    if resource_type == AUTO_SCALING_GROUP and action == "update":
        return seconds.update * max(signals, 1)
    # A replacement takes as long as a creation: the old resource is deleted after the update has succeeded (cleanup).
    seconds_by_action = {
        "create": seconds.create,
        "replace": seconds.create,
        "update": seconds.update,
        "delete": seconds.delete,
    }
    return seconds_by_action[action]


def expect_operation(
    bodies: Mapping[StackPath, TemplatePart],
    actions: Mapping[tuple[StackPath, str], ResourceAction] | ResourceAction,
    values: Mapping[str, str] | None = None,
) -> Expectation:
    """Return what an operation on a stack and its nested stacks will do, and how long it usually takes.

    Args:
        bodies: the template of every stack, by the stack's path; the root's path is empty.
        actions: what happens to each resource, by the path of its stack and its logical id; or one action for all.
        values: values of the root's parameters that differ from their defaults.
    """
    evaluated_templates: dict[StackPath, EvaluatedTemplate] = {}
    for path in sorted(bodies, key=len):
        evaluated_templates[path] = (
            evaluated_templates[path[:-1]].nested(path[-1], bodies[path])
            if path
            else EvaluatedTemplate(bodies[path], values or {})
        )
    expected_by_resource: dict[tuple[StackPath, str], ExpectedResource] = {}
    for path, body in bodies.items():
        for logical_id, resource in body.get("Resources", {}).items():
            action = actions if isinstance(actions, str) else actions.get((path, logical_id))
            if action is None:
                continue
            signals = _expected_signals(resource, evaluated_templates[path], action)
            # A nested stack takes as long as its resources, which are counted themselves.
            seconds = 0 if resource["Type"] == NESTED_STACK else usual_seconds(resource["Type"], action, signals)
            if resource["Type"] == AUTO_SCALING_GROUP and action == "create" and "CreationPolicy" not in resource:
                seconds = UNAWAITED_GROUP_SECONDS
            drains_nodes = "LifecycleHookSpecificationList" in resource.get("Properties", {})
            # An update drains the nodes one after another, a deletion drains all at once.
            if drains_nodes and action == "update":
                seconds += DRAIN_SECONDS * max(signals, 1)
            elif drains_nodes and action == "delete":
                seconds += DRAIN_SECONDS
            expected_by_resource[path, logical_id] = ExpectedResource(
                path=path,
                logical_id=logical_id,
                type=resource["Type"],
                action=action,
                signals=0 if action == "delete" else signals,
                seconds=seconds,
            )
    return Expectation(tuple(expected_by_resource.values()), _critical_path_seconds(bodies, expected_by_resource, ()))


def _critical_path_seconds(
    bodies: Mapping[StackPath, TemplatePart],
    expected_by_resource: Mapping[tuple[StackPath, str], ExpectedResource],
    path: StackPath,
) -> int:
    resources = bodies.get(path, {}).get("Resources", {})
    end_seconds: dict[str, int] = {}

    def end_of(logical_id: str, dependents: tuple[str, ...] = ()) -> int:
        """Return after how many seconds a resource is complete.

        `dependents` are the resources that wait for this one. They are skipped, so that a circular dependency ends.
        """
        if logical_id not in end_seconds:
            dependencies = (
                dependency
                for dependency in _dependencies(resources[logical_id])
                if dependency in resources and dependency not in dependents
            )
            start = max((end_of(dependency, (*dependents, logical_id)) for dependency in dependencies), default=0)
            expected = expected_by_resource.get((path, logical_id))
            child = (*path, logical_id)
            nested_seconds = _critical_path_seconds(bodies, expected_by_resource, child) if child in bodies else 0
            end_seconds[logical_id] = start + (expected.seconds if expected else 0) + nested_seconds
        return end_seconds[logical_id]

    # A deletion follows the same dependencies in reverse order, so its critical path is as long.
    return max((end_of(resource) for resource in resources), default=0)


def _dependencies(resource: TemplatePart) -> Iterator[str]:
    """Yield the logical ids that a resource depends on, together with the parameters that it refers to."""
    depends_on = resource.get("DependsOn", ())
    yield from [depends_on] if isinstance(depends_on, str) else depends_on
    yield from (name for name, _ in references(resource))


def _expected_signals(resource: TemplatePart, template: EvaluatedTemplate, action: ResourceAction) -> int:
    creation_signal = resource.get("CreationPolicy", {}).get("ResourceSignal")
    rolling_update = resource.get("UpdatePolicy", {}).get("AutoScalingRollingUpdate", {})
    count: object = 0
    if creation_signal:
        count = creation_signal.get("Count", 1)
    elif action == "update" and rolling_update.get("WaitOnResourceSignals"):
        count = resource.get("Properties", {}).get("MinSize", 1)
    number = str(template.evaluate(count))
    return int(number) if number.isdecimal() else 0
