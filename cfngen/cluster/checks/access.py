"""Checks of access: the API endpoint, SSH, Session Manager, IAM policies, and ARNs of another region or partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network

from cfngen.cluster.checks.roles import policy_statements
from cfngen.cluster.checks.sections import KeyCheck, all_instances, all_machines, extra_volumes, node_groups, repeated
from cfngen.cluster.iam.existing_roles import existing_roles
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import aws_partition
from cfngen.cluster.network.topology import has_both_endpoints
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.text import join_and

# Ports of a master that the API cannot have, and the program that listens on each, from
# https://kubernetes.io/docs/reference/networking/ports-and-protocols/ (November 2026), with SSH and the
# cloud controller manager.
_PORTS_IN_USE = {
    22: "SSH",
    2379: "etcd",
    2380: "etcd",
    2381: "etcd's metrics",
    10248: "the kubelet's health check",
    10249: "kube-proxy's metrics",
    10250: "the kubelet",
    10256: "kube-proxy's health check",
    10257: "kube-controller-manager",
    10258: "the cloud controller manager",
    10259: "kube-scheduler",
}
# Ranges whose addresses the internet does not route (RFC 1918 and RFC 6598).
_PRIVATE_RANGES = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
# Kubernetes' default range of ports for services of the type NodePort.
_NODE_PORTS = range(30000, 32768)
# A role can have ten managed policies by default, and up to twenty if the account's quota was raised ("IAM and AWS STS
# quotas", IAM User Guide, November 2026).
_DEFAULT_POLICY_QUOTA = 10
_MAX_POLICY_QUOTA = 20
# cfngen adds two managed policies to the masters' role: one for add-ons, and one for a network plug-in that uses VPC
# addresses.
_CFNGEN_POLICIES_OF_MASTERS = 2
# With an issuer of tokens, a third one holds what the cloud controller manager may do until it has a role of its own.
_CFNGEN_POLICIES_OF_MASTERS_WITH_ISSUER = 3


def _check_api_port_free(cluster: Cluster) -> Iterator[Problem]:
    port = cluster.api.port
    port_user = _PORTS_IN_USE.get(port)
    if port in _NODE_PORTS:
        port_user = "the ports of services (30000 to 32767)"
    if port_user:
        yield Problem(("api", "port"), f"{port} is used by {port_user}; use 443 or 6443")


def _check_elastic_ip(cluster: Cluster) -> Iterator[Problem]:
    elastic_ip = cluster.api.elastic_ip
    master_count = cluster.control_plane.count
    if elastic_ip is None:
        return
    if not cluster.api.public:
        message = "without a public address the API has no Elastic IP; remove the key or set api.public to true"
        yield Problem(("api", "elasticIp"), message, related_paths=(("api", "public"),))
    elif master_count > 1:
        message = (
            f"{master_count} masters are behind a load balancer, which has no Elastic IP; remove "
            "the key, or set controlPlane.count to 1"
        )
        yield Problem(("api", "elasticIp"), message, related_paths=(("controlPlane", "count"),))
    elif elastic_ip.address.is_private:
        message = f"{elastic_ip.address} is a private address; enter the public address of the Elastic IP"
        yield Problem(("api", "elasticIp", "address"), message)


def _check_endpoints(cluster: Cluster) -> Iterator[Problem]:
    api = cluster.api
    public_path: Path = ("api", "public")
    if not api.public and "internal" in api.model_fields_set and not api.internal:
        message = "the API needs an endpoint: a public one, an internal one or both; remove the key or set it to true"
        yield Problem(("api", "internal"), message, related_paths=(public_path,))
    if not api.internal_cidrs or has_both_endpoints(cluster):
        return
    if api.public:
        message = "the API has no internal endpoint beside its public one; set api.internal to true, or remove the key"
    else:
        message = "the internal endpoint is the only one; use api.allowedCidrs for who may reach it, and remove the key"
    yield Problem(("api", "internalCidrs"), message, related_paths=(("api", "internal"), public_path))


def check_no_duplicates(cluster: Cluster) -> Iterator[Problem]:
    """Check that no item appears twice in the lists of allowed ranges, names, security groups and policies."""
    # The path and the items of each list.
    lists: list[tuple[Path, tuple[object, ...]]] = [
        (("api", "allowedCidrs"), cluster.api.allowed_cidrs),
        (("api", "allowedPrefixLists"), tuple(prefix_list.id for prefix_list in cluster.api.allowed_prefix_lists)),
        (("api", "internalCidrs"), cluster.api.internal_cidrs),
        (("api", "additionalNames"), cluster.api.additional_names),
        (("ssh", "allowedCidrs"), cluster.ssh.allowed_cidrs),
        (("ssh", "allowedPrefixLists"), tuple(prefix_list.id for prefix_list in cluster.ssh.allowed_prefix_lists)),
    ]
    if cluster.bastion:
        prefix_list_ids = tuple(prefix_list.id for prefix_list in cluster.bastion.allowed_prefix_lists)
        lists.append((("bastion", "allowedCidrs"), cluster.bastion.allowed_cidrs))
        lists.append((("bastion", "allowedPrefixLists"), prefix_list_ids))
    for path, instances in all_instances(cluster):
        lists.append(((*path, "additionalSecurityGroups"), instances.additional_security_groups))
        lists.append(((*path, "additionalPolicies"), instances.additional_policies))
    for path, group in node_groups(cluster):
        lists.append(((*path, "targetGroups"), group.target_groups))
    for index, account in enumerate(cluster.iam.service_accounts):
        lists.append((("iam", "serviceAccounts", index, "additionalPolicies"), account.additional_policies))
    lists.append((("addons", "certManager", "zones"), cluster.addons.cert_manager.zones))
    for path, items in lists:
        yield from repeated(items, path, is_related=True)


def _policy_counts(cluster: Cluster) -> Iterator[tuple[Path, int, str]]:
    """Yield (path, count, note) for each role to which the user adds managed policies.

    The path leads to the user's policies. The count includes the policies that cfngen itself adds to the masters'
    role; the note, part of a message, says how many those are.
    """
    for path, instances in all_instances(cluster):
        if not instances.additional_policies:
            continue
        count = len(instances.additional_policies)
        reserved_note = ""
        if path == ("controlPlane",):
            has_issuer = cluster.service_account_issuer is not None
            reserved = _CFNGEN_POLICIES_OF_MASTERS_WITH_ISSUER if has_issuer else _CFNGEN_POLICIES_OF_MASTERS
            backups = cluster.etcd.backups
            needs = {
                "policyStatements": instances.policy_statements,
                "the key of etcd's snapshots": backups.may_need_key,
                "the lock of etcd's snapshots": backups.enabled and backups.object_lock,
                "registry.only": cluster.registry.only,
            }
            users = [user for user, needs_policy in needs.items() if needs_policy]
            reserved += len(users)
            count += reserved
            reserved_note = f", {reserved} of them reserved for {join_and(['add-ons', 'the network plug-in', *users])}"
        yield (*path, "additionalPolicies"), count, reserved_note
    for index, account in enumerate(cluster.iam.service_accounts):
        yield ("iam", "serviceAccounts", index, "additionalPolicies"), len(account.additional_policies), ""


def _check_policy_count(cluster: Cluster) -> Iterator[Problem]:
    for path, count, reserved_note in _policy_counts(cluster):
        if count > _MAX_POLICY_QUOTA:
            message = (
                f"the role has {count} managed policies{reserved_note}; IAM allows {_MAX_POLICY_QUOTA}: "
                "combine some of them"
            )
            yield Problem(path, message)


def _warn_of_policy_count(cluster: Cluster) -> Iterator[Problem]:
    """Warn of a role with more managed policies than the default quota; the account's quota may be higher."""
    for path, count, reserved_note in _policy_counts(cluster):
        if _DEFAULT_POLICY_QUOTA < count <= _MAX_POLICY_QUOTA:
            message = (
                f"the role has {count} managed policies{reserved_note}; an account allows {_DEFAULT_POLICY_QUOTA} "
                'unless its quota "Managed policies per role" was raised: combine some of them, or request an increase'
            )
            yield Problem(path, message)


