"""Makes what a cluster file names as existing, with the ids in the file: network, security groups, roles and others.

In AWS it is there before the cluster; a sandbox begins empty. Subnets get the ways to the internet that the file says,
security groups and roles of instances what the command line says that the cluster needs.
"""

from __future__ import annotations

import ipaddress
import json
import re
from contextlib import nullcontext, suppress
from unittest import mock

from botocore.exceptions import ClientError
from moto.ec2.models import ec2_backends

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.cloudformation.region import ACCOUNT_ID
from cfngen.sandbox.services import keys, policy_documents
from cfngen.sandbox.services.iam import mark_propagated
from cfngen.sandbox.untyped import JsonObject

# Where moto takes the id of a new object from.
_ID_SOURCES = {
    "vpc": "vpcs.random_vpc_id",
    "internet_gateway": "internet_gateways.random_internet_gateway_id",
    "subnet": "subnets.random_subnet_id",
    "route_table": "route_tables.random_route_table_id",
    "nat_gateway": "nat_gateways.random_nat_gateway_id",
}
_TRUSTS_NOBODY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Deny", "Principal": "*", "Action": "sts:AssumeRole"}],
}


class _NoFreeRangeError(Exception):
    """The VPC has no room for another subnet."""


def make_existing_parts(region: str, parts: JsonObject) -> list[str]:
    """Make the parts that the cluster file names and the account lacks; return their ids and ARNs.

    What exists is left as it is, whether or not it is as the cluster needs it.

    Args:
        parts: `network`, this section of the cluster file, complete; `securityGroups`, by id their `tags` and the
            permissions `ingress` and `egress`; `prefixLists`, by id their greatest number of entries; `roles`, by ARN
            their `trust` and `policies`, the documents by name; `instanceProfiles`, the ARNs of their roles by ARN;
            `boundaries`, `keys` and `topics`, ARNs; `buckets` of logs and `repositories` for images, names;
            `providers`, the audience of their tokens by URL. What belongs to other accounts is not made; of the
            sandbox's own is an ARN with `${AWS::AccountId}`.
    """
    made: list[str] = []
    if _is_id(parts["network"]["vpc"]["id"]):
        # What AWS refuses, such as a subnet in the range of another one, stays missing; the checks of a plan say so.
        with suppress(ClientError, _NoFreeRangeError):
            _Network(region, parts["network"], made).make()
        with suppress(ClientError):
            _make_security_groups(region, parts, made)
    for section, make in (
        ("boundaries", _make_boundary), ("keys", _make_key), ("topics", make_topic), ("buckets", make_log_bucket),
        ("repositories", _make_repository),
    ):  # fmt: skip
        for listed in parts[section]:
            name = listed.replace("${AWS::AccountId}", ACCOUNT_ID)
            if not name.startswith("arn:") or name.split(":")[4] == ACCOUNT_ID:
                with suppress(ClientError):  # it exists
                    make(region, name)
                    made.append(name)
    for url, audience in parts["providers"].items():
        with suppress(ClientError):
            provider = client("iam", region).create_open_id_connect_provider(Url=url, ClientIDList=[audience])
            made.append(provider["OpenIDConnectProviderArn"])
    for list_id, max_entries in parts["prefixLists"].items():
        if list_id not in ec2_backends[ACCOUNT_ID][region].managed_prefix_lists:
            make_prefix_list(region, list_id, max_entries)
            made.append(list_id)
    own_roles = [arn for arn in parts["roles"] if arn.split(":")[4] == ACCOUNT_ID]
    for arn in own_roles:
        with suppress(ClientError):  # such as that a role of this name exists, perhaps with another path
            _make_role(region, arn, parts["roles"][arn])
            made.append(arn)
    for arn, role in parts["instanceProfiles"].items():
        with suppress(ClientError):
            _make_instance_profile(region, arn, role)
            made.append(arn)
    return made


def _path_and_name(arn: str) -> tuple[str, str]:
    """Return path and name of a role or an instance profile: of arn:aws:iam::123456789012:role/a/b/NAME, /a/b/."""
    path, _, name = arn.split(":", 5)[5].rpartition("/")
    return f"{path.removeprefix('role').removeprefix('instance-profile')}/", name


def _make_role(region: str, arn: str, role: JsonObject) -> None:
    iam, (path, name) = client("iam", region), _path_and_name(arn)
    trust = json.dumps(role.get("trust", _TRUSTS_NOBODY))
    iam.create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=trust)
    for policy_name, document in role.get("policies", {}).items():
        policy = iam.create_policy(PolicyName=f"{name}-{policy_name}", PolicyDocument=json.dumps(document))
        iam.attach_role_policy(RoleName=name, PolicyArn=policy["Policy"]["Arn"])


