"""Checks what else a cluster file names: keys, target groups, zones, buckets, a topic and services for endpoints.

With a key that cannot encrypt the cluster's secrets, a creation fails once the first master writes the certificate
authorities. States and key types: "Key states of AWS KMS keys", AWS KMS Developer Guide; "Secrets Manager supports only
symmetric encryption KMS keys", AWS Secrets Manager User Guide, "Secret encryption and decryption".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from cfngen.cluster.iam.existing_roles import existing_roles
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import load_balancer_name, origin_access_control_name
from cfngen.cluster.naming.network_ids import ZoneId, zone_id
from cfngen.cluster.network.endpoints import (
    endpoint_zones,
    interface_endpoints,
    required_services,
    service_name,
    settings_of,
)
from cfngen.cluster.network.topology import has_internal_load_balancer, has_public_load_balancer, private_zone
from cfngen.cluster.paths import dotted
from cfngen.cluster.sections.references import with_account
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.load_balancers import find_load_balancer_arn, find_target_group
from cfngen.deploy.aws.network import EndpointServiceView, list_endpoint_services
from cfngen.deploy.aws.services import (
    find_hosted_zone,
    find_key,
    find_origin_access_control,
    has_object_lock,
    has_record,
    is_bucket_missing,
    is_topic_missing,
    list_private_zones,
    read_key_policy,
)
from cfngen.deploy.aws.stacks import StackTree
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.preflight.existing.roles import as_list, statements_that_allow
from cfngen.deploy.preflight.findings import Finding, judge, refusal
from cfngen.text import join_and

_KEY, _BACKUP_KEY = "secrets.kmsKey", "etcd.backups.kmsKey"
_HINT = 'docs/operate/security.md shows the key policy ("Your own key").'


def find_key_problems(account: Account, cluster: Cluster) -> Iterator[Finding]:
    """Yield a problem for each key of secrets and snapshots that does not exist or cannot encrypt them."""
    for path, arn, user in (
        (_KEY, cluster.secrets.kms_key, "Secrets Manager"),
        (_BACKUP_KEY, cluster.etcd.backups.kms_key, "S3"),
    ):
        if arn:
            arn = with_account(arn, account.id)
            yield from judge(f"the key {arn}", path, partial(_find_key_problem, account, arn, user))


def _find_key_problem(account: Account, arn: str, user: str) -> str:
    """Return why a key cannot encrypt what a service keeps; empty if it can."""
    key = find_key(account, arn)
    if key is None:
        return f"there is no key {arn}; correct the ARN"
    if key.is_managed_by_aws:
        return f"{arn} is managed by AWS; use a customer managed key, or remove the setting"
    if key.state == "PendingDeletion":
        return f"{arn} is going to be deleted; cancel that (aws kms cancel-key-deletion), or use another key"
    if key.state != "Enabled":
        return f"{arn} is in the state {key.state}; enable it, or use another key"
    if not key.is_symmetric_for_encryption:
        return (
            f"{arn} is no symmetric key for encryption ({key.spec}, {key.usage}), which {user} needs; use another key"
        )
    return ""


def notices(account: Account, cluster: Cluster) -> Iterator[Notice]:
    """Yield a notice if the key's policy is not known to let the instances' roles use the key."""
    arn = cluster.secrets.kms_key
    if not arn:
        return
    try:
        with translate_aws_errors():
            policy = read_key_policy(account, with_account(arn, account.id))
    except AwsError as error:
        yield Notice(f"{_KEY}: whether the key's policy lets instances use it is not known: {error}", _HINT)
        return
    principals = _principals_that_may_decrypt(policy)
    if principals & {"*", account.id, f"arn:{account.partition}:iam::{account.id}:root"}:
        return
    roles = {existing.role for _, existing in existing_roles(cluster)}
    if roles and roles <= principals:
        return
    yield Notice(
        f"{_KEY}: the key's policy neither leaves access to the IAM policies of account {account.id} nor names the "
        "roles of masters and nodes, which must be allowed kms:Decrypt, and masters kms:GenerateDataKey",
        _HINT,
    )


def _principals_that_may_decrypt(policy: AwsObject) -> set[str]:
    """Return the AWS principals that a key policy lets decrypt; conditions are taken for met."""
    principals: set[str] = set()
    for statement in statements_that_allow(policy, "kms:decrypt"):
        named = statement.get("Principal", {})
        principals.update(as_list(named.get("AWS", ()) if isinstance(named, Mapping) else named))
    return principals


def find_target_group_problems(account: Account, cluster: Cluster, vpc_id: str) -> Iterator[Finding]:
    """Yield a problem for each target group with which Auto Scaling could not register nodes."""
    for key, arn in _target_groups(cluster):
        group = find_target_group(account, arn)
        if group is None:
            yield refusal(key, f"there is no target group {arn} in {account.region}")
        elif group.target_type != "instance":
            yield refusal(
                key, f"{arn} takes targets of the type {group.target_type}; Auto Scaling registers instances only"
            )
        elif group.vpc_id != vpc_id:
            yield refusal(key, f"{arn} belongs to {group.vpc_id}, and the cluster is in {vpc_id}")


def find_load_balancer_problems(account: Account, cluster: Cluster, deployed: StackTree | None) -> Iterator[Finding]:
    """Yield a problem for each load balancer of the API whose name another one has: names are unique in a region."""
    for is_wanted, is_public in (
        (has_public_load_balancer(cluster), True),
        (has_internal_load_balancer(cluster), False),
    ):
        name = load_balancer_name(cluster, is_public=is_public)
        arn = find_load_balancer_arn(account, name) if is_wanted else ""
        if arn and not _is_own(arn, deployed):
            command = f"aws elbv2 delete-load-balancer --region {account.region} --load-balancer-arn {arn}"
            yield _taken_name(account, f"a load balancer {name} in {account.region}", command)


def find_access_control_problems(account: Account, cluster: Cluster, deployed: StackTree | None) -> Iterator[Finding]:
    """Yield a problem if another origin access control has the name of the issuer's: names are unique in an account."""
    issuer = cluster.service_account_issuer
    if issuer is None or issuer.discovery != "cloudFront":
        return
    name = origin_access_control_name(cluster)
    id_ = find_origin_access_control(account, name)
    if id_ and not _is_own(id_, deployed):
        tag = f"aws cloudfront get-origin-access-control --id {id_} --query ETag --output text"
        command = f'aws cloudfront delete-origin-access-control --id {id_} --if-match "$({tag})"'
        yield _taken_name(account, f"an origin access control {name} ({id_})", command)


