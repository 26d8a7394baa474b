"""Parameters of a request as the model of its service types them, for whoever looks at it before moto does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moto.core.model import OperationModel
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request


def parameters(request: Request, protocol: str, operation: OperationModel, uri: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters by their names in the API, without those that only the path holds.

    Args:
        request: as moto normalises it.
        protocol: of the service.
        operation: its model.
        uri: what the path holds.
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
