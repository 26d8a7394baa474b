"""The stack with the security groups and their rules, and the references to groups in other stacks.

Rules between two groups are separate resources, since two groups that refer to each other inline would be a circular
dependency. Exactly one security group of each instance has the tag `kubernetes.io/cluster/<name>`: the cloud controller
manager opens the ports of load balancers in that group, and fails if it finds two. The additional groups, those of
single node groups and the load balancer's group therefore do not have the tag.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from troposphere import GetAtt, ec2

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import NodeGroupId
from cfngen.cluster.naming.names import load_balancer_name
from cfngen.cluster.naming.network_ids import SECURITY_GROUP_ROLES, RuleId, SecurityGroupId, SecurityGroupRole
from cfngen.cluster.network.existing_parts import GroupRole, existing_group
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.cluster.security_groups.rules import (
    LOAD_BALANCER_ROLES,
    Rule,
    egress_rule,
    load_balancer_roles,
    load_balancer_rules,
    node_group_rules,
    rules_between_instances,
    source_rule,
    sources_by_group,
)
from cfngen.permissions.references import MASTER_ROLE_TAG, NODE_ROLE_TAG
from cfngen.templates.network_references import CIDR_PATTERN, security_group_parameter, vpc_id
from cfngen.templates.security_group_rules import GroupIds, add_ingress, inline_rule
from cfngen.templates.stack import ACCESS, PropertyValue, Stack
from cfngen.templates.tagging import tags, tags_without_kubernetes_io_tag

# What the security groups of a role protect, for descriptions and Name tags.
_PROTECTED_BY_ROLE: Mapping[SecurityGroupRole, str] = {
    "Master": "masters",
    "Node": "nodes",
    "ApiLoadBalancer": "load balancer of the API",
    "InternalApiLoadBalancer": "internal load balancer of the API",
}
# By these tags the network plug-in's permissions recognize the groups that it may give to interfaces.
_TAGS_OF_INSTANCES: Mapping[SecurityGroupRole, Mapping[str, str]] = {"Master": MASTER_ROLE_TAG, "Node": NODE_ROLE_TAG}


def build(cluster: Cluster) -> Stack:
    """Return the security group stack; it has no resources if all of the cluster's security groups exist already."""
    stack = Stack(
        cluster,
        name="security-groups",
        logical_id="SecurityGroupsStack",
        source_module=__name__,
        description=f"Security groups of the Kubernetes cluster {cluster.name}: "
        "masters, nodes and the rules between them",
    )
    balancer_roles = load_balancer_roles(cluster)
    roles: tuple[SecurityGroupRole, ...] = ("Master", "Node", *balancer_roles)
    if all(existing_group(cluster, role) for role in roles):
        return stack
    vpc_reference = vpc_id(stack, cluster)
    first_groups = _FirstGroups(stack, cluster)
    for role in ("Master", "Node"):
        _add_first_group(stack, cluster, vpc_reference, role, first_groups)
    _add_rules(stack, cluster, rules_between_instances(cluster), first_groups)
    if not balancer_roles:
        _allow_range_of_parameter(stack, cluster, "Master", first_groups)
    for role in balancer_roles:
        _add_first_group(stack, cluster, vpc_reference, role, first_groups)
        _add_rules(stack, cluster, load_balancer_rules(cluster, role), first_groups)
        if role == "ApiLoadBalancer":
            _allow_range_of_parameter(stack, cluster, role, first_groups)
    created_roles = [role for role in roles if not existing_group(cluster, role)]
    for role in created_roles:
        _allow_listed_sources(stack, cluster, vpc_reference, role, first_groups)
    for role in created_roles:
        stack.output(
            str(SecurityGroupId(role, part="Id")), value=first_groups[role], description=first_group_description(role)
        )
    return stack


