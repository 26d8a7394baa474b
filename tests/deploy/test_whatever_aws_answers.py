"""Whatever AWS answers, no command ends in an error that is not cfngen's own.

The answers are complete by botocore's models of the services; then members are left out that the models do not
require, and texts are such as nobody has seen: unknown statuses, and what CloudFormation writes in place of a value.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from answers import Answers
from botocore.loaders import create_loader
from botocore.model import ServiceModel
from botocore.validate import validate_parameters
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import CHANGE_SET, NESTED, NOW, STACK_ID, default_cluster, documents, request

from cfngen.cli.display.json_output import to_json_value
from cfngen.cli.display.messages import message_type
from cfngen.cli.render.events import history_lines
from cfngen.cli.render.live import heartbeat_line, tree_lines
from cfngen.cluster.load import load, parse
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.change_sets import read_change_set
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.events import read_history
from cfngen.deploy.aws.operation_origin import read_origin
from cfngen.deploy.aws.stacks import CLUSTER_TAG, StackTree, find_stack
from cfngen.deploy.aws.types import Client
from cfngen.deploy.messages.message import Event, Message
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.operations.recovery import ensure_deployable
from cfngen.deploy.plan.planning import plan_from_change_set
from cfngen.deploy.preflight.network.checks import check_network
from cfngen.deploy.preflight.quotas.checks import check_quotas
from cfngen.deploy.preflight.quotas.demand import count_demand
from cfngen.deploy.status.derived_status import read_status
from cfngen.deploy.watching.diagnosis import diagnose
from cfngen.deploy.watching.progress import Progress
from cfngen.deploy.watching.watch import InterruptChoice, watch
from cfngen.errors import CfngenError
from cfngen.templates import generate

GROUP = "AWS::AutoScaling::AutoScalingGroup"
OPERATIONS = (
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeScalingActivities",
    "cloudformation:DescribeChangeSet",
    "cloudformation:DescribeEvents",
    "cloudformation:DescribeStackDriftDetectionStatus",
    "cloudformation:DescribeStackEvents",
    "cloudformation:DescribeStackResourceDrifts",
    "cloudformation:DescribeStacks",
    "cloudformation:DetectStackDrift",
    "cloudformation:GetStackPolicy",
    "cloudformation:GetTemplate",
    "cloudformation:ListChangeSets",
    "cloudformation:ListStackResources",
    "ec2:DescribeAddresses",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeInternetGateways",
    "ec2:DescribeLaunchTemplateVersions",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribeNatGateways",
    "ec2:DescribeNetworkAcls",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVolumes",
    "ec2:DescribeVpcAttribute",
    "ec2:DescribeVpcEndpoints",
    "ec2:DescribeVpcPeeringConnections",
    "ec2:DescribeVpcs",
    "ec2:GetConsoleOutput",
    "elbv2:DescribeLoadBalancers",
    "iam:GetAccountSummary",
    "service-quotas:GetServiceQuota",
)
EXISTING_VPC = load(Path(__file__).parents[2] / "examples" / "existing-vpc.yaml", environ={}).cluster
NO_WAY_OUT = parse(
    {
        "network": {
            "topology": "private",
            "nat": "none",
            "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"},
            "subnets": [{"zone": "us-west-2a", "cidr": "10.20.32.0/20"}],
            "serviceCidr": "10.250.0.0/16",
        },
        "api": {"public": False},
    }
)
ABSENT = object()
ODD_TEXTS = (
    "",
    "2026-03-01",
    "SOMETHING_NEW",
    "SyncWithActual",
    "****",
    "{{changeSet:KNOWN_AFTER_APPLY}}",
    "(Truncated-Signature):0123456789abcdef",
)
ADDRESSES = frozenset({"Cidr", "CidrBlock", "CidrIp", "DestinationCidrBlock", "Ipv4Prefix", "PrivateIpAddress"})
# Another page would come for ever, the stack is a root, and nobody but cfngen writes the boot program.
NEVER_DRAWN = ("NextToken", "NextPageToken", "ParentId", "RootId", "UserData")

Shape: TypeAlias = Any  # botocore's; which attributes it has depends on its type
MemberPath: TypeAlias = tuple[str | int, ...]
Mutation: TypeAlias = tuple[str, MemberPath, object]


def _resource(logical_id: str, type_: str, status: str = "CREATE_COMPLETE") -> dict[str, str]:
    physical_id = STACK_ID.replace("kubernetes", f"kubernetes-{logical_id}") if type_ == NESTED else f"id-{logical_id}"
    identity = {"LogicalResourceId": logical_id, "PhysicalResourceId": physical_id, "ResourceType": type_}
    return {**identity, "ResourceStatus": status}


_STACK = {**_resource("kubernetes", NESTED), "PhysicalResourceId": STACK_ID}
_GROUP_FAILED = _resource("MasterAAutoScalingGroup", GROUP, "UPDATE_FAILED")
# What a list has in it beside what its model says: the parts of a cluster, and an update that failed (newest first).
ITEMS: dict[str, list[dict[str, Any]]] = {
    "StackResourceSummaries": [
        _resource("MasterStack", NESTED),
        _resource("MasterAAutoScalingGroup", GROUP),
        _resource("NodeGroupNodesAutoScalingGroup", GROUP),
        _resource("MasterALaunchTemplate", "AWS::EC2::LaunchTemplate"),
        _resource("MasterAVolume", "AWS::EC2::Volume"),
        _resource("MasterANetworkInterface", "AWS::EC2::NetworkInterface"),
        _resource("MasterAElasticIp", "AWS::EC2::EIP"),
        _resource("MasterAElasticIpAssociation", "AWS::EC2::EIPAssociation"),
    ],
    "StackEvents": [
        {**_STACK, "ResourceStatus": "UPDATE_ROLLBACK_IN_PROGRESS", "ResourceStatusReason": "failed"},
        {**_GROUP_FAILED, "ResourceStatusReason": "Received 1 FAILURE signal(s) out of 1."},
        {**_GROUP_FAILED, "ResourceStatus": "UPDATE_IN_PROGRESS", "ResourceStatusReason": "Received FAILURE signal"},
        {**_resource("MasterStack", NESTED, "UPDATE_IN_PROGRESS"), "ResourceStatusReason": ""},
        {**_STACK, "ResourceStatus": "UPDATE_IN_PROGRESS", "ResourceStatusReason": "User Initiated"},
        {**_STACK, "ResourceStatus": "CREATE_COMPLETE", "ResourceStatusReason": ""},
    ],
    "OperationEvents": [{**_GROUP_FAILED, "OperationType": "UPDATE_STACK", "ResourceStatusReason": "no capacity"}],
    "AutoScalingGroups": [{"AutoScalingGroupName": "id-MasterAAutoScalingGroup"}],
    "Tags": [{"Key": CLUSTER_TAG, "Value": "kubernetes"}],
    "LaunchTemplates": [{"LaunchTemplateId": "id-MasterALaunchTemplate"}],
    "Volumes": [{"VolumeId": "id-MasterAVolume"}],
    "NetworkInterfaces": [{"NetworkInterfaceId": "id-MasterANetworkInterface"}],
    "Changes": [
        {"Type": "Resource", "ResourceChange": _resource(logical_id, type_)}
        for logical_id, type_ in (("MasterAAutoScalingGroup", GROUP), ("Vpc", "AWS::EC2::VPC"))
    ],
}
VALUES: dict[str, Any] = {
    "Action": "Modify",
    "AfterContext": json.dumps({"Properties": {"CidrBlock": "{{changeSet:KNOWN_AFTER_APPLY}}"}}),
    "BeforeContext": json.dumps({"Properties": {"CidrBlock": "10.0.0.0/16"}}),
    "ChangeSetId": CHANGE_SET.replace("plan-one", "plan-nested"),
    "Cidr": "10.20.0.0/16",
    "CidrBlock": "10.20.16.0/20",
    "CidrIp": "10.20.0.0/16",
    "CreationDate": "2026-01-01T00:00:00.000Z",
    "DestinationCidrBlock": "0.0.0.0/0",
    "ImageId": "ami-1",
    "InstanceId": "i-1",
    "InstanceType": "t3.medium",
    "LaunchTemplateId": "id-MasterALaunchTemplate",
    "LaunchTemplateName": "name",
    "Path": "/Properties/CidrBlock",
    "Ipv4Prefix": "10.20.16.16/28",
    "PrivateIpAddress": "10.20.16.9",
    "RouteTableId": "rtb-0123456789abcdef0",
    "StackId": STACK_ID,
    "StackName": "kubernetes",
    "StackPolicyBody": "{}",
    "StackStatus": "UPDATE_ROLLBACK_COMPLETE",
    "StatusCode": "Failed",
    "SubnetId": "subnet-0a123456789abcdef",
    "TemplateBody": json.dumps(next(document.body for document in documents() if document.children)),
    "Version": "1",
    "VpcId": "vpc-0123456789abcdef0",
}


@cache
def _names_read() -> frozenset[str]:
    """What cfngen reads of answers, and more: every quoted name in its source that could be a member's."""
    sources = Path(__file__).parents[2].joinpath("cfngen/deploy").rglob("*.py")
    return frozenset(name for source in sources for name in re.findall(r"\"([A-Z]\w+)\"", source.read_text()))


