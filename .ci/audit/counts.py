"""What can be counted in templates without any checker; of everything that is counted, less is better."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Resources = Mapping[str, Mapping[str, Any]]

# Actions that change nothing; EC2, KMS and others have further ones, which count as writes.
_READS = re.compile(r"[\w-]+:(Describe|Get|List|BatchGet|BatchCheck)\w*")
_WORLD = ("0.0.0.0/0", "::/0")
_KEPT = ("Retain", "RetainExceptOnCreate", "Snapshot")


def counts(resources: Resources) -> dict[str, int]:
    """Return how often each thing that a reviewer looks for is in a template, by what it is."""
    unconditional = [
        statement
        for statement in _allowing_statements(resources)
        if "*" in _as_list(statement["Resource"]) and "Condition" not in statement
    ]
    rules = list(_ingress_rules(resources))
    actions = [action for statement in _allowing_statements(resources) for action in _as_list(statement["Action"])]
    written = {action for statement in unconditional for action in _as_list(statement["Action"])}
    return {
        "Allows on `*` without condition": len(unconditional),
        "actions among them that do not only read": len([each for each in written if not _READS.fullmatch(each)]),
        "`service:*`": len([action for action in actions if action.endswith("*")]),
        "rules without description": len([rule for rule in rules if not rule.get("Description")]),
        "rules open to the world": len(
            [rule for rule in rules if rule.get("CidrIp") in _WORLD or rule.get("CidrIpv6") in _WORLD]
        ),
        "launch templates without IMDSv2": len(
            [
                data
                for data in _launch_template_data(resources)
                if data.get("MetadataOptions", {}).get("HttpTokens") != "required"
            ]
        ),
        "volumes and disks without encryption": len(
            [disk for disk in _disks(resources) if str(disk.get("Encrypted")).lower() != "true"]
        ),
        "data volumes and backups that go with the stack": len(
            [
                resource
                for logical_id, resource in resources.items()
                if (resource["Type"] == "AWS::EC2::Volume" or logical_id == "BackupBucket")
                and resource.get("DeletionPolicy") not in _KEPT
            ]
        ),
    }


def _properties(resources: Resources, *types: str) -> Iterator[Mapping[str, Any]]:
    yield from (resource.get("Properties", {}) for resource in resources.values() if resource["Type"] in types)


def _allowing_statements(resources: Resources) -> Iterator[Mapping[str, Any]]:
    for properties in _properties(resources, "AWS::IAM::Role", "AWS::IAM::ManagedPolicy"):
        documents = [policy["PolicyDocument"] for policy in properties.get("Policies", ())]
        documents += [properties["PolicyDocument"]] if "PolicyDocument" in properties else []
        for document in documents:
            yield from (statement for statement in document["Statement"] if statement["Effect"] == "Allow")


def _ingress_rules(resources: Resources) -> Iterator[Mapping[str, Any]]:
    yield from _properties(resources, "AWS::EC2::SecurityGroupIngress")
    for properties in _properties(resources, "AWS::EC2::SecurityGroup"):
        yield from properties.get("SecurityGroupIngress", ())


def _launch_template_data(resources: Resources) -> Iterator[Mapping[str, Any]]:
    for properties in _properties(resources, "AWS::EC2::LaunchTemplate"):
        yield properties["LaunchTemplateData"]


def _disks(resources: Resources) -> Iterator[Mapping[str, Any]]:
    yield from _properties(resources, "AWS::EC2::Volume")
    for data in _launch_template_data(resources):
        yield from (mapping["Ebs"] for mapping in data.get("BlockDeviceMappings", ()) if "Ebs" in mapping)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
