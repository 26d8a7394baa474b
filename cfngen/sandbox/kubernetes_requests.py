"""Requests for objects of the Kubernetes API: lists, single objects, creation, replacement, merge patches, deletion.

The API server's checks that are the same for all kinds are emulated: invalid names, missing or protected namespaces,
objects of another kind than the path's, outdated resource versions. The fields of objects are not validated.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from cfngen.sandbox.kubernetes_state import KINDS, SYSTEM, Kind, KubernetesState, Object, suffix
from cfngen.sandbox.kubernetes_tables import make_table

# Namespaces that cannot be deleted; a real API server allows the deletion of kube-node-lease.
PROTECTED_NAMESPACES = ("default", "kube-node-lease", "kube-public", SYSTEM)
JSON_TYPES = ("application/json",)
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
MERGE_TYPES = ("application/merge-patch+json", STRATEGIC_MERGE)
# RFC 1123: what the names of most objects must be.
NAME_PATTERN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_PATTERN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
MAX_NAME_LENGTH, MAX_LABEL_LENGTH = 253, 63


class RefusedError(Exception):
    """The API refuses a request: status code, reason and message of the answer."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


@dataclass(frozen=True)
class Address:
    """What a path of the API names: a resource, e.g. `pods`, perhaps in a namespace, perhaps one object."""

    plural: str
    kind: Kind
    namespace: str
    name: str

    @property
    def group_resource(self) -> str:
        """The resource in error messages, with its API group, e.g. `deployments.apps`."""
        return f"{self.plural}.{self.kind.group}" if self.kind.group else self.plural


@dataclass(frozen=True)
class ApiRequest:
    """A request.

    Attributes:
        method: of HTTP.
        address: the resource or the object that the path names.
        query: the query parameters.
        body: the body.
        content_type: media type of the body.
        table: whether the client accepts a Table, whose rows kubectl prints.
    """

    method: str
    address: Address
    query: Mapping[str, str]
    body: bytes
    content_type: str
    table: bool

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        return bool(self.query.get("dryRun"))


class Cluster(Protocol):
    """What requests need of a cluster."""

    @property
    def state(self) -> KubernetesState:
        """Its objects."""

    @property
    def created(self) -> Callable[[str, Object], None]:
        """Called with each new object."""

    @property
    def deleted(self) -> Callable[[str, Object], None]:
        """Called to delete an object, at once or later."""


def answer(cluster: Cluster, request: ApiRequest) -> tuple[int, Object]:
    """Execute a request; return the status code and the body of the answer.

    Raises:
        RefusedError: the request is refused; nothing has been changed.
    """
    address, kind = request.address, request.address.kind
    if request.method == "POST" and not address.name:
        return 201, _with_type(kind, _create(cluster, request))
    if not address.name:
        if request.method != "GET":
            raise RefusedError(405, "MethodNotAllowed", "the server does not allow this method")
        if request.query.get("watch") in ("1", "true"):
            raise RefusedError(405, "MethodNotAllowed", "the sandbox does not watch; list again")
        return 200, _list(cluster.state, request)
    item = cluster.state.get(address.plural, address.name, address.namespace)
    if item is None:
        raise RefusedError(404, "NotFound", f'{address.group_resource} "{address.name}" not found')
    if request.method == "DELETE":
        return 200, _delete(cluster, request, item)
    if request.method in ("PUT", "PATCH"):
        item = _update(cluster, request, item)
    elif request.method != "GET":
        raise RefusedError(405, "MethodNotAllowed", "the server does not allow this method")
    typed_item = _with_type(kind, item)
    if request.table and request.method == "GET":
        return 200, make_table(
            address.plural, [typed_item], {}, cluster.state.now(), request.query.get("includeObject", "")
        )
    return 200, typed_item