def _complete(shape: Shape, name: str, depth: int = 0) -> Any:
    """A value with every member that cfngen may read."""
    if shape.type_name == "structure":
        return {
            key: _complete(member, key, depth + 1)
            for key, member in shape.members.items()
            if key in shape.required_members or (key in _names_read() - {*NEVER_DRAWN} and depth < 8)
        }
    if shape.type_name == "list":
        return [_merge(_complete(shape.member, name, depth + 1), more) for more in ITEMS.get(name, [{}])]
    if shape.type_name == "map":
        return {"key": _complete(shape.value, name, depth + 1)}
    if shape.type_name == "string":
        return VALUES.get(name, (*getattr(shape, "enum", ()), name)[0]).ljust(shape.metadata.get("min", 0), "x")
    others = {"timestamp": NOW, "boolean": False, "float": 1.0, "double": 1.0, "blob": b""}
    return others.get(shape.type_name, 1)


def _merge(item: Any, more: dict[str, Any]) -> Any:
    if not isinstance(item, dict):
        return item
    known = {key: value for key, value in more.items() if key in item}
    return {**item, **{key: _merge(item[key], part) if isinstance(part, dict) else part for key, part in known.items()}}


@cache
def _shape(operation: str) -> Shape:
    service, _, name = operation.partition(":")
    model = ServiceModel(create_loader().load_service_model(service, "service-2"), service)
    return model.operation_model(name).output_shape


