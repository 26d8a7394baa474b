"""Types of documents whose shape others define: templates, properties of resources, requests and answers of AWS.

Their values are untyped: like AWS, the emulator checks them at run time (`property_schemas`, `template_functions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonObject = Mapping[str, Any]
JsonDict = dict[str, Any]  # one that is still being built or changed
TemplateBody = JsonObject  # a template, with its sections as keys
Properties = JsonObject  # the properties or the attributes of a resource, by name
Expression = Any  # a value in a template, perhaps with intrinsic functions; or what it is resolved to
AwsClient = Any  # a boto3 client; botocore checks the arguments of its calls
