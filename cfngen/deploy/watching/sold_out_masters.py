"""What to do if the instance type of a master is sold out, when an operation has failed because of that."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.deploy.account import Account
from cfngen.deploy.messages import Event
from cfngen.deploy.replacing.similar_types import sold_out_hint
from cfngen.deploy.watching.reasons import is_lack_of_capacity
from cfngen.hints import Hint

# "Troubleshoot instance launch issues", Amazon EC2 User Guide: InsufficientInstanceCapacity.
_SOLD_OUT = re.compile(
    r"sufficient (?P<type>[\w.-]+) capacity in the Availability Zone you requested \((?P<zone>[\w-]+)\)"
)


def sold_out_master_hint(account: Account, event: Event, launch_failures: Iterable[str]) -> Hint:
    """Return what to do if the type of a master is sold out; empty for other failures and for other groups.

    A slot that is being created is taken back with everything else, so another type belongs into the cluster file then.

    Args:
        account: the account and region.
        event: the failure of the operation.
        launch_failures: why the group could not launch instances, the newest first.
    """
    master = MasterId.parse(event.logical_id)
    if master is None or event.status != "UPDATE_FAILED":
        return ""
    for failure in launch_failures:
        if is_lack_of_capacity(failure):
            match = _SOLD_OUT.search(failure)
            return sold_out_hint(account, master.letter, match["type"] if match else "", match["zone"] if match else "")
    return ""
