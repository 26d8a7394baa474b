"""Add-ons for traffic into the cluster: load balancers, DNS names, certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.iam.service_accounts import CERT_MANAGER, EXTERNAL_DNS, LOAD_BALANCER_CONTROLLER, has_role
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.proxy import environment
from cfngen.userdata import pod_role, proxy
from cfngen.userdata.addons.release import (
    DELETE_OLD_POD_FIRST,
    Release,
    host_network_patch,
    near_masters,
    on_masters,
    release_of_chart,
    replica_count,
)
from cfngen.userdata.deep_merge import merge

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

# The environment variable of the load balancer controller with the id of its VPC.
_VPC_VARIABLE = "VPC_ID"


def aws_load_balancer_controller(cluster: Cluster) -> Release:
    """Return the AWS load balancer controller, for ingresses and for services that name its load balancer class.

    Other services of type LoadBalancer stay with the cloud controller manager: the webhook that would assign all of
    them to this controller is disabled, so that no service depends on this add-on unless its author wants it.
    """
    name = "aws-load-balancer-controller"
    values = {
        "fullnameOverride": name,
        "clusterName": cluster.name,
        "region": cluster.region,
        "replicaCount": replica_count(cluster),
        # Tags of every resource that the controller creates; IAM conditions check KubernetesCluster.
        "defaultTags": {**cluster.tags, "KubernetesCluster": cluster.name},
        "enableServiceMutatorWebhook": False,
        # Unless these are disabled, the controller queries them for every load balancer, which masters may not do.
        "enableShield": False,
        "enableWaf": False,
        "enableWafv2": False,
        # Otherwise each upgrade would create a new certificate, which running pods get only after some time.
        "keepTLSSecret": True,
        **proxy.as_map(cluster, "env"),
        **_load_balancer_controller_place(cluster, name),
    }
    return release_of_chart(
        cluster,
        name,
        values,
        patches=pod_role.patches(
            cluster,
            LOAD_BALANCER_CONTROLLER,
            name=name,
            container=name,
            further_variables=({"name": _VPC_VARIABLE, "value": "${vpcId}"},),
        ),
    )


def _load_balancer_controller_place(cluster: Cluster, name: str) -> JsonObject:
    """Return the values that say where the controller's pods run, and in which network."""
    if not has_role(cluster, LOAD_BALANCER_CONTROLLER):
        return {"hostNetwork": True, "dnsPolicy": "Default", "updateStrategy": DELETE_OLD_POD_FIRST, **on_masters()}
    # The chart's own affinity, which it leaves out if values have another one.
    same_name = {"matchExpressions": [{"key": "app.kubernetes.io/name", "operator": "In", "values": [name]}]}
    same_host = {"labelSelector": same_name, "topologyKey": "kubernetes.io/hostname"}
    apart = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": same_host}]}
    return {
        # Without the instance's metadata the controller has to be told its VPC (`getVpcID` in its pkg/aws/cloud.go).
        # The kubelet replaces the variable in this argument.
        "vpcId": f"$({_VPC_VARIABLE})",
        **merge(near_masters(), {"affinity": {"podAntiAffinity": apart}}),
    }


def external_dns(cluster: Cluster) -> Release:
    """Return external-dns, which writes to the hosted zones of `addons.externalDns.zones` and to no other."""
    name = "external-dns"
    has_own_role = has_role(cluster, EXTERNAL_DNS)
    values = {
        "fullnameOverride": name,
        "provider": {"name": "aws"},
        "txtOwnerId": cluster.name,
        "extraArgs": [f"--zone-id-filter={zone}" for zone in cluster.addons.external_dns.zones],
        "env": [{"name": "AWS_DEFAULT_REGION", "value": cluster.region}, *proxy.as_list(cluster)],
        **(near_masters() if has_own_role else on_masters()),
    }
    return release_of_chart(
        cluster,
        name,
        values,
        patches=(
            pod_role.patches(cluster, EXTERNAL_DNS, name=name, container=name)
            if has_own_role
            else (host_network_patch("kube-system", name),)
        ),
    )


def cert_manager(cluster: Cluster) -> Release:
    """Return cert-manager with its CustomResourceDefinitions.

    The definitions are kept when cert-manager is uninstalled: deleting them would delete all certificates. With a role
    it proves names with records in Route 53; by default it uses the credentials of its own pod for a ClusterIssuer, and
    not for an Issuer (`--cluster-issuer-ambient-credentials`, `--issuer-ambient-credentials`).
    """
    name = "cert-manager"
    values = {
        "crds": {"enabled": True, "keep": True},
        # This hook of the chart waits for pods, but there may be no node to run them yet.
        "startupapicheck": {"enabled": False},
        # The chart's values for the proxy are called like the variables in lower case.
        **{variable.lower(): value for variable, value in environment(cluster).items()},
    }
    return release_of_chart(
        cluster,
        name,
        values,
        namespace=name,
        # Only the controller calls AWS, not its webhook, nor what injects its authority.
        patches=pod_role.patches(cluster, CERT_MANAGER, name=name, container="cert-manager-controller"),
    )