def _arns(cluster: Cluster) -> Iterator[tuple[Path, str]]:
    if cluster.iam.permissions_boundary:
        yield ("iam", "permissionsBoundary"), cluster.iam.permissions_boundary
    for path, existing in existing_roles(cluster):
        yield (*path, "role"), existing.role
        if existing.instance_profile:
            yield (*path, "instanceProfile"), existing.instance_profile
    yield from _arns_of_instances(cluster)
    for index, account in enumerate(cluster.iam.service_accounts):
        path = ("iam", "serviceAccounts", index)
        yield from _listed((*path, "additionalPolicies"), account.additional_policies)
        for key, value in (("permissionsBoundary", account.permissions_boundary), ("role", account.role)):
            if value:
                yield (*path, key), value
    for path, statement in policy_statements(cluster):
        for resource_path, arn in _listed((*path, "resources"), statement.resources):
            if arn != "*":
                yield resource_path, arn
    yield from arns_of_services(cluster)


def _arns_of_instances(cluster: Cluster) -> Iterator[tuple[Path, str]]:
    for path, instances in all_instances(cluster):
        yield from _listed((*path, "additionalPolicies"), instances.additional_policies)
    for path, group in node_groups(cluster):
        yield from _listed((*path, "targetGroups"), group.target_groups)
        if group.capacity_reservation and group.capacity_reservation.resource_group:
            yield (*path, "capacityReservation", "resourceGroup"), group.capacity_reservation.resource_group


