"""The calls of `calls.json`, each with the resource that it names in the account of a cluster.

A row has `actions`; `resource`, a name of `resources`, or none for actions without one; `request`, which is `tags` if
the call sets the cluster's tags; `keys`, what else the request says; `when`, a name of `OPTIONS`; `by`, how the names
of the grantees begin that make the call; and `source`, where the call is, in the component's repository or
documentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from clusters import CASES, golden

from cfngen.cluster.iam import service_accounts as accounts
from cfngen.cluster.iam.service_accounts import ServiceAccount, document_keys, has_role, masters_publish_documents
from cfngen.cluster.load import load, parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import groups_of_instances
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.permissions.grants import grants, scope_of
from cfngen.permissions.service_accounts import grantee_name
from cfngen.sandbox.services.policy_simulation import decision

REGION, ACCOUNT = "us-west-2", "123456789012"
HERE = f"{REGION}:{ACCOUNT}"
CLUSTER, NEIGHBOUR = "blue", "blue-eu"
Context = Mapping[str, list[str]]
Statements = Sequence[Mapping[str, Any]]

CONTROLLERS: Mapping[str, ServiceAccount] = {
    "cloud-controller-manager": accounts.CLOUD_CONTROLLER_MANAGER,
    "aws-ebs-csi-driver": accounts.EBS_CSI_DRIVER,
    "cluster-autoscaler": accounts.CLUSTER_AUTOSCALER,
    "aws-load-balancer-controller": accounts.LOAD_BALANCER_CONTROLLER,
    "external-dns": accounts.EXTERNAL_DNS,
    "cert-manager": accounts.CERT_MANAGER,
    "amazon-vpc-cni-k8s": accounts.AMAZON_VPC_PLUGIN,
}
"""The service account of each component of other projects that calls AWS."""

OPTIONS: Mapping[str, Callable[[Cluster], Any]] = {
    "VPC routes": lambda cluster: network_plugin(cluster).uses_vpc_routes,
    "VPC addresses": lambda cluster: network_plugin(cluster).gives_pods_vpc_addresses,
    "own authority": lambda cluster: cluster.certificate_authority.secret,
    "backups": lambda cluster: cluster.etcd.backups.enabled,
    "key of snapshots": lambda cluster: cluster.etcd.backups.may_need_key,
    "several masters": lambda cluster: cluster.control_plane.count > 1,
    "draining": lambda cluster: any(group.drain_timeout for group in cluster.node_groups),
    "documents of an issuer": masters_publish_documents,
    "user's bucket of an issuer": lambda cluster: (
        masters_publish_documents(cluster) and cluster.service_account_issuer.bucket  # type: ignore[union-attr]
    ),
    "Session Manager": lambda cluster: cluster.ssh.session_manager,
}
"""Which clusters have the options that a row of the table names."""


class Resource(NamedTuple):
    """A resource, and what requests about it say of it; keys of conditions are in lower case."""

    arn: str
    context: Mapping[str, list[str]] = {}


class Call(NamedTuple):
    """A request that IAM decides on: an action on a resource."""

    action: str
    resource: str
    context: Context


GROUP, KEY = "sg-0123456789abcdef0", f"arn:aws:kms:{HERE}:key/1234abcd"
# What no golden case and no example has.
OTHERS: Mapping[str, Mapping[str, Any]] = {
    "own key and no storage driver": {
        "controlPlane": {"volume": {"kmsKey": KEY}},
        "addons": {"awsEbsCsiDriver": {"enabled": False}},
    },
    "own key, authority and bucket": {
        "controlPlane": {"volume": {"kmsKey": KEY}},
        "certificateAuthority": {"secret": f"arn:aws:secretsmanager:{HERE}:secret:ca-AbCdEf"},
        "etcd": {"backups": {"bucket": "my-backups"}},
    },
    "addresses and tags": {
        "network": {"plugin": "amazon-vpc"},
        "tags": {"team": "platform"},
        "controlPlane": {"additionalSecurityGroups": [GROUP]},
        "nodeGroups": [{"name": "nodes", "additionalSecurityGroups": [GROUP]}],
    },
    "load balancers in an existing group": {
        "network": {
            "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "172.20.0.0/16"},
            "subnets": [{"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "172.20.0.0/24"}],
            "routeTable": "rtb-0123456789abcdef0",
            "securityGroups": {"nodes": GROUP},
        },
        "serviceAccountIssuer": {},
        "addons": {"awsLoadBalancerController": {"enabled": True}},
    },
}


@cache
def clusters() -> Mapping[str, Cluster]:
    """The golden clusters, the examples and `OTHERS`, all with one name and region; a policy says no more of these."""
    examples = Path(__file__).parents[2].joinpath("examples").rglob("*.yaml")
    found = {
        **{path.parent.name: golden(path.parent.name) for path in sorted(CASES.glob("*/cluster.yaml"))},
        **{f"example {path.stem}": load(path, environ={}).cluster for path in sorted(examples)},
        **{name: parse(dict(configuration)) for name, configuration in OTHERS.items()},
    }
    return {name: cluster.model_copy(update={"name": CLUSTER, "region": REGION}) for name, cluster in found.items()}


@cache
def table() -> Mapping[str, Any]:
    """What is in `calls.json`, by component."""
    text = Path(__file__).with_name("calls.json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def is_allowed(statements: Statements, call: Call) -> bool:
    """Whether IAM lets a call of someone with these statements through."""
    return decision([{"Statement": list(statements)}], *call) == "allowed"


def rows_of(cluster: Cluster, grantee: str, part: str = "calls") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of what a grantee calls in a cluster, each after its component."""
    for component, entry in table().items():
        for row in entry.get(part, ()):
            if _makes(cluster, grantee, component, row) and OPTIONS.get(row.get("when"), bool)(cluster):
                yield component, row


