"""The Kubernetes API of a cluster: what cfngen reads of it, and the one thing that it deletes there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cfngen.deploy.access import kubernetes_objects as objects
from cfngen.deploy.access.api_connection import ApiConnection, Endpoint, WrongServerError
from cfngen.deploy.access.certificates import KeyPair
from cfngen.deploy.access.kubernetes_objects import LoadBalancer, Node, Pod, Readiness

PAGE = 500
SYSTEM = "kube-system"
OK, ACCEPTED, GONE = 200, 202, 404
Item = TypeVar("Item")


class Kubernetes:
    """The API of a cluster; close it, or use it in a `with` statement.

    Args:
        endpoint: where the API server is.
        authority: PEM of the authority that its certificate must be of.
        client: certificate and key to show it.
    """

    def __init__(self, endpoint: Endpoint, authority: str, client: KeyPair) -> None:
        self.endpoint = endpoint
        self._connection = ApiConnection(endpoint, authority, client)

    def __enter__(self) -> Kubernetes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def version(self) -> str:
        """Return the API server's version, e.g. `1.36.3`.

        Raises:
            KubernetesError: one of the errors above.
        """
        return objects.version(self._get("/version"))

    def readiness(self) -> Readiness:
        """Return whether the API server is ready, and which of its checks fail.

        Raises:
            KubernetesError: it does not answer.
        """
        answer = self._connection.request("GET", "/readyz", {"verbose": "true"}, accept="*/*")
        if answer.status == OK:
            return objects.readiness(answer.body)
        # Not ready is an answer: 500 with the same list.
        if answer.status >= 500 and answer.body:
            return Readiness(False, objects.readiness(answer.body).failing)
        raise self._connection.refusal(answer)

    def nodes(self) -> tuple[Node, ...]:
        """Return every Node.

        Raises:
            KubernetesError: one of the errors above.
        """
        return self._list("/api/v1/nodes", objects.node)

    def system_pods(self) -> tuple[Pod, ...]:
        """Return the pods of the cluster itself.

        Raises:
            KubernetesError: one of the errors above.
        """
        return self._list(f"/api/v1/namespaces/{SYSTEM}/pods", objects.pod)

    def load_balancers(self) -> tuple[LoadBalancer, ...]:
        """Return the Services that have, or will have, a load balancer in AWS.

        Raises:
            KubernetesError: one of the errors above.
        """
        kinds = self._list("/api/v1/services", lambda item: (item.get("spec", {}).get("type"), item))
        return tuple(objects.load_balancer(item) for kind, item in kinds if kind == "LoadBalancer")

    def persistent_volumes(self) -> tuple[str, ...]:
        """Return the names of every PersistentVolume.

        Raises:
            KubernetesError: one of the errors above.
        """
        return self._list("/api/v1/persistentvolumes", lambda item: str(item["metadata"]["name"]))

    def config_map(self, name: str) -> Mapping[str, str]:
        """Return what a ConfigMap of the cluster itself holds; nothing if there is none.

        Raises:
            KubernetesError: one of the errors above.
        """
        # By a list: where there is no such object a list is empty, and no error.
        path = f"/api/v1/namespaces/{SYSTEM}/configmaps"
        found = self._get(path, {"fieldSelector": f"metadata.name={name}"}).get("items") or ()
        return dict(found[0].get("data") or {}) if found else {}

    def delete_service(self, namespace: str, name: str) -> None:
        """Delete a Service; that there is none any more is no error.

        Raises:
            KubernetesError: one of the errors above.
        """
        path = f"/api/v1/namespaces/{namespace}/services/{name}"
        answer = self._connection.request("DELETE", path, accept="application/json")
        if answer.status not in (OK, ACCEPTED, GONE):
            raise self._connection.refusal(answer)

    def _list(self, path: str, make: Callable[[Mapping[str, Any]], Item]) -> tuple[Item, ...]:
        found: list[Item] = []
        following = ""
        while True:
            query = {"limit": str(PAGE), **({"continue": following} if following else {})}
            answer = self._get(path, query)
            found.extend(make(each) for each in answer.get("items") or ())
            following = (answer.get("metadata") or {}).get("continue") or ""
            if not following:
                return tuple(found)

    def _get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        answer = self._connection.request("GET", path, query, accept="application/json")
        if answer.status != OK:
            raise self._connection.refusal(answer)
        with contextlib.suppress(ValueError):
            document = json.loads(answer.body)
            if isinstance(document, dict):
                return document
        raise WrongServerError(
            f"{self.endpoint.server}{path} does not answer as Kubernetes does", hint=self.endpoint.checks
        )
