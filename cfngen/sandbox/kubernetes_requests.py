"""Requests for objects of the Kubernetes API: lists, single objects, creation, replacement, merge patches, deletion.

What the API server refuses whatever the kind is refused here, too: names that are none, namespaces that are not there
or may not go, objects of another kind than the path's, outdated versions. What the objects say is taken as it is.
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
from cfngen.sandbox.kubernetes_tables import table

PERMANENT = ("default", "kube-node-lease", "kube-public", SYSTEM)  # namespaces; all but the second one, really
JSON = ("application/json",)
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = ("application/merge-patch+json", STRATEGIC)
# RFC 1123: what the names of most objects must be.
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LONGEST_NAME, LONGEST_LABEL = 253, 63


class RefusedError(Exception):
    """An answer that is no success."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


@dataclass(frozen=True)
class Address:
    """What a path of the API names: a kind, perhaps a namespace, perhaps one object."""

    plural: str
    kind: Kind
    namespace: str
    name: str

    @property
    def of_group(self) -> str:
        """The kind as messages name it."""
        return f"{self.plural}.{self.kind.group}" if self.kind.group else self.plural


@dataclass(frozen=True)
class Asked:
    """A request.

    Attributes:
        method: of HTTP.
        address: what it is about.
        query: parameters by name.
        body: what was sent.
        content: type of the body.
        table: whether rows and columns are wanted, as kubectl prints them.
    """

    method: str
    address: Address
    query: Mapping[str, str]
    body: bytes
    content: str
    table: bool

    @property
    def rehearsed(self) -> bool:
        """Whether nothing is to be kept of it."""
        return bool(self.query.get("dryRun"))


class Cluster(Protocol):
    """What requests need of a cluster."""

    @property
    def state(self) -> KubernetesState:
        """Its objects."""

    @property
    def created(self) -> Callable[[str, Object], None]:
        """Told of each new object."""

    @property
    def deleted(self) -> Callable[[str, Object], None]:
        """Asked to remove an object; it may take its time."""


def answer(cluster: Cluster, asked: Asked) -> tuple[int, Object]:
    """Return the code and the body of the answer to a request.

    Raises:
        RefusedError: the request is refused; nothing has been changed.
    """
    address, kind = asked.address, asked.address.kind
    if asked.method == "POST" and not address.name:
        return 201, _typed(kind, _create(cluster, asked))
    if not address.name:
        if asked.method != "GET":
            raise RefusedError(405, "MethodNotAllowed", "the server does not allow this method")
        if asked.query.get("watch") in ("1", "true"):
            raise RefusedError(405, "MethodNotAllowed", "the sandbox does not watch; list again")
        return 200, _list(cluster.state, asked)
    found = cluster.state.get(address.plural, address.name, address.namespace)
    if found is None:
        raise RefusedError(404, "NotFound", f'{address.of_group} "{address.name}" not found')
    if asked.method == "DELETE":
        return 200, _delete(cluster, asked, found)
    if asked.method in ("PUT", "PATCH"):
        found = _change(cluster, asked, found)
    elif asked.method != "GET":
        raise RefusedError(405, "MethodNotAllowed", "the server does not allow this method")
    whole = _typed(kind, found)
    if asked.table and asked.method == "GET":
        return 200, table(address.plural, [whole], {}, cluster.state.now(), asked.query.get("includeObject", ""))
    return 200, whole


def _create(cluster: Cluster, asked: Asked) -> Object:
    state, address = cluster.state, asked.address
    item = _parsed(asked, JSON)
    _check_kind(address, item)
    # Go's clients write times that nobody has set as null.
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
        raise RefusedError(409, "AlreadyExists", f'{address.of_group} "{name}" already exists')
    whole = _defaulted(address.plural, {**item, "metadata": metadata})
    if asked.rehearsed:
        return whole
    made = state.put(address.plural, whole)
    cluster.created(address.plural, made)
    return made


