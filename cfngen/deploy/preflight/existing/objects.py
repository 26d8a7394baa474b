"""Checks that existing objects named in the cluster file belong to the cluster's VPC, and policies to its account.

Otherwise EC2 refuses the instance, the route or the network interface in the middle of a creation or update.
CloudFormation only checks that an object exists, and for security groups not even that. Objects are described by
filters, since a call with ids fails if one of them does not exist.

A security group belongs to one VPC for good. So before the stack has created its VPC, the cluster file cannot name a
security group of it; afterwards it can. That is why this check needs the stack, and not only the cluster file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from cfngen.cluster.checks.sections import all_instances
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.network_ids import SubnetId, ZoneId, zone_id
from cfngen.cluster.network.existing_parts import existing_groups, group_key, group_parameter
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.sections.references import with_account
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.addresses import find_elastic_ip
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.network import find_internet_gateway_vpc, find_route_tables, find_security_groups, find_subnets
from cfngen.deploy.aws.stacks import StackTree
from cfngen.deploy.messages.message import Notice, Report
from cfngen.deploy.preflight.existing import network, registry, roles, services
from cfngen.deploy.preflight.findings import Finding, FindingsError, Severity, refusal, unread


class ForeignObjectsError(FindingsError):
    """Existing objects that the cluster file names do not belong to the cluster's VPC or account, or cannot be used."""

    code = "foreign-resources"
    advice = "nothing was changed; correct the keys or parameters, or what they name."


def check(
    account: Account,
    cluster: Cluster,
    values: Mapping[str, str],
    deployed: StackTree | None,
    report: Report,
    *,
    is_network_judged: bool = False,
) -> None:
    """Check security groups, network parts, routes' targets, policies, roles, keys, and hosted zones.

    Args:
        deployed: the cluster's stacks; None if they do not exist yet.
        report: receives a notice for everything that could not be read.
        is_network_judged: whether the parts of an existing VPC have been judged already.

    Raises:
        ForeignObjectsError: some belong to another VPC or account, or cannot be used.
    """
    checks = _checks(account, cluster, values, deployed, is_network_judged=is_network_judged)
    findings = [finding for what, check in checks for finding in _carry_out(what, check)]
    for finding in findings:
        if finding.severity is Severity.WARNING:
            report(finding.notice)
    if problems := tuple(finding for finding in findings if finding.severity is Severity.PROBLEM):
        raise ForeignObjectsError(problems)


_Checks: TypeAlias = list[tuple[str, Iterable[Finding]]]
"""What each check reads, in words, and what it finds; it reads only when it is carried out."""


def _checks(
    account: Account,
    cluster: Cluster,
    values: Mapping[str, str],
    deployed: StackTree | None,
    *,
    is_network_judged: bool,
) -> _Checks:
    """Return the checks of a cluster, with a VPC of its own or in an existing one."""
    vpc_id = values.get("VpcId") or (deployed.root.outputs.get("VpcId", "") if deployed else "")
    checks: _Checks = [
        ("existing policies", _find_policy_problems(account, cluster)),
        ("existing roles", roles.find_role_problems(account, cluster)),
        ("the keys of secrets and snapshots", services.find_key_problems(account, cluster)),
        ("the hosted zones", services.find_zone_problems(account, cluster)),
        ("who may reach ports", network.find_source_problems(account, cluster, vpc_id)),
        ("the roles for pods", roles.find_pod_role_problems(account, cluster, deployed)),
        ("the repositories for images", registry.find_repository_problems(account, cluster, deployed)),
        ("the OIDC providers of who pushes images", registry.find_push_problems(account, cluster, deployed)),
        ("the records of hosted zones", services.find_record_problems(account, cluster, deployed)),
        ("the access controls of CloudFront", services.find_access_control_problems(account, cluster, deployed)),
        ("the names of load balancers", services.find_load_balancer_problems(account, cluster, deployed)),
    ]
    if deployed is None and not vpc_id:
        checks += [
            ("", _reject_all_security_groups(cluster)),
            ("", network.find_unconnected_targets(cluster)),
            ("", services.find_older_than_vpc(cluster)),
        ]
    if vpc_id and cluster.network.vpc.id and not is_network_judged:
        checks += _network_checks(account, cluster, values, vpc_id)
    elif vpc_id and not cluster.network.vpc.id:
        checks += [
            ("the security groups", _find_security_group_problems(account, cluster, values, vpc_id)),
            ("the targets of routes", network.find_route_problems(account, cluster, vpc_id)),
        ]
    if vpc_id:
        checks += [
            ("the target groups", services.find_target_group_problems(account, cluster, vpc_id)),
            ("the VPC's private zones", services.find_private_zone_problems(account, cluster, deployed, vpc_id)),
        ]
    return [
        *checks,
        ("the Elastic IPs", _find_elastic_ip_problems(account, values)),
        ("the services for endpoints", services.find_service_problems(account, cluster, values)),
        ("the buckets", services.find_bucket_problems(account, cluster)),
        ("the topic of notifications", services.find_topic_problems(account, cluster)),
    ]


