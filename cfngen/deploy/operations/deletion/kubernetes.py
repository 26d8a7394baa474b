"""Prepares a cluster for its deletion: Services lose their load balancers, and nothing delays a termination.

Each node group has a lifecycle hook that keeps a terminating instance until its pods have been evicted. When the whole
cluster is deleted the pods have nowhere to go, and a PodDisruptionBudget would block each node for its `drainTimeout`.
The hook of masters, which keeps them while etcd would lose its quorum with them, has no use then either.

"If there are any outstanding lifecycle actions, they are completed first (... CONTINUE for terminating instances)"
(DeleteLifecycleHook, Amazon EC2 Auto Scaling API Reference). So the hooks are deleted right after CloudFormation has
started to delete the stack, when the deletion can no longer be cancelled. If they were deleted earlier, an interruption
could leave a running cluster whose nodes are not drained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cfngen.cluster.naming.names import DRAIN_HOOK, QUORUM_HOOK
from cfngen.deploy.access.kubernetes import KubernetesClient
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, suppress_codes, translate_aws_errors
from cfngen.deploy.aws.types import AwsArguments, AwsObject, Clock
from cfngen.deploy.messages.message import Notice, Report, Step
from cfngen.hints import CommandText, suggest

TIMEOUT_SECONDS = 300.0  # the cloud controller manager takes about a second for each load balancer
POLL_INTERVAL_SECONDS = 5.0
DeleteServices = Callable[[Report], tuple[str, ...]]
"""Deletes the Services that have load balancers; returns those that still exist after the timeout.

Raises CfngenError if the Kubernetes API cannot be reached.
"""
_PUT_HOOK_KEYS = (
    "LifecycleHookName",
    "AutoScalingGroupName",
    "LifecycleTransition",
    "HeartbeatTimeout",
    "DefaultResult",
)


class TerminationHooks:
    """The lifecycle hooks that delay the termination of a cluster's nodes and masters.

    Failures are only reported: they must not fail a deletion.
    """

    def __init__(self, account: Account, group_names: Iterable[str], report: Report) -> None:
        self._account = account
        self._group_names = tuple(group_names)
        self._report = report
        # By the group's name: the arguments of PutLifecycleHook that create the hook again.
        self._removed_hooks: dict[str, AwsArguments] = {}

    def remove(self) -> None:
        """Delete the hooks; instances then terminate at once, also those that a hook keeps."""
        try:
            with translate_aws_errors():
                for group_name in self._group_names:
                    self._remove_hook(group_name)
        except AwsError as error:
            text = (
                f"nodes are still drained before they are terminated, which may take up to their drainTimeout: {error}"
            )
            self._report(Notice(text, error.hint))

    def restore(self) -> None:
        """Create the deleted hooks again, in the groups that still exist."""
        try:
            with translate_aws_errors():
                for group_name, hook_arguments in list(self._removed_hooks.items()):
                    self._call(self._account.client("autoscaling").put_lifecycle_hook, **hook_arguments)
                    del self._removed_hooks[group_name]
        except AwsError as error:
            text = f"nodes are no longer drained before they are terminated: {error}"
            try_later = CommandText("run ", suggest("delete"), " again to delete the cluster.")
            self._report(Notice(text, error.hint or try_later))

    def _remove_hook(self, group_name: str) -> None:
        """Delete the hook of one group, and record its settings for `restore`."""
        autoscaling = self._account.client("autoscaling")
        response = self._call(
            autoscaling.describe_lifecycle_hooks,
            AutoScalingGroupName=group_name,
            LifecycleHookNames=[DRAIN_HOOK, QUORUM_HOOK],
        )
        for hook in response.get("LifecycleHooks", ()):
            self._removed_hooks[group_name] = {key: hook[key] for key in _PUT_HOOK_KEYS if key in hook}
            self._call(
                autoscaling.delete_lifecycle_hook,
                AutoScalingGroupName=group_name,
                LifecycleHookName=hook["LifecycleHookName"],
            )

    def _call(self, operation: Callable[..., AwsObject], **arguments: object) -> AwsArguments:
        """Call an operation of Auto Scaling; return an empty response if the group or the hook no longer exists."""
        # Auto Scaling has no error code of its own for a group, or a hook, that does not exist.
        with suppress_codes(("ValidationError",)):
            return dict(operation(**arguments))
        return {}


def delete_load_balancer_services(
    kubernetes: KubernetesClient, clock: Clock, report: Report, *, timeout: float = TIMEOUT_SECONDS
) -> tuple[str, ...]:
    """Delete every Service of type LoadBalancer, and wait until their load balancers are gone.

    The cloud controller manager removes the Service's finalizer, `service.kubernetes.io/load-balancer-cleanup`, only
    after AWS has deleted the load balancer; until then the Service still exists.

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
