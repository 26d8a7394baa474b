"""No update exchanges what a cluster stands on: every key of the cluster file is changed here, and either is refused or
leaves VPC, subnets, load balancer, interfaces and volumes where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

import pytest
from cloud import Cloud
from clusters import inventory
from deployments import Operator, groups

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.base import Model
from cfngen.deploy.operations.deployment.preparation import DeploymentRequest
from cfngen.deploy.preflight import immutable_settings
from cfngen.deploy.preflight.immutable_settings import ImmutableSettingError, setting_impacts
from cfngen.sandbox.cloudformation import property_schemas
from cfngen.templates import generate

pytestmark = pytest.mark.drill

ONE = {"name": "one", "nodeGroups": groups("general")}
ALLOWED = {"allowedCidrs": ["203.0.113.0/24"]}
SUBNETS = [{"zone": f"us-west-2{zone}"} for zone in "abc"]
THREE = {"network": {"subnets": SUBNETS}, "controlPlane": {"count": 3}, "api": ALLOWED}
EXISTING = {
    "network": {
        "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16"},
        "subnets": [{"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "10.0.0.0/24"}],
        "routeTable": "rtb-0123456789abcdef0",
        "serviceCidr": "10.96.0.0/16",
    },
    "api": ALLOWED,
}
NEW_SUBNETS = {
    "network": {
        **EXISTING["network"],
        "subnets": [{"zone": "us-west-2a", "cidr": "10.0.0.0/24"}],
        "routeTable": None,
        "internetGateway": "igw-0123456789abcdef0",
    },
    "api": ALLOWED,
}
PRIVATE = {
    "network": {"topology": "private", "plugin": "cilium", "nat": "perZone", "subnets": SUBNETS},
    "api": ALLOWED,
}
PRIVATE_IN_EXISTING = {
    "network": {
        **NEW_SUBNETS["network"],
        "topology": "private",
        "plugin": "cilium",
        "subnets": [{"zone": "us-west-2a", "cidr": "10.0.0.0/24", "public": {"cidr": "10.0.9.0/24"}}],
    },
    "api": ALLOWED,
}


def with_public_subnet(**keys: str) -> Mapping[str, Any]:
    [subnet] = PRIVATE_IN_EXISTING["network"]["subnets"]
    gateway = None if "id" in keys else "igw-0123456789abcdef0"  # only of subnets that are created
    return {"network": {"subnets": [{**subnet, "public": keys}], "internetGateway": gateway}}


KEY = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
SECRET = "arn:aws:secretsmanager:us-west-2:123456789012:secret:ca-AbCdEf"

Change = tuple[Mapping[str, Any], Mapping[str, Any]]  # a cluster file, and what of it changes
WITH_ISSUER = {**ONE, "serviceAccountIssuer": {"discovery": "cloudFront"}}
REFUSED: Mapping[str, tuple[Change, ...]] = {
    "network.vpc.cidr": (
        (ONE, {"network": {"vpc": {"cidr": "172.21.0.0/16"}}}),
        (THREE, {"network": {"vpc": {"cidr": "172.21.0.0/16"}}}),
    ),
    "network.vpc.id": (
        (ONE, EXISTING),
        (EXISTING, ONE),
        (EXISTING, {"network": {"vpc": {"id": "vpc-0123456789abcdef1"}}}),
    ),
    "network.subnets.cidr": (
        (ONE, {"network": {"subnets": [{"zone": "us-west-2a", "cidr": "172.20.7.0/24"}]}}),
        (THREE, {"network": {"subnets": [*SUBNETS[:2], {"zone": "us-west-2c", "cidr": "172.20.9.0/24"}]}}),
    ),
    "network.subnets.id": (
        (NEW_SUBNETS, EXISTING),
        (EXISTING, NEW_SUBNETS),
        (EXISTING, {"network": {"subnets": [{**EXISTING["network"]["subnets"][0], "id": "subnet-0123456789abcdef1"}]}}),
    ),
    "network.subnets.zone": ((ONE, {"network": {"subnets": [{"zone": "us-west-2b", "cidr": "172.20.0.0/24"}]}}),),
    "network.topology": (
        (ONE, {"network": {"topology": "private"}}),
        (THREE, {"network": {"topology": "private"}}),
        (PRIVATE, {"network": {"topology": "public", "nat": None}}),
    ),
    # The ranges of subnets follow from their sizes.
    "network.subnetSizes.instances": ((ONE, {"network": {"subnetSizes": {"instances": 25}}}),),
    "network.subnetSizes.public": ((PRIVATE, {"network": {"subnetSizes": {"public": 27}}}),),
    "network.subnets.public.cidr": ((PRIVATE_IN_EXISTING, with_public_subnet(cidr="10.0.8.0/24")),),
    "network.subnets.public.id": ((PRIVATE_IN_EXISTING, with_public_subnet(id="subnet-0123456789abcdef1")),),
    "network.plugin": ((ONE, {"network": {"plugin": "cilium"}}),),
    "network.podCidr": ((ONE, {"network": {"podCidr": "10.200.0.0/16"}}),),
    "network.serviceCidr": ((ONE, {"network": {"serviceCidr": "10.96.0.0/16"}}),),
    # The tenth address of the services' range, always.
    "network.dnsServiceIp": ((ONE, {"network": {"serviceCidr": "10.96.0.0/16"}}),),
    "network.dnsDomain": ((ONE, {"network": {"dnsDomain": "k8s.example"}}),),
    "api.port": ((THREE, {"api": {"port": 6443, **ALLOWED}}),),
    "controlPlane.volume.kmsKey": ((ONE, {"controlPlane": {"volume": {"kmsKey": KEY}}}),),
    "iam.path": ((ONE, {"iam": {"path": "/kubernetes/"}}),),
    "secrets.kmsKey": ((ONE, {"secrets": {"kmsKey": KEY}}),),
    "certificateAuthority.secret": ((ONE, {"certificateAuthority": {"secret": SECRET}}),),
    # In one step: another issuer comes after the cluster has gone without one.
    "serviceAccountIssuer.discovery": ((WITH_ISSUER, {"serviceAccountIssuer": {"discovery": "bucket"}}),),
    "serviceAccountIssuer.url": (
        (WITH_ISSUER, {"serviceAccountIssuer": {"discovery": "url", "url": "https://tokens.example.com"}}),
    ),
    "kubernetesVersion": ((ONE, {"kubernetesVersion": "1.35"}),),
}
# Another stack, or another account's region: a deployment finds nothing to update there.
ANOTHER_CLUSTER = {"name", "region"}
# Asked for with the cluster's name, since the plan calls them dangerous: they exchange an address, and no data.
DANGEROUS: Mapping[str, tuple[Change, ...]] = {
    "api.public": (),
    "api.elasticIp.allocationId": (),
    "api.elasticIp.address": (),
    # The addresses under which others see instances.
    "network.nat": (
        (PRIVATE, {"network": {"nat": "single"}}),
        (PRIVATE, {"network": {"nat": "none"}, "assets": {"mirror": "https://m.example.com"}}),
    ),
    "controlPlane.addresses": ((ONE, {"controlPlane": {"addresses": ["172.20.0.10"]}}),),
    "controlPlane.count": ((ONE, {"controlPlane": {"count": 3}}),),
}
POLICY = "arn:aws:iam::123456789012:policy/x"
ROLE = {"role": "arn:aws:iam::123456789012:role/x"}
GROUP = "sg-0123456789abcdef0"
INSTANCES: Mapping[str, Any] = {
    "instanceType": "m7i.large", "image.distribution": "debian-12", "image.id": "ami-0123456789abcdef0",
    "image.ssmParameter": "/own/image", "rootVolume.size": 64, "rootVolume.type": "gp2", "rootVolume.iops": 4000,
    "rootVolume.throughput": 200, "rootVolume.kmsKey": KEY, "additionalSecurityGroups": [GROUP],
    "policyStatements": [{"actions": ["s3:GetObject"], "resources": ["*"]}],
    "additionalPolicies": [POLICY], "creationTimeout": 30, "kubeletConfiguration": {"maxPods": 50},
    "containerd.registryMirrors": {"docker.io": ["https://m.example.com"]}, "containerd.snapshotter": "native",
    "containerd.configuration": {"debug": {"level": "info"}}, "instanceStorage": "none",
    "files": [{"path": "/etc/x", "content": "x", "mode": "0600"}],
    "units": [{"name": "x.service", "content": "x", "enable": False}],
    "preBootCommands": ["true"], "postBootCommands": ["true"], "cloudConfig": {"timezone": "UTC"},
}  # fmt: skip
FREE: Mapping[str, Any] = {
    "bastion": ALLOWED, "iam.masters": ROLE, "iam.nodes": ROLE, "network.tagExisting": True,
    "network.flowLogs": {"destination": "s3", "bucket": "records"},
    # In several updates, each of which goes to the next state: `cfngen.cluster.iam.issuer_stages`.
    "serviceAccountIssuer": {},
    "network.securityGroups": {"masters": GROUP, "nodes": GROUP},
    "network.vpc.additionalCidrs": ["100.80.0.0/16"],
    "network.proxy": {"httpProxy": "http://192.168.7.1:3128", "httpsProxy": "http://192.168.7.1:3128"},
    "network.routes": [{"destination": "203.0.113.0/24", "transitGateway": "tgw-0123456789abcdef0"}],
    "api.internal": True, "api.dns": {"name": "api.example.com", "publicZone": {"id": "Z0123456789ABCDEFGHIJ"}},
    "network.endpoints.create": False, "network.endpoints.additional": ["kms"],
    "network.endpoints.services": [{"service": "ec2", "zones": ["us-west-2a"]}],
    "network.vpc.name": "other", "network.dhcpOptions": "default", "network.nonMasqueradeCidr": "10.0.0.0/9",
    "api.allowedCidrs": ["198.51.100.0/24"],
    "api.allowedPrefixLists": [{"id": "pl-00000001", "maxEntries": 9}],
    "ssh.allowedPrefixLists": [{"id": "pl-00000001", "maxEntries": 9}],
    "network.quotas.rulesPerSecurityGroup": 100, "network.quotas.securityGroupsPerInterface": 6,
    "api.additionalNames": ["api.example.com"], "ssh.keyName": "key",
    "ssh.publicKey": "ssh-ed25519 AAAA", "ssh.allowedCidrs": ["198.51.100.0/24"], "ssh.sessionManager": False,
    "image.distribution": "debian-13", "image.id": "ami-0123456789abcdef0", "image.ssmParameter": "/own/image",
    "controlPlane.capacityReservation": True,
    "controlPlane.auditLog.enabled": False, "controlPlane.auditLog.maxAge": 7, "controlPlane.auditLog.maxBackups": 3,
    "controlPlane.auditLog.maxSize": 50,
    "controlPlane.auditLog.policy": {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]},
    "controlPlane.volume.size": 40, "controlPlane.volume.type": "gp2", "controlPlane.volume.iops": 4000,
    "controlPlane.volume.throughput": 200, "etcd.backups.enabled": False, "etcd.backups.interval": 30,
    "etcd.backups.hourlyDays": 2, "etcd.backups.dailyDays": 9, "etcd.backups.bucket": "own-bucket",
    "etcd.backups.kmsKey": KEY, "etcd.backups.objectLock": {"mode": "compliance", "days": 3},
    "logging.bucket": "access-logs",
    "notifications.topic": "arn:aws:sns:us-west-2:123456789012:scaling",
    "iam.permissionsBoundary": POLICY, "assets.mirror": "https://m.example.com", "tags": {"team": "x"},
    **{f"controlPlane.{key}": value for key, value in INSTANCES.items()},
    **{f"nodeGroups.{key}": value for key, value in INSTANCES.items()},
    "nodeGroups.name": "other", "nodeGroups.minSize": 1, "nodeGroups.maxSize": 9, "nodeGroups.desiredSize": 2,
    "nodeGroups.zones": ["us-west-2b"], "nodeGroups.spotPrice": "0.05", "nodeGroups.labels": {"a": "b"},
    "nodeGroups.taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}], "nodeGroups.drainTimeout": 7,
    "nodeGroups.targetGroups": ["arn:aws:elasticloadbalancing:us-west-2:123456789012:targetgroup/web/0123456789abcdef"],
    "nodeGroups.maxPods": 60, "nodeGroups.autoscaler.enabled": False,
    "nodeGroups.autoscaler.resources": {"cpu": "1500m"}, "nodeGroups.autoscaler.ignoreDaemonSetsUtilization": True,
    "nodeGroups.autoscaler.scaleDownUtilizationThreshold": "0.7",
    "nodeGroups.autoscaler.scaleDownGpuUtilizationThreshold": "0.7",
    "nodeGroups.autoscaler.scaleDownUnneededTime": "5m", "nodeGroups.autoscaler.scaleDownUnreadyTime": "5m",
    "nodeGroups.prePulledImages": ["docker.io/library/nginx:1.29"],
    "nodeGroups.instanceTypes": ["m7i.large", "m7a.large"],
    "nodeGroups.instanceRequirements": {"vcpus": {"min": 2}, "memory": {"min": 4}},
    "nodeGroups.instancesDistribution": {"onDemandPercentage": 50}, "nodeGroups.maxInstanceLifetime": 30,
    "nodeGroups.capacityReservation": {"preference": "none"},
    "nodeGroups.oneGroupPerZone": True, "nodeGroups.update.maxUnavailable": 2,
    "nodeGroups.update.maxSurge": 1, "nodeGroups.update.pause": 5,
    "nodeGroups.volumes": [{"size": 10, "mountPath": "/data"}],
    **{f"{of}.ingress": [{"ports": 30080, "cidrs": ["203.0.113.0/24"]}] for of in ("controlPlane", "nodeGroups")},
    "registry": {"repositories": [{"name": "shop/web"}], "only": True},
}  # fmt: skip
# Only with others: what a change of these does is what a change of those does.
TOGETHER = {
    *(f"bastion.{key}" for key in ("allowedCidrs", "allowedPrefixLists.id", "allowedPrefixLists.maxEntries", "zone",
                                   "elasticIp.address", "elasticIp.allocationId", "image.architecture",
                                   "image.distribution", "image.id", "image.rootDevice", "image.ssmParameter",
                                   "instanceType", "rootVolume.iops", "rootVolume.kmsKey", "rootVolume.size",
                                   "rootVolume.throughput", "rootVolume.type")),
    "serviceAccountIssuer.bucket", "serviceAccountIssuer.signTokens", "iam.addonRoles",
    "addons.podIdentityWebhook.enabled", "addons.certManager.zones",
    *(f"iam.serviceAccounts.{key}" for key in ("namespace", "name", "additionalPolicies", "permissionsBoundary", "tags",
                                              "role")),
    *(f"iam.serviceAccounts.policyStatements.{key}" for key in ("effect", "actions", "resources", "conditions")),
    *(f"{section}.{key}" for section in ("iam.masters", "iam.nodes", "nodeGroups.iam")
      for key in ("role", "instanceProfile")),
    *(f"network.flowLogs.{key}" for key in ("destination", "bucket", "traffic", "retentionDays", "interval")),
    *(f"network.securityGroups.{key}" for key in ("masters", "nodes", "apiLoadBalancer", "internalApiLoadBalancer",
                                                  "endpoints")),
    "api.internalCidrs", "etcd.backups.objectLock.mode", "etcd.backups.objectLock.days",
    *(f"api.dns.{key}" for key in ("name", "publicZone.id", "publicZone.name", "privateZone.id", "privateZone.name")),
    *(f"network.proxy.{key}" for key in ("httpProxy", "httpsProxy", "noProxy")),
    *(f"network.routes.{key}" for key in ("destination", "tables", "transitGateway", "peeringConnection",
                                          "vpnGateway", "networkInterface")),
    "network.subnets.natGateway", "network.subnets.routeTable",
    "network.routeTable", "network.internetGateway", "network.pluginValues", "nodeGroups.publicIp",
    *(f"{of}.image.{key}" for of in ("controlPlane", "nodeGroups") for key in ("architecture", "rootDevice")),
    "image.architecture", "image.rootDevice",
    *(f"{of}.{key}" for of in ("controlPlane", "nodeGroups")
      for key in ("files.path", "files.content", "files.mode", "units.name", "units.content", "units.enable")),
    *(f"{of}.policyStatements.{key}" for of in ("controlPlane", "nodeGroups")
      for key in ("effect", "actions", "resources", "conditions")),
    *(f"nodeGroups.instanceRequirements.{key}"
      for key in ("vcpus.min", "vcpus.max", "memory.min", "memory.max", "generations", "allowedTypes", "excludedTypes",
                  "burstable", "bareMetal", "localStorage", "accelerators.count.min", "accelerators.count.max",
                  "accelerators.manufacturers", "accelerators.names", "cpuManufacturers", "maxSpotPricePercentage",
                  "maxOnDemandPricePercentage")),
    *(f"nodeGroups.instancesDistribution.{key}"
      for key in ("onDemandBase", "onDemandPercentage", "onDemandAllocationStrategy", "spotAllocationStrategy",
                  "spotInstancePools")),
    *(f"nodeGroups.capacityReservation.{key}" for key in ("id", "resourceGroup", "preference")),
    "nodeGroups.capacityRebalance",
    *(f"nodeGroups.volumes.{key}" for key in ("size", "type", "iops", "throughput", "kmsKey", "device", "mountPath",
                                              "fileSystem")),
    "nodeGroups.taints.key", "nodeGroups.taints.value", "nodeGroups.taints.effect",
    # Only instance types with a GPU have it: the image, labels and taints that follow are changes of their own.
    "nodeGroups.gpu",
    "nodeGroups.rebalanceRecommendation",
}  # fmt: skip
# State that masters apply, or configuration in their user data: nothing but programs and IAM can follow from them; and
# what has a stack of its own.
INSIDE = ("addons.", "kubernetes.", "registry.")
STAYING = {
    "AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::NetworkInterface", "AWS::EC2::Volume", "AWS::EC2::EIP",
    "AWS::ElasticLoadBalancingV2::LoadBalancer", "AWS::ElasticLoadBalancingV2::TargetGroup", "AWS::KMS::Key",
    "AWS::SecretsManager::Secret",
}  # fmt: skip


def leaves(annotation: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Every key of the cluster file; of lists, the keys of their items."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        for name, field in annotation.model_fields.items():
            yield from leaves(field.annotation, (*path, field.alias or name))
        return
    inner = [leaf for argument in get_args(annotation) for leaf in leaves(argument, path)]
    deeper = [leaf for leaf in inner if leaf != ".".join(path)]
    yield from deeper or [".".join(path)]


def merged(file: Any, change: Any) -> Any:
    if not isinstance(file, dict) or not isinstance(change, dict):
        return change
    return {**file, **{key: merged(file.get(key), value) for key, value in change.items()}}


def pruned(value: Any) -> Any:
    return {key: pruned(each) for key, each in value.items() if each is not None} if isinstance(value, dict) else value


def templates(file: Mapping[str, Any]) -> tuple[Cluster, dict[str, Any], dict[str, Any]]:
    """A cluster with its root and its flat template."""
    cluster = parse(pruned({"name": "one", **file}))
    documents = {each.name: each.body for each in generate(cluster)}
    return cluster, documents["cluster"], documents["standalone"]


def defaults(body: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(each["Default"]) for name, each in body["Parameters"].items() if "Default" in each}


def refusal(file: Mapping[str, Any], change: Mapping[str, Any], given: Mapping[str, str] | None = None) -> str:
    """Why a change of a cluster file is refused; empty if it is not."""
    before, after = (
        templates(file),
        templates(change if change in (ONE, EXISTING, NEW_SUBNETS) else merged(file, change)),
    )
    try:
        setting_impacts(before[1], after[0])
        immutable_settings.next_clusters(before[1], after[0])
        immutable_settings.check(defaults(before[1]), {**defaults(after[1]), **(given or {})})
    except ImmutableSettingError as error:
        return str(error)
    return ""


def exchanged(file: Mapping[str, Any], change: Mapping[str, Any]) -> list[str]:
    """What stays in every update, and does not in this one."""
    before, after = templates(file)[2], templates(merged(file, change))[2]
    gone = []
    for name, resource in before["Resources"].items():
        if resource["Type"] not in STAYING:
            continue
        left, right = (resolved(body, name) for body in (before, after))
        if right is None:
            gone.append(f"{name} is removed")
            continue
        # EBS changes size, type and performance of a volume, and nothing else.
        volume = ("AvailabilityZone", "Encrypted", "KmsKeyId") if resource["Type"] == "AWS::EC2::Volume" else ()
        for key in sorted({*left, *right}):
            replaces = property_schemas.requires_recreation("us-west-2", resource["Type"], f"/{key}") == "Always"
            if left.get(key) != right.get(key) and (replaces or key in volume):
                gone.append(f"{name}.{key}")
    return gone


def resolved(body: Mapping[str, Any], name: str) -> Any:
    """The properties of a resource with the defaults of parameters; None if there is no such resource."""
    if name not in body["Resources"]:
        return None
    values = defaults(body)

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(item) for item in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"Ref"} and value["Ref"] in values:
            return values[value["Ref"]]
        return {key: walk(item) for key, item in value.items()}

    return walk(body["Resources"][name].get("Properties", {}))


def at(path: str, value: Any) -> dict[str, Any]:
    """A cluster file's content with one key."""
    first, _, rest = path.partition(".")
    if first == "nodeGroups":
        found: Any = value
        for part in reversed(rest.split(".")):
            found = {part: found}
        return {first: [merged({"name": "general", "minSize": 2, "maxSize": 2}, found)]}
    return {first: at(rest, value) if rest else value}


