"""To what a statement of an IAM policy is limited, in words: by its resources and by its conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cfngen.cluster.naming import tag_keys
from cfngen.graph.cluster_templates import ClusterTemplates
from cfngen.graph.values import items, mapping, words
from cfngen.templates.expressions import references

# Condition keys that ask for a tag of what is there, and of what a request makes.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
_RESOURCE_TAGS = ("ResourceTag/", "ExistingObjectTag/")
_REQUEST_TAGS = ("RequestTag/",)
# Names of services as people say them, by the beginning of the host names that kms:ViaService takes.
_SERVICE_NAMES = {"ec2": "EC2", "s3": "S3", "secretsmanager": "Secrets Manager", "logs": "CloudWatch Logs"}
# Types of resources in ARNs as people write them, where that is more than a space in place of a hyphen.
_TYPE_NAMES = {"vpc": "VPC", "userpool": "user pool"}
# The end of an ARN that is about a whole type: `volume/*`, `listener-rule/app/*`, and
# `autoScalingGroup:*:autoScalingGroupName/*`.
_WHOLE_TYPE = re.compile(r"([A-Za-z-]+)(:\*:[A-Za-z]+)?(/(app|net|gwy))?(/\*)+")
_LINKED_SERVICE = "iam:AWSServiceName"
_OWN_STACK = "stack/${StackName}"


class GrantLimits(NamedTuple):
    """To what a statement is limited, in words; each part is empty if it limits nothing.

    Attributes:
        objects: what it is about, after a verb: e.g. `what has the cluster's tag`.
        place: the resources that it names, e.g. `on hostedzone/Z0123456789ABCDEFGHIJ`.
        manner: in what way, e.g. `through Secrets Manager`.
    """

    objects: str
    place: str
    manner: str

    def text(self, *, with_place: bool) -> str:
        """Return the limits as one text, with or without the resources."""
        return " ".join(filter(None, (self.objects, self.place if with_place else "", self.manner)))


class _Condition(NamedTuple):
    """A condition of a statement.

    Attributes:
        value: one value or several, which may refer to something.
    """

    operator: str
    key: str
    value: object

    @property
    def is_negated(self) -> bool:
        """Whether it asks for the opposite: another value, or no value."""
        return "Not" in self.operator or (self.operator == "Null" and str(self.value).lower() == "true")


def limits_of(templates: ClusterTemplates, statement: Mapping[str, object], service: str) -> GrantLimits:
    """Return to what a statement is limited in a service.

    Args:
        service: the service as policies name it, e.g. `ec2`.
    """
    conditions = [
        _Condition(str(operator), str(key), value)
        for operator, operands in mapping(statement.get("Condition")).items()
        for key, value in mapping(operands).items()
    ]
    tags = _tags(templates, conditions)
    # What a tag limits is limited enough; other conditions of such a statement say when the tag is asked for.
    others = [] if tags else conditions
    objects = [tags, *(_objects(templates, condition) for condition in others)]
    manner = [_manner(templates, condition) for condition in others]
    # The ARN of a service-linked role says its service again.
    names_service = any(condition.key == _LINKED_SERVICE for condition in others)
    return GrantLimits(
        " ".join(filter(None, objects)),
        "" if names_service else _place(templates, statement, service, has_conditions=bool(conditions)),
        " ".join(dict.fromkeys(filter(None, manner))),
    )


def _tags(templates: ClusterTemplates, conditions: Sequence[_Condition]) -> str:
    """Return the tags that conditions ask for, in words; empty if they ask for none."""
    tag, is_wanted = _tag(templates, conditions, _RESOURCE_TAGS)
    texts = [f"what {'has' if is_wanted else 'does not have'} {tag}"] if tag else []
    new_tag, is_wanted = _tag(templates, conditions, _REQUEST_TAGS)
    if new_tag:
        texts.append(f"with {new_tag}" if is_wanted else f"but not {'that tag' if new_tag == tag else new_tag}")
    return " ".join(texts)


def _tag(templates: ClusterTemplates, conditions: Sequence[_Condition], keys: Sequence[str]) -> tuple[str, bool]:
    """Return the tag that conditions ask for, in words; empty without one. Also return whether the tag must be there.

    Args:
        keys: parts of the condition keys that ask for tags, e.g. `aws:ResourceTag/`; the tag's key follows the slash.
    """
    asking = [condition for condition in conditions if any(key in condition.key for key in keys)]
    wanting = [condition for condition in asking if not condition.is_negated]
    names = [condition.key.partition("/")[2] for condition in wanting or asking]
    if not names:
        return "", False
    clusters_keys = (tag_keys.CLUSTER, tag_keys.shared_with(templates.cluster))
    values = [templates.text(condition.value) for condition in asking if condition.operator != "Null"]
    is_clusters = any(name in clusters_keys for name in names) and (templates.cluster in values or not values)
    return "the cluster's tag" if is_clusters else f"the tag {names[0]}", bool(wanting)


def _objects(templates: ClusterTemplates, condition: _Condition) -> str:
    """Return what a condition allows to be changed or made, in words; empty if it is not of that kind."""
    value = templates.text(condition.value)
    if condition.is_negated:
        return ""
    if condition.key == _LINKED_SERVICE:
        return f"service-linked roles of {value.partition('.')[0]}"
    if condition.key == "route53:ChangeResourceRecordSetsRecordTypes":
        return f"{value} records"
    return ""


def _manner(templates: ClusterTemplates, condition: _Condition) -> str:
    """Return in what way a condition limits, in words; empty if it says what may be changed or made."""
    value = templates.text(condition.value)
    if condition.is_negated:
        return f"on condition of {condition.key}"
    if _objects(templates, condition) or condition.key in ("kms:GrantIsForAWSResource", "s3:if-none-match"):
        return ""
    if condition.key == "kms:ViaService":
        service = value.partition(".")[0]
        return f"through {_SERVICE_NAMES.get(service, service)}"
    if condition.key == "kms:EncryptionContext:SecretARN":
        return "for the cluster's secrets"
    if condition.key == "kms:EncryptionContext:aws:s3:arn":
        return "for its bucket"
    if condition.key == "aws:SecureTransport":
        return "over TLS"
    if condition.key == "ec2:Vpc":
        refers = any(reference.name in templates.resources for reference in references(condition.value))
        return "in the cluster's VPC" if refers else f"in {value.rpartition('/')[2]}"
    if condition.key == "s3:prefix":
        return f"below {value.rstrip('*')}"
    return f"on condition of {condition.key}"


def _place(templates: ClusterTemplates, statement: Mapping[str, object], service: str, *, has_conditions: bool) -> str:
    """Return the resources of a statement in words, without the beginning of their ARNs; empty if it is about all."""
    names = list(dict.fromkeys(_resource_names(templates, statement, service)))
    if "" in names:
        return ""
    types = [match[1] for name in names if service != "s3" and (match := _WHOLE_TYPE.fullmatch(name))]
    single = [name.removesuffix("/*") for name in names if service == "s3" or not _WHOLE_TYPE.fullmatch(name)]
    shown = [_shown(templates, name) for name in single]
    own_stacks = [name for name in shown if name.startswith(_OWN_STACK)]
    if own_stacks:
        shown = ["its own stacks" if len(own_stacks) > 1 else "its own stack"]
        shown += [_shown(templates, name) for name in single if not name.startswith(_OWN_STACK)]
    # What conditions limit is not told by type as well.
    if types and not has_conditions:
        type_names = dict.fromkeys(_TYPE_NAMES.get(name, name.replace("-", " ")) for name in types)
        shown.append(f"any {' or '.join(type_names)}")
    more = f" and {len(shown) - 2} more" if len(shown) > 2 else ""
    return f"on {', '.join(shown[:2])}{more}" if shown and (single or not has_conditions) else ""


def _shown(templates: ClusterTemplates, name: str) -> str:
    """Return the end of an ARN, or what a reference names, as a picture shows it."""
    logical_id = name.rpartition("/")[2]
    return f"the cluster's {words(logical_id)}" if logical_id in templates.resources else name


def _resource_names(templates: ClusterTemplates, statement: Mapping[str, object], service: str) -> Iterator[str]:
    """Yield the resources of a service that a statement names, each without the beginning of its ARN.

    Yields:
        an empty text for all resources (`*`).
    """
    for value in items(statement.get("Resource")):
        # `${AWS::Region}` becomes `${Region}`: its colons would divide the ARN.
        arn = templates.text(value).replace("${AWS::", "${")
        # arn:partition:service:region:account:resource
        parts = arn.split(":", 5)
        # Not an ARN: a lone `*`, or a reference, whose text is the name of a parameter or resource.
        if len(parts) < 6:
            yield arn if arn.strip("*") else ""
        elif parts[2] in (service, "*"):
            yield parts[5] if parts[5].strip("*") else ""
