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
"""The content of the certificate authorities' secret: texts by name (see `boot.master.certificate_authorities`).

They are PEM files, the key for encryption at rest, `initialised` (the time at which `kubeadm init` had completed) and
`restored` (the id of the last restore request that was completed).
"""
Steps = Dict[str, str]
"""Steps in the order in which they run.

Keys are the steps' titles; values are the names of their functions, as `module.function` of the boot program.
"""


class _OptionalReferences(TypedDict, total=False):
    condition: str
    conditionStack: str


class References(_OptionalReferences):
    """The values that CloudFormation substitutes in the user data of every instance.

    They are logical ids, and names and physical ids that are known only once the stack's resources are created.

    Attributes:
        stack: name of the stack that has the instance's Auto Scaling group and the second stage of the program.
        resource: logical id of the Auto Scaling group.
        condition: logical id of the wait condition that a master signals.
        conditionStack: name of the stack that has the wait condition.
    """

    stack: str
    resource: str
    joinSecretArn: str


class _OptionalMasterReferences(TypedDict, total=False):
    routeTableId: str
    publicAddress: str
    internalAddress: str
    bucket: str
    issuer: str
    issuerBucket: str
    accountId: str
    vpcId: str
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
        slot: the slot's letter, `a` to `e`.
        routeTableId: id of the route table with the routes to pods, if the cluster uses VPC routes.
        publicAddress: public name or address of the API, if it has one.
        internalAddress: name of the API's internal load balancer, if it has one beside the public one.
        bucket: name of the cluster's bucket, if snapshots of etcd are taken.
        issuer: URL of the issuer of service-account tokens without `https://`, if the cluster has one.
        issuerBucket: name of the bucket into which masters write the issuer's documents, if they do.
        accountId: id of the AWS account, if service accounts have roles that are made with the cluster.
        vpcId: id of the VPC, if the load balancer controller has a role of its own.
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
    """Where an instance finds the second stage of the boot program, which does not fit into user data.

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
        sha256: the expected digest.
        file: path on the instance to write the file to.
        folder: if the file is an archive, the folder on the instance to unpack it in.
        members: shell patterns of the paths in the archive to unpack, without its top-level folder; by default the
            whole archive is unpacked.
    """

    url: str
    sha256: str


class HookFile(TypedDict):
    """A file that the user's cluster file adds to instances.

    Attributes:
        mode: its permission bits as an octal number, e.g. `0644`.
    """

    path: str
    content: str
    mode: str


class HookUnit(TypedDict):
    """A systemd unit that the user's cluster file adds to instances.

    Attributes:
        name: the unit's name, e.g. `proxy.service`.
        enable: whether the unit is enabled and started.
    """

    name: str
    content: str
    enable: bool


class Hooks(TypedDict):
    """What the user's cluster file adds to instances, except the pre-boot commands.

    Attributes:
        after: the post-boot commands, for the shell.
    """

    files: List[HookFile]
    units: List[HookUnit]
    after: List[str]


class PodNetwork(TypedDict):
    """Settings of the pod network that the boot program needs.

    Attributes:
        interfaces: whether the network plug-in attaches further network interfaces to the instance and gives their
            addresses to pods.
        prefixes: whether the plug-in assigns a /28 prefix to an interface in place of each single address.
        awaited: whether a node's boot waits until the node is Ready, for which a network plug-in must run. False if the
            user installs the plug-in later.
    """

    interfaces: bool
    prefixes: bool
    awaited: bool


class MountedVolume(TypedDict):
    """A further volume of a node, which the boot program formats and mounts.

    Attributes:
        device: the volume's device name in EC2, e.g. `/dev/sdf`; the kernel gives the disk another name.
        fileSystem: `ext4` or `xfs`.
    """

    device: str
    folder: str
    fileSystem: str


class ObjectLock(TypedDict):
    """The lock of snapshots: its mode, `GOVERNANCE` or `COMPLIANCE`, and its days by the snapshot's folder."""

    mode: str
    days: Dict[str, int]


class _OptionalBackups(TypedDict, total=False):
    lock: ObjectLock


class Backups(_OptionalBackups):
    """When masters take snapshots of etcd.

    Attributes:
        interval: minutes between two snapshots.
        lock: how they are locked, if they are.
    """

    interval: int


