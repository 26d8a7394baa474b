"""kubeconfig documents: adds the entries of a cluster to a document, and removes them.

A document is edited as YAML nodes, not as Python values: entries of other people and tools keep their order, quotes and
unknown keys; only comments are lost, as with kubectl. cfngen's entries are marked by an extension
(https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/, NamedExtension), so that foreign entries of the same
name are neither overwritten nor removed; many clusters are called "kubernetes".
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal, NamedTuple

import yaml

from cfngen.deploy.access.certificates import KeyPair
from cfngen.deploy.aws.types import JsonObject
from cfngen.deploy.messages.message import Message
from cfngen.errors import CfngenError

EXTENSION_NAME = "cfngen"
SINGULAR_BY_LIST = {"clusters": "cluster", "contexts": "context", "users": "user"}


class KubeconfigError(CfngenError):
    """A kubeconfig is invalid, or cannot be changed."""

    code = "invalid-kubeconfig"


class ForeignEntryError(KubeconfigError):
    """An entry of that name exists and is not this cluster's."""

    code = "kubeconfig-entry-conflict"


@dataclass(frozen=True)
class EntryOwner:
    """The stack that kubeconfig entries belong to."""

    account: str
    region: str
    stack: str

    def __str__(self) -> str:
        return f"stack {self.stack} in {self.region} of account {self.account}"


@dataclass(frozen=True)
class KubeconfigContent:
    """The content of a kubeconfig for one cluster.

    Attributes:
        name: name of the context, the cluster and the user.
        tls_name: name in the API server's certificate, if it is not that of the URL.
    """

    name: str
    owner: EntryOwner
    server: str
    authority: str
    client: KeyPair
    tls_name: str = ""


@dataclass(frozen=True)
class KubeconfigChange(Message):
    """What was done to a kubeconfig.

    Attributes:
        action: `written`, `removed`, or `none` where there was nothing to remove.
        stack: name of the cluster's root stack.
        region: its region.
        path: the file.
        names: names of the contexts, clusters and users that were written or removed.
        server: URL of the API server; empty where entries were removed.
        user: name by which the API server knows the user.
        groups: groups of the user.
        expires: when the certificate expires.
        current: whether it is now the current context.
    """

    kind: ClassVar[str] = "kubeconfig"
    action: Literal["written", "removed", "none"]
    stack: str
    region: str
    path: str
    names: tuple[str, ...] = ()
    server: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    expires: datetime | None = None
    current: bool = False


@dataclass(frozen=True)
class KubeconfigDocument(Message):
    """A kubeconfig that is printed instead of written to a file.

    Attributes:
        kubeconfig: the document; saved as a JSON file, kubectl can use it. It contains a private key.
        user: name by which the API server knows the user.
        groups: groups of the user.
        expires: when the certificate expires.
    """

    kind: ClassVar[str] = "kubeconfigDocument"
    kubeconfig: JsonObject
    user: str
    groups: tuple[str, ...]
    expires: datetime


def build_kubeconfig(content: KubeconfigContent, *, set_current: bool = True) -> JsonObject:
    """Return a kubeconfig with the entries of one cluster only; with `set_current`, they are its current context."""
    header = {"apiVersion": "v1", "kind": "Config", "current-context": content.name if set_current else ""}
    entries = {key: [_without_none(entry)] for key, entry in _entries_by_list(content).items()}
    return {**header, **entries}


def merge_entries(text: str, content: KubeconfigContent, *, set_current: bool) -> str:
    """Return a kubeconfig with the cluster's entries added or updated; other keys of existing entries are unchanged.

    Raises:
        KubeconfigError: the text is not a valid kubeconfig.
        ForeignEntryError: an entry of that name belongs to another stack, or was not written by cfngen.
    """
    root = _parse(text)
    if root is None:
        return to_yaml(build_kubeconfig(content, set_current=set_current))
    for plural, new_entry in _entries_by_list(content).items():
        entries = _get_or_add_list(root, plural)
        existing_entry = next((entry for entry in entries.value if _child_text(entry, "name") == content.name), None)
        if existing_entry is None:
            entries.value.append(_to_node(_without_none(new_entry)))
            continue
        owner = _entry_owner(existing_entry, SINGULAR_BY_LIST[plural])
        if owner != content.owner:
            owner_description = f"belongs to the {owner}" if owner else "was not written by cfngen"
            raise ForeignEntryError(
                f"the {SINGULAR_BY_LIST[plural]} {content.name!r} of the kubeconfig {owner_description}",
                hint="choose another name with --context, or another file with --file.",
            )
        existing_body = _entry_body(existing_entry, SINGULAR_BY_LIST[plural])
        for key, value in new_entry[SINGULAR_BY_LIST[plural]].items():
            _set_key(existing_body, key, value)
    if set_current:
        _set_key(root, "current-context", content.name)
    return _node_to_yaml(root)