class _FirstGroups(dict[GroupRole, PropertyValue]):
    """The ids of the first security groups by role.

    The parameter for an existing group is added when a rule refers to it first: a group whose rules name no other
    needs none.
    """

    def __init__(self, stack: Stack, cluster: Cluster) -> None:
        super().__init__()
        self._stack = stack
        self._cluster = cluster

    def __missing__(self, role: GroupRole) -> PropertyValue:
        """Add the parameter for an existing group."""
        group_id = existing_group(self._cluster, role)
        if group_id is None:
            raise KeyError(role)
        description = first_group_description(next(name for name in SECURITY_GROUP_ROLES if name == role))
        self[role] = security_group_parameter(self._stack, role, group_id, description)
        return self[role]


def _add_rules(stack: Stack, cluster: Cluster, rules: Iterable[Rule], first_groups: GroupIds) -> None:
    """Add rules to the security groups that cfngen creates; existing groups are left as they are."""
    for rule in rules:
        if not existing_group(cluster, rule.role):
            add_ingress(stack, rule, first_groups[rule.role], first_groups)


def _add_first_group(
    stack: Stack, cluster: Cluster, vpc_reference: PropertyValue, role: SecurityGroupRole, first_groups: _FirstGroups
) -> None:
    """Add the first security group of a role, with its rule for outgoing traffic, unless the role has an existing one.

    Args:
        first_groups: ids of the first security groups so far, which gets the new one; those of load balancers refer
            to the masters'.
    """
    if existing_group(cluster, role):
        return
    if role in LOAD_BALANCER_ROLES:
        is_public = cluster.api.public and role == "ApiLoadBalancer"
        group_tags = tags_without_kubernetes_io_tag(cluster, load_balancer_name(cluster, is_public=is_public))
    else:
        group_tags = tags(cluster, f"{cluster.name}-{_PROTECTED_BY_ROLE[role]}", **_TAGS_OF_INSTANCES[role])
    group = stack.add(
        ec2.SecurityGroup(
            str(SecurityGroupId(role)),
            GroupDescription=f"Kubernetes cluster {cluster.name}: {_PROTECTED_BY_ROLE[role]}",
            VpcId=vpc_reference,
            SecurityGroupEgress=[inline_rule(egress_rule(cluster, role), first_groups)],
            Tags=group_tags,
        )
    )
    first_groups[role] = GetAtt(group, "GroupId")


def first_group(stack: Stack, cluster: Cluster, role: SecurityGroupRole) -> PropertyValue:
    """Return a reference to the id of the first security group of a role, created or existing."""
    group_id = existing_group(cluster, role)
    if group_id:
        return security_group_parameter(stack, role, group_id, first_group_description(role))
    return stack.parameter_from_other_stack(
        str(SecurityGroupId(role, part="Id")), description=first_group_description(role)
    )


def extra_security_groups(stack: Stack, cluster: Cluster, role: SecurityGroupRole) -> list[PropertyValue]:
    """Return references to the security groups of a role except the first; most clusters have no such groups.

    The first security group of masters, nodes or load balancer always exists. Extra security groups contain the rules
    for allowed sources that would exceed the quota of rules in the first group.
    """
    group_count = len(sources_by_group(cluster, role))
    return [
        stack.parameter_from_other_stack(
            str(SecurityGroupId(role, group_number, "Id")),
            description=f"Security group {group_number} of the {_PROTECTED_BY_ROLE[role]}",
        )
        for group_number in range(2, group_count + 1)
    ]


def own_group_of_node_group(stack: Stack, cluster: Cluster, node_group: NodeGroup) -> list[PropertyValue]:
    """Add the security group of a node group's nodes alone, with the rules of its `ingress`; return its id.

    Every node group has one, also without such a rule, and each rule is a resource of its own: the first rule, as any
    other, then changes neither the launch template nor the group itself, to which the launch template refers.

    Returns:
        no id if nodes have an existing security group: the user adds the rules.
    """
    if existing_group(cluster, "Node"):
        return []
    group = stack.add(
        ec2.SecurityGroup(
            str(NodeGroupId(node_group.name, "SecurityGroup")),
            GroupDescription=f"Kubernetes cluster {cluster.name}: further ports of the node group {node_group.name}",
            VpcId=vpc_id(stack, cluster),
            SecurityGroupEgress=[inline_rule(egress_rule(cluster, "Node"), {})],
            Tags=tags_without_kubernetes_io_tag(
                cluster, f"{cluster.name}-nodes-{node_group.name}", **_TAGS_OF_INSTANCES["Node"]
            ),
        )
    )
    group_id = GetAtt(group, "GroupId")
    for rule in node_group_rules(node_group):
        add_ingress(stack, rule, group_id, {})
    return [group_id]


