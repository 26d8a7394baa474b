"""Checks of access: the API endpoint, SSH, Session Manager, IAM policies, and ARNs of another region or partition."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.model import Cluster, Instances
from cfngen.cluster.names import aws_partition
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem

# https://kubernetes.io/docs/reference/networking/ports-and-protocols/ (November 2026); 10258
# is the cloud controller manager's.
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
_NODE_PORTS = range(30000, 32768)
# A role can have ten managed policies by default, and up to twenty if the account's quota was raised ("IAM and AWS STS
# quotas", IAM User Guide, November 2026). cfngen adds two to the masters' role: one for add-ons, and one for a network
# plug-in that uses VPC addresses.
_DEFAULT_POLICY_QUOTA, _MAX_POLICY_QUOTA = 10, 20
_CFNGEN_POLICIES_OF_MASTERS = 2


def all_instances(cluster: Cluster) -> Iterator[tuple[Path, Instances]]:
    """Yield the path and the settings of the masters and of each node group."""
    yield ("controlPlane",), cluster.control_plane
    for index, group in enumerate(cluster.node_groups):
        yield ("nodeGroups", index), group


def _check_api_port_free(cluster: Cluster) -> Iterator[Problem]:
    port = cluster.api.port
    port_user = _PORTS_IN_USE.get(port)
    if port in _NODE_PORTS:
        port_user = "the ports of services (30000 to 32767)"
    if port_user:
        yield Problem(("api", "port"), f"{port} is used by {port_user}; use 443 or 6443")


def _check_elastic_ip(cluster: Cluster) -> Iterator[Problem]:
    """Check that an Elastic IP is public and is for the public API of a single master."""
    if cluster.api.elastic_ip and not cluster.api.public:
        message = "without a public address the API has no Elastic IP; remove the key or set api.public to true"
        yield Problem(("api", "elasticIp"), message, related_paths=(("api", "public"),))
    elif cluster.api.elastic_ip and cluster.control_plane.count > 1:
        message = (
            f"{cluster.control_plane.count} masters are behind a load balancer, which has no Elastic IP; remove "
            "the key, or set controlPlane.count to 1"
        )
        yield Problem(("api", "elasticIp"), message, related_paths=(("controlPlane", "count"),))
    elif cluster.api.elastic_ip and cluster.api.elastic_ip.address.is_private:
        address = cluster.api.elastic_ip.address
        yield Problem(
            ("api", "elasticIp", "address"),
            f"{address} is a private address; enter the public address of the Elastic IP",
        )


def _check_one_ssh_key(cluster: Cluster) -> Iterator[Problem]:
    if cluster.ssh.key_name and cluster.ssh.public_key:
        message = (
            "an instance has one SSH key; keep ssh.keyName (an existing key pair) or ssh.publicKey (a key to "
            "import), not both"
        )
        yield Problem(("ssh", "publicKey"), message, related_paths=(("ssh", "keyName"),))


def _check_no_duplicates(cluster: Cluster) -> Iterator[Problem]:
    lists: list[tuple[Path, tuple[object, ...]]] = [
        (("api", "allowedCidrs"), cluster.api.allowed_cidrs),
        (
            ("api", "allowedPrefixLists"),
            tuple(allowed_prefix_list.id for allowed_prefix_list in cluster.api.allowed_prefix_lists),
        ),
        (("api", "additionalNames"), cluster.api.additional_names),
        (("ssh", "allowedCidrs"), cluster.ssh.allowed_cidrs),
        (
            ("ssh", "allowedPrefixLists"),
            tuple(allowed_prefix_list.id for allowed_prefix_list in cluster.ssh.allowed_prefix_lists),
        ),
    ]
    for path, instances in all_instances(cluster):
        lists.append(((*path, "additionalSecurityGroups"), instances.additional_security_groups))
        lists.append(((*path, "additionalPolicies"), instances.additional_policies))
    for path, items in lists:
        for position, item in enumerate(items):
            if item in items[:position]:
                yield Problem((*path, position), f"{item} appears twice; remove one")


def _policy_counts(cluster: Cluster) -> Iterator[tuple[Path, int, str]]:
    """Yield the path, the number of managed policies and a note for each role to which the user adds policies.

    The number includes the policies that cfngen itself adds to the masters' role; the note says how many those are.
    """
    for path, instances in all_instances(cluster):
        reserved_count = _CFNGEN_POLICIES_OF_MASTERS if path == ("controlPlane",) else 0
        note = f", {reserved_count} of them reserved for add-ons and the network plug-in" if reserved_count else ""
        if instances.additional_policies:
            yield (*path, "additionalPolicies"), len(instances.additional_policies) + reserved_count, note


def _check_policy_count(cluster: Cluster) -> Iterator[Problem]:
    """Check that no role exceeds the number of managed policies to which AWS can raise the quota."""
    for path, count, reserved in _policy_counts(cluster):
        if count > _MAX_POLICY_QUOTA:
            message = (
                f"the role has {count} managed policies{reserved}; IAM allows {_MAX_POLICY_QUOTA}: combine some of them"
            )
            yield Problem(path, message)


def _warn_of_policy_count(cluster: Cluster) -> Iterator[Problem]:
    """Warn of a role whose managed policies exceed the default quota; the account's may be higher."""
    for path, count, reserved in _policy_counts(cluster):
        if _DEFAULT_POLICY_QUOTA < count <= _MAX_POLICY_QUOTA:
            message = (
                f"the role has {count} managed policies{reserved}; an account allows {_DEFAULT_POLICY_QUOTA} "
                'unless its quota "Managed policies per role" was raised: combine some of them, or request an increase'
            )
            yield Problem(path, message)


