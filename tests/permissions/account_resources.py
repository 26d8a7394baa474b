"""What calls of instances and pods are about: the resources of a cluster, and of a neighbour in the same VPC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cfngen.cluster.iam.service_accounts import document_keys
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import existing_group, groups_of_instances
from cfngen.cluster.sections.references import with_account
from cfngen.permissions.grants import scope_of

REGION, ACCOUNT = "us-west-2", "123456789012"
HERE = f"{REGION}:{ACCOUNT}"
Context = Mapping[str, list[str]]


class Resource(NamedTuple):
    """A resource, and what requests about it say of it; keys of conditions are in lower case."""

    arn: str
    context: Mapping[str, list[str]] = {}


def resources(cluster: Cluster, name: str) -> dict[str, Resource]:
    """The resources of a cluster with this name, in the account and VPC of the given one; what exists, only its own."""
    return {
        **_instances_and_network(cluster, name),
        **_load_balancers(name),
        **_storage(cluster, name),
        **_stacks_and_groups(name),
        **_of_the_account(cluster, name),
    }


def of(service: str, resource: str, region: str = REGION, account: str = ACCOUNT) -> str:
    """The ARN of a resource of a service."""
    return f"arn:aws:{service}:{region}:{account}:{resource}"


def _named(arn: str | None) -> str:
    """An ARN of the cluster file, in the account; empty without one."""
    return with_account(arn or "", ACCOUNT)


def tags_of(name: str, **others: str) -> dict[str, list[str]]:
    """What requests about a resource with the tags of a cluster say of it."""
    tags = {"KubernetesCluster": name, f"kubernetes.io/cluster/{name}": "owned", **others}
    return {f"aws:resourcetag/{key.lower()}": [value] for key, value in tags.items()}


MASTER = {"k8s.io/role/master": "1"}


def _instances_and_network(cluster: Cluster, name: str) -> dict[str, Resource]:
    tags, of_master = tags_of(name), tags_of(name, **MASTER)
    scope = scope_of(cluster, account=ACCOUNT)
    vpc = of("ec2", f"vpc/{scope.vpc_id.replace('*', 'vpc-1')}")
    in_vpc = {"ec2:vpc": [vpc]}
    parts = {
        "instance": Resource(of("ec2", f"instance/i-{name}"), tags),
        "instance of a master": Resource(of("ec2", f"instance/i-{name}-master"), of_master),
        "interface": Resource(of("ec2", f"network-interface/eni-{name}"), {**tags, **in_vpc}),
        "interface of a master": Resource(of("ec2", f"network-interface/eni-{name}-master"), {**of_master, **in_vpc}),
        "new interface": Resource(of("ec2", "network-interface/*")),
        "security group": Resource(of("ec2", f"security-group/sg-{name}"), {**tags, **in_vpc}),
        "security group of masters": Resource(of("ec2", f"security-group/sg-{name}-masters"), {**of_master, **in_vpc}),
        "security group of nodes": Resource(
            of("ec2", f"security-group/sg-{name}-nodes"), {**tags_of(name, **{"k8s.io/role/node": "1"}), **in_vpc}
        ),
        "new security group": Resource(of("ec2", "security-group/*")),
        "route table": Resource(of("ec2", f"route-table/rtb-{name}"), {**tags, **in_vpc}),
        "subnet": Resource(of("ec2", "subnet/subnet-1"), in_vpc),
        "subnet of another VPC": Resource(of("ec2", "subnet/subnet-2"), {"ec2:vpc": [of("ec2", "vpc/vpc-2")]}),
        "VPC": Resource(vpc, {} if cluster.network.vpc.id else tags),
    }
    if not existing_group(cluster, "Node"):
        of_group = {"aws:resourcetag/kubernetescluster": [name], "aws:resourcetag/k8s.io/role/node": ["1"]}
        parts["security group of a node group"] = Resource(
            of("ec2", f"security-group/sg-{name}-nodes-of-a-group"), {**of_group, **in_vpc}
        )
    return {**parts, **(_existing_parts(cluster, in_vpc) if name == cluster.name else {})}


def _existing_parts(cluster: Cluster, in_vpc: Context) -> dict[str, Resource]:
    """What the cluster file names, in place of what cfngen creates; such parts need not have the cluster's tags."""
    scope = scope_of(cluster, account=ACCOUNT)
    parts: dict[str, Resource] = {}
    if any(subnet.id for subnet in cluster.network.subnets):
        parts["route table"] = Resource(of("ec2", f"route-table/{scope.route_table_id.replace('*', 'rtb-1')}"), in_vpc)
    for instances, first in (("masters", cluster.network.security_groups.masters),
                             ("nodes", cluster.network.security_groups.nodes)):  # fmt: skip
        ids = [id_ for id_ in groups_of_instances(cluster, instances) if id_.startswith("sg-")]
        lets_in = {f"aws:resourcetag/kubernetes.io/cluster/{cluster.name}": ["owned"]}
        if first:
            parts[f"security group of {instances}"] = Resource(
                of("ec2", f"security-group/{first}"), {**in_vpc, **(lets_in if instances == "nodes" else {})}
            )
            parts[f"security group of {instances} without the tag"] = Resource(
                of("ec2", f"security-group/{first}"), in_vpc
            )
        if further := [id_ for id_ in ids if id_ != first]:
            parts[f"further security group of {instances}"] = Resource(
                of("ec2", f"security-group/{further[0]}"), in_vpc
            )
    return parts