def first_group_description(role: SecurityGroupRole) -> str:
    """Return the description of the output, and of parameters, with the id of a role's first group."""
    if role not in LOAD_BALANCER_ROLES:
        return f"Security group of the {_PROTECTED_BY_ROLE[role]}"
    kind = "internal load balancer" if role == "InternalApiLoadBalancer" else "load balancer"
    return f"Security group of the API's {kind}"


def _allow_listed_sources(
    stack: Stack, cluster: Cluster, vpc_reference: PropertyValue, role: SecurityGroupRole, first_groups: GroupIds
) -> None:
    """Add a rule for each source that the cluster file allows to reach the API or SSH.

    Rules that exceed the quota of the first security group go into extra security groups, which are added here.
    """
    for group_number, sources in enumerate(sources_by_group(cluster, role), start=1):
        if group_number == 1:
            target_group = first_groups[role]
        else:
            target_group = _add_extra_group(stack, cluster, vpc_reference, role, first_groups, number=group_number)
        for source in sources:
            add_ingress(stack, source_rule(role, source), target_group, first_groups)


def _add_extra_group(
    stack: Stack,
    cluster: Cluster,
    vpc_reference: PropertyValue,
    role: SecurityGroupRole,
    first_groups: GroupIds,
    *,
    number: int,
) -> PropertyValue:
    """Add a role's second or further security group, and an output with its id; return the id."""
    protected = _PROTECTED_BY_ROLE[role]
    group = stack.add(
        ec2.SecurityGroup(
            str(SecurityGroupId(role, number)),
            GroupDescription=f"Kubernetes cluster {cluster.name}: who else may reach the {protected}",
            VpcId=vpc_reference,
            SecurityGroupEgress=[inline_rule(egress_rule(cluster, role), first_groups)],
            Tags=tags_without_kubernetes_io_tag(
                cluster, f"{cluster.name}-{protected}-{number}".replace(" ", "-"), **_TAGS_OF_INSTANCES.get(role, {})
            ),
        )
    )
    group_id = GetAtt(group, "GroupId")
    stack.output(
        str(SecurityGroupId(role, number, "Id")),
        value=group_id,
        description=f"Security group {number} of the {protected}",
    )
    return group_id


def _allow_range_of_parameter(stack: Stack, cluster: Cluster, role: SecurityGroupRole, first_groups: GroupIds) -> None:
    """Add a parameter for the address range that may reach the API, and a rule that allows this range.

    If the cluster file lists the allowed sources, the user need not enter a range, so nothing is added. Neither is it
    if the rule would be one of an existing security group.

    Args:
        role: whose group gets the rule: the load balancer, or the masters.
    """
    if cluster.api.allowed_cidrs or cluster.api.allowed_prefix_lists or existing_group(cluster, role):
        return
    cidr = stack.parameter(
        "ApiAllowedCidr",
        label="Who may reach the Kubernetes API",
        parameter_group=ACCESS,
        description="IPv4 address range that may reach the Kubernetes API server, e.g. 203.0.113.7/32",
        AllowedPattern=CIDR_PATTERN,
        ConstraintDescription="must be an IPv4 CIDR such as 203.0.113.7/32",
    )
    stack.add(
        ec2.SecurityGroupIngress(
            str(RuleId(role, purpose="Api" if role == "Master" else "", source="AllowedCidr")),
            GroupId=first_groups[role],
            IpProtocol="tcp",
            FromPort=cluster.api.port,
            ToPort=cluster.api.port,
            Description="Kubernetes API from the given range",
            CidrIp=cidr,
        )
    )
