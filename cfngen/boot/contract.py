"""The types of the JSON that `cfngen.userdata` writes and the boot program reads: configuration, references, facts.

Both use the same types, so that a type checker compares them. This module has only types: other modules import it under
`TYPE_CHECKING`, and neither those imports nor this module are copied to instances. Python 3.9 has no `NotRequired`:
keys that may be missing are in a base class with `total=False`.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, TypedDict

from .state import Boot

JsonObject = Dict[str, Any]
"""An object in JSON that is described elsewhere: by AWS, Kubernetes, kubeadm, or the cluster file's author."""
Bundle = Dict[str, str]
"""The content of the certificate authorities' secret, as text by name (`boot.master.certificate_authorities`).

PEM files, the key for encryption at rest, `initialised` (when `kubeadm init` had completed) and `restored` (id of the
last restore request that was completed).
"""
Steps = Dict[str, str]
"""Steps in the order in which they run: by the step's title, its function as `module.function` of the boot program."""


class _OptionalReferences(TypedDict, total=False):
    condition: str
    conditionStack: str


class References(_OptionalReferences):
    """The values that CloudFormation substitutes in the user data of every instance.

    They are names and physical ids, which are known only when the stack is created, and logical ids.

    Attributes:
        stack: name of the stack that has the Auto Scaling group and the second stage of the program.
        resource: logical id of the Auto Scaling group.
        joinSecretArn: ARN of the secret with the join information.
        condition: logical id of the wait condition that a master signals.
        conditionStack: name of the stack that has the wait condition.
    """

    stack: str
    resource: str
    joinSecretArn: str


class _OptionalMasterReferences(TypedDict, total=False):
    routeTableId: str
    publicAddress: str
    bucket: str
    addressA: str
    addressB: str
    addressC: str
    addressD: str
    addressE: str


class MasterReferences(References, _OptionalMasterReferences):
    """The values that CloudFormation substitutes in a master's user data.

    A slot is the place of one master; its letter, address and volume outlive the instance.

    Attributes:
        volumeId: id of the slot's data volume.
        privateAddress: the slot's fixed private address.
        slot: the slot's letter, `a` to `e`.
        caSecretArn: ARN of the secret with the certificate authorities.
        routeTableId: id of the route table with the routes to pods, if the cluster uses VPC routes.
        publicAddress: public name or address of the API, if it has one.
        bucket: name of the cluster's bucket, if snapshots of etcd are taken.
        addressA: the private address of slot a, and so on for each slot.
    """

    volumeId: str
    privateAddress: str
    slot: str
    caSecretArn: str


class InstanceFacts(TypedDict, total=False):
    """Values from the instance metadata; empty until the step `identity` has read them.

    Attributes:
        instanceId: the instance's id, which is its Node's name.
        address: its primary private address.
        providerId: its id as the cloud controller manager writes it.
    """

    instanceId: str
    address: str
    providerId: str


class Facts(References, InstanceFacts):
    """The values for the placeholders `${name}` in the configuration of every instance."""


class MasterFacts(MasterReferences, Facts):
    """The values for the placeholders `${name}` in a master's configuration."""


class Program(TypedDict):
    """Where an instance finds the second stage of the boot program.

    Attributes:
        resource: logical id of the resource whose metadata contains the second stage.
        sha256: digest of the packed second stage.
    """

    resource: str
    sha256: str


class _AssetTarget(TypedDict, total=False):
    file: str
    folder: str
    members: List[str]


class Asset(_AssetTarget):
    """A file to download.

    Attributes:
        url: the URL.
        sha256: the expected digest.
        file: path to write the file to.
        folder: folder to unpack it in, if it is an archive.
        members: shell patterns of the archive's members to unpack, without its top-level folder; by default all.
    """

    url: str
    sha256: str


class HookFile(TypedDict):
    """A file that the cluster file adds to instances; `mode` is an octal number."""

    path: str
    content: str
    mode: str


class HookUnit(TypedDict):
    """A systemd unit that the cluster file adds to instances; `enable`: whether it is enabled and started."""

    name: str
    content: str
    enable: bool


class Hooks(TypedDict):
    """The files, systemd units and post-boot commands (`after`) that the cluster file adds to instances."""

    files: List[HookFile]
    units: List[HookUnit]
    after: List[str]