def test_every_key_is_known_here() -> None:
    keys = {key for key in leaves(Cluster) if not key.startswith(INSIDE)}
    known = {*REFUSED, *DANGEROUS, *FREE, *TOGETHER, *ANOTHER_CLUSTER}
    # A list whose items have keys is changed as a whole.
    known |= {f"{of}.{key}" for of in ("controlPlane", "nodeGroups") for key in ("files", "units")}
    known |= {key for key in keys if ".ingress." in key}
    known |= {f"network.endpoints.services.{key}" for key in ("service", "privateDns", "zones")}
    known |= {f"{of}.allowedPrefixLists.{key}" for of in ("api", "ssh") for key in ("id", "maxEntries")}
    assert keys - known == set(), "say of these whether an update may change them"


@pytest.mark.parametrize("key", sorted(REFUSED))
def test_what_is_decided_once_is_refused(key: str) -> None:
    for file, change in REFUSED[key]:
        assert refusal(file, change), (file, change)


@pytest.mark.parametrize("key", sorted(FREE))
def test_what_may_change_exchanges_nothing(key: str) -> None:
    change = at(key, FREE[key])
    bases: tuple[Mapping[str, Any], ...] = (ONE, THREE)
    if key in ("ssh.allowedCidrs", "ssh.allowedPrefixLists"):
        change["ssh"]["keyName"] = "key"
    if key == "nodeGroups.update.maxSurge":
        change["nodeGroups"][0]["maxSize"] = 3
    if key == "bastion":
        change["ssh"] = {"keyName": "key"}
    if key in ("network.tagExisting", "network.securityGroups"):
        bases = (EXISTING,)
    if key.startswith("nodeGroups.zones"):
        bases = (THREE,)
    if key.startswith("network.endpoints."):
        bases = (merged(PRIVATE, {"network": {"nat": "none"}}),)
    for file in bases:
        base = {**file, "nodeGroups": groups("general")}
        if key.endswith("etcd.backups.bucket"):
            continue  # the snapshots stay in the bucket that they are in
        assert exchanged(base, change) == []
        assert refusal(base, change) == ""