def _load_balancers(name: str) -> dict[str, Resource]:
    kinds = {
        "load balancer": f"loadbalancer/app/{name}/1",
        "listener": f"listener/app/{name}/1/2",
        "listener rule": f"listener-rule/app/{name}/1/2/3",
        "target group": f"targetgroup/{name}/1",
        "classic load balancer": f"loadbalancer/{name}",
    }
    return {
        **{kind: Resource(of("elasticloadbalancing", resource), tags_of(name)) for kind, resource in kinds.items()},
        **{
            f"new {kind}": Resource(of("elasticloadbalancing", resource.partition("/")[0] + "/new/1"))
            for kind, resource in kinds.items()
        },
    }


def _storage(cluster: Cluster, name: str) -> dict[str, Resource]:
    tags = tags_of(name)
    snapshots = _bucket(cluster.etcd.backups.bucket, name, "backup")
    issuer = cluster.service_account_issuer
    documents = _bucket(issuer.bucket if issuer else None, name, "issuer")
    parts = {
        "volume of a master": Resource(of("ec2", f"volume/vol-{name}-master"), tags_of(name, **MASTER)),
        "volume of a claim": Resource(
            of("ec2", f"volume/vol-{name}"), tags_of(name, **{"ebs.csi.aws.com/cluster": "true"})
        ),
        "new volume": Resource(of("ec2", "volume/*")),
        "CA secret": Resource(of("secretsmanager", f"secret:CaSecret-{name}-AbCdEf"), tags),
        "join secret": Resource(of("secretsmanager", f"secret:JoinSecret-{name}-AbCdEf"), tags),
        "some key": Resource(of("kms", "key/some")),
        "key of secrets": Resource(of("kms", f"key/secrets-{name}"), tags),
        "key of masters' volumes": Resource(_named(cluster.control_plane.volume.kms_key) or of("kms", "key/default")),
        "key of snapshots": Resource(_named(cluster.etcd.backups.kms_key) or of("kms", "key/of-bucket")),
        "bucket of snapshots": Resource(snapshots),
        "hourly snapshot": Resource(f"{snapshots}/{name}/etcd/hourly/1.db"),
        "daily snapshot": Resource(f"{snapshots}/{name}/etcd/daily/1.db"),
        "request to restore": Resource(f"{snapshots}/{name}/etcd/restore.json"),
        "request for a snapshot": Resource(f"{snapshots}/{name}/etcd/backup-request.json"),
    }
    if cluster.secrets.kms_key:
        parts["key of secrets"] = Resource(_named(cluster.secrets.kms_key))
    if cluster.certificate_authority.secret:
        parts["secret of the user's authority"] = Resource(cluster.certificate_authority.secret)
    if issuer and (issuer.bucket or issuer.discovery != "url"):
        parts["bucket of an issuer"] = Resource(documents)
        for kind, key in zip(("discovery document", "document of keys"), document_keys(issuer), strict=True):
            parts[kind] = Resource(f"{documents}/{key}")
    return parts


def _bucket(own: str | None, name: str, kind: str) -> str:
    return f"arn:aws:s3:::{own or f'{name}-secretsstack-1ab-{kind}bucket-2cd'}"


def _stacks_and_groups(name: str) -> dict[str, Resource]:
    group = "autoScalingGroup:1:autoScalingGroupName"
    scaled = {"k8s.io/cluster-autoscaler/enabled": "true"}
    return {
        "root stack": Resource(of("cloudformation", f"stack/{name}/1-2")),
        "stack of masters": Resource(of("cloudformation", f"stack/{name}-MasterStack-1AB/1-2")),
        "stack of nodes": Resource(of("cloudformation", f"stack/{name}-NodeGroupNodesStack-1AB/1-2")),
        "Auto Scaling group": Resource(
            of("autoscaling", f"{group}/{name}-NodeGroupNodes-1AB"), tags_of(name, **scaled)
        ),
        "Auto Scaling group of a master": Resource(
            of("autoscaling", f"{group}/{name}-MasterA-1AB"), tags_of(name, **MASTER)
        ),
        "log group": Resource(of("logs", f"log-group:{name}-VpcStack-1AB-FlowLogGroup-2CD:*")),
    }


def _of_the_account(cluster: Cluster, name: str) -> dict[str, Resource]:
    """What is no cluster's, or whose."""
    linked = "role/aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing"
    zones = {"external-dns": cluster.addons.external_dns.zones, "cert-manager": cluster.addons.cert_manager.zones}
    return {
        "service-linked role for load balancers": Resource(of("iam", linked, region="")),
        "certificate": Resource(of("acm", "certificate/1")),
        "server certificate": Resource(of("iam", "server-certificate/a", region="")),
        "user pool": Resource(of("cognito-idp", "userpool/a")),
        "shared repository of images": Resource(of("ecr", "repository/a", "eu-west-1", "210987654321")),
        "repository of AWS's add-ons": Resource(of("ecr", "repository/amazon-k8s-cni", "us-west-2", "602401143452")),
        "change of records": Resource("arn:aws:route53:::change/C1"),
        **{
            f"hosted zone of {component}": Resource(
                f"arn:aws:route53:::hostedzone/{ids[0] if ids and name == cluster.name else f'Z{name}'}"
            )
            for component, ids in zones.items()
        },
    }