def remove_entries(text: str, owner: EntryOwner, *, name: str = "") -> tuple[str, tuple[str, ...]]:
    """Remove a cluster's entries from a kubeconfig.

    Args:
        owner: the stack whose entries are removed; an empty account matches any.
        name: removes only entries of this name; all if empty.

    Returns:
        The kubeconfig without the entries, and the names of the contexts, clusters and users that were removed.

    Raises:
        KubeconfigError: the text is not a valid kubeconfig, or there are entries of several accounts.
    """
    root = _parse(text)
    if root is None:
        return text, ()
    matching_entries: list[_OwnedEntry] = []
    for plural, singular in SINGULAR_BY_LIST.items():
        entries = _get_or_add_list(root, plural)
        for entry in entries.value:
            entry_owner = _entry_owner(entry, singular)
            if entry_owner is None or name not in ("", _child_text(entry, "name")):
                continue
            if entry_owner == EntryOwner(owner.account or entry_owner.account, owner.region, owner.stack):
                matching_entries.append(_OwnedEntry(plural, entries, entry, entry_owner))
    accounts = sorted({owned_entry.owner.account for owned_entry in matching_entries})
    if len(accounts) > 1:
        raise KubeconfigError(
            f"there are entries of the stack {owner.stack} in {owner.region} of the accounts {', '.join(accounts)}",
            hint="select one with --account.",
        )
    for owned_entry in matching_entries:
        owned_entry.entries.value.remove(owned_entry.entry)
    names = dict.fromkeys(_child_text(owned_entry.entry, "name") for owned_entry in matching_entries)
    removed_contexts = {
        _child_text(owned_entry.entry, "name") for owned_entry in matching_entries if owned_entry.list_key == "contexts"
    }
    if _child_text(root, "current-context") in removed_contexts:
        _set_key(root, "current-context", "")
    return (_node_to_yaml(root) if matching_entries else text), tuple(names)


class _OwnedEntry(NamedTuple):
    """An entry of a kubeconfig that cfngen has written.

    Attributes:
        list_key: key of the list that contains it: `clusters`, `contexts` or `users`.
    """

    list_key: str
    entries: yaml.SequenceNode
    entry: yaml.Node
    owner: EntryOwner


def to_yaml(content: Mapping[str, object]) -> str:
    """Return a kubeconfig as YAML."""
    return _node_to_yaml(_to_node(content))


def _entries_by_list(content: KubeconfigContent) -> dict[str, JsonObject]:
    """Return the cluster's entry in each list of a kubeconfig: `clusters`, `contexts` and `users`.

    A key with the value None must be absent from the kubeconfig.
    """
    cluster = {
        "server": content.server,
        "tls-server-name": content.tls_name or None,
        "certificate-authority-data": _base64(content.authority),
        "extensions": _owner_extensions(content.owner),
    }
    user = {
        "client-certificate-data": _base64(content.client.certificate),
        "client-key-data": _base64(content.client.private_key),
        "extensions": _owner_extensions(content.owner),
    }
    context = {"cluster": content.name, "user": content.name, "extensions": _owner_extensions(content.owner)}
    bodies = {"clusters": cluster, "contexts": context, "users": user}
    return {plural: {"name": content.name, SINGULAR_BY_LIST[plural]: body} for plural, body in bodies.items()}


def _owner_extensions(owner: EntryOwner) -> list[JsonObject]:
    """Return an entry's list of extensions, with the one that names the entry's owner.

    Each call returns a new list: for a shared list, PyYAML would write an alias (`*id001`).
    """
    extension = {"account": owner.account, "region": owner.region, "stack": owner.stack}
    return [{"name": EXTENSION_NAME, "extension": extension}]


