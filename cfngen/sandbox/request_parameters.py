"""Parses the parameters of a request by the model of its service, for code that sees the request before moto."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moto.core.model import OperationModel
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request


def parameters(request: Request, protocol: str, operation: OperationModel, uri: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters by their names in the API, without those in the path of the URL.

    Args:
        request: the request, normalised by moto.
        protocol: protocol of the service.
        operation: botocore's model of the operation.
        uri: the parameters in the path.
    """
    parser: Any = PROTOCOL_PARSERS[protocol](operation, map_type=dict)
    parsed: dict[str, Any] = parser.parse(
        {
            "method": request.method,
            "values": request.values,
            "headers": request.headers,
            "body": request.get_data(cache=True),
            "url_path": request.path,
            "url_params": uri,
        }
    )
    return parsed
