"""What belongs to a cluster beside its instances: etcd's backups, authorities, add-ons, the organisation's rules."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from cfngen.cluster.sections.base import List, Model

# By name: a section may have a field called `values`.
from cfngen.cluster.sections.field_types import (
    BucketName,
    GroupName,
    HostedZoneId,
    HttpUrl,
    IamPath,
    KeyArn,
    PolicyArn,
    Priority,
    ReleaseName,
    SecretArn,
    Sha256,
    TopicArn,
)
from cfngen.cluster.sections.instances import InstanceRole
from cfngen.cluster.sections.service_accounts import ServiceAccountRole


class ObjectLock(Model):
    """S3 Object Lock of etcd's snapshots: what is locked cannot be deleted."""

    mode: Literal["governance", "compliance"] = Field(
        description="Who can delete a locked snapshot: with governance, whoever has `s3:BypassGovernanceRetention`; "
        "with compliance nobody, not even the account's root user."
    )
    days: int = Field(
        ge=1,
        le=3650,
        description="Days that a snapshot is locked; a frequent one no longer than hourlyDays, that of a day no longer "
        "than dailyDays.",
    )


class Backups(Model):
    """Snapshots of etcd in an S3 bucket."""

    enabled: bool = Field(True, description="Whether masters take snapshots.")
    interval: int = Field(15, ge=5, le=1440, description="Minutes between snapshots.")
    hourly_days: int = Field(7, ge=1, le=3650, description="Days that the frequent snapshots are kept.")
    daily_days: int = Field(90, ge=1, le=3650, description="Days that one snapshot of each day is kept.")
    bucket: BucketName | None = Field(
        None,
        description="An existing bucket in the cluster's region. Default: a new bucket, which is kept when the stack "
        "is deleted.",
    )
    kms_key: KeyArn | None = Field(
        None,
        description="ARN of an existing symmetric KMS key that encrypts the new bucket. It has to outlive the cluster, "
        "as the snapshots do. Default: S3's own key.",
    )
    object_lock: ObjectLock | None = Field(
        None,
        description="Locks each new snapshot with S3 Object Lock, which is turned on for the bucket that is created, "
        "also for an existing cluster's, and can never be turned off again. An existing bucket must have it. Default: "
        "no lock.",
    )

    @property
    def creates_bucket(self) -> bool:
        """Whether a bucket is created for the snapshots."""
        return self.enabled and self.bucket is None

    @property
    def may_need_key(self) -> bool:
        """Whether masters may need a KMS key for snapshots: the user's own bucket may have one, too."""
        return self.enabled and bool(self.bucket or self.kms_key)

    @property
    def locks_own_bucket(self) -> bool:
        """Whether the bucket that is created has S3 Object Lock."""
        return self.creates_bucket and self.object_lock is not None

    @property
    def days_by_period(self) -> dict[str, int]:
        """Days that snapshots are kept, by their folder in the bucket."""
        return {"hourly": self.hourly_days, "daily": self.daily_days}


class Etcd(Model):
    """The cluster's database, on the masters' data volumes."""

    backups: Backups = Field(default_factory=Backups, description="Snapshots in an S3 bucket.")


class CertificateAuthority(Model):
    """Where the cluster's certificate authority comes from."""

    secret: SecretArn | None = Field(
        None,
        description="ARN of your own secret, whose JSON contains `ca.crt` and `ca.key` (PEM); the first master uses "
        "them instead of creating new ones. The other authorities and keys are still created.",
    )


class Secrets(Model):
    """The cluster's secrets in AWS Secrets Manager: its certificate authorities, and what nodes need to join."""

    kms_key: KeyArn | None = Field(
        None,
        description="ARN of an existing symmetric KMS key that encrypts the secrets. Default: a key is made with the "
        "cluster. Cannot be changed later.",
    )


class Logging(Model):
    """Records of who read and wrote what the cluster keeps in S3."""

    bucket: BucketName | None = Field(
        None,
        description="Name of an existing bucket of the account in the cluster's region, for the server access logs of "
        "the buckets that are created; they are under the cluster's name in it. Its policy has to let S3 write them "
        "(docs/operate/audit.md). Default: none are written.",
    )


