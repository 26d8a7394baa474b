"""CloudFormation's API with its answers checked, and a client of it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.validate import ParamValidator
from moto.core.utils import get_service_model
from served_api import Served, serving

from cfngen.sandbox.cloudformation import CloudFormation

VALIDATOR = ParamValidator()


@functools.cache
def session() -> boto3.Session:
    """One for all tests, as it keeps the models of the services."""
    return boto3.Session("AKIAOPERATOROPERATOR", "secret", region_name="us-west-2")


@contextlib.contextmanager
def checked_api(cloud: CloudFormation) -> Iterator[Served]:
    """The API; every answer is checked against botocore's model, as moto drops what the model does not know."""
    model = get_service_model("cloudformation")
    with serving(cloud) as served, pytest.MonkeyPatch.context() as patch:
        answer = served.service.answer

        def checked(action: str, region: str, given: Any) -> Any:
            result = answer(action, region, given)
            shape = model.operation_model(action).output_shape
            if shape is None:
                assert not result
            else:
                report = VALIDATOR.validate(without_none(result), shape)
                assert not report.has_errors(), f"{action}: {report.generate_report()}"
            return result

        patch.setattr(served.service, "answer", checked)
        yield served


def without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_none(each) for key, each in value.items() if each is not None}
    return [without_none(each) for each in value] if isinstance(value, list) else value