def _carry_out(what: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings of a check, and that it could not be finished if AWS refuses a read of it."""
    try:
        with translate_aws_errors():
            yield from findings
    except AwsError as error:
        yield unread(what, error)


def check_next_updates(account: Account, cluster: Cluster, deployed: StackTree | None) -> None:
    """Check what is in the way of the last of several updates, before the first one begins.

    What cannot be read is reported by the check of each update.

    Args:
        cluster: the cluster after the last update.

    Raises:
        ForeignObjectsError: a role or a provider exists already.
    """
    findings = roles.find_pod_role_problems(account, cluster, deployed)
    if problems := tuple(finding for finding in findings if finding.severity is Severity.PROBLEM):
        raise ForeignObjectsError(problems)


def notices(account: Account, cluster: Cluster, stack: str) -> Iterator[Notice]:
    """Yield a notice for what existing roles may lack, and for a key whose policy may not suffice."""
    yield from roles.notices(account, cluster, stack)
    yield from services.notices(account, cluster)


def find_network_problems(
    account: Account, cluster: Cluster, values: Mapping[str, str], vpc_id: str
) -> Iterator[Finding]:
    """Yield a problem for each part of an existing network that does not exist, or is not what the cluster file says.

    Routes in existing route tables are among them.
    """
    for _, findings in _network_checks(account, cluster, values, vpc_id):
        yield from findings


def _network_checks(account: Account, cluster: Cluster, values: Mapping[str, str], vpc_id: str) -> _Checks:
    return [
        ("the security groups", _find_security_group_problems(account, cluster, values, vpc_id)),
        ("the subnets", _find_subnet_problems(account, cluster, values, vpc_id)),
        ("the route table and the internet gateway", _find_routing_problems(account, values, vpc_id)),
        ("the parts of subnets", network.find_private_network_problems(account, cluster, values, vpc_id)),
        ("the targets of routes", network.find_route_problems(account, cluster, vpc_id)),
    ]


def _find_policy_problems(account: Account, cluster: Cluster) -> Iterator[Finding]:
    """Yield a problem for each policy of another account, which no role of this account can have."""
    arns_by_key = {"iam.permissionsBoundary": cluster.iam.permissions_boundary or ""}
    for path, instances in all_instances(cluster):
        for position, arn in enumerate(instances.additional_policies):
            arns_by_key[dotted((*path, "additionalPolicies", position))] = arn
    for index, entry in enumerate(cluster.iam.service_accounts):
        account_path: Path = ("iam", "serviceAccounts", index)
        arns_by_key[dotted((*account_path, "permissionsBoundary"))] = entry.permissions_boundary or ""
        for position, arn in enumerate(entry.additional_policies):
            arns_by_key[dotted((*account_path, "additionalPolicies", position))] = arn
    for key, arn in arns_by_key.items():
        # The ARN of a policy of AWS has `aws` in place of an account.
        account_id = with_account(arn, account.id).split(":")[4] if arn else "aws"
        if account_id not in ("aws", account.id):
            yield refusal(key, f"{arn} belongs to the account {account_id}; use a policy of account {account.id}")


def _keys_by_security_group(cluster: Cluster) -> dict[str, str]:
    """Return for each additional security group of the cluster file, by its id, the first key that names it."""
    keys_by_group: dict[str, str] = {}
    for path, instances in all_instances(cluster):
        for position, group_id in enumerate(instances.additional_security_groups):
            keys_by_group.setdefault(group_id, dotted((*path, "additionalSecurityGroups", position)))
    return keys_by_group


def _reject_all_security_groups(cluster: Cluster) -> Iterator[Finding]:
    """Yield a problem for each security group in the cluster file, since the stack has yet to create the VPC."""
    for group_id, key in _keys_by_security_group(cluster).items():
        yield refusal(
            key,
            f"{group_id} belongs to another VPC than the one that the stack will create, so EC2 would refuse "
            "it; remove it, deploy, and then add a security group of the new VPC, or set network.vpc.id to an existing "
            "VPC",
        )


def _find_security_group_problems(
    account: Account, cluster: Cluster, values: Mapping[str, str], vpc_id: str
) -> Iterator[Finding]:
    """Yield a problem for each security group that does not exist or is in another VPC, or may not have its tag."""
    keys_by_group = _keys_by_security_group(cluster)
    first_groups = {role: values.get(group_parameter(role)) or id_ for role, id_ in existing_groups(cluster).items()}
    keys_by_first_group = {group_id: group_key(role) for role, group_id in reversed(first_groups.items())}
    all_keys = {**keys_by_group, **keys_by_first_group}
    groups = find_security_groups(account, all_keys)
    tag = f"kubernetes.io/cluster/{cluster.name}"
    tagged_groups = {group_id for group_id, group in groups.items() if tag in group.tags}
    for group_id, key in all_keys.items():
        group = groups.get(group_id)
        if group is None:
            yield refusal(key, f"there is no security group {group_id} in {account.region}")
        elif group.vpc_id != vpc_id:
            yield refusal(
                key, f"{group_id} belongs to {group.vpc_id}, and the cluster is in {vpc_id}; use one of {vpc_id}"
            )
        elif group_id in tagged_groups and group_id in keys_by_group:
            first_group = first_groups.get("Master" if key.startswith("controlPlane") else "Node")
            # Without the tag on its first group, an instance may have it on another one.
            if first_group is None or first_group in tagged_groups:
                yield refusal(
                    key,
                    f"{group_id} has the tag {tag}; only one security group of an instance may have this tag, and "
                    f"{first_group or 'the one that cfngen creates'} has it: remove the tag",
                )


def _find_subnet_problems(
    account: Account, cluster: Cluster, values: Mapping[str, str], vpc_id: str
) -> Iterator[Finding]:
    """Yield a problem for each existing subnet whose VPC, zone or range is not the one in the cluster file."""
    subnet_ids = [values.get(str(SubnetId(zone_id(subnet.zone), "Id")), "") for subnet in cluster.network.subnets]
    existing = find_subnets(account, [subnet_id for subnet_id in subnet_ids if subnet_id])
    for index, (subnet, subnet_id) in enumerate(zip(cluster.network.subnets, subnet_ids, strict=True)):
        if not subnet_id:
            continue
        key = f"network.subnets[{index}].id"
        actual = existing.get(subnet_id)
        zone = values.get(str(ZoneId(zone_id(subnet.zone))), subnet.zone)
        if actual is None:
            yield refusal(key, f"there is no subnet {subnet_id} in {account.region}")
        elif actual.vpc_id != vpc_id:
            yield refusal(
                key, f"{subnet_id} belongs to {actual.vpc_id}, and the cluster is in {vpc_id}; use one of {vpc_id}"
            )
        elif actual.zone != zone:
            yield refusal(key, f"{subnet_id} is in {actual.zone} and not in {zone}; correct its zone")
        elif actual.cidr != str(subnet.cidr):
            yield refusal(key, f"{subnet_id} has the range {actual.cidr} and not {subnet.cidr}; correct its cidr")


def _find_routing_problems(account: Account, values: Mapping[str, str], vpc_id: str) -> Iterator[Finding]:
    """Yield a problem if the existing route table or internet gateway does not exist or is in another VPC."""
    if table_id := values.get("RouteTableId", ""):
        table_vpc = next((table["VpcId"] for table in find_route_tables(account, [table_id])), None)
        yield from _find_vpc_problem("network.routeTable", table_id, table_vpc, vpc_id, account.region)
    if gateway_id := values.get("InternetGatewayId", ""):
        gateway_vpc = find_internet_gateway_vpc(account, gateway_id)
        yield from _find_vpc_problem("network.internetGateway", gateway_id, gateway_vpc, vpc_id, account.region)


def _find_vpc_problem(key: str, object_id: str, actual_vpc: str | None, vpc_id: str, region: str) -> Iterator[Finding]:
    """Yield a problem if an object does not exist (`actual_vpc` is None) or is not in the cluster's VPC."""
    if actual_vpc is None:
        yield refusal(key, f"there is no {object_id} in {region}")
    elif actual_vpc != vpc_id:
        owner = actual_vpc or "no VPC: it is not attached"
        yield refusal(key, f"{object_id} belongs to {owner}, and the cluster is in {vpc_id}; use the one of {vpc_id}")


def _find_elastic_ip_problems(account: Account, values: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a problem for each Elastic IP that does not exist, or has another address than the cluster file says."""
    for key, allocation_id_parameter, address_parameter in (
        ("api.elasticIp", "ApiElasticIpAllocationId", "ApiElasticIp"),
        ("bastion.elasticIp", "BastionElasticIpAllocationId", "BastionElasticIpAddress"),
    ):
        allocation_id = values.get(allocation_id_parameter, "")
        address = values.get(address_parameter, "")
        if not allocation_id:
            continue
        actual_address = find_elastic_ip(account, allocation_id)
        if not actual_address:
            yield refusal(f"{key}.allocationId", f"there is no Elastic IP {allocation_id} in {account.region}")
        elif actual_address != address:
            yield refusal(
                f"{key}.address", f"{allocation_id} is {actual_address} and not {address}; correct one of the two"
            )