class Notifications(Model):
    """Messages about instances that come and go."""

    topic: TopicArn | None = Field(
        None,
        description="ARN of an existing topic of SNS in the cluster's region, to which EC2 Auto Scaling sends a "
        "message whenever it launches or terminates an instance of the cluster, or fails to. Default: none are sent.",
    )


class Addon(Model):
    """An add-on: a Helm chart in the version that cfngen pins for the Kubernetes version."""

    enabled: bool = Field(True, description="Whether it is installed.")
    values: dict[str, Any] = Field(default_factory=dict, description="Values of its chart, merged over cfngen's.")


class OptionalAddon(Addon):
    """An add-on that is installed only when asked for."""

    enabled: bool = Field(False, description="Whether it is installed.")


class ClusterAutoscaler(OptionalAddon):
    """Grows and shrinks node groups between their sizes."""

    expander: List[Literal["priority", "least-waste", "most-pods", "least-nodes", "random"]] = Field(
        (),
        description="How it chooses among node groups that could all grow; a later item chooses among those that an "
        "earlier one leaves. Default: cluster-autoscaler's, `least-waste`.",
    )
    priorities: dict[Priority, List[GroupName]] = Field(
        default_factory=dict,
        description="Node groups by priority, for the expander `priority`; the group with the highest number grows "
        "first: `{50: [spot], 10: [on-demand]}`.",
    )


class NodeTerminationHandler(OptionalAddon):
    """AWS's node termination handler, which reads the instance metadata on every node."""

    spot_interruptions: bool = Field(
        True,
        description="Whether it drains a node when EC2 announces the interruption of its Spot Instance. cfngen's drain "
        "service does so anyway, unless the group's `drainTimeout` is 0.",
    )
    scheduled_events: bool = Field(
        True,
        description="Whether it drains a node at once when EC2 schedules a reboot, stop or retirement of its instance, "
        "and makes the node schedulable again after a reboot.",
    )
    rebalance_recommendation: Literal["ignore", "cordon", "drain"] = Field(
        "ignore",
        description="What it does with the nodes of all groups when EC2 recommends to rebalance their Spot Instances. "
        "A node group's `rebalanceRecommendation` concerns one group, and needs no add-on.",
    )
    pod_grace_period: int | None = Field(
        None,
        ge=1,
        le=3600,
        description="Seconds that the pods it evicts have to end. Default: each pod's `terminationGracePeriodSeconds`.",
    )
    node_grace_period: int | None = Field(
        None,
        ge=120,
        le=3600,
        description="Seconds that it may take to drain a node; at least the 120 before a Spot Instance is interrupted. "
        "Default: 120.",
    )


class ExternalDns(OptionalAddon):
    """DNS records for services and ingresses, in Route 53."""

    zones: List[HostedZoneId] = Field(
        (), description="Ids of the hosted zones whose records it may change; required if it is enabled."
    )


class CertManager(OptionalAddon):
    """Certificates for services and ingresses."""

    zones: List[HostedZoneId] = Field(
        (),
        description="Ids of the hosted zones of Route 53 in which it may prove with a record (DNS-01) that a name is "
        "yours. Needs `iam.addonRoles`. Default: none; certificates are then proven in other ways.",
    )


class PodIdentityWebhook(Model):
    """Gives the pods of service accounts with roles a token and the settings with which AWS's SDKs use it."""

    enabled: bool = Field(False, description="Whether it is installed.")


class Chart(Model):
    """A Helm chart of your choice."""

    name: ReleaseName = Field(description="Name of the release.")
    namespace: ReleaseName = Field("default", description="Namespace; created if it does not exist.")
    url: HttpUrl = Field(description="Address of the chart's archive (.tgz).")
    sha256: Sha256 = Field(description="SHA-256 digest of the archive; `sha256sum` prints it.")
    values: dict[str, Any] = Field(default_factory=dict, description="The chart's values.")