@pytest.mark.parametrize("key", [key for key, changes in DANGEROUS.items() if changes])
def test_what_exchanges_an_address_is_not_taken_for_harmless(key: str) -> None:
    assert any(exchanged(file, change) for file, change in DANGEROUS[key]) or key == "controlPlane.count"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("VpcCidr", "172.21.0.0/16", r"^network\.vpc: is 172\.20\.0\.0/16 and cannot be changed to 172\.21\.0\.0/16: "),
        (
            "SubnetACidr",
            "172.20.8.0/24",
            r"^network\.subnets \(zone A\): is 172\.20\.0\.0/24 and cannot be changed to ",
        ),
        ("ZoneA", "us-west-2b", r"^network\.subnets \(zone A\): is us-west-2a and cannot be changed to us-west-2b: "),
    ],
)
def test_a_parameter_is_refused_as_the_cluster_file_is(cloud: Cloud, name: str, value: str, says: str) -> None:
    operator = Operator(cloud)
    operator.deploy(ONE)
    before = inventory(cloud.cluster.region)
    flags = {**operator.wanted(ONE).flags, name: value}
    with pytest.raises(ImmutableSettingError, match=says) as raised:
        operator.plan(ONE, flags=flags)
    assert f"--keep {name}" in raised.value.hint
    assert inventory(cloud.cluster.region) == before


def test_what_was_chosen_at_creation_is_what_counts(cloud: Cloud) -> None:
    operator = Operator(cloud)
    chosen = {"VpcCidr": "10.40.0.0/16", "SubnetACidr": "10.40.0.0/24", "MasterAAddress": "10.40.0.9"}
    wanted: DeploymentRequest = operator.wanted(ONE)
    assert operator.deploy(ONE, flags={**wanted.flags, **chosen}).succeeded
    with pytest.raises(ImmutableSettingError, match=r"is 10\.40\.0\.0/16 and cannot be changed to 172\.20\.0\.0/16"):
        operator.plan(ONE)
    assert operator.plan(ONE, kept_parameters=tuple(chosen)).is_empty