class Release(TypedDict):
    """A Helm release that masters install.

    Attributes:
        version: the chart's version, recorded for operators.
        essential: whether a master's boot succeeds only once the release is installed.
        chart: the chart's archive; it has a `file` and no `folder`.
        values: the values for the chart, as JSON text.
        patches: partial Kubernetes objects that are applied over those of the chart.
    """

    name: str
    namespace: str
    version: str
    essential: bool
    chart: Asset
    values: str
    patches: List[JsonObject]


class Images(TypedDict):
    """Images that a node pulls before pods need them.

    Attributes:
        references: the images, each with registry, and with a tag or a digest.
        snapshotter: name of containerd's snapshotter, which unpacks them.
    """

    references: List[str]
    snapshotter: str


class _OptionalConfig(TypedDict, total=False):
    before: List[str]
    program: Program
    contents: Dict[str, Dict[str, str]]
    hooks: Hooks
    proxyServices: List[str]
    volumes: List[MountedVolume]
    drain: int
    quorumWait: int
    releaseDisks: bool
    images: Images
    rebalance: str
    updatePause: int
    ownCa: str
    backups: Backups
    podIdentityWebhook: JsonObject
    rehearsal: JsonObject


class Config(_OptionalConfig):
    """The configuration of every instance.

    The keys `role`, `cluster`, `region`, `timeout`, `packages`, `steps`, `before`, `program` and `contents` are in the
    user data, with the first stage of the program. All other keys come with the second stage.

    Attributes:
        role: `master` or `node`.
        timeout: minutes after which CloudFormation fails the operation if the instance has not signalled.
        packages: by program, the two packages that contain it: the one for apt, the one for dnf.
        before: the user's pre-boot commands from the cluster file.
        program: where the instance reads the second stage; `cfngen.userdata.pack` adds this key.
        contents: digests of the second stage, from which `cfngen.userdata.user_data_diff` finds out what has changed:
            by `boot`, `role` and `files`, one digest by module, key or path. `cfngen.userdata.pack` adds this key.
        tasks: by the name of a timer's or service's task, the steps of the task.
        services: the systemd services to enable and start.
        podNetwork: settings of the pod network.
        kubernetesVersion: version of kubeadm and the kubelet, e.g. `v1.36.3`.
        kubeletPatch: fields of the kubelet's configuration for this group of instances.
        hooks: the user's files, systemd units and post-boot commands from the cluster file.
        proxyServices: services of the image that are restarted once the files tell them of the proxy.
        volumes: further volumes of a node to format and mount.
        drain: time-out in minutes for draining a node before it is terminated.
        quorumWait: only for several masters: minutes that a master which is to be terminated waits until etcd has a
            quorum without it.
        releaseDisks: only for nodes with GPUs: whether local disks that a service of the image has are released.
        images: only for nodes: the images that are pulled before pods need them.
        rebalance: only for Spot Instances: `cordon` or `drain`, what to do if EC2 recommends to rebalance the instance.
        updatePause: minutes for which a new node must have been working in a rolling update before it signals.
        ownCa: only for masters: ARN of the user's secret with the certificate authority.
        backups: when masters take snapshots of etcd.
        podIdentityWebhook: only for masters: the MutatingWebhookConfiguration of the pod identity webhook, without the
            certificate authority.
        rehearsal: data about a rehearsal, in which masters only fetch their program and signal; no step reads it.
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
        masters: by slot letter, the private address of the slot's master.
        kubelet: fields of the kubelet's configuration in the whole cluster.
        kubeadm: two documents: kubeadm's InitConfiguration and ClusterConfiguration.
        manifests: Kubernetes objects, in the order in which they are applied.
        addons: Helm releases, in the order in which they are installed.
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
        join: kubeadm's JoinConfiguration without `discovery`, which the node adds.
        pause: name of the pause image, which containerd runs in each pod's sandbox.
        upgradeWait: the most minutes for which a new node waits until the masters have its Kubernetes version.
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
        kubernetesVersion: version of the oldest master; boot programs of earlier releases do not publish it.
        caHash: hash of the certificate authority's public key, in kubeadm's form: `sha256:` and hexadecimal digits.
        token: bootstrap token, with which a node requests its certificate.
        expires: the time at which the token expires, as ISO 8601.
    """

    endpoint: str
    addresses: List[str]
    kubernetesVersion: str
    caHash: str
    token: str
    expires: str