def _makes(cluster: Cluster, grantee: str, component: str, row: Mapping[str, Any]) -> bool:
    if "by" in row and not grantee.startswith(tuple(row["by"].split())):
        return False
    account = CONTROLLERS.get(component)
    if account is None:
        return "by" in row
    if account not in accounts.component_accounts(cluster):
        return False
    if has_role(cluster, account):
        return grantee == grantee_name(cluster, account)
    return grantee == "master" or (account is accounts.AMAZON_VPC_PLUGIN and grantee.startswith("nodes-"))


@dataclass(frozen=True)
class Caller:
    """Somebody with permissions in a cluster, and what he calls.

    Attributes:
        cluster: name of the cluster in `clusters`.
        name: name of the grantee, as `Grant.name`.
        calls: each after its row of the table.
    """

    cluster: str
    name: str
    statements: Statements
    calls: Sequence[tuple[Mapping[str, Any], Call]]


@cache
def callers() -> tuple[Caller, ...]:
    """Everybody in all clusters; of those with the same statements and the same calls, the first."""
    found: dict[str, Caller] = {}
    for cluster_name, cluster in clusters().items():
        its_resources = resources(cluster, CLUSTER)
        for grant in grants(cluster, scope_of(cluster, account=ACCOUNT)):
            calls = [
                (row, call) for _, row in rows_of(cluster, grant.name) for call in calls_of(row, cluster, its_resources)
            ]
            caller = Caller(cluster_name, grant.name, grant.statements, calls)
            found.setdefault(repr((grant.name.partition("-")[0], grant.statements, calls)), caller)
    return tuple(found.values())


def calls_of(
    row: Mapping[str, Any], cluster: Cluster, found: Mapping[str, Resource], setter: str = CLUSTER
) -> list[Call]:
    """The calls of a row about the resources of a cluster; none if the cluster has no such resource.

    Args:
        found: the resources, as `resources` returns them.
        setter: the cluster whose tags the request sets.
    """
    resource = found.get(row["resource"]) if "resource" in row else Resource("*")
    if resource is None:
        return []
    request: dict[str, Any] = {}
    if row.get("request") == "tags":
        request = {
            "aws:RequestTag/KubernetesCluster": setter,
            f"aws:RequestTag/kubernetes.io/cluster/{setter}": "owned",
            "aws:TagKeys": ["KubernetesCluster", f"kubernetes.io/cluster/{setter}"],
        }
    context = {
        key.lower(): _filled_in(value, cluster, found) for key, value in {**request, **row.get("keys", {})}.items()
    }
    return [Call(action, resource.arn, {**resource.context, **context}) for action in row["actions"].split()]


def _filled_in(value: Any, cluster: Cluster, found: Mapping[str, Resource]) -> list[str]:
    values = value if isinstance(value, list) else [value]
    texts = {"cluster": cluster.name, "region": REGION}
    return [
        re.sub(r"\{([^}]+)\}", lambda match: texts.get(match[1]) or found[match[1]].arn, each)
        for item in values
        for each in (cluster.tags if item == "{keys of tags}" else [item])
    ]