class PodNetwork(TypedDict):
    """Settings of the pod network that the boot program needs.

    Attributes:
        interfaces: whether the network plug-in attaches network interfaces and gives their addresses to pods.
        prefixes: whether the plug-in assigns a /28 prefix in place of each address.
        awaited: whether the boot waits until the node is Ready, for which a network plug-in must run. False if the user
            installs the plug-in later.
    """

    interfaces: bool
    prefixes: bool
    awaited: bool


class Backups(TypedDict):
    """When masters take snapshots of etcd; `interval`: minutes between two snapshots."""

    interval: int


class Release(TypedDict):
    """A Helm release that masters install.

    Attributes:
        name: the release's name.
        namespace: the release's namespace.
        version: the chart's version, recorded for operators.
        essential: whether a master's boot succeeds only once the release is installed.
        chart: the chart's archive, with a `file`.
        values: the chart's values, as JSON.
        patches: partial Kubernetes objects that are applied over those of the chart.
    """

    name: str
    namespace: str
    version: str
    essential: bool
    chart: Asset
    values: str
    patches: List[JsonObject]


class _OptionalConfig(TypedDict, total=False):
    before: List[str]
    program: Program
    contents: Dict[str, Dict[str, str]]
    hooks: Hooks
    drain: int
    ownCa: str
    backups: Backups
    rehearsal: JsonObject


class Config(_OptionalConfig):
    """The configuration of every instance.

    The first stage has `role` to `steps`, `before`, `program` and `contents`; the second stage has all others.

    Attributes:
        role: `master` or `node`.
        cluster: name of the cluster.
        region: AWS region.
        timeout: minutes after which CloudFormation fails the operation if the instance has not signalled.
        packages: by program, the package that contains it, as (package for apt, package for dnf).
        steps: the steps of a boot.
        before: pre-boot commands.
        program: where the second stage is; `pack` adds it.
        contents: digests of the second stage's modules, keys and files; `pack` adds them for `user_data_diff`.
        tasks: the steps of each timer's or service's task, by the task's name.
        assets: what to download.
        services: systemd services to enable and start.
        podNetwork: settings of the pod network.
        kubernetesVersion: version of kubeadm and the kubelet, e.g. `v1.36.3`.
        kubeletPatch: fields of the kubelet's configuration.
        hooks: the user's files, systemd units and post-boot commands from the cluster file.
        drain: time-out in minutes for draining a node before it is terminated.
        ownCa: ARN of the user's secret with the certificate authority, for masters.
        backups: when masters take snapshots of etcd.
        rehearsal: only in a rehearsal, where masters only fetch their program and signal; no step reads it.
    """

    role: str
    cluster: str
    region: str
    timeout: int
    packages: Mapping[str, Sequence[str]]
    steps: Steps
    tasks: Dict[str, Steps]
    assets: List[Asset]
    services: List[str]
    podNetwork: PodNetwork
    kubernetesVersion: str
    kubeletPatch: JsonObject


class MasterConfig(Config):
    """A master's configuration.

    Attributes:
        endpoint: the API's host name and port.
        apiHost: the API's host name.
        masters: private address of each master, by slot letter.
        kubelet: fields of the kubelet's configuration in the whole cluster.
        kubeadm: kubeadm's InitConfiguration and ClusterConfiguration.
        manifests: Kubernetes objects to apply, in order.
        addons: the Helm releases, in order.
    """

    endpoint: str
    apiHost: str
    masters: Dict[str, str]
    kubelet: JsonObject
    kubeadm: List[JsonObject]
    manifests: List[JsonObject]
    addons: List[Release]


class NodeConfig(Config):
    """A node's configuration.

    Attributes:
        join: kubeadm's JoinConfiguration without `discovery`.
        pause: the pause image, which containerd runs in each pod's sandbox.
        upgradeWait: minutes for which a new node waits until the masters have its Kubernetes version.
    """

    join: JsonObject
    pause: str
    upgradeWait: int


class MasterBoot(Boot):
    """A run of the boot program on a master."""

    config: MasterConfig
    facts: MasterFacts


class NodeBoot(Boot):
    """A run of the boot program on a node."""

    config: NodeConfig


class JoinInformation(TypedDict, total=False):
    """The data that nodes need to join, published by masters in a secret; empty until a master has published it.

    Attributes:
        endpoint: the API's host name and port.
        addresses: the masters' addresses.
        kubernetesVersion: version of the oldest master; boot programs of earlier releases do not publish it.
        caHash: hash of the certificate authority's public key.
        token: bootstrap token.
        expires: when the token expires.
    """

    endpoint: str
    addresses: List[str]
    kubernetesVersion: str
    caHash: str
    token: str
    expires: str
