"""Answers requests of clients such as kubectl for objects: list, get, create, replace, patch and delete.

The checks that the API server makes for all kinds are emulated: invalid names, missing or protected namespaces, objects
whose kind does not match the path, outdated resource versions. The fields of objects are not validated.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from cfngen.sandbox.kubernetes.admission import check_unchanged, with_defaults
from cfngen.sandbox.kubernetes.state import KINDS, SYSTEM, Kind, KubernetesState, Object, RefusedError, suffix
from cfngen.sandbox.kubernetes.tables import make_table
from cfngen.sandbox.untyped import Json

# Namespaces that cannot be deleted; a real API server allows the deletion of kube-node-lease.
PROTECTED_NAMESPACES = ("default", "kube-node-lease", "kube-public", SYSTEM)
JSON_TYPES = ("application/json",)
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
SERVER_SIDE_APPLY = "application/apply-patch+yaml"
MERGE_TYPES = ("application/merge-patch+json", STRATEGIC_MERGE)
# RFC 1123: names of most objects are subdomain names; those of namespaces and Services are labels of a domain name.
NAME_PATTERN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_PATTERN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
MAX_NAME_LENGTH, MAX_LABEL_LENGTH = 253, 63  # characters
SELECTOR_TERM = re.compile(r"\s*([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)\s*")


@dataclass(frozen=True)
class ObjectPath:
    """The parts of a path such as `/api/v1/namespaces/default/pods/web-0`.

    Attributes:
        plural: the resource, e.g. `pods`.
        kind: its kind, e.g. that of `Pod`.
        namespace: empty if the path has none.
        name: name of one object; empty if the path names all objects of the resource.
    """

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
    """A parsed HTTP request.

    Attributes:
        path: the resource or the object that the path of the URL names.
        wants_table: whether the client asks for a Table, as kubectl does to print rows and columns.
    """

    method: str
    path: ObjectPath
    query: Mapping[str, str]
    body: bytes
    content_type: str
    wants_table: bool

    @property
    def is_dry_run(self) -> bool:
        """Whether the request has `dryRun`: it is checked and answered, but nothing is stored."""
        return bool(self.query.get("dryRun"))


@dataclass(frozen=True)
class Cluster:
    """The part of a cluster that requests use.

    Attributes:
        on_created: called with the plural and the object after an object was created.
        delete_object: deletes an object, given its plural; the deletion may take simulated time.
    """

    state: KubernetesState
    on_created: Callable[[str, Object], None]
    delete_object: Callable[[str, Object], None]


def answer(cluster: Cluster, request: ApiRequest) -> tuple[int, Object]:
    """Execute a request; return the status code and the body of the answer.

    Raises:
        RefusedError: the request is refused; nothing has been changed.
    """
    path, kind = request.path, request.path.kind
    names_one_object = bool(path.name)
    if request.method == "POST" and not names_one_object:
        return 201, _with_type(kind, _create(cluster, request))
    if not names_one_object:
        if request.method != "GET":
            raise RefusedError(405, "MethodNotAllowed", "the server does not allow this method")
        if request.query.get("watch") in ("1", "true"):
            raise RefusedError(405, "MethodNotAllowed", "the sandbox does not support watch; list the objects again")
        return 200, _list(cluster.state, request)
    if request.method == "PATCH" and request.content_type == SERVER_SIDE_APPLY:  # it may create the object
        message = "the sandbox does not support server-side apply: leave out --server-side"
        raise RefusedError(415, "UnsupportedMediaType", message)
    item = cluster.state.get(path.plural, path.name, path.namespace)
    if item is None:
        raise RefusedError(404, "NotFound", f'{path.group_resource} "{path.name}" not found')
    if request.method == "DELETE":
        return 200, _delete(cluster, request, item)
    if request.method in ("PUT", "PATCH"):
        item = _update(cluster, request, item)
    elif request.method != "GET":
        raise RefusedError(405, "MethodNotAllowed", "the server does not allow this method")
    typed_item = _with_type(kind, item)
    if request.wants_table and request.method == "GET":
        return 200, make_table(
            path.plural,
            [typed_item],
            metadata={},
            now=cluster.state.now(),
            include=request.query.get("includeObject", ""),
        )
    return 200, typed_item


def _create(cluster: Cluster, request: ApiRequest) -> Object:
    """Create an object and return it; for a dry run, only return it."""
    state, path = cluster.state, request.path
    item = _parse_body(request, JSON_TYPES)
    _check_kind(path, item)
    # Go clients send unset timestamps as null.
    metadata = {key: value for key, value in (item.get("metadata") or {}).items() if value is not None}
    for key in ("uid", "creationTimestamp", "resourceVersion", "deletionTimestamp"):
        metadata.pop(key, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"] + suffix(f"{metadata['generateName']} {state.resource_version}")
    _check_name(path, str(metadata.get("name") or ""))
    name, namespace = str(metadata["name"]), ""
    if path.kind.namespaced:
        namespace = path.namespace or "default"
        if metadata.get("namespace", namespace) != namespace:
            message = "the namespace of the provided object does not match the namespace sent on the request"
            raise RefusedError(400, "BadRequest", message)
        if state.get("namespaces", namespace) is None:
            raise RefusedError(404, "NotFound", f'namespaces "{namespace}" not found')
        metadata["namespace"] = namespace
    if state.get(path.plural, name, namespace):
        raise RefusedError(409, "AlreadyExists", f'{path.group_resource} "{name}" already exists')
    new_item = with_defaults(state, path.plural, {**item, "metadata": metadata})
    if request.is_dry_run:
        return new_item
    created = state.put(path.plural, new_item)
    cluster.on_created(path.plural, created)
    return created


def _check_kind(path: ObjectPath, item: Object) -> None:
    """Refuse an object of another kind or API version than the path's."""
    path_version, path_kind = path.kind.api_version, path.kind.name
    sent_version, sent_kind = item.get("apiVersion") or path_version, item.get("kind") or path_kind
    if (sent_version, sent_kind) != (path_version, path_kind):
        message = f"{sent_kind} in version {sent_version!r} cannot be handled as a {path_kind} of {path_version!r}"
        raise RefusedError(400, "BadRequest", message)