def _arns(cluster: Cluster) -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each ARN in the cluster file."""
    if cluster.iam.permissions_boundary:
        yield ("iam", "permissionsBoundary"), cluster.iam.permissions_boundary
    for path, instances in all_instances(cluster):
        for position, arn in enumerate(instances.additional_policies):
            yield (*path, "additionalPolicies", position), arn
        if instances.root_volume.kms_key:
            yield (*path, "rootVolume", "kmsKey"), instances.root_volume.kms_key
    if cluster.control_plane.volume.kms_key:
        yield ("controlPlane", "volume", "kmsKey"), cluster.control_plane.volume.kms_key
    if cluster.certificate_authority.secret:
        yield ("certificateAuthority", "secret"), cluster.certificate_authority.secret


def _check_arn_partitions_and_regions(cluster: Cluster) -> Iterator[Problem]:
    """Check that ARNs are in the region's partition, and KMS keys and secrets in the region itself.

    The partitions of isolated regions and of the European Sovereign Cloud are not checked.
    """
    expected = aws_partition(cluster.region)
    parts = cluster.region.split("-")
    has_unchecked_partition = parts[0] == "eusc" or any(part.startswith("iso") for part in parts)
    for path, arn in _arns(cluster):
        _, partition, service, region, *_ = arn.split(":")
        if partition != expected and not has_unchecked_partition:
            message = (
                f"the ARN is in the partition {partition}, but {cluster.region} is in {expected}; "
                f"use an ARN of {expected}"
            )
            yield Problem(path, message, related_paths=(("region",),))
        elif service == "kms" and region != cluster.region:
            message = f"the key is in {region}, but the volumes are in {cluster.region}; use a key in {cluster.region}"
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


def _warn_of_no_shell_access(cluster: Cluster) -> Iterator[Problem]:
    ssh = cluster.ssh
    if ssh.session_manager or (ssh.is_open and (ssh.key_name or ssh.public_key)):
        return
    yield Problem(
        ("ssh", "sessionManager"), "Session Manager and SSH are both disabled: nobody can open a shell on an instance"
    )


def _warn_of_no_session_manager_agent(cluster: Cluster) -> Iterator[Problem]:
    """Warn if Session Manager is the only access, and the image has no agent for it."""
    ssh = cluster.ssh
    if not ssh.session_manager or (ssh.is_open and (ssh.key_name or ssh.public_key)):
        return
    for path, instances in all_instances(cluster):
        if instances.image.distribution.startswith("debian") and not instances.image.id:
            message = (
                "Debian's images do not contain the Session Manager agent, and SSH is closed; "
                "to open a shell on instances, add ssh.publicKey and ssh.allowedCidrs"
            )
            yield Problem((*path, "image", "distribution"), message)
            return


def _warn_of_open_to_the_world(cluster: Cluster) -> Iterator[Problem]:
    for path, cidrs, target in (
        (("api", "allowedCidrs"), cluster.api.allowed_cidrs, "the Kubernetes API"),
        (("ssh", "allowedCidrs"), cluster.ssh.allowed_cidrs, "port 22 of every instance"),
    ):
        for position, cidr in enumerate(cidrs):
            if cidr.prefixlen == 0:
                yield Problem((*path, position), f"{cidr} lets the whole internet reach {target}; use your own ranges")


PROBLEM_CHECKS = (
    _check_api_port_free,
    _check_elastic_ip,
    _check_one_ssh_key,
    _check_no_duplicates,
    _check_policy_count,
    _check_arn_partitions_and_regions,
)
WARNING_CHECKS = (
    _warn_of_ssh_without_key,
    _warn_of_no_shell_access,
    _warn_of_no_session_manager_agent,
    _warn_of_open_to_the_world,
    _warn_of_policy_count,
)