@cache
def _complete_answers() -> dict[str, Any]:
    answers = {operation: _complete(_shape(operation), "") for operation in OPERATIONS}
    answers["cloudformation:DescribeChangeSet"]["ChangeSetId"] = CHANGE_SET
    for number, entry in enumerate(events := answers["cloudformation:DescribeStackEvents"]["StackEvents"]):
        entry |= {"EventId": f"event-{number}", "Timestamp": NOW + timedelta(minutes=len(events) - number)}
    for entry in answers["cloudformation:DescribeEvents"]["OperationEvents"]:
        entry["Timestamp"] = NOW + timedelta(minutes=4)
    return answers


def _mutations(operation: str) -> Iterator[Mutation]:
    """Every single thing that may be other than complete in an answer."""

    def walk(value: Any, shape: Shape, path: MemberPath) -> Iterator[Mutation]:
        if isinstance(value, dict) and shape.type_name == "structure":
            for key, member in value.items():
                if key not in shape.required_members:
                    yield operation, (*path, key), ABSENT
                yield from walk(member, shape.members[key], (*path, key))
        elif isinstance(value, list):
            yield operation, path, []
            for number, item in enumerate(value):
                yield from walk(item, shape.member, (*path, number))
        # A range of addresses, where there is one, is one.
        elif isinstance(value, str) and not ADDRESSES.intersection(map(str, path)):
            lengths = shape.metadata.get("min", 0)
            yield from ((operation, path, text) for text in ODD_TEXTS if len(text) >= lengths)

    return walk(_complete_answers()[operation], _shape(operation), ())


def _apply(answers: dict[str, Any], mutation: Mutation) -> None:
    operation, path, value = mutation
    place = answers[operation]
    # What an earlier mutation has left out can not be changed any more.
    with contextlib.suppress(KeyError, IndexError):
        for key in path[:-1]:
            place = place[key]
        if value is ABSENT:
            del place[path[-1]]
        else:
            place[path[-1]] = deepcopy(value)