def _check_name(path: ObjectPath, name: str) -> None:
    pattern, max_length = NAME_PATTERN, MAX_NAME_LENGTH
    if path.plural in ("namespaces", "services"):
        pattern, max_length = LABEL_PATTERN, MAX_LABEL_LENGTH
    if pattern.fullmatch(name) and len(name) <= max_length:
        return
    problem = f'metadata.name: Invalid value: "{name}": lower case letters, digits and hyphens, at most {max_length}'
    if not name:
        problem = "metadata.name: Required value: name or generateName is required"
    raise RefusedError(422, "Invalid", f'{path.kind.name} "{name}" is invalid: {problem}')


def _update(cluster: Cluster, request: ApiRequest, current: Object) -> Object:
    """Replace an object (PUT) or apply a merge patch to it (PATCH), and return it; for a dry run, only return it."""
    path = request.path
    changed: Object
    if request.method == "PUT":
        changed = _parse_body(request, JSON_TYPES)
        _check_kind(path, changed)
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
            message = "the sandbox cannot merge lists or apply patch directives: use a merge patch (--type=merge)"
            raise RefusedError(415, "UnsupportedMediaType", message)
        changed = _merge_patch(current, patch)
    current_version, sent_version = current["metadata"]["resourceVersion"], changed["metadata"].get("resourceVersion")
    if sent_version not in (None, "", current_version):
        message = "the object has been modified; please apply your changes to the latest version and try again"
        raise RefusedError(
            409, "Conflict", f'Operation cannot be fulfilled on {path.group_resource} "{path.name}": {message}'
        )
    if changed["metadata"].get("name") != path.name:
        raise RefusedError(400, "BadRequest", "the name of the object does not match the name on the URL")
    check_unchanged(path.plural, current, changed)
    return changed if request.is_dry_run else cluster.state.put(path.plural, changed)


def _delete(cluster: Cluster, request: ApiRequest, current: Object) -> Object:
    """Delete an object; with a namespace, delete all objects in it too.

    Return the object if it still exists because its deletion takes simulated time; otherwise return a Status.
    """
    state, path = cluster.state, request.path
    if path.plural == "namespaces" and path.name in PROTECTED_NAMESPACES:
        message = f'namespaces "{path.name}" is forbidden: this namespace may not be deleted'
        raise RefusedError(403, "Forbidden", message)
    if not request.is_dry_run:
        if path.plural == "namespaces":
            for plural, kind in KINDS.items():
                if kind.namespaced:
                    for item in state.list(plural, namespace=path.name):
                        cluster.delete_object(plural, item)
        cluster.delete_object(path.plural, current)
    remaining = state.get(path.plural, path.name, path.namespace)
    if remaining is not None and not request.is_dry_run:
        return _with_type(path.kind, remaining)
    details = {"name": path.name, "kind": path.plural, "uid": current["metadata"]["uid"]}
    if path.kind.group:
        details["group"] = path.kind.group
    return {**make_status("Success", 200), "details": details}


PATH_PATTERN = re.compile(
    r"(?:/api|/apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?"
)


def parse_path(path: str) -> ObjectPath:
    """Return the resource or the object that a path names.

    Raises:
        RefusedError: the API has no such resource.
    """
    if match := PATH_PATTERN.fullmatch(path):
        kind = KINDS.get(match["plural"])
        if kind and (kind.group, kind.version) == (match["group"] or "", match["version"]):
            return ObjectPath(
                match["plural"], kind, match["namespace"] or "", urllib.parse.unquote(match["name"] or "")
            )
    raise RefusedError(404, "NotFound", "the server could not find the requested resource")


