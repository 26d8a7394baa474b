"""Tags that are added to a resource that has some: AWS counts both, and a resource has fifty at most.

TagRole, TagPolicy, TagInstanceProfile and TagOpenIDConnectProvider, IAM API Reference; AddTags, Elastic Load Balancing
API Reference; TagResource, API references of AWS KMS, Secrets Manager, CloudWatch Logs, Amazon ECR and CloudFront. The
rules of EC2's and Auto Scaling's tags, and of tags that are given at creation, are with these resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from moto.elbv2.models import ELBv2Backend

from cfngen.sandbox.moto_patches.registry import replaces
from cfngen.sandbox.services.rules import PendingCall, Refused, rule
from cfngen.sandbox.untyped import Expression, MotoBackend

MAX_TAGS = 50


class _TaggingCall(NamedTuple):
    """An operation that adds tags.

    Attributes:
        existing_keys: returns the keys of the tags of each resource that the call names.
        tags: the parameter with the tags to add: a list, or a mapping of keys to values.
    """

    service: str
    operation: str
    existing_keys: Callable[[MotoBackend, PendingCall], Iterable[Iterable[str]]]
    tags: str = "Tags"
    code: str = "LimitExceeded"


def _keys(tags: Expression) -> list[str]:
    """Return the keys of tags in any of the forms in which services and moto have them."""
    items = tags.get("Items", tags) if isinstance(tags, Mapping) else tags or ()
    if isinstance(items, Mapping):
        return [str(key) for key in items]
    return [str(tag.get("Key") or tag.get("TagKey")) for tag in items]


_CALLS = (
    _TaggingCall("iam", "TagRole", lambda iam, call: [_keys(iam.get_role(call.get("RoleName")).tags)]),
    _TaggingCall("iam", "TagPolicy", lambda iam, call: [iam.get_policy(call.get("PolicyArn")).tags]),
    _TaggingCall(
        "iam", "TagInstanceProfile",
        lambda iam, call: [_keys(iam.get_instance_profile(call.get("InstanceProfileName")).tags)],
    ),
    _TaggingCall(
        "iam", "TagOpenIDConnectProvider",
        lambda iam, call: [iam.get_open_id_connect_provider(call.get("OpenIDConnectProviderArn")).tags],
    ),
    _TaggingCall(
        "elbv2", "AddTags",
        lambda elbv2, call: map(elbv2.tagging_service.get_tag_dict_for_resource, call.get("ResourceArns") or []),
        code="TooManyTags",
    ),
    _TaggingCall(
        "kms", "TagResource",
        lambda kms, call: [kms.tagger.get_tag_dict_for_resource(kms.get_key_id(call.get("KeyId")))],
        code="LimitExceededException",
    ),
    _TaggingCall(
        "secretsmanager", "TagResource",
        lambda secrets, call: [_keys(getattr(secrets.secrets.get(call.get("SecretId")), "tags", None))],
        code="InvalidParameterException",
    ),
    _TaggingCall(
        "logs", "TagResource", lambda logs, call: [logs.tagger.get_tag_dict_for_resource(call.get("resourceArn"))],
        tags="tags", code="TooManyTagsException",
    ),
    _TaggingCall(
        "ecr", "TagResource", lambda ecr, call: [ecr.tagger.get_tag_dict_for_resource(call.get("resourceArn"))],
        tags="tags", code="TooManyTagsException",
    ),
    _TaggingCall(
        "cloudfront", "TagResource",
        lambda cloudfront, call: [cloudfront.tagger.get_tag_dict_for_resource(call.get("Resource"))],
        code="InvalidTagging",
    ),
)  # fmt: skip


def _check(tagging_call: _TaggingCall) -> None:
    def check_count(call: PendingCall) -> None:
        new_keys = _keys(call.get(tagging_call.tags))
        for existing in tagging_call.existing_keys(call.backend, call):
            # Keys of IAM's tags are not case-sensitive.
            fold = str.lower if call.service == "iam" else str
            if len({fold(key) for key in (*existing, *new_keys) if not key.startswith("aws:")}) > MAX_TAGS:
                raise Refused(tagging_call.code, f"A resource cannot have more than {MAX_TAGS} tags")

    rule(tagging_call.service, tagging_call.operation)(check_count)


for _call in _CALLS:
    _check(_call)


@replaces(ELBv2Backend, "add_tags")
def _add_tags(self: MotoBackend, resource_arns: list[str], tags: list[dict[str, str]]) -> None:
    """Add tags; moto refuses the eleventh of a resource."""
    for arn in resource_arns:
        self._get_resource_by_arn(arn)
        self.tagging_service.tag_resource(arn, tags)