def arns_of_services(cluster: Cluster) -> Iterator[tuple[Path, str]]:
    """Yield the path and the ARN of each existing key, secret and topic."""
    arns: list[tuple[Path, str | None]] = [
        *(((*path, "rootVolume", "kmsKey"), machine.root_volume.kms_key) for path, machine in all_machines(cluster)),
        *(((*path, "kmsKey"), volume.kms_key) for path, volume in extra_volumes(cluster)),
        (("controlPlane", "volume", "kmsKey"), cluster.control_plane.volume.kms_key),
        (("secrets", "kmsKey"), cluster.secrets.kms_key),
        (("etcd", "backups", "kmsKey"), cluster.etcd.backups.kms_key),
        (("certificateAuthority", "secret"), cluster.certificate_authority.secret),
        (("notifications", "topic"), cluster.notifications.topic),
    ]
    yield from ((path, arn) for path, arn in arns if arn)


def _listed(path: Path, arns: Sequence[str]) -> Iterator[tuple[Path, str]]:
    yield from (((*path, position), arn) for position, arn in enumerate(arns))


def _check_arn_partitions_and_regions(cluster: Cluster) -> Iterator[Problem]:
    """Check that ARNs are in the region's partition, and KMS keys, secrets and topics in the region itself.

    The partitions of isolated regions and of the European Sovereign Cloud are not checked.
    """
    expected = aws_partition(cluster.region)
    # E.g. `eusc-de-east-1`, `us-iso-east-1` and `eu-isoe-west-1`.
    region_parts = cluster.region.split("-")
    has_unchecked_partition = region_parts[0] == "eusc" or any(part.startswith("iso") for part in region_parts)
    for path, arn in _arns(cluster):
        _, partition, service, region, *_ = arn.split(":")
        if partition != expected and not has_unchecked_partition:
            message = (
                f"the ARN is in the partition {partition}, but {cluster.region} is in {expected}; "
                f"use an ARN of {expected}"
            )
            yield Problem(path, message, related_paths=(("region",),))
        elif service == "elasticloadbalancing" and path[-2] == "targetGroups" and region != cluster.region:
            message = f"the target group is in {region}, but the nodes are in {cluster.region}; use one of that region"
            yield Problem(path, message, related_paths=(("region",),))
        elif path[-2] == "resources":
            continue
        elif service == "kms" and region != cluster.region:
            users = {"secrets": "secrets", "etcd": "snapshots"}.get(str(path[0]), "volumes")
            message = f"the key is in {region}, but the {users} are in {cluster.region}; use a key in {cluster.region}"
            yield Problem(path, message, related_paths=(("region",),))
        elif service == "sns" and region != cluster.region:
            message = (
                f"the topic is in {region}, but the instances are in {cluster.region}; use a topic in {cluster.region}"
            )
            yield Problem(path, message, related_paths=(("region",),))
        elif service == "secretsmanager" and region != cluster.region:
            message = (
                f"the secret is in {region}, but masters read it in {cluster.region}; replicate it to {cluster.region} "
                "and use the replica's ARN"
            )
            yield Problem(path, message, related_paths=(("region",),))