def _without_none(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_none(child) for key, child in value.items() if child is not None}
    return value


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _parse(text: str) -> yaml.MappingNode | None:
    """Return a kubeconfig's root node, or None if it is empty.

    Raises:
        KubeconfigError: the text is not a valid kubeconfig.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        position = f" in line {mark.line + 1}" if mark else ""
        # The parser's whole message is not shown: it quotes the line, which may contain a key.
        raise _invalid_kubeconfig(
            f"is not valid YAML{position}: {getattr(error, 'problem', None) or type(error).__name__}"
        ) from None
    if root is None or root.tag == "tag:yaml.org,2002:null":
        return None
    if not isinstance(root, yaml.MappingNode):
        raise _invalid_kubeconfig("is not a mapping")
    kind = _child_text(root, "kind")
    if kind not in ("", "Config"):
        raise _invalid_kubeconfig(f"is a {kind}, not a Config")
    for plural in SINGULAR_BY_LIST:
        for entry in _get_or_add_list(root, plural).value:
            if not isinstance(entry, yaml.MappingNode):
                raise _invalid_kubeconfig(
                    f"has an entry in {plural} that is not a mapping (line {entry.start_mark.line + 1})"
                )
    return root


def _invalid_kubeconfig(problem: str) -> KubeconfigError:
    return KubeconfigError(
        f"the kubeconfig {problem}; nothing was changed", hint="fix it, or choose another file with --file."
    )


def _get_or_add_list(root: yaml.MappingNode, key: str) -> yaml.SequenceNode:
    list_node = _child(root, key)
    if list_node is not None and list_node.tag == "tag:yaml.org,2002:null":
        root.value = [pair for pair in root.value if pair[1] is not list_node]
        list_node = None
    if list_node is None:
        list_node = yaml.SequenceNode("tag:yaml.org,2002:seq", [], flow_style=False)
        root.value.append((_to_node(key), list_node))
    if not isinstance(list_node, yaml.SequenceNode):
        raise _invalid_kubeconfig(f"has {key} that are not a list (line {list_node.start_mark.line + 1})")
    if not list_node.value:
        # An empty list is written as `[]`, in flow style; with entries it reads better in block style.
        list_node.flow_style = False
    return list_node


def _entry_body(entry: yaml.MappingNode, singular: str) -> yaml.MappingNode:
    body = _child(entry, singular)
    if not isinstance(body, yaml.MappingNode):
        raise _invalid_kubeconfig(f"has a {singular} that is not a mapping (line {entry.start_mark.line + 1})")
    return body


def _entry_owner(entry: yaml.MappingNode, singular: str) -> EntryOwner | None:
    """Return the owner of an entry, or None if cfngen did not write it."""
    extensions = _child(_child(entry, singular), "extensions")
    if not isinstance(extensions, yaml.SequenceNode):
        return None
    for extension in extensions.value:
        if _child_text(extension, "name") == EXTENSION_NAME:
            body = _child(extension, "extension")
            return EntryOwner(_child_text(body, "account"), _child_text(body, "region"), _child_text(body, "stack"))
    return None


def _key_value_pairs(node: yaml.Node | None) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    yield from node.value if isinstance(node, yaml.MappingNode) else ()


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return the value of a key of a mapping node; None if the key is missing or the node is not a mapping."""
    return next((value for name, value in _key_value_pairs(node) if name.value == key), None)


def _child_text(node: yaml.Node | None, key: str) -> str:
    """Return the value of a key as text; empty if the key is missing or its value is not a scalar."""
    child = _child(node, key)
    return str(child.value) if isinstance(child, yaml.ScalarNode) else ""


def _set_key(node: yaml.MappingNode, key: str, value: object) -> None:
    """Set a key of a mapping, in its place or at the end; remove it if the value is None."""
    if value is None:
        node.value = [pair for pair in node.value if pair[0].value != key]
        return
    new_pair = (_to_node(key), _to_node(value))
    if _child(node, key) is None:
        node.value.append(new_pair)
    else:
        node.value = [new_pair if pair[0].value == key else pair for pair in node.value]


def _to_node(value: object) -> yaml.Node:
    node: yaml.Node
    [node] = yaml.compose_all(yaml.safe_dump(value, sort_keys=False), Loader=yaml.SafeLoader)
    return node


def _node_to_yaml(root: yaml.Node) -> str:
    text: str = yaml.serialize(root, Dumper=yaml.SafeDumper, width=1_000_000, allow_unicode=True)
    return text
