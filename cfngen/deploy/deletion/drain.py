"""Asking Kubernetes itself to take its load balancers down, as long as it runs: nobody else does it as well."""

from __future__ import annotations

from collections.abc import Callable

from cfngen.deploy.access.kubernetes import Kubernetes
from cfngen.deploy.clock import Clock
from cfngen.deploy.messages import Report, Step

PATIENCE = 300.0  # seconds for the cloud controller manager, which takes about one for each load balancer
PAUSE = 5.0

Drain = Callable[[Report], tuple[str, ...]]
"""Deletes the Services that have load balancers; returns those that are still there after all patience.

Raises CfngenError where the API cannot be asked.
"""


def drain(kubernetes: Kubernetes, clock: Clock, report: Report, *, patience: float = PATIENCE) -> tuple[str, ...]:
    """Delete every Service of type LoadBalancer, and wait until their load balancers are gone.

    A Service disappears only when its finalizer, `service.kubernetes.io/load-balancer-cleanup`, has been removed, which
    the cloud controller manager does once AWS has deleted the load balancer.

    Args:
        kubernetes: the cluster's API.
        clock: the time.
        report: told what is awaited.
        patience: seconds to wait.

    Returns:
        Services that are still there, each as `namespace/name`.

    Raises:
        KubernetesError: the API does not answer, or refuses.
    """
    until = clock.now().timestamp() + patience
    announced = False
    while True:
        services = kubernetes.load_balancers()
        for service in services:
            if not service.leaving:
                kubernetes.delete_service(service.namespace, service.name)
        if not services:
            return ()
        if not announced:
            names = ", ".join(f"{service.namespace}/{service.name}" for service in services)
            report(Step(f"waiting for Kubernetes to delete the load balancers of {names}"))
            announced = True
        if clock.now().timestamp() >= until:
            return tuple(f"{service.namespace}/{service.name}" for service in services)
        clock.sleep(PAUSE)