def _defaulted(plural: str, item: Object) -> Object:
    """Return an object with what the API server adds to new ones of its kind."""
    if plural == "namespaces":
        return {**item, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    if plural == "secrets":
        texts = {key: base64.b64encode(value.encode()).decode() for key, value in item.pop("stringData", {}).items()}
        return {"type": "Opaque", **item, "data": {**(item.get("data") or {}), **texts}}
    return item


def _check_kind(address: Address, item: Object) -> None:
    expected = (address.kind.api_version, address.kind.name)
    sent = (item.get("apiVersion") or expected[0], item.get("kind") or expected[1])
    if sent != expected:
        message = f"{sent[1]} in version {sent[0]!r} cannot be handled as a {expected[1]} of {expected[0]!r}"
        raise RefusedError(400, "BadRequest", message)


def _check_name(address: Address, name: str) -> None:
    form, longest = (LABEL, LONGEST_LABEL) if address.plural in ("namespaces", "services") else (NAME, LONGEST_NAME)
    if not name:
        why = "metadata.name: Required value: name or generateName is required"
    elif form.fullmatch(name) and len(name) <= longest:
        return
    else:
        why = f'metadata.name: Invalid value: "{name}": lower case letters, digits and hyphens, at most {longest}'
    raise RefusedError(422, "Invalid", f'{address.kind.name} "{name}" is invalid: {why}')


def _change(cluster: Cluster, asked: Asked, found: Object) -> Object:
    address = asked.address
    changed: Object
    if asked.method == "PUT":
        changed = _parsed(asked, JSON)
        _check_kind(address, changed)
        kept = found["metadata"]
        metadata = {**changed.get("metadata", {}), "uid": kept["uid"], "creationTimestamp": kept["creationTimestamp"]}
        changed = {**changed, "metadata": metadata}
    else:
        patch = _parsed(asked, MERGE)
        if asked.content == STRATEGIC and _strategic(patch):
            message = "the sandbox merges no lists and follows no directives: use a merge patch (--type=merge)"
            raise RefusedError(415, "UnsupportedMediaType", message)
        changed = _merged(found, patch)
    known, sent = found["metadata"]["resourceVersion"], changed["metadata"].get("resourceVersion")
    if sent not in (None, "", known):
        message = "the object has been modified; please apply your changes to the latest version and try again"
        raise RefusedError(
            409, "Conflict", f'Operation cannot be fulfilled on {address.of_group} "{address.name}": {message}'
        )
    if changed["metadata"].get("name") != address.name:
        raise RefusedError(400, "BadRequest", "the name of the object does not match the name on the URL")
    return changed if asked.rehearsed else cluster.state.put(address.plural, changed)


def _delete(cluster: Cluster, asked: Asked, found: Object) -> Object:
    state, address = cluster.state, asked.address
    if address.plural == "namespaces" and address.name in PERMANENT:
        message = f'namespaces "{address.name}" is forbidden: this namespace may not be deleted'
        raise RefusedError(403, "Forbidden", message)
    if not asked.rehearsed:
        if address.plural == "namespaces":
            for plural in (plural for plural, kind in KINDS.items() if kind.namespaced):
                for item in state.list(plural, address.name):
                    cluster.deleted(plural, item)
        cluster.deleted(address.plural, found)
    left = state.get(address.plural, address.name, address.namespace)
    if left is not None and not asked.rehearsed:
        return _typed(address.kind, left)
    details = {"name": address.name, "kind": address.plural, "uid": found["metadata"]["uid"]}
    return {
        **status("Success", 200),
        "details": details | ({"group": address.kind.group} if address.kind.group else {}),
    }


PATH = re.compile(
    r"(?:/api|/apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?"
)


def located(path: str) -> Address:
    """Return what a path names.

    Raises:
        RefusedError: the API has nothing there.
    """
    if match := PATH.fullmatch(path):
        kind = KINDS.get(match["plural"])
        if kind and (kind.group, kind.version) == (match["group"] or "", match["version"]):
            return Address(match["plural"], kind, match["namespace"] or "", urllib.parse.unquote(match["name"] or ""))
    raise RefusedError(404, "NotFound", "the server could not find the requested resource")


def _list(state: KubernetesState, asked: Asked) -> Object:
    address, query = asked.address, asked.query
    items = [
        each
        for each in state.list(address.plural, address.namespace)
        if _matches(query.get("labelSelector", ""), each["metadata"].get("labels") or {})
        and _matches(query.get("fieldSelector", ""), each, _field)
    ]
    metadata: Object = {"resourceVersion": state.resource_version}
    begin = _position(query.get("continue", ""))
    end = begin + int(query.get("limit") or 0) if int(query.get("limit") or 0) else len(items)
    if end < len(items):
        metadata["continue"] = base64.urlsafe_b64encode(str(end).encode()).decode()
        metadata["remainingItemCount"] = len(items) - end
    kind = address.kind
    page = [_typed(kind, each) for each in items[begin:end]]
    if asked.table:
        return table(address.plural, page, metadata, state.now(), query.get("includeObject", ""))
    return {"apiVersion": kind.api_version, "kind": f"{kind.name}List", "metadata": metadata, "items": page}


def _position(text: str) -> int:
    try:
        return int(base64.urlsafe_b64decode(text) or 0)
    except (binascii.Error, ValueError) as error:
        raise RefusedError(400, "BadRequest", "continue key is not valid") from error


REQUIREMENT = re.compile(r"\s*([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)\s*")


def _matches(selector: str, item: Mapping[str, Any], value: Callable[[Any, str], str | None] = dict.get) -> bool:
    """Return whether an item is selected; equality and bare label names are understood."""
    for part in filter(None, selector.split(",")):
        if match := REQUIREMENT.fullmatch(part):
            if (value(item, match[1]) == match[3]) == (match[2] == "!="):
                return False
        elif part.startswith("!") == (value(item, part.lstrip("!")) is not None):
            return False
    return True


def _field(item: Any, path: str) -> str | None:
    for key in path.split("."):
        item = item.get(key, "") if isinstance(item, Mapping) else ""
    return str(item)


def _parsed(asked: Asked, types: tuple[str, ...]) -> Object:
    if asked.content not in types:
        message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(types)}"
        raise RefusedError(415, "UnsupportedMediaType", message)
    try:
        item = json.loads(asked.body)
    except ValueError as error:
        raise RefusedError(400, "BadRequest", f"the body of the request was not understood: {error}") from error
    if not isinstance(item, dict):
        raise RefusedError(400, "BadRequest", "the body of the request is no object")
    return cast("Object", item)


def _strategic(patch: Any) -> bool:
    """Return whether a patch means something else as a strategic one than as a merge patch."""
    if isinstance(patch, dict):
        return any(key.startswith("$") or _strategic(value) for key, value in patch.items())
    return isinstance(patch, list)


def _merged(item: Any, patch: Any) -> Any:
    """Return an object with a JSON merge patch applied (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    old = item if isinstance(item, dict) else {}
    changed = {key: _merged(old.get(key), value) for key, value in patch.items() if value is not None}
    return {key: value for key, value in old.items() if key not in patch} | changed


def _typed(kind: Kind, item: Object) -> Object:
    return {**item, "apiVersion": kind.api_version, "kind": kind.name}


def status(outcome: str, code: int, reason: str = "", message: str = "") -> Object:
    """Return what the API says instead of an object: `Success` or `Failure`, and why."""
    said = {key: value for key, value in {"reason": reason, "message": message}.items() if value}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": outcome, **said, "code": code}