def _is_own(physical_id: str, deployed: StackTree | None) -> bool:
    return deployed is not None and physical_id in deployed.physical_ids.values()


def _taken_name(account: Account, what: str, command: str) -> Finding:
    """Return that something of the account has a name that follows from the cluster's, and how to delete it."""
    return refusal(
        "name",
        f"account {account.id} has {what} already, which is not this stack's; delete it with `{command}` if nothing "
        "uses it, or choose another name of the cluster",
    )


def find_older_than_vpc(cluster: Cluster) -> Iterator[Finding]:
    """Yield a problem for each target group in the cluster file, since the stack has yet to create the VPC."""
    for key, arn in _target_groups(cluster):
        yield refusal(
            key,
            f"{arn} belongs to another VPC than the one that the stack will create; remove it, deploy, and then "
            "add a target group of the new VPC, or set network.vpc.id to an existing VPC",
        )


def _target_groups(cluster: Cluster) -> Iterator[tuple[str, str]]:
    for index, group in enumerate(cluster.node_groups):
        for position, arn in enumerate(group.target_groups):
            yield dotted(("nodeGroups", index, "targetGroups", position)), arn


def find_zone_problems(account: Account, cluster: Cluster) -> Iterator[Finding]:
    """Yield a problem for each existing zone that does not exist, is of the other kind, or is of another domain.

    Route 53 would refuse the record in the middle of an operation, or clients would not find the API: a name in a
    public zone leads to the public endpoint, one in a private zone leads clients in its VPCs to the internal one.
    """
    dns = cluster.api.dns
    if dns is None:
        return
    for key, zone, is_private in (("publicZone", dns.public_zone, False), ("privateZone", dns.private_zone, True)):
        if zone and zone.id:
            find_problem = partial(_find_zone_problem, account, dns.name, zone.id, is_private=is_private)
            yield from judge(f"the hosted zone {zone.id}", f"api.dns.{key}.id", find_problem)


