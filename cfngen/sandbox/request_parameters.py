"""Parses the parameters of a request by the model of its service, for code that sees the request before moto."""

from __future__ import annotations

from typing import Any

from moto.core.model import OperationModel
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request

from cfngen.sandbox.json_types import JsonDict, JsonObject


def parameters(request: Request, protocol: str, operation: OperationModel, path_parameters: JsonObject) -> JsonDict:
    """Return the parameters of a request by their names in the API, without those in the path of the URL.

    Args:
        request: the request, normalised by moto.
        protocol: protocol of the service, e.g. `query`.
        operation: botocore's model of the operation.
        path_parameters: the parameters in the path of the URL, by name.
    """
    parser: Any = PROTOCOL_PARSERS[protocol](operation, map_type=dict)
    parsed: JsonDict = parser.parse(
        {
            "method": request.method,
            "values": request.values,
            "headers": request.headers,
            "body": request.get_data(cache=True),
            "url_path": request.path,
            "url_params": path_parameters,
        }
    )
    return parsed