def resources(cluster: Cluster, name: str) -> dict[str, Resource]:
    """The resources of a cluster with this name, in the account and VPC of the given one; what exists, only its own."""
    return {
        **_instances_and_network(cluster, name),
        **_load_balancers(name),
        **_storage(cluster, name),
        **_stacks_and_groups(name),
        **_of_the_account(cluster, name),
    }


def _of(service: str, resource: str, region: str = REGION, account: str = ACCOUNT) -> str:
    return f"arn:aws:{service}:{region}:{account}:{resource}"


def _tags(name: str, **others: str) -> dict[str, list[str]]:
    tags = {"KubernetesCluster": name, f"kubernetes.io/cluster/{name}": "owned", **others}
    return {f"aws:resourcetag/{key.lower()}": [value] for key, value in tags.items()}


MASTER = {"k8s.io/role/master": "1"}


def _instances_and_network(cluster: Cluster, name: str) -> dict[str, Resource]:
    tags, of_master = _tags(name), _tags(name, **MASTER)
    scope = scope_of(cluster, account=ACCOUNT)
    vpc = _of("ec2", f"vpc/{scope.vpc_id.replace('*', 'vpc-1')}")
    in_vpc = {"ec2:vpc": [vpc]}
    found = {
        "instance": Resource(_of("ec2", f"instance/i-{name}"), tags),
        "instance of a master": Resource(_of("ec2", f"instance/i-{name}-master"), of_master),
        "interface": Resource(_of("ec2", f"network-interface/eni-{name}"), {**tags, **in_vpc}),
        "interface of a master": Resource(_of("ec2", f"network-interface/eni-{name}-master"), {**of_master, **in_vpc}),
        "new interface": Resource(_of("ec2", "network-interface/*")),
        "security group": Resource(_of("ec2", f"security-group/sg-{name}"), {**tags, **in_vpc}),
        "security group of masters": Resource(_of("ec2", f"security-group/sg-{name}-masters"), {**of_master, **in_vpc}),
        "security group of nodes": Resource(
            _of("ec2", f"security-group/sg-{name}-nodes"), {**_tags(name, **{"k8s.io/role/node": "1"}), **in_vpc}
        ),
        "new security group": Resource(_of("ec2", "security-group/*")),
        "route table": Resource(_of("ec2", f"route-table/rtb-{name}"), {**tags, **in_vpc}),
        "subnet": Resource(_of("ec2", "subnet/subnet-1"), in_vpc),
        "VPC": Resource(vpc, {} if cluster.network.vpc.id else tags),
    }
    return {**found, **(_existing_parts(cluster, in_vpc) if name == cluster.name else {})}


def _existing_parts(cluster: Cluster, in_vpc: Context) -> dict[str, Resource]:
    """What the cluster file names, in place of what cfngen creates; such parts need not have the cluster's tags."""
    scope = scope_of(cluster, account=ACCOUNT)
    found: dict[str, Resource] = {}
    if any(subnet.id for subnet in cluster.network.subnets):
        found["route table"] = Resource(_of("ec2", f"route-table/{scope.route_table_id.replace('*', 'rtb-1')}"), in_vpc)
    for instances, first in (("masters", cluster.network.security_groups.masters),
                             ("nodes", cluster.network.security_groups.nodes)):  # fmt: skip
        ids = [id_ for id_ in groups_of_instances(cluster, instances) if id_.startswith("sg-")]  # type: ignore[arg-type]
        lets_in = {f"aws:resourcetag/kubernetes.io/cluster/{cluster.name}": ["owned"]}
        if first:
            found[f"security group of {instances}"] = Resource(
                _of("ec2", f"security-group/{first}"), {**in_vpc, **(lets_in if instances == "nodes" else {})}
            )
        if further := [id_ for id_ in ids if id_ != first]:
            found[f"further security group of {instances}"] = Resource(
                _of("ec2", f"security-group/{further[0]}"), in_vpc
            )
    return found


def _load_balancers(name: str) -> dict[str, Resource]:
    kinds = {
        "load balancer": f"loadbalancer/app/{name}/1",
        "listener": f"listener/app/{name}/1/2",
        "listener rule": f"listener-rule/app/{name}/1/2/3",
        "target group": f"targetgroup/{name}/1",
        "classic load balancer": f"loadbalancer/{name}",
    }
    return {
        **{kind: Resource(_of("elasticloadbalancing", resource), _tags(name)) for kind, resource in kinds.items()},
        **{
            f"new {kind}": Resource(_of("elasticloadbalancing", resource.partition("/")[0] + "/new/1"))
            for kind, resource in kinds.items()
        },
    }