class Addons(Model):
    """What is installed into the cluster, as Helm releases, by the masters."""

    aws_ebs_csi_driver: Addon = Field(
        default_factory=Addon, description="Persistent volumes on EBS, with an encrypted gp3 class as the default."
    )
    metrics_server: Addon = Field(default_factory=Addon, description="CPU and memory use, for `kubectl top` and HPA.")
    cluster_autoscaler: ClusterAutoscaler = Field(
        default_factory=ClusterAutoscaler, description="Grows and shrinks node groups between their sizes."
    )
    node_termination_handler: NodeTerminationHandler = Field(
        default_factory=NodeTerminationHandler, description="Drains nodes before spot interruptions and maintenance."
    )
    aws_load_balancer_controller: OptionalAddon = Field(
        default_factory=OptionalAddon, description="Application and network load balancers for ingresses and services."
    )
    external_dns: ExternalDns = Field(
        default_factory=ExternalDns, description="Records in Route 53 for services and ingresses."
    )
    cert_manager: CertManager = Field(default_factory=CertManager, description="Certificates, e.g. Let's Encrypt's.")
    headlamp: OptionalAddon = Field(
        default_factory=OptionalAddon, description="Headlamp, a web interface for the cluster's objects."
    )
    fluent_bit: OptionalAddon = Field(
        default_factory=OptionalAddon,
        description="Sends the logs of pods to the outputs in its values; replaces kube-up's logging.",
    )
    prometheus: OptionalAddon = Field(
        default_factory=OptionalAddon,
        description="Prometheus, Alertmanager and Grafana; replaces kube-up's cluster monitoring.",
    )
    nvidia_device_plugin: OptionalAddon = Field(
        default_factory=OptionalAddon,
        description="NVIDIA's device plug-in: lets pods ask for GPUs. Default: enabled if a node group has `gpu`.",
    )
    pod_identity_webhook: PodIdentityWebhook = Field(
        default_factory=PodIdentityWebhook,
        description="Gives pods the role of their service account. Default: enabled with `serviceAccountIssuer`, "
        "unless that signs no tokens.",
    )
    charts: List[Chart] = Field((), description="Further charts.")


class Iam(Model):
    """Rules of your organisation for IAM roles."""

    permissions_boundary: PolicyArn | None = Field(
        None, description="ARN of a managed policy that is the permissions boundary of every role that is created."
    )
    path: IamPath = Field(
        "/",
        description="Path of every role, instance profile and managed policy that is created, for policies of your "
        "organisation that are about a path. It cannot change: AWS would replace all of them, and so all instances.",
    )
    masters: InstanceRole | None = Field(
        None, description="An existing role of the masters, in place of one that is made."
    )
    nodes: InstanceRole | None = Field(
        None,
        description="An existing role of the nodes, in place of one that is made. A node group's `iam` takes "
        "precedence.",
    )
    addon_roles: bool = Field(
        False,
        description="Whether the cloud controller manager and add-ons that call AWS have IAM roles of their own, so "
        "that the roles of masters and nodes allow what their boot program needs and no more. Needs "
        "`serviceAccountIssuer`. Default: true with it, unless that signs no tokens, or masters do not publish its "
        "documents (`url` without `bucket`): then set it once you have published them.",
    )
    service_accounts: List[ServiceAccountRole] = Field(
        (), description="IAM roles for the pods of service accounts. Needs `serviceAccountIssuer`."
    )


class Assets(Model):
    """Where instances fetch Kubernetes' and the other programs' files from."""

    mirror: HttpUrl | None = Field(
        None,
        description="URL under which your own server or bucket has the files, each by host and path of its original "
        "URL (…/dl.k8s.io/release/v1.36.3/bin/…). Digests are still checked.",
    )


class Kubernetes(Model):
    """Kubernetes' own configuration, merged into what cfngen writes, field by field."""

    cluster_configuration: dict[str, Any] = Field(
        default_factory=dict, description="Fields of kubeadm's ClusterConfiguration (kubeadm.k8s.io/v1beta4)."
    )
    kubelet_configuration: dict[str, Any] = Field(
        default_factory=dict, description="Fields of the KubeletConfiguration (kubelet.config.k8s.io/v1beta1)."
    )
