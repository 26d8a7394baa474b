"""The operator's policy suffices for a cluster's whole life, and every group of it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from types import SimpleNamespace

import pytest
from deployed import Place, place
from deployments import Operator, groups
from documented_policies import bucket_policy, operator_policy

from cfngen.cluster.load import parse
from cfngen.deploy.access import cluster_access
from cfngen.deploy.aws import stacks
from cfngen.deploy.aws.errors import DeniedError
from cfngen.deploy.aws.events import read_history
from cfngen.deploy.operations.deletion.execution import delete
from cfngen.deploy.operations.recovery import rollback
from cfngen.deploy.plan.deletion.plan import DeletionRequest
from cfngen.deploy.plan.publishing.bucket import BucketOwnerError, default_name
from cfngen.deploy.status.cluster_status import Unknown
from cfngen.deploy.status.derived_status import read_status
from cfngen.deploy.status.validation import validate
from cfngen.deploy.watching.diagnosis import Diagnosis, diagnose
from cfngen.permissions.operators import SERVICE_ROLE
from cfngen.permissions.scope import Scope

pytestmark = pytest.mark.drill

NAME = "one"
ONE = {"name": NAME, "nodeGroups": groups("general")}
ROLE = f"arn:aws:iam::123456789012:role/{SERVICE_ROLE}"
CLUSTER = parse(dict(ONE))
SCOPE = Scope("123456789012", "us-west-2", NAME)


@pytest.fixture(scope="module")
def where() -> Iterator[Place]:
    with place(CLUSTER) as made:
        yield made


def values_within(value: object) -> Iterator[object]:
    """A value, and all that it and its parts consist of."""
    yield value
    parts = vars(value).values() if is_dataclass(value) else value if isinstance(value, (list, tuple)) else ()
    for part in parts:
        yield from values_within(part)


def test_it_suffices_from_the_first_deployment_to_the_last_deletion(where: Place) -> None:
    with where.served.permissions.enforcing(operator_policy(SCOPE), bucket_policy(SCOPE)) as credentials:
        session = where.session_of(credentials)
        operator = Operator(SimpleNamespace(session=session, cluster=CLUSTER, clock=where.clock))
        account = operator.account
        assert operator.plan(ONE, role_arn=ROLE).operation == "create"
        assert operator.deploy(ONE, role_arn=ROLE).status == "CREATE_COMPLETE"
        larger = {"name": NAME, "nodeGroups": groups("general", instanceType="m5.large")}
        assert operator.deploy(larger, role_arn=ROLE).status == "UPDATE_COMPLETE"

        status = read_status(account, NAME, parse(dict(larger)), find_url_override=where.override)
        assert not any(isinstance(value, Unknown) for value in values_within(status))
        assert validate(account, NAME, parse(dict(larger)), find_url_override=where.override).valid
        stack = stacks.require_root_stack(account, NAME)
        assert cluster_access.find_authority(account, stack, stacks.read_outputs(account, stack)).initialised
        assert read_history(account, stack.id, operation="all")

        where.world.cloud.fail("NodeGroupGeneralLaunchTemplate", "no such type", during="UPDATE")
        assert operator.deploy(ONE, role_arn=ROLE, on_failure="keep").status == "UPDATE_FAILED"
        [found] = operator.reported(Diagnosis)
        assert found.cause.event.reason == "no such type"
        outcome = rollback(account, NAME, NAME, operator.waiting)
        assert outcome.status.name == "UPDATE_ROLLBACK_COMPLETE"
        assert diagnose(account, stack.id).stack == NAME

        request = DeletionRequest(NAME, NAME, bucket=default_name(account), empty_bucket=True, delete_bucket=True)
        deleted = delete(account, request, operator.waiting)
        assert (deleted.succeeded, deleted.status) == (True, "")


@pytest.mark.parametrize("group", ["read", "kubeconfig"])
def test_who_may_only_read_changes_nothing(where: Place, group: str) -> None:
    with where.served.permissions.enforcing(operator_policy(SCOPE, only_command_groups=[group])) as credentials:
        operator = Operator(SimpleNamespace(session=where.session_of(credentials), cluster=CLUSTER, clock=where.clock))
        with pytest.raises((BucketOwnerError, DeniedError)):
            operator.deploy(ONE)
    assert not [stack for stack in where.world.cloud.stacks() if stack.status == "REVIEW_IN_PROGRESS"]