def _create(cluster: Cluster, request: ApiRequest) -> Object:
    """Create an object, or return it as it would be created by a dry run."""
    state, address = cluster.state, request.address
    item = _parse_body(request, JSON_TYPES)
    _check_kind(address, item)
    # Go clients send unset timestamps as null.
    metadata = {key: value for key, value in (item.get("metadata") or {}).items() if value is not None}
    for key in ("uid", "creationTimestamp", "resourceVersion", "deletionTimestamp"):
        metadata.pop(key, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"] + suffix(f"{metadata['generateName']} {state.resource_version}")
    _check_name(address, str(metadata.get("name") or ""))
    name, namespace = str(metadata["name"]), ""
    if address.kind.namespaced:
        namespace = address.namespace or "default"
        if metadata.get("namespace", namespace) != namespace:
            message = "the namespace of the provided object does not match the namespace sent on the request"
            raise RefusedError(400, "BadRequest", message)
        if state.get("namespaces", namespace) is None:
            raise RefusedError(404, "NotFound", f'namespaces "{namespace}" not found')
        metadata["namespace"] = namespace
    if state.get(address.plural, name, namespace):
        raise RefusedError(409, "AlreadyExists", f'{address.group_resource} "{name}" already exists')
    new_item = _with_defaults(address.plural, {**item, "metadata": metadata})
    if request.is_dry_run:
        return new_item
    created = state.put(address.plural, new_item)
    cluster.created(address.plural, created)
    return created


def _with_defaults(plural: str, item: Object) -> Object:
    """Return a new object with the defaults that the API server adds."""
    if plural == "namespaces":
        return {**item, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    if plural == "secrets":
        texts = {key: base64.b64encode(value.encode()).decode() for key, value in item.pop("stringData", {}).items()}
        return {"type": "Opaque", **item, "data": {**(item.get("data") or {}), **texts}}
    return item


def _check_kind(address: Address, item: Object) -> None:
    """Refuse an object of another kind or API version than the path's."""
    expected = (address.kind.api_version, address.kind.name)
    sent = (item.get("apiVersion") or expected[0], item.get("kind") or expected[1])
    if sent != expected:
        message = f"{sent[1]} in version {sent[0]!r} cannot be handled as a {expected[1]} of {expected[0]!r}"
        raise RefusedError(400, "BadRequest", message)


def _check_name(address: Address, name: str) -> None:
    """Refuse a missing or invalid name."""
    pattern, max_length = NAME_PATTERN, MAX_NAME_LENGTH
    if address.plural in ("namespaces", "services"):
        pattern, max_length = LABEL_PATTERN, MAX_LABEL_LENGTH
    if not name:
        problem = "metadata.name: Required value: name or generateName is required"
    elif pattern.fullmatch(name) and len(name) <= max_length:
        return
    else:
        problem = (
            f'metadata.name: Invalid value: "{name}": lower case letters, digits and hyphens, at most {max_length}'
        )
    raise RefusedError(422, "Invalid", f'{address.kind.name} "{name}" is invalid: {problem}')


def _update(cluster: Cluster, request: ApiRequest, current: Object) -> Object:
    """Replace an object, or apply a merge patch to it."""
    address = request.address
    changed: Object
    if request.method == "PUT":
        changed = _parse_body(request, JSON_TYPES)
        _check_kind(address, changed)
        current_metadata = current["metadata"]
        metadata = {
            **changed.get("metadata", {}),
            "uid": current_metadata["uid"],
            "creationTimestamp": current_metadata["creationTimestamp"],
        }
        changed = {**changed, "metadata": metadata}
    else:
        patch = _parse_body(request, MERGE_TYPES)
        if request.content_type == STRATEGIC_MERGE and _needs_strategic_merge(patch):
            message = "the sandbox merges no lists and follows no directives: use a merge patch (--type=merge)"
            raise RefusedError(415, "UnsupportedMediaType", message)
        changed = _merge_patch(current, patch)
    current_version, sent_version = current["metadata"]["resourceVersion"], changed["metadata"].get("resourceVersion")
    if sent_version not in (None, "", current_version):
        message = "the object has been modified; please apply your changes to the latest version and try again"
        raise RefusedError(
            409, "Conflict", f'Operation cannot be fulfilled on {address.group_resource} "{address.name}": {message}'
        )
    if changed["metadata"].get("name") != address.name:
        raise RefusedError(400, "BadRequest", "the name of the object does not match the name on the URL")
    return changed if request.is_dry_run else cluster.state.put(address.plural, changed)


def _delete(cluster: Cluster, request: ApiRequest, current: Object) -> Object:
    """Delete an object, with a namespace also all objects in it; return it if its deletion takes time."""
    state, address = cluster.state, request.address
    if address.plural == "namespaces" and address.name in PROTECTED_NAMESPACES:
        message = f'namespaces "{address.name}" is forbidden: this namespace may not be deleted'
        raise RefusedError(403, "Forbidden", message)
    if not request.is_dry_run:
        if address.plural == "namespaces":
            for plural, kind in KINDS.items():
                for item in state.list(plural, address.name) if kind.namespaced else ():
                    cluster.deleted(plural, item)
        cluster.deleted(address.plural, current)
    remaining = state.get(address.plural, address.name, address.namespace)
    if remaining is not None and not request.is_dry_run:
        return _with_type(address.kind, remaining)
    details = {"name": address.name, "kind": address.plural, "uid": current["metadata"]["uid"]}
    return {
        **make_status("Success", 200),
        "details": details | ({"group": address.kind.group} if address.kind.group else {}),
    }


PATH_PATTERN = re.compile(
    r"(?:/api|/apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?"
)


def parse_path(path: str) -> Address:
    """Return the resource or the object that a path names.

    Raises:
        RefusedError: the API has no such resource.
    """
    if match := PATH_PATTERN.fullmatch(path):
        kind = KINDS.get(match["plural"])
        if kind and (kind.group, kind.version) == (match["group"] or "", match["version"]):
            return Address(match["plural"], kind, match["namespace"] or "", urllib.parse.unquote(match["name"] or ""))
    raise RefusedError(404, "NotFound", "the server could not find the requested resource")


def _list(state: KubernetesState, request: ApiRequest) -> Object:
    """Return one page of the objects that match the selectors."""
    address, query = request.address, request.query
    items = [
        item
        for item in state.list(address.plural, address.namespace)
        if _matches(query.get("labelSelector", ""), item["metadata"].get("labels") or {})
        and _matches(query.get("fieldSelector", ""), item, _field_value)
    ]
    metadata: Object = {"resourceVersion": state.resource_version}
    begin = _decode_continue(query.get("continue", ""))
    end = begin + int(query.get("limit") or 0) if int(query.get("limit") or 0) else len(items)
    if end < len(items):
        metadata["continue"] = base64.urlsafe_b64encode(str(end).encode()).decode()
        metadata["remainingItemCount"] = len(items) - end
    kind = address.kind
    page = [_with_type(kind, item) for item in items[begin:end]]
    if request.table:
        return make_table(address.plural, page, metadata, state.now(), query.get("includeObject", ""))
    return {"apiVersion": kind.api_version, "kind": f"{kind.name}List", "metadata": metadata, "items": page}


def _decode_continue(text: str) -> int:
    """Return the number of the first object on the page that a `continue` token names."""
    try:
        return int(base64.urlsafe_b64decode(text) or 0)
    except (binascii.Error, ValueError) as error:
        raise RefusedError(400, "BadRequest", "continue key is not valid") from error


SELECTOR_TERM = re.compile(r"\s*([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)\s*")


def _matches(selector: str, item: Object, value: Callable[[Object, str], str | None] = dict.get) -> bool:
    """Return whether a selector matches an item; it may hold `key=value`, `key!=value`, `key` and `!key`."""
    for part in filter(None, selector.split(",")):
        if match := SELECTOR_TERM.fullmatch(part):
            if (value(item, match[1]) == match[3]) == (match[2] == "!="):
                return False
        elif part.startswith("!") == (value(item, part.lstrip("!")) is not None):
            return False
    return True


def _field_value(item: object, path: str) -> str | None:
    """Return the value of a field for a field selector; empty if it is missing."""
    for key in path.split("."):
        item = item.get(key, "") if isinstance(item, Mapping) else ""
    return str(item)


def _parse_body(request: ApiRequest, types: tuple[str, ...]) -> Object:
    """Return the object in a request's body."""
    if request.content_type not in types:
        message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(types)}"
        raise RefusedError(415, "UnsupportedMediaType", message)
    try:
        item = json.loads(request.body)
    except ValueError as error:
        raise RefusedError(400, "BadRequest", f"the body of the request was not understood: {error}") from error
    if not isinstance(item, dict):
        raise RefusedError(400, "BadRequest", "the body of the request is no object")
    return cast("Object", item)


def _needs_strategic_merge(patch: object) -> bool:
    """Return whether a strategic merge patch differs in meaning from a plain merge patch: lists and directives do."""
    if isinstance(patch, dict):
        return any(key.startswith("$") or _needs_strategic_merge(value) for key, value in patch.items())
    return isinstance(patch, list)


def _merge_patch(item: Any, patch: Any) -> Any:
    """Return an object with a JSON merge patch applied (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    old = item if isinstance(item, dict) else {}
    changed = {key: _merge_patch(old.get(key), value) for key, value in patch.items() if value is not None}
    return {key: value for key, value in old.items() if key not in patch} | changed


def _with_type(kind: Kind, item: Object) -> Object:
    """Return an object with its API version and kind."""
    return {**item, "apiVersion": kind.api_version, "kind": kind.name}


def make_status(outcome: str, code: int, reason: str = "", message: str = "") -> Object:
    """Return a Status object, the API's answer where there is no other object.

    Args:
        outcome: `Success` or `Failure`.
        code: HTTP status code.
        reason: machine-readable reason, e.g. `NotFound`.
        message: human-readable reason.
    """
    details = {key: value for key, value in {"reason": reason, "message": message}.items() if value}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": outcome, **details, "code": code}