def _find_zone_problem(account: Account, name: str, zone_id: str, *, is_private: bool) -> str:
    """Return what is wrong with an existing zone for the API's name; empty if nothing is.

    Args:
        name: the API's name.
        is_private: whether it should be a private zone.
    """
    zone = find_hosted_zone(account, zone_id)
    if zone is None:
        return f"there is no hosted zone {zone_id} in account {account.id}"
    if zone.is_private is not is_private:
        kind, right_key = ("public", "publicZone") if is_private else ("private", "privateZone")
        return f"{zone_id} ({zone.domain}) is a {kind} zone; use a zone of the other kind, or the key {right_key}"
    if name != zone.domain and not name.endswith(f".{zone.domain}"):
        return f"{zone_id} is the zone of {zone.domain}, and {name} is not in it"
    return ""


def find_record_problems(account: Account, cluster: Cluster, deployed: StackTree | None) -> Iterator[Finding]:
    """Yield a problem for each existing zone that has a record of the API's name, which Route 53 would not replace."""
    dns = cluster.api.dns
    if dns is None:
        return
    for zone, logical_id in ((dns.public_zone, "ApiPublicRecord"), (dns.private_zone, "ApiPrivateRecord")):
        if zone is None or not zone.id or not has_record(account, zone.id, dns.name, "A"):
            continue
        # The physical id of a record is its name.
        if deployed is None or deployed.physical_ids.get(logical_id) != dns.name:
            yield refusal(
                "api.dns.name",
                f"{zone.id} has a record {dns.name} of the type A already, which is not this stack's; delete the "
                "record if nothing uses it, or choose another name",
            )


def find_private_zone_problems(
    account: Account, cluster: Cluster, deployed: StackTree | None, vpc_id: str
) -> Iterator[Finding]:
    """Yield a problem if the VPC has a private zone of the new one's name: Route 53 refuses a second one.

    "A hosted zone with the specified name already exists and is already associated with the Amazon VPC that you
    specified" (ConflictingDomainExists of CreateHostedZone, Amazon Route 53 API Reference).
    """
    wanted = private_zone(cluster)
    if wanted is None or not wanted.name:
        return
    for zone in list_private_zones(account, vpc_id):
        if zone.domain == wanted.name and not _is_own(zone.id, deployed):
            where, remedy = zone.id, f"enter `privateZone: {{id: {zone.id}}}`"
            if zone.owner != account.id:
                where, remedy = f"{zone.id} of {zone.owner}", f"have it dissociated from {vpc_id}"
            yield refusal(
                "api.dns.privateZone.name",
                f"{vpc_id} has a private zone {zone.domain} already ({where}), which is not this stack's; {remedy}, or "
                "give the new zone another name",
            )


def find_bucket_problems(account: Account, cluster: Cluster) -> Iterator[Finding]:
    """Yield a problem if there is no such bucket. A bucket that the caller may not look at exists."""
    flow_logs, issuer, backups = cluster.network.flow_logs, cluster.service_account_issuer, cluster.etcd.backups
    log_bucket = cluster.logging.bucket
    if log_bucket and is_bucket_missing(account, log_bucket):
        yield refusal(
            "logging.bucket",
            f"there is no bucket {log_bucket}; create it in {cluster.region} with a policy that lets S3 write access "
            "logs, or enter another one",
        )
    if flow_logs and flow_logs.bucket and is_bucket_missing(account, flow_logs.bucket):
        yield refusal(
            "network.flowLogs.bucket",
            f"there is no bucket {flow_logs.bucket}; create it with a policy that lets "
            "AWS deliver logs, or enter another one",
        )
    if issuer and issuer.bucket and is_bucket_missing(account, issuer.bucket):
        yield refusal(
            "serviceAccountIssuer.bucket",
            f"there is no bucket {issuer.bucket}; enter the bucket that the web server "
            "reads, or remove the key and publish the documents yourself",
        )
    if backups.object_lock and backups.bucket:
        what = f"whether the bucket {backups.bucket} has S3 Object Lock"
        yield from judge(what, "etcd.backups.bucket", partial(_find_lock_problem, account, backups.bucket))


