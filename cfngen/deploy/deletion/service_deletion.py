"""Lets Kubernetes delete its own load balancers while it still runs, so that none of their security groups remain."""

from __future__ import annotations

from collections.abc import Callable

from cfngen.deploy.access.kubernetes import KubernetesClient
from cfngen.deploy.clock import Clock
from cfngen.deploy.messages.message import Report, Step

TIMEOUT_SECONDS = 300.0  # the cloud controller manager takes about a second for each load balancer
POLL_INTERVAL_SECONDS = 5.0

DeleteServices = Callable[[Report], tuple[str, ...]]
"""Deletes the Services that have load balancers; returns those that still exist after the timeout.

Raises CfngenError if the Kubernetes API cannot be reached.
"""


def delete_load_balancer_services(
    kubernetes: KubernetesClient, clock: Clock, report: Report, *, timeout: float = TIMEOUT_SECONDS
) -> tuple[str, ...]:
    """Delete every Service of type LoadBalancer, and wait until their load balancers are gone.

    The cloud controller manager removes the Service's finalizer, `service.kubernetes.io/load-balancer-cleanup`, only
    after AWS has deleted the load balancer; until then the Service still exists.

    Args:
        kubernetes: the cluster's API.
        clock: the clock.
        report: receives a message before waiting.
        timeout: seconds to wait.

    Returns:
        Services that still exist, each as `namespace/name`.

    Raises:
        KubernetesError: the API does not answer, or denies the request.
    """
    deadline = clock.now().timestamp() + timeout
    has_reported = False
    while True:
        services = kubernetes.load_balancers()
        for service in services:
            if not service.being_deleted:
                kubernetes.delete_service(service.namespace, service.name)
        if not services:
            return ()
        if not has_reported:
            names = ", ".join(f"{service.namespace}/{service.name}" for service in services)
            report(Step(f"waiting for Kubernetes to delete the load balancers of {names}"))
            has_reported = True
        if clock.now().timestamp() >= deadline:
            return tuple(f"{service.namespace}/{service.name}" for service in services)
        clock.sleep(POLL_INTERVAL_SECONDS)