def _without_optional_members(value: Any, shape: Shape) -> Any:
    if isinstance(value, dict) and shape.type_name == "structure":
        return {
            key: _without_optional_members(value[key], shape.members[key])
            for key in value
            if key in shape.required_members or shape.members[key].type_name in ("list", "structure")
        }
    if isinstance(value, list):
        return [_without_optional_members(item, shape.member) for item in value]
    return value


class AnyAnswers(Answers):
    """An account that answers what is drawn; nested stacks have no nested stacks of their own."""

    def __init__(self, drawn: dict[str, Any]) -> None:
        for operation, answer in drawn.items():
            validate_parameters(answer, _shape(operation))
        super().__init__({operation: self._answer(answer) for operation, answer in drawn.items()})
        values = {field.name: getattr(self.account, field.name) for field in fields(Account)}
        self.account = _SharedClients(**values)
        self.pauses = 0
        self.clock.sleep = self._sleep  # type: ignore[method-assign]
        _SharedClients.clients = values["_clients"]

    def _answer(self, drawn: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def answer(sent: dict[str, Any]) -> dict[str, Any]:
            if {sent.get("StackName"), sent.get("ChangeSetName")} <= {None, "kubernetes", STACK_ID, CHANGE_SET}:
                return drawn
            nested = {key: drawn[key] for key in drawn.keys() - {"Changes"}}
            for key in {"StackResourceSummaries", "StackEvents", "OperationEvents"} & drawn.keys():
                nested[key] = [item for item in drawn[key] if item.get("ResourceType") != NESTED]
            return nested

        return answer

    def _sleep(self, seconds: float) -> None:
        self.pauses += 1
        self.clock.time += timedelta(seconds=seconds)
        if self.pauses > 12:
            raise KeyboardInterrupt


@dataclass(frozen=True)
class _SharedClients(Account):
    """An account whose copies have the same clients."""

    clients = None

    def client(self, service: str) -> Client:
        return self.clients[service]  # type: ignore[index, no-any-return]


def _show(message: Any) -> None:
    """Show a message in both forms."""
    json.dumps(to_json_value(message))
    if isinstance(message, Progress):
        heartbeat_line(message)
        tree_lines(message, 80)
    elif isinstance(message, Event):
        history_lines([message])
    elif message_type(message).renderer:
        message_type(message).lines(message, full=True)


def _read_history(api: AnyAnswers) -> None:
    history_lines(read_history(api.account, STACK_ID, operation="all"))
    with translate_aws_errors():
        stack = find_stack(api.account, STACK_ID)
        if stack:
            read_origin(api.account, stack)


def _watch(api: AnyAnswers) -> None:
    messages: list[Message] = []
    watch(api.account, STACK_ID, report=messages.append)
    for message in messages:
        _show(message)


def _prepare(api: AnyAnswers) -> None:
    interaction = Interaction(_show, lambda question: False, lambda: InterruptChoice.DETACH)
    ensure_deployable(api.account, "kubernetes", "kubernetes", interaction)


def _plan(api: AnyAnswers) -> None:
    change_set = read_change_set(api.account, CHANGE_SET)
    with translate_aws_errors():
        stack = find_stack(api.account, STACK_ID)
    deployed = StackTree(api.account, stack) if stack else None
    plan = plan_from_change_set(
        api.account, request(), change_set, operation="update", deployed=deployed, is_stack_empty=False, report=_show
    )
    _show(plan)


def _check_network(api: AnyAnswers) -> None:
    for cluster in (EXISTING_VPC, NO_WAY_OUT):
        _show(check_network(api.account, cluster, _show))


def _check_quotas(api: AnyAnswers) -> None:
    for cluster in (default_cluster(), EXISTING_VPC):
        check_quotas(api.account, count_demand(generate(cluster), {}))


READERS: dict[str, Callable[[AnyAnswers], None]] = {
    "diagnosis": lambda api: _show(diagnose(api.account, STACK_ID)),
    "status": lambda api: _show(read_status(api.account, STACK_ID, default_cluster(), detect_drift=True)),
    "history": _read_history,
    "watch": _watch,
    "preparation": _prepare,
    "plan": _plan,
    "network": _check_network,
    "quotas": _check_quotas,
}


def _read(name: str, drawn: Drawn) -> set[str]:
    """Read answers, and return the operations that were called."""
    api = AnyAnswers(drawn.answers)
    with contextlib.suppress(CfngenError, KeyboardInterrupt), translate_aws_errors():
        READERS[name](api)
    return {call for call, _ in api.calls}


@dataclass(frozen=True)
class Drawn:
    """How answers differ from complete ones: operations without anything optional, and single oddities."""

    sparse: tuple[str, ...]
    odd: tuple[Mutation, ...]

    @property
    def answers(self) -> dict[str, Any]:
        answers = deepcopy(_complete_answers())
        for operation in self.sparse:
            answers[operation] = _without_optional_members(answers[operation], _shape(operation))
        for mutation in self.odd:
            _apply(answers, mutation)
        return answers


def _drawn() -> st.SearchStrategy[Drawn]:
    operations = st.sampled_from(OPERATIONS)
    mutations = operations.flatmap(lambda operation: st.sampled_from(tuple(_mutations(operation))))
    sparse = st.lists(operations, max_size=2, unique=True).map(tuple)
    return st.builds(Drawn, sparse, st.lists(mutations, max_size=8).map(tuple))


@pytest.mark.parametrize("name", READERS)
def test_complete_answers_are_read_without_an_error(name: str) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        READERS[name](AnyAnswers(deepcopy(_complete_answers())))


# botocore's models of EC2 require no member at all; what is left out of some kinds is in the API reference only.
LEFT_OUT = {
    "regional NAT gateway": ("ec2:DescribeNatGateways", "NatGateways", 0, "SubnetId"),
    "endpoint of a resource": ("ec2:DescribeVpcEndpoints", "VpcEndpoints", 0, "ServiceName"),
    "subnet for IPv6 only": ("ec2:DescribeSubnets", "Subnets", 0, "CidrBlock"),
    "interface for IPv6 only": ("ec2:DescribeNetworkInterfaces", "NetworkInterfaces", 0, "PrivateIpAddresses"),
    "rule for IPv6": ("ec2:DescribeNetworkAcls", "NetworkAcls", 0, "Entries", 0, "CidrBlock"),
    "rule for all ports": ("ec2:DescribeNetworkAcls", "NetworkAcls", 0, "Entries", 0, "PortRange"),
    "main association": ("ec2:DescribeRouteTables", "RouteTables", 0, "Associations", 0, "SubnetId"),
    "route for IPv6": ("ec2:DescribeRouteTables", "RouteTables", 0, "Routes", 0, "DestinationCidrBlock"),
    "peer that has not accepted": (
        "ec2:DescribeVpcPeeringConnections", "VpcPeeringConnections", 0, "AccepterVpcInfo", "CidrBlock",
    ),
    "group rule for all traffic": (
        "ec2:DescribeSecurityGroups", "SecurityGroups", 0, "IpPermissions", 0, "FromPort",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", LEFT_OUT)
@pytest.mark.parametrize("name", ["network", "quotas"])
def test_what_ec2_leaves_out_of_a_kind_of_resource_is_not_missed(name: str, kind: str) -> None:
    operation, *path = LEFT_OUT[kind]
    READERS[name](AnyAnswers(Drawn((), ((operation, tuple(path), ABSENT),)).answers))


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=10)
@given(drawn=_drawn())
def test_whatever_aws_answers_is_read(name: str, drawn: Drawn) -> None:
    _read(name, drawn)


@pytest.mark.drill
@pytest.mark.parametrize("name", READERS)
@settings(max_examples=40)
@given(drawn=_drawn())
def test_much_of_what_aws_may_answer_is_read(name: str, drawn: Drawn) -> None:
    _read(name, drawn)


@pytest.mark.parametrize("every", [pytest.param(9, marks=pytest.mark.drill), pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", READERS)
def test_each_single_oddity_of_an_answer_is_read(name: str, every: int) -> None:
    operations = sorted(_read(name, Drawn((), ())).intersection(OPERATIONS))
    mutations = [mutation for operation in operations for mutation in _mutations(operation)]
    for mutation in mutations[::every]:
        try:
            _read(name, Drawn((), (mutation,)))
        except Exception as error:
            error.add_note(str(mutation))
            raise
