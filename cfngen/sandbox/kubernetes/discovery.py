"""Discovery of the Kubernetes API: its version, its resources, and the part of its OpenAPI schema that kubectl reads.

kubectl reads `/openapi/v3` before it creates objects from a file: it sends `fieldValidation` if the server's schema has
that parameter (cli-runtime's `query_param_verifier_v3.go`). The sandbox has it, but validates no fields.
"""

from __future__ import annotations

from cfngen.sandbox.kubernetes.state import KINDS, Kind, Object

OPENAPI = "/openapi/v3"  # path of the OpenAPI schemas


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
    group_versions = sorted({(kind.group, kind.version) for kind in KINDS.values()})
    # The API groups by path; the core group, whose name is empty, has a path of its own.
    group_by_path = {
        f"apis/{group}/{version}" if group else f"api/{version}": group for group, version in group_versions
    }
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        group_list = []
        for group, version in group_versions:
            if group:
                description = {"groupVersion": f"{group}/{version}", "version": version}
                group_list.append({"name": group, "versions": [description], "preferredVersion": description})
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": group_list}
    if path == OPENAPI:
        return {"paths": {group_path: {"serverRelativeURL": f"{OPENAPI}/{group_path}"} for group_path in group_by_path}}
    if path.startswith(OPENAPI) and path.removeprefix(OPENAPI + "/") in group_by_path:
        return _openapi_schema(group_by_path[path.removeprefix(OPENAPI + "/")])
    if path.lstrip("/") in group_by_path:
        group = group_by_path[path.lstrip("/")]
        resources = [_describe_resource(plural, kind) for plural, kind in KINDS.items() if kind.group == group]
        group_version = path.removeprefix("/apis/").removeprefix("/api/")
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}
    return None


def _describe_resource(plural: str, kind: Kind) -> Object:
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
KUBECTL_ALL_RESOURCES = ("daemonsets", "deployments", "pods", "services")


def _openapi_schema(group: str) -> Object:
    """Return the OpenAPI schema of an API group: only which operations take `fieldValidation` and `dryRun`."""
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in ("dryRun", "fieldValidation")]
    paths: Object = {}
    for plural, kind in KINDS.items():
        if kind.group != group:
            continue
        root = f"/apis/{group}/{kind.version}" if group else f"/api/{kind.version}"
        path = f"{root}/namespaces/{{namespace}}/{plural}" if kind.namespaced else f"{root}/{plural}"
        group_version_kind = {"group": group, "version": kind.version, "kind": kind.name}
        operation = {
            "parameters": parameters,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-group-version-kind": group_version_kind,
        }
        paths[path] = {"post": {"x-kubernetes-action": "post", **operation}}
        paths[path + "/{name}"] = {verb: {"x-kubernetes-action": verb, **operation} for verb in ("patch", "put")}
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "unversioned"}, "paths": paths}
