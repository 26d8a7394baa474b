"""kubeconfig documents: the entries of a cluster, put into a document and taken out of it again.

A document is edited as YAML nodes, not as Python values: what a person or another tool has put there keeps its order,
its quotes and its keys, known or not; comments are all that is lost, as with kubectl. Our entries are marked by an
extension (https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/, NamedExtension), so that entries of the same
name that are somebody else's are neither overwritten nor removed. "kubernetes" is the name of many a cluster.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal

import yaml

from cfngen.deploy.access.certificates import KeyPair
from cfngen.deploy.messages import Message
from cfngen.errors import CfngenError

EXTENSION = "cfngen"
LISTS = {"clusters": "cluster", "contexts": "context", "users": "user"}


class KubeconfigError(CfngenError):
    """A kubeconfig is not one, or cannot be changed."""


class ForeignEntryError(KubeconfigError):
    """An entry of that name exists and is not this cluster's."""


@dataclass(frozen=True)
class Owner:
    """Whose entries they are.

    Attributes:
        account: number of the AWS account.
        region: the cluster's region.
        stack: name of the root stack.
    """

    account: str
    region: str
    stack: str

    def __str__(self) -> str:
        return f"stack {self.stack} in {self.region} of account {self.account}"


@dataclass(frozen=True)
class Access:
    """What a kubeconfig says about one cluster.

    Attributes:
        name: of the context, the cluster and the user.
        owner: whose they are.
        server: URL of the API server.
        authority: PEM of the authority that the API server's certificate is of.
        client: certificate and key of the user.
        tls_name: name that the API server's certificate bears, if it is not that of the URL.
    """

    name: str
    owner: Owner
    server: str
    authority: str
    client: KeyPair
    tls_name: str = ""


@dataclass(frozen=True)
class KubeconfigChange(Message):
    """What was done to a kubeconfig.

    Attributes:
        action: `written`, `removed`, or `none` where there was nothing to remove.
        path: the file.
        names: of the contexts, clusters and users that were written or removed.
        server: URL of the API server; empty where entries were removed.
        user: name by which the API server knows the user.
        groups: groups of the user.
        expires: when the certificate ends.
        current: whether it is the current context now.
    """

    kind: ClassVar[str] = "kubeconfig"
    action: Literal["written", "removed", "none"]
    path: str
    names: tuple[str, ...] = ()
    server: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    expires: datetime | None = None
    current: bool = False


@dataclass(frozen=True)
class KubeconfigDocument(Message):
    """A kubeconfig of its own, which no file holds.

    Attributes:
        kubeconfig: the document itself: as JSON in a file, it is one that kubectl takes. It holds a private key.
        user: name by which the API server knows the user.
        groups: groups of the user.
        expires: when the certificate ends.
    """

    kind: ClassVar[str] = "kubeconfigDocument"
    kubeconfig: Mapping[str, Any]
    user: str
    groups: tuple[str, ...]
    expires: datetime


def document(access: Access, *, switch: bool = True) -> dict[str, Any]:
    """Return a kubeconfig that holds nothing else."""
    head = {"apiVersion": "v1", "kind": "Config", "current-context": access.name if switch else ""}
    entries = {key: [_given(entry)] for key, entry in _entries(access).items()}
    return {**head, **entries}


def merged(text: str, access: Access, *, switch: bool) -> str:
    """Return a kubeconfig with the cluster's entries in it; of its own earlier ones, further keys stay.

    Args:
        text: the kubeconfig; may be empty.
        access: what to put in.
        switch: whether to make it the current context.

    Raises:
        KubeconfigError: the text is no kubeconfig.
        ForeignEntryError: an entry of that name is not this cluster's.
    """
    root = _parsed(text)
    if root is None:
        return dumped(document(access, switch=switch))
    for plural, wanted in _entries(access).items():
        entries = _list(root, plural)
        found = next((each for each in entries.value if _text(each, "name") == access.name), None)
        if found is None:
            entries.value.append(_node(_given(wanted)))
            continue
        owner = _owner(found, LISTS[plural])
        if owner != access.owner:
            whose = f"is that of the {owner}" if owner else "was not written by cfngen"
            raise ForeignEntryError(
                f"the {LISTS[plural]} {access.name!r} of the kubeconfig {whose}",
                hint="choose a name of its own with --context, or another file with --file.",
            )
        body = _body(found, LISTS[plural])
        for key, value in wanted[LISTS[plural]].items():
            _set(body, key, value)
    if switch:
        _set(root, "current-context", access.name)
    return _serialized(root)


def without(text: str, owner: Owner, *, name: str = "") -> tuple[str, tuple[str, ...]]:
    """Return a kubeconfig without a cluster's entries, and the names of the contexts, clusters and users removed.

    Args:
        text: the kubeconfig.
        owner: whose entries; an empty account stands for any one.
        name: only entries of this name; all if empty.

    Raises:
        KubeconfigError: the text is no kubeconfig, or there are entries of several accounts.
    """
    root = _parsed(text)
    if root is None:
        return text, ()
    ours = [
        (entries, entry, found)
        for plural, singular in LISTS.items()
        for entries in [_list(root, plural)]
        for entry in entries.value
        if (found := _owner(entry, singular))
        and found == Owner(owner.account or found.account, owner.region, owner.stack)
        and name in ("", _text(entry, "name"))
    ]
    accounts = sorted({found.account for _, _, found in ours})
    if len(accounts) > 1:
        raise KubeconfigError(
            f"there are entries of the stack {owner.stack} in {owner.region} of the accounts {', '.join(accounts)}",
            hint="say which with --account.",
        )
    for entries, entry, _ in ours:
        entries.value.remove(entry)
    names = dict.fromkeys(_text(entry, "name") for _, entry, _ in ours)
    contexts = {_text(entry, "name") for entries, entry, _ in ours if entries is _list(root, "contexts")}
    if _text(root, "current-context") in contexts:
        _set(root, "current-context", "")
    return (_serialized(root) if ours else text), tuple(names)


