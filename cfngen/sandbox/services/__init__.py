"""What the services of AWS refuse and moto accepts: one rule for each condition, asked before moto answers a call.

Whoever calls meets them: CloudFormation making a resource, an instance that boots, cfngen itself. A rule stands in the
module of what it protects, and tests/aws/refusals.md lists them all with their sources. What an answer takes its time
for is asked of the clock of the region (`time_in`).
"""

from cfngen.sandbox.services import (  # noqa: F401 - declare their rules
    buckets,
    iam,
    iam_propagation,
    keys,
    load_balancers,
    secrets,
    target_groups,
    volumes,
)
from cfngen.sandbox.services.rules import Attempt, Refused, enforced, keep_time, rule, time_in

__all__ = ["Attempt", "Refused", "enforced", "keep_time", "rule", "time_in"]
