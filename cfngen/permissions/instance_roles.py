"""IAM statements of the roles of masters and nodes.

There are three kinds: unconditional reads, which EC2 and ELB cannot restrict to resources; changes of resources that
have the cluster's tag; and creation of resources with the cluster's tag. The tag is `KubernetesCluster`: the key of an
IAM condition cannot contain the cluster's name, and the cloud controller manager copies this tag from its instance to
the resources that it creates.
"""

from __future__ import annotations

from cfngen.cluster.iam.service_accounts import (
    AMAZON_VPC_PLUGIN,
    CLOUD_CONTROLLER_MANAGER,
    document_keys,
    has_role,
    masters_publish_documents,
)
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import snapshot_prefixes
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.permissions.cloud_controller import cloud_controller_statements
from cfngen.permissions.pod_network import instance_type_statements, pod_address_statements
from cfngen.permissions.references import (
    MASTER_ROLE_TAG,
    References,
    arn,
    if_resource_tagged,
    named_arn,
    unless_master,
    via_service,
)
from cfngen.permissions.registry import pull_statements
from cfngen.permissions.statements import Condition, Expression, Statement, allow


def master_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements of the masters' role, except those in separate managed policies.

    Separate are the statements of add-ons, those of a network plug-in that assigns addresses of network interfaces to
    pods, those for the key and the lock of snapshots, and those to pull from certain repositories only. If add-ons have
    roles of their own, these are what the boot program and the kubelet need.
    """
    return [
        *(
            instance_type_statements(cluster)
            if has_role(cluster, CLOUD_CONTROLLER_MANAGER)
            else cloud_controller_statements(cluster, references)
        ),
        *data_volume_statements(cluster, references),
        *volume_key_statements(cluster, references, cluster.control_plane.volume.kms_key),
        *_secret_statements(cluster, references, "Secrets", references.ca_secret_arn, references.join_secret_arn),
        *_custom_authority_statements(cluster, references),
        *(_backup_statements(cluster, references) if cluster.etcd.backups.enabled else []),
        *issuer_document_statements(cluster, references),
        *_quorum_statements(cluster, references),
        _own_stack_statement(_master_stack_arns(references)),
        # An inline policy of masters has no room for the names of repositories.
        *([] if cluster.registry.only else pull_statements(cluster, references)),
        *_session_manager_statements(cluster, references),
    ]


def masters_pull_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the permission of masters to pull from certain repositories only, in a managed policy; empty without."""
    return pull_statements(cluster, references) if cluster.registry.only else []


def node_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements of the nodes' role."""
    has_draining = any(group.drain_timeout for group in cluster.node_groups)
    if_node_group = {**if_resource_tagged(cluster), **unless_master()}
    return [
        *_secret_statements(cluster, references, "JoinSecret", references.join_secret_arn, may_write=False),
        *(
            instance_type_statements(cluster)
            if has_role(cluster, AMAZON_VPC_PLUGIN)
            else plugin_statements_of_nodes(cluster, references)
        ),
        *([_termination_statement(references, "Drain", if_node_group)] if has_draining else []),
        _own_stack_statement(references.node_stack_arns),
        *pull_statements(cluster, references),
        *_session_manager_statements(cluster, references),
    ]


