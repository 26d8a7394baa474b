"""What calls of operators, of pipelines and of CloudFormation's service role are about."""

from __future__ import annotations

from account_resources import ACCOUNT, MASTER, REGION, Resource, of, tags_of

from cfngen.cluster.iam.push_roles import created_providers, made_push_roles, push_issuer
from cfngen.cluster.model import Cluster
from cfngen.cluster.network import topology
from cfngen.cluster.network.existing_parts import referenced_parts
from cfngen.cluster.sections.references import StackOutput, StoredParameter, known_id, with_account
from cfngen.permissions.grants import scope_of
from cfngen.permissions.scope import Scope


def deployed_resources(cluster: Cluster, name: str) -> dict[str, Resource]:
    """The resources of a cluster with this name, and what it shares with others."""
    scope = scope_of(cluster, account=ACCOUNT)
    return {
        **_made(cluster, name),
        **_roles(cluster, scope, name),
        **_registry(cluster, name),
        **_new(scope),
        **_left_by_controllers(name),
        **_shared(),
        **(_existing(cluster, scope) if name == cluster.name else {}),
    }


def _made(cluster: Cluster, name: str) -> dict[str, Resource]:
    bucket = f"arn:aws:s3:::cfngen-{ACCOUNT}-{REGION}"
    tags = tags_of(name)
    return {
        "bucket of templates": Resource(bucket),
        "template": Resource(f"{bucket}/{name}/0123.json"),
        "copy of the authorities": Resource(of("secretsmanager", f"secret:cfngen/{name}/authorities-1-AbCdEf")),
        "launch template": Resource(of("ec2", f"launch-template/lt-{name}"), tags_of(name, **MASTER)),
        "load balancer of the API": Resource(of("elasticloadbalancing", f"loadbalancer/net/{name}-api/1"), tags),
        "NAT gateway": Resource(of("ec2", f"natgateway/nat-{name}"), tags),
        "flow log": Resource(of("ec2", f"vpc-flow-log/fl-{name}"), tags),
        "capacity reservation": Resource(of("ec2", f"capacity-reservation/cr-{name}"), tags),
        "distribution": Resource(of("cloudfront", f"distribution/{name}", region=""), tags),
        "origin access control": Resource(of("cloudfront", f"origin-access-control/{name}", region="")),
        "OIDC provider": Resource(of("iam", f"oidc-provider/{_issuer(cluster, name)}", region=""), tags),
    }


def _issuer(cluster: Cluster, name: str) -> str:
    issuer = cluster.service_account_issuer
    if issuer and issuer.url and name == cluster.name:
        return issuer.url.removeprefix("https://")
    if issuer and issuer.discovery == "bucket":
        return f"{name}-secretsstack-1ab-issuerbucket-2cd.s3.{REGION}.amazonaws.com"
    return f"{name}.cloudfront.net"


def _roles(cluster: Cluster, scope: Scope, name: str) -> dict[str, Resource]:
    path, tags = cluster.iam.path, tags_of(name)

    def made(kind: str, end: str) -> str:
        # CloudFormation cuts the name of a long stack in the name of a role.
        stack = name[:24] if kind == "role" and end.startswith("-") else name
        return of("iam", f"{kind}{path}{stack}{end}", region="")

    parts = {
        "role of pods": Resource(made("role", f".{REGION}.shop.web"), tags),
        "new role of pods": Resource(made("role", f".{REGION}.shop.new")),
        "new OIDC provider": Resource(of("iam", f"oidc-provider/{_issuer(cluster, name)}", region="")),
    }
    if list(made_push_roles(cluster)):
        parts["role of who pushes"] = Resource(made("role", "-RegistryStack-1AB-PushWebRole-2CD"), tags)
        parts["new role of who pushes"] = Resource(made("role", "-RegistryStack-1AB-PushNewRole-2CD"))
    if scope.permissions_boundaries:
        parts["permissions boundary"] = Resource(scope.permissions_boundaries[0])
    if scope.makes_roles:
        parts["role of the flow log"] = Resource(made("role", "-VpcStack-1AB-FlowLogRole-2CD"), tags)
    if scope.makes_instance_profiles:
        parts["instance profile"] = Resource(made("instance-profile", "-IamStack-1AB-MasterInstanceProfile-2CD"))
    if scope.makes_instance_profiles and scope.makes_roles:
        parts["role of instances"] = Resource(made("role", "-IamStack-1AB-MasterRole-2CD"), tags)
        parts["new role of instances"] = Resource(made("role", "-IamStack-1AB-NodeRole-2CD"))
        parts["managed policy"] = Resource(made("policy", "-IamStack-1AB-AddonsPolicy-2CD"))
    return parts


def _registry(cluster: Cluster, name: str) -> dict[str, Resource]:
    """Repositories, and the OIDC providers of those who push; an account has one for a URL, whichever cluster's."""
    parts: dict[str, Resource] = {}
    for repository in reversed(cluster.registry.repositories):
        noun = "existing repository" if repository.existing else "repository"
        parts[noun] = Resource(of("ecr", f"repository/{repository.name}{name.removeprefix(cluster.name)}"))
    created = created_providers(cluster)
    for _, push in made_push_roles(cluster):
        provider = of("iam", f"oidc-provider/{push_issuer(push)}", region="")
        if push_issuer(push) in created:
            parts["new OIDC provider of who pushes"] = Resource(provider)
            parts["OIDC provider of who pushes"] = Resource(provider, tags_of(name))
        else:
            parts["existing OIDC provider of who pushes"] = Resource(provider)
    return parts


