"""The dimensions of cluster files: what a cluster may be like, and the keys of the cluster file that say so.

A combination has one value of each dimension. Its cluster file is `BASE` with the keys of all its values, in the order
of this table, so a value may set keys below what an earlier one has set. A further dimension is a further row; values
that exclude each other stand in `conflicts.py`, with the words of the check that refuses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dimension_values import (
    REGIONS,
    Combination,
    Keys,
    Value,
    existing_gateways,
    existing_subnets,
    existing_vpc,
    has_public_api,
    is_private,
)

from cfngen.releases import patches_by_minor

ACCOUNT = "123456789012"
IAM_ARN = f"arn:{{partition}}:iam::{ACCOUNT}"
KEY_ARN = f"arn:{{partition}}:kms:{{region}}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890a{{number}}"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmqaeAWN0f4SVnzVUBz0zOZyTtT6s4VKVJZ2fS8G0jM operator@example.com"
OFFICE = ["203.0.113.0/24"]

_GENERAL = {"amd64": "m5.large", "arm64": "m6g.large"}
_SMALL = {"amd64": "t3.medium", "arm64": "t4g.medium"}
_SEVERAL = {"amd64": ["m5.large", "m5.xlarge", "c5.large"], "arm64": ["m6g.large", "m6g.xlarge", "c6g.large"]}
_GPU = {"amd64": "g4dn.xlarge", "arm64": "g5g.xlarge"}


def _zones(count: int) -> Callable[[Combination], Keys]:
    """Return the keys for subnets in the first zones of the region."""

    def keys(combination: Combination) -> Keys:
        _, region, letters = REGIONS[combination["region"]]
        return {"network.subnets": [{"zone": region + letter} for letter in letters[:count]]}

    return keys


def _machines(combination: Combination, purpose: Mapping[str, Any]) -> Any:
    """Return the instance types for nodes, by the architecture of a combination."""
    return purpose["amd64" if combination["architecture"] == "mixed" else combination["architecture"]]


def _groups(*groups: tuple[str, Mapping[str, Any]]) -> Callable[[Combination], Keys]:
    """Return the keys for node groups; what a mapping holds by architecture is chosen by that of a combination."""

    def keys(combination: Combination) -> Keys:
        made = []
        for name, group in groups:
            chosen = {
                key: _machines(combination, value) if isinstance(value, dict) and set(value) == set(_SMALL) else value
                for key, value in group.items()
            }
            made.append({"name": name, "minSize": 1, "maxSize": 3, **chosen})
        return {"nodeGroups": made}

    return keys


def _requirements(combination: Combination) -> Keys:
    """Return the keys for a node group whose types AWS chooses."""
    architecture = _machines(combination, {"amd64": "amd64", "arm64": "arm64"})
    requirements = {"vcpus": {"min": 2, "max": 2}, "memory": {"min": 4, "max": 8}}
    group = {"name": "chosen", "minSize": 1, "maxSize": 3, "instanceRequirements": requirements}
    return {"nodeGroups": [{**group, "image": {"architecture": architecture}}]}


def _own_images(combination: Combination) -> Keys:
    """Return the keys for images of the operator's, one for each architecture."""
    images = {"amd64": "ami-0123456789abcdef0", "arm64": "ami-0123456789abcdef1"}
    if combination["architecture"] != "mixed":
        return {"image.id": images[combination["architecture"]]}
    return {"image.id": images["arm64"], "nodeGroups[].image.id": images["amd64"]}


def _security_groups(combination: Combination) -> Keys:
    """Return the keys for existing security groups in place of all that the cluster would create."""
    keys = {
        "network.securityGroups.masters": "sg-0a1b2c3d4e5f60710",
        "network.securityGroups.nodes": "sg-0a1b2c3d4e5f60711",
    }
    if combination["masters"] != "1" or (is_private(combination) and has_public_api(combination)):
        keys["network.securityGroups.apiLoadBalancer"] = "sg-0a1b2c3d4e5f60712"
        if combination["api"] == "both" and combination["masters"] != "1":
            keys["network.securityGroups.internalApiLoadBalancer"] = "sg-0a1b2c3d4e5f60713"
    if combination["network"] == "private, no NAT" and combination["existing network"] != "subnets":
        keys["network.securityGroups.endpoints"] = "sg-0a1b2c3d4e5f60714"
    return keys