def plugin_statements_of_masters(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements of a network plug-in that masters' instances have in a managed policy; empty without."""
    if not network_plugin(cluster).gives_pods_vpc_addresses or has_role(cluster, AMAZON_VPC_PLUGIN):
        return []
    return pod_address_statements(cluster, references, "masters")


def plugin_statements_of_nodes(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements of a network plug-in that nodes' instances have; empty if it needs none."""
    if not network_plugin(cluster).gives_pods_vpc_addresses:
        return []
    return pod_address_statements(cluster, references, "nodes")


def _secret_statements(
    cluster: Cluster, references: References, sid: str, *secret_arns: Expression, may_write: bool = True
) -> list[Statement]:
    """Return the permissions to read some of the cluster's secrets, and to write them, with the key that encrypts them.

    In a printed policy the ARNs are patterns that match the secrets of every cluster, so the tag has to tell them
    apart. The key may be the user's, without the cluster's tag and shared by clusters; its use is bound to the secrets.
    """
    only_these_secrets: Condition = {
        "StringEquals": via_service(cluster, references, "secretsmanager"),
        "StringLike": {"kms:EncryptionContext:SecretARN": list(secret_arns)},
    }
    return [
        allow(
            sid=sid,
            actions="secretsmanager:GetSecretValue" + (" secretsmanager:PutSecretValue" if may_write else ""),
            resources=secret_arns,
            condition=if_resource_tagged(cluster),
        ),
        allow(
            sid="SecretsKey",
            actions="kms:Decrypt" + (" kms:GenerateDataKey" if may_write else ""),
            resources=[references.secrets_key_arn],
            condition=only_these_secrets,
        ),
    ]


def _custom_authority_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the permission to read the secret with the user's own certificate authority, and to decrypt it.

    The secret may be encrypted with any KMS key, so all keys are allowed, but a condition on the encryption context
    allows each key for this secret only ("Secret encryption and decryption", AWS Secrets Manager User Guide). The
    result is empty if the cluster file names no secret.
    """
    secret_arn = cluster.certificate_authority.secret
    if not secret_arn:
        return []
    only_this_secret = {
        "StringEquals": {
            **via_service(cluster, references, "secretsmanager"),
            "kms:EncryptionContext:SecretARN": secret_arn,
        }
    }
    return [
        allow(sid="OwnAuthority", actions="secretsmanager:GetSecretValue", resources=[secret_arn]),
        allow(
            sid="OwnAuthorityKey",
            actions="kms:Decrypt",
            resources=[arn(references, "kms", "key/*")],
            condition=only_this_secret,
        ),
    ]


def _backup_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the permissions of masters to read, add and list etcd's snapshots, but not to replace or delete them.

    Masters may also read, but not write, the requests that operators put into the bucket.
    """
    snapshot_keys = f"{cluster.name}/etcd/*"
    return [
        allow(
            sid="Backups", actions="s3:GetObject", resources=[_arn_in_backup_bucket(references, f"/{snapshot_keys}")]
        ),
        allow(
            sid="BackupsNew",
            actions="s3:PutObject",
            resources=_snapshot_arns(cluster, references),
            # S3 refuses a request with the header If-None-Match if the object exists.
            condition={"Null": {"s3:if-none-match": "false"}},
        ),
        allow(
            sid="BackupsList",
            actions="s3:ListBucket",
            resources=[_arn_in_backup_bucket(references, "")],
            condition={"StringLike": {"s3:prefix": snapshot_keys}},
        ),
    ]


def backup_key_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the permission of masters for the KMS key of the bucket, or any key of the user's own; empty without one.

    The encryption context is the ARN of the object or, with an S3 Bucket Key, the ARN of the bucket ("Reducing the cost
    of SSE-KMS", Amazon S3 User Guide).
    """
    if not cluster.etcd.backups.may_need_key:
        return []
    own_key = cluster.etcd.backups.kms_key
    only_this_bucket: Condition = {
        "StringEquals": via_service(cluster, references, "s3"),
        "StringLike": {
            "kms:EncryptionContext:aws:s3:arn": [
                _arn_in_backup_bucket(references, ""),
                _arn_in_backup_bucket(references, f"/{cluster.name}/etcd/*"),
            ]
        },
    }
    return [
        allow(
            sid="BackupsKey",
            actions="kms:Decrypt kms:GenerateDataKey",
            resources=[named_arn(references, own_key) if own_key else arn(references, "kms", "key/*")],
            condition=only_this_bucket,
        )
    ]


def backup_lock_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the permission of masters to lock snapshots, in the cluster file's mode and for its days; empty without.

    S3 asks for it when an object is put with a lock ("Object Lock considerations", Amazon S3 User Guide). It also lets
    masters extend the lock of an existing snapshot, but not shorten or end it, which no condition has to prevent.
    """
    backups = cluster.etcd.backups
    if not backups.enabled or backups.object_lock is None:
        return []
    return [
        allow(
            sid="BackupsLock",
            actions="s3:PutObjectRetention",
            resources=_snapshot_arns(cluster, references),
            condition={
                "StringEqualsIfExists": {"s3:object-lock-mode": backups.object_lock.mode.upper()},
                # One day more: S3 does not say how it rounds the time that remains.
                "NumericLessThanEqualsIfExists": {
                    "s3:object-lock-remaining-retention-days": str(backups.object_lock.days + 1)
                },
            },
        )
    ]


def _snapshot_arns(cluster: Cluster, references: References) -> list[Expression]:
    return [_arn_in_backup_bucket(references, f"/{prefix}*") for prefix in snapshot_prefixes(cluster.name)]


def _arn_in_backup_bucket(references: References, path: str) -> Expression:
    """Return the ARN of the bucket (for an empty path) or of objects in it (for a path with a slash)."""
    return arn(references, "s3", f"${{Bucket}}{path}", region="", account="", Bucket=references.backup_bucket_name)


def _own_stack_statement(stack_arns: list[Expression]) -> Statement:
    """Return the permission of instances to signal their own stack, and to read the boot program from it."""
    return allow(
        sid="OwnStack",
        actions="cloudformation:DescribeStackResource cloudformation:SignalResource",
        resources=stack_arns,
    )


def _master_stack_arns(references: References) -> list[Expression]:
    """Return the ARNs of the stacks that masters signal: the one that launches them, and the root.

    The root has the wait conditions and, with the standalone template, everything else. Nested stacks are named
    `<root>-<logical id>-<random>`. The pattern contains the logical id, because `<root>-*` would also match the stacks
    of a cluster named `<root>-eu`.
    """
    return [
        arn(references, "cloudformation", f"stack/${{Name}}{nested}/*", Name=references.root_stack_name)
        for nested in ("", "-MasterStack-*")
    ]


def _quorum_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the permission of masters to delay their termination while etcd needs them; empty for a single master."""
    if cluster.control_plane.count == 1:
        return []
    return [_termination_statement(references, "Quorum", if_resource_tagged(cluster))]


def _termination_statement(references: References, sid: str, condition: Condition) -> Statement:
    """Return the permission of instances to delay their termination by heartbeats, and to end the delay."""
    return allow(
        sid=sid,
        actions="autoscaling:CompleteLifecycleAction autoscaling:RecordLifecycleActionHeartbeat",
        resources=[arn(references, "autoscaling", "autoScalingGroup:*:autoScalingGroupName/*")],
        condition=condition,
    )


def _session_manager_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the permissions that the SSM agent needs for Session Manager; empty if the file does without.

    They replace the managed policy AmazonSSMManagedInstanceCore, which would also let an instance read every SSM
    parameter of the account.
    Source: "Add Session Manager permissions to an existing IAM role", AWS Systems Manager User Guide.
    """
    if not cluster.ssh.session_manager:
        return []
    return [
        allow(
            sid="SessionManagerInstances",
            actions="ssm:UpdateInstanceInformation",
            resources=[arn(references, "ec2", "instance/*"), arn(references, "ssm", "managed-instance/*")],
        ),
        allow(
            sid="SessionManager",
            actions="""
                ssmmessages:CreateControlChannel ssmmessages:CreateDataChannel
                ssmmessages:OpenControlChannel ssmmessages:OpenDataChannel""",
        ),
    ]


def data_volume_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements that let a master attach its data volume.

    EC2 requires permission for both volume and instance. A master first detaches the volume from the slot's previous
    instance. It waits until that instance is terminated, so it may describe instances.
    """
    return [
        allow(sid="DataVolumeRead", actions="ec2:DescribeInstances ec2:DescribeVolumes"),
        allow(
            sid="DataVolumeAttach",
            actions="ec2:AttachVolume ec2:DetachVolume",
            resources=[arn(references, "ec2", "volume/*"), arn(references, "ec2", "instance/*")],
            condition=if_resource_tagged(cluster, **MASTER_ROLE_TAG),
        ),
    ]


def volume_key_statements(
    cluster: Cluster, references: References, key: str | None, *, sid_prefix: str = "DataVolume"
) -> list[Statement]:
    """Return the statements for attaching a volume that is encrypted with a customer managed KMS key.

    Volumes may have a customer managed key even if the cluster file names none, because an account can set a default
    key for EBS. The grant that the caller creates lets EBS use the key. Source: "Required permissions", Amazon EBS User
    Guide, encryption.

    Args:
        key: ARN of the key, or None for any key, since the account's default key is not known.
    """
    keys = [named_arn(references, key) if key else arn(references, "kms", "key/*")]
    via_ec2 = {"StringEquals": via_service(cluster, references, "ec2")}
    return [
        allow(
            sid=f"{sid_prefix}Key",
            actions="kms:Decrypt kms:DescribeKey kms:GenerateDataKeyWithoutPlaintext",
            resources=keys,
            condition=via_ec2,
        ),
        allow(
            sid=f"{sid_prefix}KeyGrant",
            actions="kms:CreateGrant",
            resources=keys,
            condition={"Bool": {"kms:GrantIsForAWSResource": "true"}, **via_ec2},
        ),
    ]


def issuer_document_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the permission to read and write the two documents, and nothing else, in the issuer's bucket.

    The result is empty if masters do not publish the documents. Without permission to list the bucket, S3 answers 403,
    and not 404, to whoever reads a document that does not exist ("GetObject", Amazon S3 API Reference).
    """
    issuer = cluster.service_account_issuer
    if issuer is None or not masters_publish_documents(cluster):
        return []
    documents = [
        arn(references, "s3", f"${{Bucket}}/{key}", region="", account="", Bucket=bucket)
        for bucket in references.issuer_bucket_names
        for key in document_keys(issuer)
    ]
    statements = [allow(sid="IssuerDocuments", actions="s3:GetObject s3:PutObject", resources=documents)]
    if issuer.bucket:
        # The user's own bucket may be encrypted with a KMS key, see `_backup_statements`.
        [bucket] = (
            arn(references, "s3", "${Bucket}", region="", account="", Bucket=name)
            for name in references.issuer_bucket_names
        )
        only_this_bucket: Condition = {
            "StringEquals": {
                **via_service(cluster, references, "s3"),
                "kms:EncryptionContext:aws:s3:arn": [bucket, *documents],
            }
        }
        statements.append(
            allow(
                sid="IssuerDocumentsKey",
                actions="kms:Decrypt kms:GenerateDataKey",
                resources=[arn(references, "kms", "key/*")],
                condition=only_this_bucket,
            )
        )
    return statements
