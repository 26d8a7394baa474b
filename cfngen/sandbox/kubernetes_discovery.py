"""Discovery of the Kubernetes API: its version, its resources, and the part of its OpenAPI schema that kubectl reads.

kubectl reads `/openapi/v3` before it creates objects from a file: it sends `fieldValidation` if the server's schema has
that parameter (cli-runtime's `query_param_verifier_v3.go`). The sandbox has it, but validates no fields.
"""

from __future__ import annotations

from cfngen.sandbox.kubernetes_state import KINDS, Kind, Object

OPENAPI = "/openapi/v3"


def version_document(number: str) -> Object:
    """Return the answer to `/version` for an API server's version, e.g. `1.36.3`."""
    major, minor, *_ = number.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{number}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "",
        "goVersion": "",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def discovery_document(path: str) -> Object | None:
    """Return the discovery document under a path of the API; None if there is none."""
    groups = sorted({(kind.group, kind.version) for kind in KINDS.values()})
    paths = {f"apis/{group}/{number}" if group else f"api/{number}": group for group, number in groups}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        versions = {
            group: {"groupVersion": f"{group}/{number}", "version": number} for group, number in groups if group
        }
        group_list = [
            {"name": group, "versions": [group_version], "preferredVersion": group_version}
            for group, group_version in versions.items()
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": group_list}
    if path == OPENAPI:
        return {"paths": {group_path: {"serverRelativeURL": f"{OPENAPI}/{group_path}"} for group_path in paths}}
    if path.removeprefix(OPENAPI + "/") in paths and path.startswith(OPENAPI):
        return _schema(paths[path.removeprefix(OPENAPI + "/")])
    if path.lstrip("/") in paths:
        group = paths[path.lstrip("/")]
        resources = [_resource(plural, kind) for plural, kind in KINDS.items() if kind.group == group]
        name = path.removeprefix("/apis/").removeprefix("/api/")
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}
    return None


def _resource(plural: str, kind: Kind) -> Object:
    """Return the description of a resource in an APIResourceList."""
    resource: Object = {
        "name": plural,
        "singularName": kind.name.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": ["create", "delete", "get", "list", "patch", "update"],
    }
    if kind.short_names:
        resource["shortNames"] = list(kind.short_names)
    if plural in KUBECTL_ALL_RESOURCES:
        resource["categories"] = ["all"]
    return resource


# The resources that `kubectl get all` lists.
KUBECTL_ALL_RESOURCES = ("daemonsets", "deployments", "pods", "replicasets", "services", "statefulsets")


def _schema(group: str) -> Object:
    """Return the schema of an API group: only which operations take `fieldValidation` and `dryRun`."""
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in ("dryRun", "fieldValidation")]
    paths: Object = {}
    for plural, kind in ((plural, kind) for plural, kind in KINDS.items() if kind.group == group):
        root = f"/apis/{group}/{kind.version}" if group else f"/api/{kind.version}"
        path = f"{root}/namespaces/{{namespace}}/{plural}" if kind.namespaced else f"{root}/{plural}"
        named = {"group": group, "version": kind.version, "kind": kind.name}
        operation = {
            "parameters": parameters,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-group-version-kind": named,
        }
        paths[path] = {"post": {"x-kubernetes-action": "post", **operation}}
        paths[path + "/{name}"] = {verb: {"x-kubernetes-action": verb, **operation} for verb in ("patch", "put")}
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "unversioned"}, "paths": paths}
