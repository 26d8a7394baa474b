"""Names in annotations for what the type checker takes for `Any`: JSON documents, boto3's clients, moto's objects.

Like AWS, the emulator checks values of JSON documents at run time (`property_schemas`, `template_sections`). moto's own
annotations lack many attributes, or give them types that its code does not keep to, and the emulator adds further
attributes; the names show readers which layer of moto an object belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

JsonObject = Mapping[str, Any]
JsonDict = dict[str, Any]  # a JsonObject that is still being built or changed
TemplateBody = JsonObject  # a template, with its sections as keys
Properties = JsonObject  # the properties or the attributes of a resource, by name
Expression = Any  # a value in a template, perhaps with intrinsic functions; or the value to which it is resolved
Json = Any  # any value in a JSON document
AwsClient = Any  # a boto3 client or session; botocore checks the arguments of its calls
MotoBackend = Any  # the state of one service in one region, such as EC2Backend
MotoModel = Any  # one object in a backend: an instance, a security group, a load balancer, …
MotoResponse = Any  # the handler of one request to a service, such as EC2's `DHCPOptions`
Original = Callable[..., Any]  # a method of moto that a patch replaces
