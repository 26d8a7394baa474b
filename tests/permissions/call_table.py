"""The calls of `calls.json`, each with the resource that it names in the account of a cluster.

A row has `actions`; `resource`, a name of `resources`, or none for actions without one; `request`, which is `tags` if
the call sets the cluster's tags; `keys`, what else the request says; `when`, a name of `OPTIONS`; `by`, how the names
of the grantees begin that make the call; and `source`, where the call is, in the component's repository or
documentation. With `statement` the row is of the clusters whose policy has a statement of that id. Rows of `refused`
have a `reason` why the calls must not be allowed, those of `left out` one why they need not be.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from account_resources import ACCOUNT, HERE, REGION, Context, Resource, resources
from clusters import CASES, golden
from deployed_resources import deployed_resources

from cfngen.cluster.documents import examples
from cfngen.cluster.iam import service_accounts as accounts
from cfngen.cluster.iam.service_accounts import ServiceAccount, has_role, masters_publish_documents
from cfngen.cluster.load import load, parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.network import topology
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.sections.references import known_id
from cfngen.permissions.explanations import explained_sids, explanation_table, section_of
from cfngen.permissions.grants import Grant, grants, scope_of
from cfngen.permissions.service_accounts import grantee_name
from cfngen.sandbox.services.authorization import decision

CLUSTER = "blue"
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
    "user's bucket of snapshots": lambda cluster: cluster.etcd.backups.bucket,
    "several masters": lambda cluster: cluster.control_plane.count > 1,
    "draining": lambda cluster: any(group.drain_timeout for group in cluster.node_groups),
    "documents of an issuer": masters_publish_documents,
    "user's bucket of an issuer": lambda cluster: (
        masters_publish_documents(cluster) and cluster.service_account_issuer.bucket
    ),
    "storage driver with a role": lambda cluster: has_role(cluster, accounts.EBS_CSI_DRIVER),
    "existing VPC": lambda cluster: known_id(cluster.network.vpc.id),
    "Session Manager": lambda cluster: cluster.ssh.session_manager,
    "locked snapshots": lambda cluster: cluster.etcd.backups.enabled and cluster.etcd.backups.object_lock,
    "images of the file alone": lambda cluster: cluster.registry.only,
    "images from anywhere": lambda cluster: not cluster.registry.only,
}
"""Which clusters have the options that a row of the table names."""


class Call(NamedTuple):
    """A request that IAM decides on: an action on a resource."""

    action: str
    resource: str
    context: Context


GROUP, KEY = "sg-0123456789abcdef0", f"arn:aws:kms:{HERE}:key/1234abcd"
# What no golden case and no example has.
PUSHES = {
    "repositories": [{"name": "web"}],
    "push": [{"name": "web", "provider": "github", "project": "example/shop"}],
}
LONG_NAME, LONG_NAME_AND_BOUNDARY = "a long name", "a long name and a boundary"
OTHERS: Mapping[str, Mapping[str, Any]] = {
    LONG_NAME: {"name": "a-cluster-of-28-letters-long", "registry": PUSHES},
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
    "addresses in an existing VPC": {
        "network": {
            "plugin": "amazon-vpc",
            "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "172.20.0.0/16"},
            "subnets": [{"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "172.20.0.0/20"}],
        },
    },
    LONG_NAME_AND_BOUNDARY: {
        "name": "a-cluster-of-28-letters-long",
        "iam": {"permissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/boundary"},
        "registry": PUSHES,
    },
    "a route table that another stack names": {
        "network": {
            "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "172.20.0.0/16"},
            "subnets": [{"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "172.20.0.0/24"}],
            "routeTable": "stack:network.RouteTable",
        },
    },
    "a boundary with a name like that of a policy": {
        "iam": {"permissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/blue-NodeBoundary"},
        "registry": PUSHES,
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
    files = sorted(Path(__file__).parents[2].joinpath("examples").rglob("*.yaml"))
    found = {
        **{path.parent.name: golden(path.parent.name) for path in sorted(CASES.glob("*/cluster.yaml"))},
        **{f"example {path.stem}": _in_the_region(path) for path in files if path.name != "common.yaml"},
        **{name: parse(dict(configuration)) for name, configuration in OTHERS.items()},
    }
    return {
        name: cluster.model_copy(
            update={"name": cluster.name if name.startswith(LONG_NAME) else CLUSTER, "region": REGION}
        )
        for name, cluster in found.items()
    }


def _in_the_region(path: Path) -> Cluster:
    text = load(path, environ={}).kept_file.content.decode()
    return examples.cluster_of(text.replace(examples.cluster_of(text).region, REGION))


@cache
def table() -> Mapping[str, Any]:
    """What is in `calls.json`, by component."""
    text = Path(__file__).with_name("calls.json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def is_allowed(statements: Statements, call: Call) -> bool:
    """Whether IAM lets a call of someone with these statements through."""
    about = [statement for statement in statements if names_action(statement["Action"], call.action)]
    return bool(about) and decision([{"Statement": about}], *call) == "allowed"


def names_action(patterns: Sequence[str], action: str) -> bool:
    """Whether an action is one of those that a statement names, perhaps with asterisks."""
    return action in patterns or any("*" in each and fnmatch.fnmatchcase(action, each) for each in patterns)


def rows_of(cluster: Cluster, grant: Grant, part: str = "calls") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of what a grantee calls in a cluster, each after its component."""
    explained = explanation_table()[section_of(grant.name)]
    sids = {sid for statement in grant.statements for sid in explained_sids(statement["Sid"], explained)}
    for component, entry in table().items():
        for row in entry.get(part, ()):
            if (
                _makes(cluster, grant.name, component, row)
                and ("statement" not in row or row["statement"] in sids)
                and OPTIONS.get(row.get("when"), bool)(cluster)
            ):
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
        refused: what he must not be able to call, each after the reason.
        left_out: what he calls under other circumstances only, each after the component.
    """

    cluster: str
    name: str
    statements: Statements
    calls: Sequence[tuple[Mapping[str, Any], Call]]
    refused: Sequence[tuple[str, Call]]
    left_out: Sequence[tuple[str, Call]]


@cache
def callers() -> tuple[Caller, ...]:
    """Everybody in all clusters; of those with the same statements and the same calls, the first."""
    found: dict[str, Caller] = {}
    for cluster_name, cluster in clusters().items():
        ours, theirs = (all_resources(cluster, name) for name in (cluster.name, neighbour(cluster)))
        for grant in grants(cluster, scope_of(cluster, account=ACCOUNT)):
            rows = [row for _, row in rows_of(cluster, grant)]
            calls = [(row, call) for row in rows for call in calls_of(row, cluster, ours)]
            key = repr((grant.name.partition("-")[0], grant.statements, calls))
            if key not in found:
                refused = [
                    (row["reason"], call)
                    for _, row in rows_of(cluster, grant, "refused")
                    for call in calls_of(row, cluster, ours)
                ]
                refused += [each for row in rows for each in _about_the_neighbour(row, cluster, ours, theirs)]
                left_out = [
                    (component, call)
                    for component, row in rows_of(cluster, grant, "left out")
                    for call in calls_of(row, cluster, ours)
                ]
                found[key] = Caller(cluster_name, grant.name, grant.statements, calls, refused, left_out)
    return tuple(found.values())


def all_resources(cluster: Cluster, name: str) -> Mapping[str, Resource]:
    """The resources that rows may name, of a cluster with this name."""
    return {**resources(cluster, name), **deployed_resources(cluster, name)}


def neighbour(cluster: Cluster) -> str:
    """The name of another cluster of the account, which begins with that of the given one."""
    return f"{cluster.name}-eu"


def _about_the_neighbour(
    row: Mapping[str, Any], cluster: Cluster, ours: Mapping[str, Resource], theirs: Mapping[str, Resource]
) -> Iterator[tuple[str, Call]]:
    """Yield what a row becomes if it is about what another cluster has, or gives that cluster something."""
    kind, other = row.get("resource", ""), neighbour(cluster)
    if kind in theirs and ours.get(kind) != theirs[kind]:
        yield from ((f"another cluster's {kind}", call) for call in calls_of(row, cluster, theirs, other))
    tags = row.get("request") == "tags"
    if tags and (kind.startswith("new ") or "Tag" in row["actions"]):
        for call in calls_of(row, cluster, ours, setter=other):
            yield f"another cluster's tag on {kind}", call
    # What is done to a new resource, done to one that exists.
    existing = kind.removeprefix("new ").removesuffix(" without tags")
    if existing != kind:
        keys = {key: value for key, value in row.get("keys", {}).items() if not key.endswith("CreateAction")}
        for call in calls_of({**row, "resource": existing, "keys": keys}, cluster, theirs):
            if "Tag" in call.action or not call.action.partition(":")[2].startswith(("Create", "Run")):
                yield f"another cluster's {existing}, as if it were new", call


def calls_of(
    row: Mapping[str, Any],
    cluster: Cluster,
    found: Mapping[str, Resource],
    name: str = "",
    *,
    setter: str = "",
) -> list[Call]:
    """The calls of a row about the resources of a cluster; none if the cluster has no such resource.

    Args:
        found: the resources, as `all_resources` returns them.
        name: the cluster that the request is about; by default the given one.
        setter: the cluster whose tags the request sets; by default the given one.
    """
    name, setter = name or cluster.name, setter or cluster.name
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
    texts = {"cluster": name, "neighbour": neighbour(cluster), "region": REGION, "domain": _domain(cluster)}
    texts |= {"keys of tags": "", **{noun: other.arn for noun, other in found.items()}}
    values = {**request, **row.get("keys", {})}
    if not {*re.findall(r"\{([^}]+)\}", str([*values.values()]))} <= texts.keys():
        return []
    context = {key.lower(): _filled_in(value, cluster, texts) for key, value in values.items()}
    return [Call(action, resource.arn, {**resource.context, **context}) for action in row["actions"].split()]


def _domain(cluster: Cluster) -> str:
    zones = (topology.public_zone(cluster), topology.private_zone(cluster))
    return next((zone.name for zone in zones if zone and zone.name), "")


def _filled_in(value: Any, cluster: Cluster, texts: Mapping[str, str]) -> list[str]:
    """The values of a key, with texts in place of their names in braces."""
    return [
        re.sub(r"\{([^}]+)\}", lambda match: texts[match[1]], each)
        for item in (value if isinstance(value, list) else [value])
        for each in (cluster.tags if item == "{keys of tags}" else [item])
    ]
