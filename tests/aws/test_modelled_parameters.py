"""Calls with a parameter that the emulator does not model are refused, instead of it being ignored."""

from __future__ import annotations

import functools
import re
from typing import Any

import boto3
import pytest
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.model import Shape
from small_stacks import REGION

from cfngen.sandbox.services.modelled_parameters import MODELLED, unmodelled_parameter

UNCHECKED = Config(parameter_validation=False, retries={"total_max_attempts": 1})
IN_THE_PATH = {"Bucket": "a-bucket"}


@pytest.mark.parametrize("call", MODELLED)
@pytest.mark.usefixtures("cloud")
def test_a_parameter_that_is_not_modelled_is_refused(call: str) -> None:
    service, operation = call.split(".")
    client = unchecked_client(service)
    members = client.meta.service_model.operation_model(operation).input_shape.members
    name, sent = next(
        (name, parameters)
        for name, parameters in ((name, {name: example(shape)}) for name, shape in members.items())
        if unmodelled_parameter(service, operation, parameters)
    )
    given = {key: value for key, value in IN_THE_PATH.items() if key in members}
    with pytest.raises(ClientError) as raised:
        getattr(client, xform_name(operation))(**given, **sent)
    assert raised.value.response["Error"]["Code"] == "NotModelled"
    pattern = rf"the emulator does not model parameter {name}(\.\S+)?(=.*)? of call {operation}"
    assert re.fullmatch(pattern, raised.value.response["Error"]["Message"])


@functools.cache
def unchecked_client(service: str) -> Any:
    return boto3.client(service, REGION, config=UNCHECKED)


def example(shape: Shape) -> Any:
    """Return a value of this shape; of a structure, all members."""
    if shape.type_name == "structure":
        return {name: example(member) for name, member in shape.members.items()}
    if shape.type_name == "list":
        return [example(shape.member)]
    if shape.type_name == "map":
        return {example(shape.key): example(shape.value)}
    return {"boolean": False, "integer": 1, "long": 1, "double": 1.0, "float": 1.0, "blob": b"a", "timestamp": 0}.get(
        shape.type_name, "a"
    )


@pytest.mark.parametrize(
    ("call", "parameters", "name"),
    [
        ("elbv2.CreateTargetGroup", {"Name": "a", "Protocol": "UDP"}, "Protocol=UDP"),
        ("elbv2.CreateTargetGroup", {"HealthCheckEnabled": False}, "HealthCheckEnabled=false"),
        ("elbv2.ModifyListener", {"DefaultActions": [{"Type": "forward"}, {"Order": 1}]}, "DefaultActions.Order"),
        ("secretsmanager.CreateSecret", {"SecretBinary": b"secret"}, "SecretBinary"),
        (
            "elbv2.ModifyTargetGroupAttributes",
            {"Attributes": [{"Key": "preserve_client_ip", "Value": "false"}]},
            "Attributes.preserve_client_ip",
        ),
        (
            "elbv2.ModifyTargetGroupAttributes",
            {"Attributes": [{"Key": "preserve_client_ip.enabled", "Value": "no"}]},
            "Attributes.preserve_client_ip.enabled=no",
        ),
        ("ec2.RunInstances", {"ImageId": "ami-1", "TagSpecifications": [{"Tags": [{"Key": "a.b"}]}]}, ""),
        ("ec2.DescribeInstances", {"MaxResults": 5}, ""),
    ],
)
def test_the_parameter_is_named_with_its_value_where_others_are_modelled(
    call: str, parameters: dict[str, Any], name: str
) -> None:
    assert unmodelled_parameter(*call.split("."), parameters) == name
