"""Validation rules of AWS services that moto lacks: each rule is checked before moto executes a call.

The rules apply to all callers: CloudFormation that creates a resource, an instance that boots, cfngen itself. A rule is
in the module of the resource that it protects; tests/aws/refusals.md lists all rules with their sources. Rules that
depend on time use the clock of the region (`time_in`).
"""

from cfngen.sandbox.services import (  # noqa: F401 - importing a module registers its rules, and its patches of moto
    buckets,
    capacity_reservations,
    distributions,
    dns,
    flow_logs,
    group_lifetime_and_reservation,
    iam,
    keys,
    launch_checks,
    launch_templates,
    load_balancers,
    mixed_instances_policies,
    nat_gateways,
    network_interfaces,
    networks,
    object_locks,
    policy_simulation,
    resource_tags,
    scaling_groups,
    scaling_notifications,
    scaling_patches,
    secrets,
    security_groups,
    tag_limits,
    volumes,
    vpc_endpoints,
    web_identity,
)
from cfngen.sandbox.services.rules import PendingCall, Refused, checking_rules, rule, set_clock, time_in

__all__ = ["PendingCall", "Refused", "checking_rules", "rule", "set_clock", "time_in"]
