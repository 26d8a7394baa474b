"""Parameter Store, as CloudFormation reads it for parameters of the type AWS::SSM::Parameter::Value."""

from __future__ import annotations

from moto.ssm.models import ssm_backends

from cfngen.sandbox.cloudformation.errors import ValidationError
from cfngen.sandbox.cloudformation.region import ACCOUNT_ID, Region


def stored_value(cloud: Region, name: str) -> str | None:
    """The value of a parameter: of a public one, or of one that the account has; None if there is none.

    Raises:
        ValidationError: it is a SecureString, which CloudFormation does not support for parameters ("Unsupported
            Systems Manager parameter types", CloudFormation User Guide)
    """
    if name in cloud.parameter_store:
        return cloud.parameter_store[name]
    parameter = ssm_backends[ACCOUNT_ID][cloud.region].get_parameter(name)
    if parameter is None:
        return None
    if parameter.parameter_type == "SecureString":
        raise ValidationError(f"Parameters [{name}] referenced by template have types not supported by CloudFormation.")
    return str(parameter.value)