def _names(combination: Combination, *kinds: str, existing: bool) -> Keys:
    """Return the keys for a name of the API in Route 53."""
    ids = {"publicZone": "Z0123456789ABCDEFGHIJ", "privateZone": "Z0123456789ABCDEFGHIK"}
    zones = {kind: {"id": ids[kind]} if existing else {"name": "k8s.example.com"} for kind in kinds}
    return {"api.dns": {"name": "api.k8s.example.com", **zones}}


_ROLES: Keys = {
    "iam.masters.role": f"{IAM_ARN}:role/team/masters",
    "iam.nodes.role": f"{IAM_ARN}:role/team/nodes",
}
_ADDONS: Keys = {
    "addons.clusterAutoscaler.enabled": True,
    "addons.nodeTerminationHandler.enabled": True,
    "addons.awsLoadBalancerController.enabled": True,
    "addons.externalDns": {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ"]},
    "addons.certManager.enabled": True,
    "addons.headlamp.enabled": True,
    "addons.fluentBit": {"enabled": True, "values": {"config": {"outputs": "[OUTPUT]\n    Name stdout\n"}}},
    "addons.prometheus.enabled": True,
}


def _autoscaler(combination: Combination) -> Keys:
    """Return the keys for cluster-autoscaler with priorities of the node groups."""
    letters = REGIONS[combination["region"]][2][: int(combination["zones"])]
    groups = [
        name
        for group in DIMENSIONS["nodes"][combination["nodes"]].keys_in(combination)["nodeGroups"]
        for name in (
            [f"{group['name']}-{letter}" for letter in letters] if "oneGroupPerZone" in group else [group["name"]]
        )
    ]
    expander = {"addons.clusterAutoscaler.expander": ["priority", "least-waste"]}
    priorities = {"addons.clusterAutoscaler.priorities": {"50": groups}}
    return {"addons.clusterAutoscaler.enabled": True, **({**expander, **priorities} if groups else {})}


_CUSTOMISED: Keys = {
    "controlPlane.capacityReservation": True,
    "controlPlane.rootVolume": {"type": "gp3", "size": 40, "iops": 4000, "throughput": 250},
    "controlPlane.volume": {"type": "io2", "size": 50, "iops": 2000},
    "controlPlane.files": [{"path": "/etc/sysctl.d/90-own.conf", "content": "vm.max_map_count = 262144\n"}],
    "controlPlane.preBootCommands": ["sysctl --system"],
    "nodeGroups[].units": [{"name": "own-agent.service", "content": "[Service]\nExecStart=/bin/true\n"}],
    "nodeGroups[].volumes": [{"size": 20, "mountPath": "/cache", "fileSystem": "xfs"}, {"size": 10}],
    "nodeGroups[].labels": {"example.com/pool": "workers"},
    "nodeGroups[].taints": [{"key": "example.com/dedicated", "value": "yes", "effect": "NoSchedule"}],
    "nodeGroups[].update": {"maxUnavailable": 1, "maxSurge": 1, "pause": 5},
    "nodeGroups[].drainTimeout": 3,
    "nodeGroups[].kubeletConfiguration": {"serializeImagePulls": False},
    "nodeGroups[].prePulledImages": ["docker.io/library/nginx:1.29"],
    "kubernetes.clusterConfiguration": {"apiServer": {"extraArgs": [{"name": "profiling", "value": "false"}]}},
    "tags": {"team": "platform", "cost-center": "4711"},
}

_REGISTRIES = {"registry.k8s.io": ["https://registry.example.com/v2/k8s"]}

BASE: Keys = {"name": "matrix", "controlPlane": {}, "network.serviceCidr": "10.96.0.0/16"}
"""What every cluster file has."""

_SERVICE_ACCOUNTS = [
    {
        "namespace": "shop",
        "name": "web",
        "policyStatements": [{"actions": ["s3:GetObject"], "resources": ["arn:{partition}:s3:::example-shop/*"]}],
    },
    {"namespace": "shop", "name": "orders.worker", "tags": {"project": "shop"}},
]
_WEB_SERVER = {
    "discovery": "url",
    "url": "https://tokens.example.com/clusters/example",
    "bucket": "example-issuer-documents",
}
DIMENSIONS: Mapping[str, Mapping[str, Value]] = {
    "region": {name: Value({"region": REGIONS[name][1]}, lived=REGIONS[name][0] == "aws") for name in REGIONS},
    "zones": {"1": Value(_zones(1)), "2": Value(_zones(2)), "3": Value(_zones(3))},
    "network": {
        "public": Value({}),
        "private": Value({"network.topology": "private"}),
        "private, NAT per zone": Value({"network.topology": "private", "network.nat": "perZone"}),
        "private, single NAT": Value({"network.topology": "private", "network.nat": "single"}),
        "private, no NAT": Value({"network.topology": "private", "network.nat": "none"}),
    },
    "existing network": {
        "none": Value({}),
        "VPC": Value(existing_vpc),
        "VPC, route tables, NAT gateways": Value(existing_gateways),
        "subnets": Value(existing_subnets),
    },
    "plugin": {
        name: Value({"network.plugin": name})
        for name in ("vpc-routes", "cilium", "calico", "flannel", "amazon-vpc", "none")
    },
    "nodes": {
        "none": Value({"nodeGroups": []}),
        "on-demand": Value(_groups(("general", {"instanceType": _SMALL}))),
        "spot": Value(
            _groups(
                ("spot", {"instanceType": _GENERAL, "spotPrice": "0.05", "rebalanceRecommendation": "drain"}),
                (
                    "spot-mixed",
                    {
                        "instanceTypes": _SEVERAL,
                        "instancesDistribution": {"onDemandBase": 1, "onDemandPercentage": 25},
                        "capacityRebalance": True,
                    },
                ),
            )
        ),
        "requirements": Value(_requirements),
        "gpu": Value(
            _groups(
                ("general", {"instanceType": _SMALL}),
                ("gpu", {"instanceType": _GPU, "minSize": 0, "gpu": "nvidia"}),
            )
        ),
        "per zone": Value(
            _groups(
                ("workers", {"instanceType": _SMALL, "minSize": 1, "maxSize": 2, "oneGroupPerZone": True}),
            )
        ),
    },
    "distribution": {
        **{
            name: Value({"image.distribution": name})
            for name in ("ubuntu-24.04", "ubuntu-22.04", "debian-12", "debian-13", "amazon-linux-2023")
        },
        "own image": Value(_own_images),
    },
    "architecture": {
        "amd64": Value({"controlPlane.instanceType": _SMALL["amd64"]}),
        "arm64": Value({"controlPlane.instanceType": _SMALL["arm64"]}),
        "mixed": Value({"controlPlane.instanceType": _SMALL["arm64"]}),
    },
    "masters": {count: Value({"controlPlane.count": int(count)}) for count in ("1", "3", "5")},
    "instances": {"plain": Value({}), "customised": Value(_CUSTOMISED)},
    "security groups": {"created": Value({}), "existing": Value(_security_groups)},
    "roles": {
        "created": Value({}),
        "bounded": Value(
            {
                "iam.permissionsBoundary": f"{IAM_ARN}:policy/boundary",
                "controlPlane.additionalPolicies": [f"{IAM_ARN}:policy/masters"],
                "nodeGroups[].additionalPolicies": [f"{IAM_ARN}:policy/nodes"],
                **{
                    f"{section}.policyStatements": [
                        {"actions": ["s3:GetObject"], "resources": ["arn:{partition}:s3:::models/*"]}
                    ]
                    for section in ("controlPlane", "nodeGroups[]")
                },
            }
        ),
        "existing": Value(_ROLES),
        "existing profiles": Value(
            {
                **_ROLES,
                "iam.masters.instanceProfile": f"{IAM_ARN}:instance-profile/masters",
                "iam.nodes.instanceProfile": f"{IAM_ARN}:instance-profile/nodes",
            }
        ),
    },
    "keys": {
        "created": Value({}),
        "existing": Value(
            {
                "secrets.kmsKey": KEY_ARN.replace("{number}", "0"),
                "controlPlane.volume.kmsKey": KEY_ARN.replace("{number}", "1"),
                "nodeGroups[].rootVolume.kmsKey": KEY_ARN.replace("{number}", "1"),
            }
        ),
    },
    "snapshots": {
        "created bucket": Value({}),
        "existing bucket": Value({"etcd.backups.bucket": "example-snapshots"}),
        "none": Value({"etcd.backups.enabled": False}),
    },
    "api": {
        "public": Value({}),
        "internal": Value({"api.public": False, "api.port": 6443}),
        "both": Value({"api.internal": True}),
        "elastic IP": Value(
            {"api.elasticIp": {"allocationId": "eipalloc-0123456789abcdef0", "address": "52.10.20.30"}}
        ),
    },
    "dns": {
        "none": Value({}),
        "public zone": Value(lambda combination: _names(combination, "publicZone", existing=True)),
        "private zone": Value(lambda combination: _names(combination, "privateZone", existing=True)),
        "new zones": Value(
            lambda combination: _names(
                combination, *(("publicZone",) if has_public_api(combination) else ()), "privateZone", existing=False
            )
        ),
    },
    "access": {
        "asked": Value({}),
        "ranges": Value({"api.allowedCidrs": OFFICE, "ssh.publicKey": PUBLIC_KEY, "ssh.allowedCidrs": OFFICE}),
        "prefix lists": Value(
            {
                "api.allowedPrefixLists": [{"id": "pl-0123456789abcdef0", "maxEntries": 5}],
                "ssh.keyName": "laptop",
                "ssh.allowedPrefixLists": [{"id": "pl-0123456789abcdef0", "maxEntries": 5}],
                "ssh.sessionManager": False,
            }
        ),
    },
    "downloads": {
        "direct": Value({}),
        "mirror": Value(
            {
                "assets.mirror": "https://mirror.example.com/kubernetes",
                "controlPlane.containerd.registryMirrors": _REGISTRIES,
                "nodeGroups[].containerd.registryMirrors": _REGISTRIES,
            }
        ),
        "proxy": Value(
            {"network.proxy": {"httpsProxy": "http://proxy.example.com:3128", "noProxy": [".corp.example.com"]}}
        ),
    },
    "bastion": {
        "none": Value({}),
        "new address": Value({"bastion.allowedCidrs": OFFICE}),
        "existing address": Value(
            {
                "bastion.allowedCidrs": OFFICE,
                "bastion.elasticIp": {"allocationId": "eipalloc-0123456789abcdef1", "address": "52.10.20.31"},
            }
        ),
    },
    "flow logs": {
        "none": Value({}),
        "log group": Value({"network.flowLogs": {"destination": "cloudWatchLogs", "traffic": "reject"}}),
        "bucket": Value({"network.flowLogs": {"destination": "s3", "bucket": "example-flow-logs"}}),
    },
    "add-ons": {
        "default": Value({}),
        "none": Value({"addons.awsEbsCsiDriver.enabled": False, "addons.metricsServer.enabled": False}),
        "all": Value(_ADDONS),
        "autoscaler": Value(_autoscaler),
    },
    "pod roles": {
        "none": Value({}),
        "default": Value({"serviceAccountIssuer": {}, "iam.serviceAccounts": _SERVICE_ACCOUNTS}),
        "bucket": Value({"serviceAccountIssuer.discovery": "bucket", "iam.serviceAccounts": _SERVICE_ACCOUNTS}),
        # No web server of the user's serves the documents to the emulator.
        "web server": Value(
            {"serviceAccountIssuer": _WEB_SERVER, "iam.serviceAccounts": _SERVICE_ACCOUNTS}, lived=False
        ),
        "tokens accepted": Value({"serviceAccountIssuer.signTokens": False}),
        "add-ons with instances' roles": Value({"serviceAccountIssuer": {}, "iam.addonRoles": False}),
    },
    "version": {minor: Value({"kubernetesVersion": minor}) for minor in patches_by_minor()},
}