def _find_lock_problem(account: Account, bucket: str) -> str:
    """Return that snapshots cannot be locked in the user's own bucket; empty if they can."""
    if has_object_lock(account, bucket):
        return ""
    command = f"aws s3api put-object-lock-configuration --bucket {bucket} --region {account.region}"
    return (
        f"the bucket {bucket} has no S3 Object Lock, so S3 would refuse every snapshot; turn it on for good with "
        f"`{command} --object-lock-configuration ObjectLockEnabled=Enabled`, which asks for a versioned bucket, or "
        "remove etcd.backups.objectLock"
    )


def find_topic_problems(account: Account, cluster: Cluster) -> Iterator[Finding]:
    """Yield a problem if there is no such topic: EC2 Auto Scaling would refuse to create the first group."""
    topic = with_account(cluster.notifications.topic or "", account.id)
    if topic and is_topic_missing(account, topic):
        yield refusal("notifications.topic", f"there is no topic {topic}; create it, or correct the ARN")


def find_service_problems(account: Account, cluster: Cluster, values: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a problem for each interface endpoint that EC2 would refuse, as its service does not have what it asks for.

    "Private DNS can't be enabled because the service … does not provide a private DNS name", "The VPC endpoint service
    … does not support the availability zone of the subnet" (CreateVpcEndpoint).
    """
    created = interface_endpoints(cluster)
    if not created:
        return
    services = list_endpoint_services(account)
    required = [endpoint.service for endpoint in required_services(cluster)]
    additional = cluster.network.endpoints.additional
    for service, reason in created:
        if is_required := service in required:
            key = "network.endpoints.create"
            remedy = f"use NAT gateways (network.nat), or set it to false and give the VPC another way to it ({reason})"
        else:
            key, remedy = f"network.endpoints.additional[{additional.index(service)}]", "correct the name, or remove it"
        name = service_name(service, cluster.region)
        types = {view.type: view for view in services if view.name == name}
        view = types.get("Interface")
        if not types:
            missing = f"there is no service {name} in {account.region}, or it does not admit account {account.id}"
            yield refusal(key, f"{missing}; {remedy}")
        elif view is None:
            yield refusal(key, f"{name} has endpoints of the type {join_and(sorted(types))} only; {remedy}")
        elif text := _why_endpoint_is_refused(cluster, values, view, service, remedy if is_required else ""):
            yield refusal(key, f"{name} {text}")


def _why_endpoint_is_refused(
    cluster: Cluster, values: Mapping[str, str], view: EndpointServiceView, service: str, remedy_if_required: str
) -> str:
    """Return what a service lacks for the endpoint that the cluster file asks for, and what to do; empty if nothing."""
    settings = settings_of(cluster, service)
    zones = {zone: values.get(str(ZoneId(zone_id(zone))), zone) for zone in endpoint_zones(cluster, service)}
    served = [zone for zone, actual in zones.items() if not view.zones or actual in view.zones]
    missing = [zone for zone in zones if zone not in served]
    lacks_name = settings.private_dns and not view.has_private_dns
    texts = ["has no private DNS name"] if lacks_name else []
    texts += [f"is not in {join_and(missing)}"] if missing else []
    if not texts:
        return ""
    if not served or (lacks_name and remedy_if_required):
        available = f" (it is in {join_and(sorted(view.zones))})" if missing else ""
        return f"{join_and(texts)}{available}; {remedy_if_required or 'remove it'}"
    entry = [f"service: {service}"]
    entry += ["privateDns: false"] if not (settings.private_dns and view.has_private_dns) else []
    entry += [f"zones: [{', '.join(served)}]"] if missing or settings.zones else []
    return f"{join_and(texts)}; network.endpoints.services needs the entry {{{', '.join(entry)}}}"