def dumped(content: Mapping[str, Any]) -> str:
    """Return a kubeconfig as YAML."""
    return _serialized(_node(content))


def _entries(access: Access) -> dict[str, dict[str, Any]]:
    """Return the cluster's entry of each list; None stands for a key that must not be there."""
    cluster = {
        "server": access.server,
        "tls-server-name": access.tls_name or None,
        "certificate-authority-data": _encoded(access.authority),
        "extensions": _mark(access.owner),
    }
    user = {
        "client-certificate-data": _encoded(access.client.certificate),
        "client-key-data": _encoded(access.client.private_key),
        "extensions": _mark(access.owner),
    }
    context = {"cluster": access.name, "user": access.name, "extensions": _mark(access.owner)}
    bodies = {"clusters": cluster, "contexts": context, "users": user}
    return {plural: {"name": access.name, LISTS[plural]: body} for plural, body in bodies.items()}


def _mark(owner: Owner) -> list[dict[str, Any]]:
    """Return what says whose an entry is; a list of its own for each, which YAML would else write as an alias."""
    mark = {"account": owner.account, "region": owner.region, "stack": owner.stack}
    return [{"name": EXTENSION, "extension": mark}]


def _given(value: Any) -> Any:
    """Return a value without the keys that must not be there."""
    if isinstance(value, dict):
        return {key: _given(each) for key, each in value.items() if each is not None}
    return value


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _parsed(text: str) -> yaml.MappingNode | None:
    """Return a kubeconfig's root node, or None if it is empty.

    Raises:
        KubeconfigError: it is something else.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        # Without the parser's words: they quote the line, which may hold a key.
        raise _broken(f"is no YAML{where}: {getattr(error, 'problem', None) or type(error).__name__}") from None
    if root is None or root.tag == "tag:yaml.org,2002:null":
        return None
    if not isinstance(root, yaml.MappingNode):
        raise _broken("does not hold a mapping")
    kind = _text(root, "kind")
    if kind not in ("", "Config"):
        raise _broken(f"is a {kind}, not a Config")
    for plural in LISTS:
        for entry in _list(root, plural).value:
            if not isinstance(entry, yaml.MappingNode):
                raise _broken(f"has an entry in {plural} that is no mapping (line {entry.start_mark.line + 1})")
    return root


def _broken(what: str) -> KubeconfigError:
    return KubeconfigError(
        f"the kubeconfig {what}; nothing was changed", hint="mend it, or choose another file with --file."
    )


def _list(root: yaml.MappingNode, key: str) -> yaml.SequenceNode:
    """Return a list of the kubeconfig, which is added if it is not there."""
    found = _child(root, key)
    if found is not None and found.tag == "tag:yaml.org,2002:null":
        root.value = [pair for pair in root.value if pair[1] is not found]
        found = None
    if found is None:
        found = yaml.SequenceNode("tag:yaml.org,2002:seq", [], flow_style=False)
        root.value.append((_node(key), found))
    if not isinstance(found, yaml.SequenceNode):
        raise _broken(f"has {key} that are no list (line {found.start_mark.line + 1})")
    if not found.value:
        found.flow_style = False  # `[]` is how an empty list is written; one with entries reads better in block style
    return found


def _body(entry: yaml.MappingNode, singular: str) -> yaml.MappingNode:
    body = _child(entry, singular)
    if not isinstance(body, yaml.MappingNode):
        raise _broken(f"has a {singular} that is no mapping (line {entry.start_mark.line + 1})")
    return body


def _owner(entry: yaml.MappingNode, singular: str) -> Owner | None:
    """Return whose an entry is, or None if it is not marked as ours."""
    extensions = _child(_child(entry, singular), "extensions")
    for each in extensions.value if isinstance(extensions, yaml.SequenceNode) else ():
        if _text(each, "name") == EXTENSION:
            mark = _child(each, "extension")
            return Owner(_text(mark, "account"), _text(mark, "region"), _text(mark, "stack"))
    return None


def _pairs(node: yaml.Node | None) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    yield from node.value if isinstance(node, yaml.MappingNode) else ()


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    return next((value for name, value in _pairs(node) if name.value == key), None)


def _text(node: yaml.Node | None, key: str) -> str:
    child = _child(node, key)
    return str(child.value) if isinstance(child, yaml.ScalarNode) else ""


def _set(node: yaml.MappingNode, key: str, value: Any) -> None:
    """Set a key of a mapping in its place, add it at the end, or remove it where the value is None."""
    if value is None:
        node.value = [pair for pair in node.value if pair[0].value != key]
        return
    new = (_node(key), _node(value))
    if _child(node, key) is None:
        node.value.append(new)
    else:
        node.value = [new if pair[0].value == key else pair for pair in node.value]


def _node(value: Any) -> Any:
    return yaml.compose(yaml.safe_dump(value, sort_keys=False, default_flow_style=False), Loader=yaml.SafeLoader)


def _serialized(root: yaml.Node) -> str:
    text: str = yaml.serialize(root, Dumper=yaml.SafeDumper, width=1_000_000, allow_unicode=True)
    return text
