"""The names of the references in user data: values such as resource ids, which CloudFormation substitutes.

`cfngen.boot.contract` describes each reference. Templates pass a value for each name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cfngen.cluster.iam.service_accounts import LOAD_BALANCER_CONTROLLER, has_role, masters_publish_documents
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import has_both_endpoints, has_internal_load_balancer, has_public_endpoint
from cfngen.cluster.sections.instances import Slot

_ADDRESS_LENGTH = len("255.255.255.255")
# A load balancer's DNS name: its own name, 16 digits, and the longest region and suffix.
_BALANCER_NAME_LENGTH = 32 + len("-0123456789abcdef.elb.ap-southeast-2.amazonaws.com.cn")
# By the reference's name, the maximum number of characters of its value. Stack names have up to 128 characters;
# resource ids have a prefix and 17 digits. The ARN of a secret has 66 characters up to the secret's name (in the
# partition and region with the longest names), a logical id, and two random suffixes.
MAX_LENGTHS = {
    "stack": 128,
    "resource": 255,
    "volumeId": len("vol-") + 17,
    "privateAddress": _ADDRESS_LENGTH,
    "slot": 1,
    **dict.fromkeys(("addressA", "addressB", "addressC", "addressD", "addressE"), _ADDRESS_LENGTH),
    "caSecretArn": 128,
    "joinSecretArn": 128,
    "routeTableId": len("rtb-") + 17,
    "bucket": 63,
    **dict.fromkeys(("publicAddress", "internalAddress"), _BALANCER_NAME_LENGTH),
    "condition": len("MasterAWaitCondition"),
    "conditionStack": 128,
    # An OpenID Connect provider's URL has up to 255 characters (CreateOpenIDConnectProvider, IAM API Reference).
    "issuer": 255 - len("https://"),
    "issuerBucket": 63,
    "accountId": 12,
    "vpcId": len("vpc-") + 17,
}


def address_reference(slot: Slot) -> str:
    """Return the name of the reference to a slot's private address, e.g. `addressA`."""
    return f"address{slot.letter.upper()}"


def uses_account_id(cluster: Cluster) -> bool:
    """Return whether masters need the account's id: for the ARNs of service accounts' roles that are made."""
    names_own_roles = any(account.role is None for account in cluster.iam.service_accounts)
    return cluster.iam.addon_roles or (cluster.addons.pod_identity_webhook.enabled and names_own_roles)


def of_master(cluster: Cluster) -> tuple[str, ...]:
    """Return the names of the references in the user data of the cluster's masters."""
    names = ["stack", "resource", "volumeId", "privateAddress", "slot"]
    names += [address_reference(slot) for slot in cluster.slots]
    names += ["caSecretArn", "joinSecretArn"]
    if network_plugin(cluster).uses_vpc_routes:
        names.append("routeTableId")
    if cluster.etcd.backups.enabled:
        names.append("bucket")
    if has_public_endpoint(cluster):
        names.append("publicAddress")
    if has_both_endpoints(cluster) and has_internal_load_balancer(cluster):
        names.append("internalAddress")
    if cluster.service_account_issuer:
        names.append("issuer")
    if masters_publish_documents(cluster):
        names.append("issuerBucket")
    if uses_account_id(cluster):
        names.append("accountId")
    if has_role(cluster, LOAD_BALANCER_CONTROLLER):
        names.append("vpcId")
    return (*names, "condition", "conditionStack")


def of_node() -> tuple[str, ...]:
    """Return the names of the references in the user data of nodes."""
    return ("stack", "resource", "joinSecretArn")


def check_names(references: Mapping[str, object], names: Collection[str]) -> None:
    """Check that `references` has a value for each of `names`, and no others; else raise ValueError."""
    if references.keys() != set(names):
        raise ValueError(f"references of user data are {sorted(references)}, not {sorted(names)}")
