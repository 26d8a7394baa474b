"""Types of JSON documents: templates, properties of resources, and requests and responses of AWS.

Their values are `Any`: like AWS, the emulator checks them at run time (`property_schemas`, `template_sections`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonObject = Mapping[str, Any]
JsonDict = dict[str, Any]  # a JsonObject that is still being built or changed
TemplateBody = JsonObject  # a template, with its sections as keys
Properties = JsonObject  # the properties or the attributes of a resource, by name
Expression = Any  # a value in a template, perhaps with intrinsic functions; or the value to which it is resolved
Json = Any  # any value in a JSON document
AwsClient = Any  # a boto3 client or session; botocore checks the arguments of its calls