def _new(scope: Scope) -> dict[str, Resource]:
    """What a call makes, and what it has made and not tagged yet."""
    kinds = {
        "launch template": "launch-template",
        "instance": "instance",
        "NAT gateway": "natgateway",
        "endpoint": "vpc-endpoint",
        "flow log": "vpc-flow-log",
        "capacity reservation": "capacity-reservation",
    }
    vpc = of("ec2", f"vpc/{scope.vpc_id.replace('*', 'vpc-1')}")
    return {
        **{f"new {noun}": Resource(of("ec2", f"{kind}/*")) for noun, kind in kinds.items()},
        **{f"{noun} without tags": Resource(of("ec2", f"{kind}/new-1")) for noun, kind in kinds.items()},
        "interface without tags": Resource(of("ec2", "network-interface/eni-new"), {"ec2:vpc": [vpc]}),
        "new snapshot": Resource(of("ec2", "snapshot/*", account="")),
        "new CA secret": Resource(of("secretsmanager", "secret:CaSecret-new-AbCdEf")),
        "new key of secrets": Resource(of("kms", "key/new")),
        "new load balancer of the API": Resource(of("elasticloadbalancing", f"loadbalancer/net/{scope.cluster}-api/*")),
        "new distribution": Resource(of("cloudfront", "distribution/new", region="")),
    }


def _left_by_controllers(name: str) -> dict[str, Resource]:
    """What no stack has: each found by another tag."""
    owned = {f"aws:resourcetag/kubernetes.io/cluster/{name}": ["owned"]}
    return {
        "volume with the tag kubernetes.io/cluster alone": Resource(of("ec2", f"volume/vol-{name}-pvc"), owned),
        "security group with the tag KubernetesCluster alone": Resource(
            of("ec2", f"security-group/sg-{name}-lb"), {"aws:resourcetag/kubernetescluster": [name]}
        ),
        "load balancer with the controller's tag alone": Resource(
            of("elasticloadbalancing", f"loadbalancer/app/k8s-{name}/1"),
            {"aws:resourcetag/elbv2.k8s.aws/cluster": [name]},
        ),
    }


def _shared() -> dict[str, Resource]:
    return {
        "service role": Resource(of("iam", "role/cfngen-cloudformation", region="")),
        "administrator": Resource(of("iam", "role/administrator", region="")),
        "image parameter": Resource(of("ssm", "parameter/aws/service/ami", account="")),
        "service-linked role for groups": Resource(
            of("iam", "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling", region="")
        ),
        "some hosted zone": Resource("arn:aws:route53:::hostedzone/Z9"),
        "some secret": Resource(of("secretsmanager", "secret:CaSecret-of-nobody-AbCdEf")),
        "interface in another VPC": Resource(
            of("ec2", "network-interface/eni-2"), {"ec2:vpc": [of("ec2", "vpc/vpc-2")]}
        ),
        "route table of another VPC": Resource(of("ec2", "route-table/rtb-2"), {"ec2:vpc": [of("ec2", "vpc/vpc-2")]}),
    }


def _existing(cluster: Cluster, scope: Scope) -> dict[str, Resource]:
    vpc = of("ec2", f"vpc/{scope.vpc_id.replace('*', 'vpc-1')}")
    zones = [zone for zone in (topology.public_zone(cluster), topology.private_zone(cluster)) if zone]
    references = [part.reference for part in referenced_parts(cluster)]
    flow_logs = cluster.network.flow_logs
    named: dict[str, list[str]] = {
        "existing VPC": [vpc] if cluster.network.vpc.id else [],
        # The VPC of a stack gets them back when it is deleted.
        "default DHCP options": [] if cluster.network.vpc.id else [of("ec2", "dhcp-options/dopt-default")],
        "existing subnet": [
            of("ec2", f"subnet/{known_id(subnet.id) or 'subnet-1'}") for subnet in cluster.network.subnets if subnet.id
        ],
        "existing role": [*scope.existing_roles],
        "existing instance profile": [*scope.existing_instance_profiles],
        "existing role of pods": [entry.role for entry in cluster.iam.service_accounts if entry.role],
        "bucket of flow logs": [f"arn:aws:s3:::{flow_logs.bucket}"] if flow_logs and flow_logs.bucket else [],
        "bucket of access logs": [f"arn:aws:s3:::{cluster.logging.bucket}"] if cluster.logging.bucket else [],
        "topic": [with_account(cluster.notifications.topic, ACCOUNT)] if cluster.notifications.topic else [],
        "hosted zone of the API": [
            f"arn:aws:route53:::hostedzone/{known_id(zone.id) or 'Z1'}" for zone in zones if zone.id
        ],
        "new hosted zone of the API": ["arn:aws:route53:::hostedzone/Znew" for zone in zones if zone.name],
        "stack with outputs": [
            of("cloudformation", f"stack/{reference.stack}/1")
            for reference in references
            if isinstance(reference, StackOutput)
        ],
        "stored parameter": [
            of("ssm", f"parameter{reference.name}")
            for reference in references
            if isinstance(reference, StoredParameter)
        ],
    }
    contexts = {"existing subnet": {"ec2:vpc": [vpc]}}
    return {noun: Resource(arns[0], contexts.get(noun, {})) for noun, arns in named.items() if arns}
