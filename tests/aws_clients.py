"""Lets the clients of boto3 in tests share what each would make, read or look up anew.

What a client asks, and what it makes of an answer, stay the same; only signatures and the user agent are left out.
"""

from __future__ import annotations

import functools
from datetime import datetime
from typing import Any

import botocore.client
import botocore.hooks
import botocore.httpsession
import botocore.parsers
import botocore.regions
import botocore.session
import botocore.useragent
from botocore import auth
from botocore.utils import parse_timestamp
from dateutil.tz import tzutc

# Tests make hundreds of sessions, and each would read megabytes of service models anew.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)

# Clients of boto3 rename events by one list, which each new client would go through anew for every name.
_EVENT_NAMES: dict[str, str] = {}
_make_event_aliaser = botocore.hooks.EventAliaser.__init__


def _share_event_names(self: Any, *arguments: Any, **keywords: Any) -> None:
    _make_event_aliaser(self, *arguments, **keywords)
    if self._event_aliases == botocore.hooks.EVENT_ALIASES:
        self._alias_name_cache = _EVENT_NAMES


botocore.hooks.EventAliaser.__init__ = _share_event_names

# Each session asks of hundreds of handlers whether they take further arguments.
_accepts_kwargs = functools.lru_cache(1024)(botocore.hooks.accepts_kwargs)
botocore.hooks.accepts_kwargs = lambda handler: _accepts_kwargs(getattr(handler, "__func__", handler))


# Each client copies the tree of the session's handlers, list by list.
def _copy_handlers(self: Any, node: dict[str, Any]) -> dict[str, Any]:
    return {
        key: botocore.hooks.NodeList(*(handlers[:] for handlers in value))
        if isinstance(value, botocore.hooks.NodeList)
        else _copy_handlers(self, value)
        if isinstance(value, dict)
        else value
        for key, value in node.items()
    }


botocore.hooks._PrefixTrie._recursive_copy = _copy_handlers

# Each client would read the rules by which its service has endpoints, and follow them for its first request.
_make_endpoint_provider = botocore.regions.EndpointProvider
_ENDPOINT_PROVIDERS: dict[tuple[int, ...], tuple[Any, object]] = {}


def _endpoint_provider(**data: Any) -> Any:
    # By the identity of the data, which the loader of all sessions keeps, and so does the entry.
    key = tuple(map(id, data.values()))
    if key not in _ENDPOINT_PROVIDERS:
        _ENDPOINT_PROVIDERS[key] = _make_endpoint_provider(**data), data
    return _ENDPOINT_PROVIDERS[key][0]


botocore.regions.EndpointProvider = _endpoint_provider

# Each client would look up again what the shapes of its service are.
_load_service_model = botocore.client.ClientCreator._load_service_model
_SERVICE_MODELS: dict[tuple[str, str | None], Any] = {}


def _load_service_model_once(self: Any, service_name: str, api_version: str | None = None) -> Any:
    if (service_name, api_version) not in _SERVICE_MODELS:
        _SERVICE_MODELS[service_name, api_version] = _load_service_model(self, service_name, api_version)
    return _SERVICE_MODELS[service_name, api_version]


botocore.client.ClientCreator._load_service_model = _load_service_model_once

# A client's class has a method for each operation of its service, and EC2 has seven hundred; each client would make
# them anew.
_create_methods = botocore.client.ClientCreator._create_methods
_create_name_mapping = botocore.client.ClientCreator._create_name_mapping
_METHODS: dict[tuple[str, str], tuple[dict[str, Any], dict[str, str]]] = {}


def _methods_and_names(self: Any, service_model: Any) -> tuple[dict[str, Any], dict[str, str]]:
    service = (service_model.service_name, service_model.api_version)
    if service not in _METHODS:
        _METHODS[service] = (_create_methods(self, service_model), _create_name_mapping(self, service_model))
    return _METHODS[service]


botocore.client.ClientCreator._create_methods = lambda self, model: dict(_methods_and_names(self, model)[0])
botocore.client.ClientCreator._create_name_mapping = lambda self, model: dict(_methods_and_names(self, model)[1])

# A context for encrypted connections takes a millisecond; each client would make its own, and none connects to AWS.
botocore.httpsession.create_urllib3_context = functools.cache(botocore.httpsession.create_urllib3_context)

# Nobody reads what kind of client asks, which each request would put together anew.
botocore.useragent.UserAgentString.to_string = lambda self: "tests"

# Each request would be signed, which takes a seventh of its time; nobody in these processes checks a signature, but the
# emulator reads whose credentials they are.
_add_auth = auth.SigV4Auth.add_auth


def _name_credentials(self: Any, request: Any) -> None:
    if type(self) not in (auth.SigV4Auth, auth.S3SigV4Auth) or self.credentials is None:
        _add_auth(self, request)
        return
    request.context["timestamp"] = auth.get_current_datetime().strftime(auth.SIGV4_TIMESTAMP)
    self._modify_request_before_signing(request)
    credential = f"Credential={self.scope(request)}, SignedHeaders=host;x-amz-date, Signature=unsigned"
    request.headers["Authorization"] = f"AWS4-HMAC-SHA256 {credential}"


auth.SigV4Auth.add_auth = _name_credentials


def _timestamp(value: Any) -> datetime:
    """Read a time of an answer as botocore does, but the form that all of moto's have without guessing at forms."""
    if isinstance(value, str) and value.endswith("Z") and "T" in value:
        try:
            return datetime.fromisoformat(value[:-1]).replace(tzinfo=tzutc())
        except ValueError:
            pass
    return parse_timestamp(value)


botocore.parsers.DEFAULT_TIMESTAMP_PARSER = _timestamp

# The name of each element of an answer would lose its namespace by a regular expression.
botocore.parsers.BaseXMLResponseParser._node_tag = lambda self, node: node.tag.rpartition("}")[2]


# Of a structure that may have sixty members, and has five, each would be asked anew how it is called in XML.
_parse_structure = botocore.parsers.BaseXMLResponseParser._handle_structure


def _members_by_element(parser: Any, shape: Any) -> list[tuple[str, str, Any]] | None:
    """Return what the children of an element stand for; None for structures with parts in other places, and errors."""
    members = shape.members.values()
    has_other_places = any({"location", "eventheader", "xmlAttribute"} & {*each.serialization} for each in members)
    if has_other_places or shape.is_tagged_union or shape.metadata.get("exception"):
        return None
    return [(parser._member_key_name(member, name), name, member) for name, member in shape.members.items()]


def _parse_known_structure(self: Any, shape: Any, node: Any) -> Any:
    kept = vars(shape)
    if "members_by_element" not in kept:
        kept["members_by_element"] = _members_by_element(self, shape)
    if kept["members_by_element"] is None:
        return _parse_structure(self, shape, node)
    elements = self._build_name_to_xml_node(node)
    return {
        name: self._parse_shape(member, elements[element])
        for element, name, member in kept["members_by_element"]
        if element in elements
    }


botocore.parsers.BaseXMLResponseParser._handle_structure = _parse_known_structure