def _warn_of_ssh_without_key(cluster: Cluster) -> Iterator[Problem]:
    ssh = cluster.ssh
    if ssh.is_open and not (ssh.key_name or ssh.public_key):
        message = "port 22 is open, but nobody can log in without a key; add ssh.keyName or ssh.publicKey"
        yield Problem(("ssh", "allowedCidrs" if ssh.allowed_cidrs else "allowedPrefixLists"), message)


def _has_usable_ssh(cluster: Cluster) -> bool:
    """Return whether port 22 can be reached, directly or through a bastion, and there is a key to log in."""
    return (cluster.ssh.is_open or cluster.bastion is not None) and bool(cluster.ssh.key_name or cluster.ssh.public_key)


def _warn_of_no_session_manager_agent(cluster: Cluster) -> Iterator[Problem]:
    """Warn once if Session Manager is the only access to a shell, but the image of some instances has no agent."""
    if not cluster.ssh.session_manager or _has_usable_ssh(cluster):
        return
    for path, instances in all_instances(cluster):
        if instances.image.distribution.startswith("debian") and not instances.image.id:
            message = (
                "Debian's images do not contain the Session Manager agent, and SSH is closed; "
                "to open a shell on instances, add ssh.publicKey and ssh.allowedCidrs"
            )
            yield Problem((*path, "image", "distribution"), message)
            return


def _warn_of_private_ranges_for_public_endpoint(cluster: Cluster) -> Iterator[Problem]:
    if not has_both_endpoints(cluster):
        return
    for position, cidr in enumerate(cluster.api.allowed_cidrs):
        if any(cidr.subnet_of(private_range) for private_range in _PRIVATE_RANGES):
            message = (
                f"connections to the public endpoint never come from {cidr}, a private range; move it to "
                "api.internalCidrs"
            )
            yield Problem(("api", "allowedCidrs", position), message, related_paths=(("api", "internal"),))


def _warn_of_open_to_the_world(cluster: Cluster) -> Iterator[Problem]:
    for path, cidrs, target in (
        (("api", "allowedCidrs"), cluster.api.allowed_cidrs, "the Kubernetes API"),
        (("ssh", "allowedCidrs"), cluster.ssh.allowed_cidrs, "port 22 of every instance"),
        (
            ("bastion", "allowedCidrs"),
            cluster.bastion.allowed_cidrs if cluster.bastion else (),
            "port 22 of the bastion",
        ),
    ):
        for position, cidr in enumerate(cidrs):
            if cidr.prefixlen == 0:
                yield Problem((*path, position), f"{cidr} lets the whole internet reach {target}; use your own ranges")


PROBLEM_CHECKS = (
    _check_api_port_free,
    _check_elastic_ip,
    _check_endpoints,
    KeyCheck(
        "ssh.publicKey",
        when=lambda cluster: cluster.ssh.key_name and cluster.ssh.public_key,
        message="an instance has one SSH key; keep ssh.keyName (an existing key pair) or ssh.publicKey (a key to "
        "import), not both",
        related=("ssh.keyName",),
    ),
    check_no_duplicates,
    _check_policy_count,
    _check_arn_partitions_and_regions,
)
WARNING_CHECKS = (
    _warn_of_ssh_without_key,
    KeyCheck(
        "ssh.sessionManager",
        when=lambda cluster: not cluster.ssh.session_manager and not _has_usable_ssh(cluster),
        message="Session Manager and SSH are both disabled: nobody can open a shell on an instance",
    ),
    _warn_of_no_session_manager_agent,
    _warn_of_private_ranges_for_public_endpoint,
    _warn_of_open_to_the_world,
    _warn_of_policy_count,
)
