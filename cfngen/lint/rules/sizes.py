"""Rules about size limits that cfn-lint does not check, or checks only for files on disk."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import TYPE_CHECKING, ClassVar

from cfnlint.rules import CloudFormationLintRule, RuleMatch
from cfnlint.template import Template

if TYPE_CHECKING:
    from cfngen.templates import expressions
else:  # By its path, since cfn-lint may run in a Python without cfngen.
    expressions = SimpleNamespace(**run_path(str(Path(__file__).parents[2] / "templates" / "expressions.py")))

# Length of the longest value of each pseudo parameter: the longest region is us-isof-south-1, the longest partition
# aws-us-gov; a stack's name has at most 128 characters; a stack's id contains partition, region, account, name, UUID.
_MAX_PSEUDO_PARAMETER_LENGTHS = {
    "AWS::AccountId": 12,
    "AWS::NoValue": 0,
    "AWS::Partition": 10,
    "AWS::Region": 15,
    "AWS::StackId": 15 + 10 + 12 + 128 + 36 + len("arn::cloudformation:::stack//"),
    "AWS::StackName": 128,
    "AWS::URLSuffix": 16,
}


class UserDataSize(CloudFormationLintRule):  # type: ignore[misc]
    """UserData of more than 16 KiB.

    The bytes before Base64 encoding are counted. A reference counts as its longest possible value: for a parameter the
    longest of its AllowedValues or its MaxLength, for Fn::If the longer branch. A parameter without such a bound counts
    as its default, any other unbounded reference (such as a resource's attribute) as nothing.
    """

    id = "E9001"
    shortdesc = "UserData fits into EC2's limit"
    description = (
        "EC2 refuses user data of more than 16,384 bytes before Base64 encoding; CloudFormation finds out late"
    )
    source_url = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html"
    tags: ClassVar = ["limits", "ec2", "userdata"]

    LIMIT = 16384

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every UserData property that can be too long."""
        parameters = cfn.template.get("Parameters", {})
        for logical_id, resource in cfn.get_resources().items():
            for path, value in _values_of_key(
                "UserData", resource.get("Properties"), ["Resources", logical_id, "Properties"]
            ):
                size = _user_data_size(value, parameters)
                if size > self.LIMIT:
                    yield RuleMatch(path, f"UserData can have {size:,} bytes; EC2 takes at most {self.LIMIT:,}")


def _values_of_key(key: str, value: object, path: list[str | int]) -> Iterator[tuple[list[str | int], object]]:
    if isinstance(value, Mapping):
        for item_key, item in value.items():
            if item_key == key:
                yield [*path, item_key], item
            else:
                yield from _values_of_key(key, item, [*path, item_key])
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _values_of_key(key, item, [*path, index])


def _user_data_size(value: object, parameters: Mapping[str, object]) -> int:
    """Return the maximum size of UserData in bytes before Base64 encoding."""
    if isinstance(value, str):
        try:
            return len(base64.b64decode(value, validate=True))
        except (binascii.Error, ValueError):
            return len(value.encode())
    return _max_bytes(value, parameters)


def _max_bytes(value: object, parameters: Mapping[str, object]) -> int:
    if not isinstance(value, Mapping):
        return len(str(value).encode())
    function, argument = expressions.function_call(value)
    if function == "Ref":
        return _max_reference_bytes(str(argument), parameters)
    if function == "Fn::Base64":
        return _max_bytes(argument, parameters)
    if function == "Fn::Sub":
        return sum(_max_bytes(part, parameters) for part in expressions.sub_parts(argument))
    if function == "Fn::Join" and isinstance(argument, list) and len(argument) == 2 and isinstance(argument[1], list):
        separators = len(str(argument[0]).encode()) * max(len(argument[1]) - 1, 0)
        return separators + sum(_max_bytes(part, parameters) for part in argument[1])
    if function == "Fn::If" and isinstance(argument, list) and len(argument) == 3:
        return max(_max_bytes(branch, parameters) for branch in argument[1:])
    return 0


def _max_reference_bytes(name: str, parameters: Mapping[str, object]) -> int:
    """Return the maximum number of bytes of the value of a parameter or pseudo parameter; 0 for other names."""
    if name in _MAX_PSEUDO_PARAMETER_LENGTHS:
        return _MAX_PSEUDO_PARAMETER_LENGTHS[name]
    parameter = parameters.get(name)
    if not isinstance(parameter, Mapping):
        return 0
    if isinstance(parameter.get("AllowedValues"), list):
        return max((len(str(value).encode()) for value in parameter["AllowedValues"]), default=0)
    max_length = str(parameter.get("MaxLength", ""))
    return int(max_length) if max_length.isdecimal() else len(str(parameter.get("Default", "")).encode())


class TemplateSize(CloudFormationLintRule):  # type: ignore[misc]
    """A template that is too large for CloudFormation to read from S3; cfn-lint's E1002 checks only files."""

    id = "E9002"
    shortdesc = "Template fits into the limit of S3"
    description = "CloudFormation reads templates of at most 1 MB from S3"
    source_url = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"
    tags: ClassVar = ["limits"]

    # The documentation says "1 MB", which may also mean 1,048,576 bytes; this is the smaller number.
    LIMIT = 1_000_000

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match if the template is too large."""
        yield from _larger_than(self.LIMIT, cfn, f"CloudFormation reads at most {self.LIMIT:,} from S3")


class BodySize(CloudFormationLintRule):  # type: ignore[misc]
    """A template that is too large for a CloudFormation request, so that it must be uploaded to S3."""

    id = "I9003"
    shortdesc = "Template fits into a request"
    description = "Above 51,200 bytes a template cannot be the TemplateBody of a request and has to be uploaded to S3"
    source_url = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"
    tags: ClassVar = ["limits"]

    LIMIT = 51200

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match if the template has to be uploaded."""
        yield from _larger_than(self.LIMIT, cfn, f"TemplateBody takes at most {self.LIMIT:,}")


def _larger_than(limit: int, cfn: Template, limit_in_words: str) -> Iterator[RuleMatch]:
    """Yield a match if the template's file or, without a file, the template as indented JSON has more bytes."""
    if cfn.filename and Path(cfn.filename).is_file():
        size = Path(cfn.filename).stat().st_size
    else:
        size = len(json.dumps(cfn.template, indent=1, ensure_ascii=False, default=str).encode())
    if size > limit:
        yield RuleMatch(["Template"], f"the template has {size:,} bytes; {limit_in_words}")