def _storage(cluster: Cluster, name: str) -> dict[str, Resource]:
    tags = _tags(name)
    snapshots = _bucket(cluster.etcd.backups.bucket, name, "backup")
    issuer = cluster.service_account_issuer
    documents = _bucket(issuer.bucket if issuer else None, name, "issuer")
    found = {
        "volume of a master": Resource(_of("ec2", f"volume/vol-{name}-master"), _tags(name, **MASTER)),
        "volume of a claim": Resource(
            _of("ec2", f"volume/vol-{name}"), _tags(name, **{"ebs.csi.aws.com/cluster": "true"})
        ),
        "new volume": Resource(_of("ec2", "volume/*")),
        "CA secret": Resource(_of("secretsmanager", f"secret:CaSecret-{name}-AbCdEf"), tags),
        "join secret": Resource(_of("secretsmanager", f"secret:JoinSecret-{name}-AbCdEf"), tags),
        "some key": Resource(_of("kms", "key/some")),
        "key of secrets": Resource(_of("kms", f"key/secrets-{name}"), tags),
        "key of masters' volumes": Resource(cluster.control_plane.volume.kms_key or _of("kms", "key/default")),
        "key of snapshots": Resource(cluster.etcd.backups.kms_key or _of("kms", "key/of-bucket")),
        "bucket of snapshots": Resource(snapshots),
        "hourly snapshot": Resource(f"{snapshots}/{name}/etcd/hourly/1.db"),
        "daily snapshot": Resource(f"{snapshots}/{name}/etcd/daily/1.db"),
        "request to restore": Resource(f"{snapshots}/{name}/etcd/restore.json"),
    }
    if cluster.secrets.kms_key:
        found["key of secrets"] = Resource(cluster.secrets.kms_key)
    if cluster.certificate_authority.secret:
        found["secret of the user's authority"] = Resource(cluster.certificate_authority.secret)
    if issuer:
        for kind, key in zip(("discovery document", "document of keys"), document_keys(issuer), strict=True):
            found[kind] = Resource(f"{documents}/{key}")
    return found


def _bucket(own: str | None, name: str, kind: str) -> str:
    return f"arn:aws:s3:::{own or f'{name}-secretsstack-1ab-{kind}bucket-2cd'}"


def _stacks_and_groups(name: str) -> dict[str, Resource]:
    group = "autoScalingGroup:1:autoScalingGroupName"
    scaled = {"k8s.io/cluster-autoscaler/enabled": "true"}
    return {
        "root stack": Resource(_of("cloudformation", f"stack/{name}/1-2")),
        "stack of masters": Resource(_of("cloudformation", f"stack/{name}-MasterStack-1AB/1-2")),
        "stack of nodes": Resource(_of("cloudformation", f"stack/{name}-NodeGroupNodesStack-1AB/1-2")),
        "Auto Scaling group": Resource(_of("autoscaling", f"{group}/{name}-NodeGroupNodes-1AB"), _tags(name, **scaled)),
        "Auto Scaling group of a master": Resource(
            _of("autoscaling", f"{group}/{name}-MasterA-1AB"), _tags(name, **MASTER)
        ),
        "log group": Resource(_of("logs", f"log-group:{name}-VpcStack-1AB-FlowLogGroup-2CD:*")),
    }


def _of_the_account(cluster: Cluster, name: str) -> dict[str, Resource]:
    """What is no cluster's, or whose."""
    linked = "role/aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing"
    zones = {"external-dns": cluster.addons.external_dns.zones, "cert-manager": cluster.addons.cert_manager.zones}
    return {
        "service-linked role for load balancers": Resource(_of("iam", linked, region="")),
        "certificate": Resource(_of("acm", "certificate/1")),
        "server certificate": Resource(_of("iam", "server-certificate/a", region="")),
        "user pool": Resource(_of("cognito-idp", "userpool/a")),
        "shared repository of images": Resource(_of("ecr", "repository/a", "eu-west-1", "210987654321")),
        "change of records": Resource("arn:aws:route53:::change/C1"),
        **{
            f"hosted zone of {component}": Resource(
                f"arn:aws:route53:::hostedzone/{ids[0] if ids and name == cluster.name else f'Z{name}'}"
            )
            for component, ids in zones.items()
        },
    }