def _list(state: KubernetesState, request: ApiRequest) -> Object:
    path, query = request.path, request.query
    items = [
        item
        for item in state.list(path.plural, path.namespace)
        if _matches_selector(query.get("labelSelector", ""), item["metadata"].get("labels") or {}, value_of=dict.get)
        and _matches_selector(query.get("fieldSelector", ""), item, value_of=_field_value)
    ]
    metadata: Object = {"resourceVersion": state.resource_version}
    start = _index_of_continue_token(query.get("continue", ""))
    limit = int(query.get("limit") or 0)  # 0 means no limit
    end = start + limit if limit else len(items)
    if end < len(items):
        metadata["continue"] = base64.urlsafe_b64encode(str(end).encode()).decode()
        metadata["remainingItemCount"] = len(items) - end
    kind = path.kind
    page = [_with_type(kind, item) for item in items[start:end]]
    if request.wants_table:
        return make_table(path.plural, page, metadata=metadata, now=state.now(), include=query.get("includeObject", ""))
    return {"apiVersion": kind.api_version, "kind": f"{kind.name}List", "metadata": metadata, "items": page}


def _matches_selector(selector: str, item: Object, value_of: Callable[[Object, str], str | None]) -> bool:
    """Return whether an item meets all requirements of a selector: `key=value`, `key!=value`, `key` or `!key`.

    Args:
        selector: the requirements, separated by commas.
        item: the labels of an object, or the object itself for a field selector.
        value_of: returns the value of a label or a field of the item; None if it is missing.
    """
    for requirement in filter(None, selector.split(",")):
        if match := SELECTOR_TERM.fullmatch(requirement):
            key, operator, wanted_value = match.groups()
            has_value = value_of(item, key) == wanted_value
            is_met = not has_value if operator == "!=" else has_value
        else:
            is_present = value_of(item, requirement.lstrip("!")) is not None
            is_met = not is_present if requirement.startswith("!") else is_present
        if not is_met:
            return False
    return True


def _field_value(item: object, path: str) -> str | None:
    """Return the value of a field for a field selector; empty if it is missing.

    Args:
        path: the keys that lead to the field, separated by dots, e.g. `spec.nodeName`.
    """
    value = item
    for key in path.split("."):
        value = value.get(key, "") if isinstance(value, Mapping) else ""
    return str(value)


def _index_of_continue_token(token: str) -> int:
    try:
        return int(base64.urlsafe_b64decode(token) or 0)
    except (binascii.Error, ValueError) as error:
        raise RefusedError(400, "BadRequest", "continue key is not valid") from error


def _parse_body(request: ApiRequest, media_types: tuple[str, ...]) -> Object:
    """Return the object in a request's body, which must have one of the media types."""
    if request.content_type not in media_types:
        message = (
            f"the sandbox does not support {request.content_type} - accepted media types include: "
            f"{', '.join(media_types)}; what `kubectl create` sends in another one, "
            "`kubectl create … --dry-run=client -o json | kubectl create -f -` sends as JSON"
        )
        raise RefusedError(415, "UnsupportedMediaType", message)
    try:
        item = json.loads(request.body)
    except ValueError as error:
        raise RefusedError(400, "BadRequest", f"the body of the request was not understood: {error}") from error
    if not isinstance(item, dict):
        raise RefusedError(400, "BadRequest", "the body of the request is not a JSON object")
    return cast("Object", item)


def _needs_strategic_merge(patch: object) -> bool:
    """Return whether a strategic merge patch has lists or `$` directives, which a merge patch treats differently."""
    if isinstance(patch, dict):
        return any(key.startswith("$") or _needs_strategic_merge(value) for key, value in patch.items())
    return isinstance(patch, list)


def _merge_patch(item: Json, patch: Json) -> Json:
    """Return an object with a JSON merge patch applied (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    current = item if isinstance(item, dict) else {}
    unchanged = {key: value for key, value in current.items() if key not in patch}
    changed = {key: _merge_patch(current.get(key), value) for key, value in patch.items() if value is not None}
    return unchanged | changed


def _with_type(kind: Kind, item: Object) -> Object:
    return {**item, "apiVersion": kind.api_version, "kind": kind.name}


def make_status(outcome: str, code: int, reason: str = "", message: str = "") -> Object:
    """Return a Status object, with which the API answers errors and completed deletions.

    Args:
        reason: machine-readable reason, e.g. `NotFound`; left out if it is empty.
        message: human-readable reason; left out if it is empty.
    """
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": outcome}
    if reason:
        status["reason"] = reason
    if message:
        status["message"] = message
    status["code"] = code
    return status
