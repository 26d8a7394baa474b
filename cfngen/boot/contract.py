"""The types of what user data and the second stage carry: a role's configuration, references, facts, step tables.

`cfngen.userdata` builds them and the steps read them, so that a type checker compares both ends. There are only types
here: other modules import this one under `TYPE_CHECKING`, and neither those imports nor this module travel. Python 3.9
has no `NotRequired`: keys that may be missing are in a base class with `total=False`.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, TypedDict

from .state import Boot

JsonObject = Dict[str, Any]
"""An object in JSON that is described elsewhere: by AWS, Kubernetes, kubeadm, or the cluster file's author."""
Bundle = Dict[str, str]
"""The certificate authorities as their secret holds them: files in PEM by name, the key for encryption, and notes."""
Steps = Dict[str, str]
"""Steps in the order in which they run: the function, as `module.function` of the boot program, by the step's title."""


class _OptionalReferences(TypedDict, total=False):
    condition: str
    conditionStack: str


class References(_OptionalReferences):
    """What CloudFormation fills into the user data of every instance.

    Attributes:
        stack: name of the stack that has the Auto Scaling group and the second stage of the program.
        resource: logical id of the Auto Scaling group.
        joinSecretArn: ARN of the secret with the join information.
        condition: logical id of the wait condition that a master signals.
        conditionStack: name of the stack that has it.
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
    """What CloudFormation fills into a master's user data.

    Attributes:
        volumeId: the slot's data volume.
        privateAddress: the slot's fixed address.
        slot: the slot's letter.
        caSecretArn: ARN of the secret with the certificate authorities.
        routeTableId: route table of the pods' routes, if pods have VPC routes.
        publicAddress: public name or address of the API, if it has one.
        bucket: the cluster's bucket, if snapshots of etcd are taken.
        addressA: the private address of slot a, and so on for each slot.
    """

    volumeId: str
    privateAddress: str
    slot: str
    caSecretArn: str


class InstanceFacts(TypedDict, total=False):
    """What the instance metadata say; nothing until the step `identity` has read them.

    Attributes:
        instanceId: the instance's id, which is its Node's name.
        address: its primary private address.
        providerId: its id as the cloud controller manager writes it.
    """

    instanceId: str
    address: str
    providerId: str


class Facts(References, InstanceFacts):
    """The values of `${name}` in the configuration of every instance."""


class MasterFacts(MasterReferences, Facts):
    """The values of `${name}` in a master's configuration."""


class Program(TypedDict):
    """Where the second stage is: the logical id of the resource in whose metadata, and the digest."""

    resource: str
    sha256: str


class _AssetTarget(TypedDict, total=False):
    file: str
    folder: str
    members: List[str]


class Asset(_AssetTarget):
    """A download.

    Attributes:
        url: its address.
        sha256: its digest.
        file: the file to write.
        folder: the folder to unpack it in, if it is an archive.
        members: shell patterns of what is unpacked, without the archive's top-level folder; everything by default.
    """

    url: str
    sha256: str


class HookFile(TypedDict):
    """A file of the cluster file; its mode is an octal number."""

    path: str
    content: str
    mode: str


class HookUnit(TypedDict):
    """A systemd unit of the cluster file, and whether it is enabled and started."""

    name: str
    content: str
    enable: bool


class Hooks(TypedDict):
    """The cluster file's own files, units and post-boot commands."""

    files: List[HookFile]
    units: List[HookUnit]
    after: List[str]


class PodNetwork(TypedDict):
    """What the boot program must know about the pod network.

    Attributes:
        interfaces: whether the network plug-in attaches interfaces, whose addresses pods get.
        prefixes: whether it assigns a prefix in place of each address.
        awaited: whether a node counts as Ready only once the plug-in works.
    """

    interfaces: bool
    prefixes: bool
    awaited: bool


class Backups(TypedDict):
    """Snapshots of etcd: the minutes between two of them."""

    interval: int


class Release(TypedDict):
    """A Helm release that masters install.

    Attributes:
        name: its name.
        namespace: its namespace.
        version: the chart's version, for people.
        essential: whether a master counts as working only once it is installed.
        chart: the chart's archive, a `file`.
        values: the values, as JSON.
        patches: parts of Kubernetes objects, laid over those that the chart made.
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
        timeout: minutes after which the stack's operation fails if the instance has not signalled.
        packages: packages by the program that they bring; each as (apt's package, dnf's package).
        steps: the steps of a boot.
        before: pre-boot commands.
        program: where the second stage is; `pack` adds it.
        contents: digests of the second stage's modules, keys and files; `pack` adds them, and no instance reads them.
        tasks: the steps of each timer's or service's task, by the task's name.
        assets: what to download.
        services: systemd services to enable and start.
        podNetwork: what to know about the pod network.
        kubernetesVersion: version of kubeadm and the kubelet, e.g. `v1.36.3`.
        kubeletPatch: fields of the kubelet's configuration.
        hooks: files, units and post-boot commands of the cluster file.
        drain: minutes that pods get to move before a node is terminated.
        ownCa: ARN of the user's secret with the certificate authority, for masters.
        backups: when masters take snapshots of etcd.
        rehearsal: only in a rehearsal, where masters do nothing but fetch their program; no step reads it.
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
        endpoint: the API's name and port.
        apiHost: the API's name.
        masters: the masters' private addresses by slot.
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
        pause: the image of pods' sandboxes.
        upgradeWait: minutes that a new node waits for masters of its version.
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
    """What masters publish for nodes; empty until a master has.

    Attributes:
        endpoint: the API's name and port.
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
