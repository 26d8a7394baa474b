"""Auto Scaling groups of a cluster, and what their tags keep while it is paused."""

from __future__ import annotations

from datetime import UTC, datetime

from cfngen.cluster.load import parse
from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.deploy.aws.groups import GroupView

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEPT, NOTHING = {"Key": PAUSED, "Value": "min=1 max=5 desired=3 since=2026-11-21T12:00:00Z"}, (0, 0, 0)
ONE = {"Key": PAUSED, "Value": "min=1 max=1 desired=1 since=2026-11-21T12:00:00Z"}
CLUSTER = parse(
    {
        "name": "one",
        "controlPlane": {"creationTimeout": 40},
        "nodeGroups": [{"name": "general", "creationTimeout": 10}, {"name": "gpu", "creationTimeout": 25}],
    }
)


def group(role: str = "node", name: str = "general", **attributes: object) -> GroupView:
    return GroupView(role, name, f"group-{name}", **attributes)  # type: ignore[arg-type]
