"""The impact of changed tags that tell cluster-autoscaler about a node group."""

from __future__ import annotations

from cfngen.cluster.instances.node_resources import NODE_TEMPLATE
from cfngen.deploy.preview.impact.context import ChangeContext
from cfngen.permissions.addons import AUTOSCALER_TAG

_SETTINGS_PREFIXES = tuple(f"/Properties/Tags[{NODE_TEMPLATE}/{kind}/" for kind in ("resources", "autoscaling-options"))


def autoscaler_text(context: ChangeContext, owner: str) -> str:
    """Return what changes for cluster-autoscaler with the tags of an Auto Scaling group; empty if nothing does.

    Labels and taints are not mentioned: they change with the nodes' configuration.

    Args:
        context: the change of the Auto Scaling group.
        owner: its node group, in words.
    """
    [enabled_key] = AUTOSCALER_TAG
    for property_ in context.change.properties:
        if property_.path == f"/Properties/Tags[{enabled_key}]":
            return (
                f"cluster-autoscaler may change the size of {owner} from now on"
                if property_.after
                else f"cluster-autoscaler leaves {owner} alone from now on: only you change its size"
            )
    if any(property_.path.startswith(_SETTINGS_PREFIXES) for property_ in context.change.properties):
        return f"cluster-autoscaler gets other settings of {owner} within a minute; no instance is replaced for that"
    return ""