def _make_instance_profile(region: str, arn: str, role: str) -> None:
    iam, (path, name) = client("iam", region), _path_and_name(arn)
    iam.create_instance_profile(InstanceProfileName=name, Path=path)
    iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=_path_and_name(role)[1])
    mark_propagated(region, name)


def _make_boundary(region: str, arn: str) -> None:
    """Make a managed policy that bounds nothing."""
    path, _, name = arn.partition(":policy")[2].rpartition("/")
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [everything]})
    client("iam", region).create_policy(PolicyName=name, Path=f"{path}/", PolicyDocument=document)


def _make_key(region: str, arn: str) -> None:
    if keys.find_key(region, arn) is None:
        with mock.patch("moto.kms.models.generate_key_id", return_value=arn.rpartition("/")[2]):
            client("kms", region).create_key()


def _make_repository(region: str, name: str) -> None:
    client("ecr", region).create_repository(repositoryName=name)


def make_topic(region: str, arn: str) -> None:
    """Make a topic of SNS with an ARN."""
    client("sns", region).create_topic(Name=arn.rpartition(":")[2])


def make_log_bucket(region: str, name: str) -> None:
    """Make a bucket into which S3 writes access logs, and AWS delivers flow logs."""
    location = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    client("s3", region).create_bucket(Bucket=name, **location)
    objects = f"arn:{policy_documents.partition(region)}:s3:::{name}/*"
    statements = [
        {"Effect": "Allow", "Principal": {"Service": service}, "Action": "s3:PutObject", "Resource": objects}
        for service in ("delivery.logs.amazonaws.com", "logging.s3.amazonaws.com")
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    client("s3", region).put_bucket_policy(Bucket=name, Policy=document)


def make_prefix_list(region: str, list_id: str, max_entries: int) -> None:
    """Make a prefix list with an id, without entries."""
    with mock.patch("moto.ec2.models.managed_prefixes.random_managed_prefix_list_id", return_value=list_id):
        client("ec2", region).create_managed_prefix_list(
            PrefixListName=f"existing-{list_id}", MaxEntries=max_entries, AddressFamily="IPv4"
        )


def _make_security_groups(region: str, parts: JsonObject, made: list[str]) -> None:
    """Make the missing security groups; those that a rule names come before the first rule."""
    ec2, vpc = client("ec2", region), parts["network"]["vpc"]["id"]
    existing = set[str]().union(*ec2_backends[ACCOUNT_ID][region].groups.values())
    groups = {id_: group for id_, group in parts["securityGroups"].items() if _is_id(id_) and id_ not in existing}
    for group_id in groups:
        with mock.patch("moto.ec2.models.security_groups.random_security_group_id", return_value=group_id):
            ec2.create_security_group(GroupName=f"existing-{group_id}", Description="existing", VpcId=vpc)
        made.append(group_id)
    for group_id, group in groups.items():
        if tags := [{"Key": key, "Value": value} for key, value in group["tags"].items()]:
            ec2.create_tags(Resources=[group_id], Tags=tags)
        for direction in ("ingress", "egress"):
            authorize = getattr(ec2, f"authorize_security_group_{direction}")
            for permission in group[direction]:
                with suppress(ClientError):  # the file may refer to a group elsewhere
                    authorize(GroupId=group_id, IpPermissions=[permission])


def _is_id(value: object) -> bool:
    """Return whether a value of the cluster file is an id: it may be None, or a reference to another stack."""
    return isinstance(value, str) and re.fullmatch(r"[a-z]+-[0-9a-f]+", value) is not None


class _Network:
    """The existing network of a cluster file.

    Args:
        network: the section `network` of the file, complete.
        made: gets the ids that the file names and that are made.
    """

    def __init__(self, region: str, network: JsonObject, made: list[str]) -> None:
        self._ec2 = client("ec2", region)
        self._file = network
        self._vpc: str = network["vpc"]["id"]
        self._made = made
        backend = ec2_backends[ACCOUNT_ID][region]
        kinds = (backend.vpcs, backend.internet_gateways, backend.route_tables, backend.nat_gateways)
        self._existing = set[str]().union(*kinds, *backend.subnets.values())

    def make(self) -> None:
        """Make what is missing."""
        network = self._file
        if self._is_missing(self._vpc):
            self._create("vpc", self._vpc, CidrBlock=network["vpc"]["cidr"])
            for cidr in network["vpc"]["additionalCidrs"]:
                self._ec2.associate_vpc_cidr_block(VpcId=self._vpc, CidrBlock=cidr)
            self._ec2.modify_vpc_attribute(VpcId=self._vpc, EnableDnsHostnames={"Value": True})
        gateway = self._internet_gateway()
        is_private = network["topology"] == "private"
        for subnet in network["subnets"]:
            public_subnet, nat_gateway = (subnet["public"] or {}).get("id"), subnet["natGateway"]
            table = subnet["routeTable"] or network["routeTable"]
            # A private subnet that is made, or gets a new table, needs a way out: the NAT gateway that the file names,
            # or one of its own. A NAT gateway stands in a public subnet.
            needs_route = self._is_missing(subnet["id"]) or self._is_missing(table)
            needs_nat_gateway = self._is_missing(nat_gateway) or (is_private and needs_route and not nat_gateway)
            if self._is_missing(public_subnet) or (needs_nat_gateway and not public_subnet):
                public_table = self._table(None, GatewayId=gateway)
                public_subnet = self._subnet(public_subnet, subnet["zone"], self._free_cidr(), public_table, role="elb")
            if needs_nat_gateway:
                allocation = self._ec2.allocate_address(Domain="vpc")["AllocationId"]
                nat_gateway = self._create("nat_gateway", nat_gateway, SubnetId=public_subnet, AllocationId=allocation)
            if needs_route:
                table = self._table(table, **({"NatGatewayId": nat_gateway} if is_private else {"GatewayId": gateway}))
            if self._is_missing(subnet["id"]):
                role = "internal-elb" if is_private else "elb"
                self._subnet(subnet["id"], subnet["zone"], subnet["cidr"], table, role)

    def _is_missing(self, identifier: object) -> bool:
        return _is_id(identifier) and identifier not in self._existing

    def _create(self, kind: str, identifier: str | None, **arguments: object) -> str:
        source = f"moto.ec2.models.{_ID_SOURCES[kind]}"
        with mock.patch(source, return_value=identifier) if identifier else nullcontext():
            answer = getattr(self._ec2, f"create_{kind}")(**arguments)
        noun = "".join(map(str.capitalize, kind.split("_")))
        created_id = str(answer[noun][f"{noun}Id"])
        self._existing.add(created_id)
        self._made += [created_id] if identifier else []
        return created_id

    def _internet_gateway(self) -> str:
        filters = [{"Name": "attachment.vpc-id", "Values": [self._vpc]}]
        for gateway in self._ec2.describe_internet_gateways(Filters=filters)["InternetGateways"]:
            return str(gateway["InternetGatewayId"])
        identifier = self._file["internetGateway"]
        created_id = self._create("internet_gateway", identifier if _is_id(identifier) else None)
        self._ec2.attach_internet_gateway(InternetGatewayId=created_id, VpcId=self._vpc)
        return created_id

    def _table(self, identifier: str | None, **target: str) -> str:
        """Return a route table with a default route to a target; make it unless it exists."""
        if identifier in self._existing:
            return str(identifier)
        created_id = self._create("route_table", identifier, VpcId=self._vpc)
        self._ec2.create_route(RouteTableId=created_id, DestinationCidrBlock="0.0.0.0/0", **target)
        return created_id

    def _subnet(self, identifier: str | None, zone: str, cidr: str, table: str, role: str) -> str:
        """Make a subnet with a route table, tagged for load balancers."""
        created_id = self._create("subnet", identifier, VpcId=self._vpc, CidrBlock=cidr, AvailabilityZone=zone)
        self._ec2.associate_route_table(RouteTableId=table, SubnetId=created_id)
        self._ec2.create_tags(Resources=[created_id], Tags=[{"Key": f"kubernetes.io/role/{role}", "Value": "1"}])
        return created_id

    def _free_cidr(self) -> str:
        filters = [{"Name": "vpc-id", "Values": [self._vpc]}]
        ranges = [subnet["CidrBlock"] for subnet in self._ec2.describe_subnets(Filters=filters)["Subnets"]]
        for subnet in self._file["subnets"]:
            ranges += filter(None, (subnet["cidr"], (subnet["public"] or {}).get("cidr")))
        taken = [ipaddress.IPv4Network(cidr) for cidr in ranges]
        vpc = ipaddress.IPv4Network(self._file["vpc"]["cidr"])
        candidates = reversed(list(vpc.subnets(new_prefix=max(26, vpc.prefixlen))))
        free = next((cidr for cidr in candidates if not any(cidr.overlaps(other) for other in taken)), None)
        if free is None:
            raise _NoFreeRangeError(f"the range {vpc} of the VPC has no room for another public subnet")
        return str(free)
