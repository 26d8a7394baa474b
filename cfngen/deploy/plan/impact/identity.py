"""The impact of changes of roles for pods and jobs, of repositories, secrets, backups, and boot programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.cluster.iam.service_accounts import ACCOUNTS_OF_COMPONENTS
from cfngen.cluster.naming.identity_ids import PushRoleId, RegistryId, ServiceAccountRoleId
from cfngen.cluster.naming.logical_ids import ISSUER_BUCKET
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.impact import instances
from cfngen.deploy.plan.impact.context import ChangeContext
from cfngen.hints import suggest

_ROLE, _BUCKET = "AWS::IAM::Role", "AWS::S3::Bucket"
_DIGESTS_OF_COMPONENTS = frozenset(account.digest for account in ACCOUNTS_OF_COMPONENTS)
_LOSS = "pods with roles of their own get no new credentials, and lose those they have within an hour"


def _role_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of a service account's role; of other roles, what it is for instances."""
    role_id = ServiceAccountRoleId.parse(context.change.logical_id)
    if push_id := PushRoleId.parse(context.change.logical_id):
        return _push_role_impact(context, push_id)
    if role_id is None:
        return instances.IMPACT_BY_TYPE[_ROLE](context)
    name = context.change.physical_id or context.after("RoleName") or "the role"
    if context.change.action == "remove" and role_id.digest in _DIGESTS_OF_COMPONENTS:
        # CloudFormation deletes what is removed at the end of the update, after masters have installed the add-ons.
        return Impact(f"permissions: the role {name} is removed when its component does not use it any more")
    if context.disappears:
        return Impact(f"permissions: the role {name} {context.verb}, and its pods lose it at once", Danger.DISRUPTIVE)
    if context.change.action == "add":
        return Impact(f"pods of the service account can use the role {name} once they are created anew")
    if context.touches("AssumeRolePolicyDocument"):
        return Impact(f"permissions: which service account may assume the role {name} changes", Danger.DISRUPTIVE)
    if context.touches("Policies", "ManagedPolicyArns", "PermissionsBoundary"):
        return Impact(f"permissions of the pods with the role {name} change at once; nothing is restarted")
    return None


def _push_role_impact(context: ChangeContext, push_id: PushRoleId) -> Impact | None:
    who = f"the role Push{push_id.name}Role"
    if context.disappears:
        return Impact(f"images: {who} {context.verb}, and its jobs can push no more", Danger.DISRUPTIVE)
    if context.change.action == "add":
        return Impact(f"images: jobs can push by {who}; the stack's output Push{push_id.name}RoleArn is its ARN")
    if context.touches("AssumeRolePolicyDocument"):
        return Impact(f"images: which jobs may assume {who} changes", Danger.DISRUPTIVE)
    if context.touches("Policies", "PermissionsBoundary"):
        return Impact(f"images: to which repositories {who} may push changes at once")
    return None


def _repository_impact(context: ChangeContext) -> Impact | None:
    name = context.before("RepositoryName") or context.change.physical_id or context.after("RepositoryName")
    if context.disappears:
        if context.before("EmptyOnDelete") is not None:
            return Impact(f"images: the repository {name} {context.verb} with all images in it", Danger.DANGEROUS)
        return Impact(f"images: the repository {name} no longer belongs to the cluster; it is kept with its images")
    if context.change.action == "add":
        return Impact(f"a repository {name} for images")
    if context.touches("EmptyOnDelete"):
        if context.after("EmptyOnDelete") is not None:
            return Impact(
                f"images: the repository {name} will be deleted with all images when the cluster is deleted",
                Danger.DISRUPTIVE,
            )
        return Impact(f"images: the repository {name} will stay when the cluster is deleted")
    if context.touches("LifecyclePolicy"):
        return Impact(
            f"images: how many images of {name} stay, or for how long, changes; ECR deletes the others within a day, "
            "also those that pods use",
            Danger.DISRUPTIVE,
        )
    if context.touches("RepositoryPolicyText"):
        return Impact(f"images: which accounts may pull from {name} changes at once")
    return None


def _bucket_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of the issuer's bucket; of other buckets, what it is for backups."""
    if context.change.logical_id != ISSUER_BUCKET:
        return _backup_bucket_impact(context)
    if context.change.action == "remove":
        return Impact("the bucket of the issuer's documents is not needed any more; cfngen deletes it after the update")
    if context.disappears:
        return Impact(f"tokens: the bucket of the issuer's documents {context.verb}; {_LOSS}", Danger.DISRUPTIVE)
    return None


