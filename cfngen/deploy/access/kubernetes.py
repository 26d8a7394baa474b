"""A client of a cluster's Kubernetes API, with the few requests that cfngen needs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from cfngen.deploy.access import kubernetes_objects as objects
from cfngen.deploy.access.api_connection import ApiConnection, Endpoint, WrongServerError
from cfngen.deploy.access.certificates import KeyPair
from cfngen.deploy.access.kubernetes_objects import KubernetesObject, LoadBalancer, Node, Pod, Readiness
from cfngen.deploy.aws.types import JsonObject

PAGE_SIZE = 500
SYSTEM_NAMESPACE = "kube-system"
HTTP_OK, HTTP_ACCEPTED, HTTP_NOT_FOUND = 200, 202, 404
ParsedItem = TypeVar("ParsedItem")


class KubernetesClient:
    """A client of a cluster's API; close it, or use it in a `with` statement.

    Each request raises a `KubernetesError` if the API does not answer, or denies it.

    Args:
        ca_certificate: PEM of the certificate authority that issued the API server's certificate.
    """

    def __init__(self, endpoint: Endpoint, ca_certificate: str, client: KeyPair) -> None:
        self.endpoint = endpoint
        self._connection = ApiConnection(endpoint, ca_certificate, client)

    def __enter__(self) -> KubernetesClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def version(self) -> str:
        """Return the API server's version, e.g. `1.36.3`."""
        return objects.parse_version(self._get("/version"))

    def readiness(self) -> Readiness:
        """Return whether the API server is ready, and which of its health checks fail."""
        response = self._connection.request("GET", "/readyz", {"verbose": "true"}, accept="*/*")
        if response.status == HTTP_OK:
            return objects.parse_readiness(response.body)
        # An API server that is not ready answers with status 500 and the same list of checks.
        if response.status >= 500 and response.body:
            return Readiness(ready=False, failing=objects.parse_readiness(response.body).failing)
        raise self._connection.error_for_response(response)

    def nodes(self) -> tuple[Node, ...]:
        """Return all nodes."""
        return self._list("/api/v1/nodes", objects.parse_node)

    def system_pods(self) -> tuple[Pod, ...]:
        """Return the pods in the namespace kube-system."""
        return self._list(f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods", objects.parse_pod)

    def load_balancers(self) -> tuple[LoadBalancer, ...]:
        """Return the Services of type LoadBalancer."""
        services: tuple[KubernetesObject, ...] = self._list("/api/v1/services", lambda service: service)
        return tuple(
            objects.parse_load_balancer(service)
            for service in services
            if service.get("spec", {}).get("type") == "LoadBalancer"
        )

    def persistent_volumes(self) -> tuple[str, ...]:
        """Return the names of all PersistentVolumes."""
        return self._list("/api/v1/persistentvolumes", lambda item: str(item["metadata"]["name"]))

    def config_map(self, name: str) -> Mapping[str, str]:
        """Return the data of a ConfigMap in kube-system; empty if there is none."""
        # A list with a field selector is empty if there is no such object, where a GET would answer 404.
        path = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps"
        config_maps = self._get(path, {"fieldSelector": f"metadata.name={name}"}).get("items") or ()
        return dict(config_maps[0].get("data") or {}) if config_maps else {}

    def delete_service(self, namespace: str, name: str) -> None:
        """Delete a Service; it is no error if it does not exist."""
        path = f"/api/v1/namespaces/{namespace}/services/{name}"
        response = self._connection.request("DELETE", path, accept="application/json")
        if response.status not in (HTTP_OK, HTTP_ACCEPTED, HTTP_NOT_FOUND):
            raise self._connection.error_for_response(response)

    def _list(self, path: str, parse: Callable[[KubernetesObject], ParsedItem]) -> tuple[ParsedItem, ...]:
        """Return all objects of the list at a path, each parsed; the list is read in pages of `PAGE_SIZE` objects."""
        items: list[ParsedItem] = []
        continue_token = ""
        while True:
            query = {"limit": str(PAGE_SIZE)}
            if continue_token:
                query["continue"] = continue_token
            response = self._get(path, query)
            items.extend(parse(item) for item in response.get("items") or ())
            continue_token = (response.get("metadata") or {}).get("continue") or ""
            if not continue_token:
                return tuple(items)

    def _get(self, path: str, query: Mapping[str, str] | None = None) -> JsonObject:
        response = self._connection.request("GET", path, query, accept="application/json")
        if response.status != HTTP_OK:
            raise self._connection.error_for_response(response)
        with contextlib.suppress(ValueError):
            body = json.loads(response.body)
            if isinstance(body, dict):
                return body
        raise WrongServerError(
            f"{self.endpoint.connect_url}{path} did not return a Kubernetes response",
            hint=self.endpoint.unreachable_hint,
        )
