"""Checks that the prefix lists and security groups exist that may reach ports by the rules of the cluster file.

EC2 refuses a rule for one that does not exist in the middle of a creation or update.
"""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.sections import ingress_rules, source_prefix_lists
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import dotted
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.network import find_security_groups, has_prefix_list
from cfngen.deploy.preflight.findings import Finding, refusal


def find_source_problems(account: Account, cluster: Cluster, vpc_id: str) -> Iterator[Finding]:
    """Yield a problem for each prefix list and security group that does not exist, or belongs to an older VPC.

    A security group may be of another VPC than the cluster's, if these are peered.

    Args:
        vpc_id: the cluster's VPC; empty if the stack has yet to create it: nothing is peered with it then.

    Raises:
        cfngen.deploy.aws.errors.AwsError: AWS does not answer; the caller translates boto3's errors.
    """
    for path, prefix_list in source_prefix_lists(cluster):
        if not has_prefix_list(account, prefix_list.id):
            key = dotted((*path, "id"))
            yield refusal(key, f"there is no prefix list {prefix_list.id} in {account.region}; correct it")
    keys_by_group = {
        group_id: dotted((*path, "securityGroups", index))
        for path, rule in ingress_rules(cluster)
        for index, group_id in enumerate(rule.security_groups)
    }
    groups = find_security_groups(account, keys_by_group) if keys_by_group else {}
    for group_id, key in keys_by_group.items():
        if group_id not in groups:
            yield refusal(key, f"there is no security group {group_id} in {account.region}; correct it")
        elif not vpc_id:
            yield refusal(
                key,
                f"{group_id} belongs to another VPC than the one that the stack will create, so EC2 would refuse the "
                "rule; deploy without it and add it then, or set network.vpc.id to an existing VPC",
            )
