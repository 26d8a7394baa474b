"""Add-ons for nodes: their number, their termination, and their GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.iam.service_accounts import CLUSTER_AUTOSCALER, has_role
from cfngen.cluster.instances.gpu import PRESENT_LABEL
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import auto_scaling_group_id, node_group_prefix
from cfngen.cluster.sections.services import NodeTerminationHandler
from cfngen.releases.charts import chart
from cfngen.userdata import pod_role, proxy
from cfngen.userdata.addons.release import (
    DELETE_OLD_POD_FIRST,
    Release,
    near_masters,
    on_masters,
    release_of_chart,
    replica_count,
)

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject


def cluster_autoscaler(cluster: Cluster) -> Release:
    """Return cluster-autoscaler, which finds the node groups by the tags that `cfngen.templates.tagging` adds."""
    has_own_role = has_role(cluster, CLUSTER_AUTOSCALER)
    values = {
        "fullnameOverride": "cluster-autoscaler",
        "cloudProvider": "aws",
        "awsRegion": cluster.region,
        "autoDiscovery": {"clusterName": cluster.name},
        # cluster-autoscaler contains the scheduler of one minor version of Kubernetes, so its version must match the
        # cluster's; the chart's default image has another version.
        "image": {"tag": f"v{chart('cluster-autoscaler', cluster.kubernetes_version).app_version}"},
        "replicaCount": replica_count(cluster),
        # With the instance's resolver it needs no cluster DNS, which may wait for the node that it is to create.
        "dnsPolicy": "Default",
        **({} if has_own_role else {"hostNetwork": True, "updateStrategy": DELETE_OLD_POD_FIRST}),
        "extraArgs": {"balance-similar-node-groups": True, **_expander_argument(cluster)},
        **_priorities(cluster),
        **proxy.as_map(cluster, "extraEnv"),
        **(near_masters() if has_own_role else on_masters()),
    }
    return release_of_chart(
        cluster,
        "cluster-autoscaler",
        values,
        # The container is called after the provider and the chart (`cluster-autoscaler.name` in _helpers.tpl).
        patches=pod_role.patches(
            cluster, CLUSTER_AUTOSCALER, name="cluster-autoscaler", container="aws-cluster-autoscaler"
        ),
    )


def _expander_argument(cluster: Cluster) -> dict[str, str]:
    """Return the argument that names the expanders, in order; empty to leave the choice to cluster-autoscaler."""
    expanders = cluster.addons.cluster_autoscaler.expander
    return {"expander": ",".join(expanders)} if expanders else {}


def _priorities(cluster: Cluster) -> dict[str, JsonObject]:
    """Return the chart's value with patterns for the names of Auto Scaling groups, by priority; empty without any.

    CloudFormation makes these names of the stack's name, the logical id and a random part, separated by hyphens, which
    a logical id does not contain. Names of stacks and logical ids are short enough not to be cut (255 characters).
    """
    priorities = cluster.addons.cluster_autoscaler.priorities
    patterns = {
        priority: [f"-{auto_scaling_group_id(node_group_prefix(name))}-[^-]+$" for name in names]
        for priority, names in priorities.items()
    }
    return {"expanderPriorities": patterns} if patterns else {}


def node_termination_handler(cluster: Cluster) -> Release:
    """Return the AWS node termination handler, which runs on every node and polls the instance's own metadata.

    In this mode it calls no AWS API and needs no queue. It does not handle terminations by an Auto Scaling group: that
    is done by cfngen's own drain service.
    """
    handler = cluster.addons.node_termination_handler
    values = {
        "fullnameOverride": "aws-node-termination-handler",
        "image": {"tag": f"v{chart('aws-node-termination-handler', cluster.kubernetes_version).app_version}"},
        "rbac": {"pspEnabled": False},
        "enableSpotInterruptionDraining": handler.spot_interruptions,
        "enableScheduledEventDraining": handler.scheduled_events,
        "extraEnv": [{"name": "ENABLE_ASG_LIFECYCLE_DRAINING", "value": "false"}],
        **_rebalancing_and_grace_periods(handler),
    }
    return release_of_chart(cluster, "aws-node-termination-handler", values)


def _rebalancing_and_grace_periods(handler: NodeTerminationHandler) -> JsonObject:
    """Return the chart's values for the settings of the cluster file without which the chart's own defaults apply.

    The names are from the chart's values.yaml. A recommendation to rebalance makes the handler cordon the node if
    it monitors them, and drain it if it also has `enableRebalanceDraining` (`HandleEvent` in
    pkg/interruptionevent/draincordon/handler.go).
    """
    values: dict[str, object] = {}
    if handler.rebalance_recommendation != "ignore":
        values["enableRebalanceMonitoring"] = True
        values["enableRebalanceDraining"] = handler.rebalance_recommendation == "drain"
    if handler.pod_grace_period is not None:
        values["podTerminationGracePeriod"] = handler.pod_grace_period
    if handler.node_grace_period is not None:
        # The handler drains a node this long before an interruption, and for this long (`TimeUntilDrain` in
        # pkg/interruptioneventstore, `getDrainHelper` in pkg/node/node.go).
        values["nodeTerminationGracePeriod"] = handler.node_grace_period
    return values


def nvidia_device_plugin(cluster: Cluster) -> Release:
    """Return NVIDIA's device plug-in, which makes the GPUs of a node a resource that pods ask for, `nvidia.com/gpu`.

    It runs on nodes with the label that groups with `gpu` have, whatever taints these have. It needs no RuntimeClass,
    since NVIDIA's runtime is the default one of these nodes.
    """
    values = {
        "fullnameOverride": "nvidia-device-plugin",
        "nodeSelector": {PRESENT_LABEL: "true"},
        "tolerations": [{"operator": "Exists"}],
    }
    return release_of_chart(cluster, "nvidia-device-plugin", values)
