"""What the services of AWS refuse and moto accepts: one rule for each condition, asked before moto answers a call.

Whoever calls meets them: CloudFormation making a resource, an instance that boots, cfngen itself. A rule stands in the
module of what it protects, and tests/aws/refusals.md lists them all with their sources. What an answer takes its time
for is asked of the clock of the region (`time_in`).
"""

from cfngen.sandbox.services import (  # noqa: F401 - they declare their rules
    addresses,
    buckets,
    ec2_tags,
    gateways,
    iam,
    iam_propagation,
    keys,
    launch_templates,
    launches,
    lifecycle_hooks,
    load_balancers,
    network_interfaces,
    networks,
    scaling_groups,
    secrets,
    security_groups,
    target_groups,
    volumes,
)
from cfngen.sandbox.services.rules import Attempt, Refused, enforced, keep_time, rule, time_in

__all__ = ["Attempt", "Refused", "enforced", "keep_time", "rule", "time_in"]