def _bucket_policy_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of who may read the documents; CloudFormation retains the policy of backups."""
    if not context.change.logical_id.startswith(ISSUER_BUCKET):
        return None
    return Impact("tokens: who may read the issuer's documents changes") if context.change.action == "update" else None


def _distribution_impact(context: ChangeContext) -> Impact | None:
    if context.change.action == "add":
        return Impact("CloudFront takes some minutes to set the distribution up")
    if context.change.action == "remove":
        return Impact("the distribution of the issuer's documents is removed, which takes some minutes")
    if context.disappears:
        return Impact(
            f"tokens: the distribution of the issuer's documents {context.verb}, and gets another host name; {_LOSS}",
            Danger.DISRUPTIVE,
        )
    return None


def _provider_impact(context: ChangeContext) -> Impact | None:
    if RegistryId.parse(context.change.logical_id):
        if context.change.action == "remove":
            return Impact("permissions: the OIDC provider no longer belongs to the cluster; it is kept")
        if context.touches("ClientIdList"):
            return Impact("permissions: for which audiences AWS STS accepts tokens of jobs changes")
        return None
    if context.disappears:
        return Impact(f"permissions: the OIDC provider {context.verb}; {_LOSS}", Danger.DISRUPTIVE)
    if context.touches("ClientIdList"):
        return Impact("permissions: for which audiences AWS STS accepts tokens changes", Danger.DISRUPTIVE)
    return None


def _key_impact(context: ChangeContext) -> Impact | None:
    if not context.disappears:
        return Impact("who may use the key of the cluster's secrets changes") if context.touches("KeyPolicy") else None
    return Impact(
        f"secrets: the key that encrypts them {context.verb}; certificate authorities would be lost with it once its "
        "waiting period is over",
        Danger.DANGEROUS,
    )


def _secret_impact(context: ChangeContext) -> Impact | None:
    if not context.disappears:
        return None
    if context.change.logical_id.startswith("Join"):
        return Impact(
            f"secrets: the join information {context.verb}; no node joins until the masters have written it again",
            Danger.DISRUPTIVE,
        )
    return Impact(
        f"secrets: the certificate authorities {context.verb} and would be lost; no instance could join, and no "
        "replaced master would start",
        Danger.DANGEROUS,
    )


def _backup_bucket_impact(context: ChangeContext) -> Impact | None:
    if context.disappears:
        # Its DeletionPolicy and UpdateReplacePolicy are Retain.
        return Impact(
            f"backups: the bucket {context.change.physical_id} no longer belongs to the cluster; it is kept with all "
            f"its snapshots, but `{suggest('etcd list')}` no longer finds them",
            Danger.DISRUPTIVE,
        )
    if context.touches("ObjectLockEnabled"):
        return Impact(
            "backups: S3 Object Lock is turned on for the bucket, and can never be turned off again, not even by a "
            "rollback; masters lock each new snapshot, existing ones stay without a lock",
            Danger.DISRUPTIVE,
        )
    if context.touches("LifecycleConfiguration"):
        return Impact("backups: the retention of snapshots changes, also for existing snapshots")
    return None


def _program_impact(context: ChangeContext) -> Impact:
    owner = f"of {context.owner or 'the masters'}"
    if context.change.action == "remove":
        return Impact(f"the previous boot program {owner}; no instance downloads it any more", Danger.NONE)
    return Impact(f"the boot program {owner}, stored as metadata; nothing is created in AWS", Danger.NONE)


IMPACT_BY_TYPE: Mapping[str, Callable[[ChangeContext], Impact | None]] = {
    "AWS::CloudFormation::WaitConditionHandle": _program_impact,
    "AWS::CloudFront::Distribution": _distribution_impact,
    "AWS::ECR::Repository": _repository_impact,
    "AWS::IAM::OIDCProvider": _provider_impact,
    "AWS::KMS::Key": _key_impact,
    "AWS::S3::BucketPolicy": _bucket_policy_impact,
    "AWS::SecretsManager::Secret": _secret_impact,
    _BUCKET: _bucket_impact,
    _ROLE: _role_impact,
}
