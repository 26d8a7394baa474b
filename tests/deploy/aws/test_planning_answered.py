"""Which calls a plan may make: questions, uploads, and what it has made itself."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers
from recorded import CHANGE_SET, STACK_ID

from cfngen.deploy.aws.planning_account import PlanChangesError, PlanningAccount


def planning(api: Answers) -> PlanningAccount:
    """The account of a plan; its clients are those of the answers, which refuse beside them what no plan may do."""

    class Session:
        def client(self, service: str, **_: Any) -> Any:
            import boto3

            session = boto3.Session("AKIDEXAMPLE", "secret", region_name="us-west-2")
            client = session.client(service)
            client.meta.events.register("before-call", lambda model, params, **_: api.answer(model, params))
            return client

    account = PlanningAccount.of(api.account)
    object.__setattr__(account, "session", Session())
    return account


OWNED = {"Bucket": "b", "ExpectedBucketOwner": "123456789012"}
RULES: dict[str, Any] = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
UPLOADING = {
    "create_bucket": {"Bucket": "b"},
    "put_bucket_encryption": {**OWNED, "ServerSideEncryptionConfiguration": RULES},
    "put_bucket_lifecycle_configuration": {**OWNED, "LifecycleConfiguration": {"Rules": []}},
    "put_bucket_ownership_controls": {**OWNED, "OwnershipControls": {"Rules": []}},
    "put_bucket_policy": {**OWNED, "Policy": "{}"},
    "put_bucket_tagging": {**OWNED, "Tagging": {"TagSet": []}},
    "put_bucket_versioning": {**OWNED, "VersioningConfiguration": {"Status": "Enabled"}},
    "put_object": {**OWNED, "Key": "k", "Body": b"x"},
    "put_public_access_block": {**OWNED, "PublicAccessBlockConfiguration": {}},
    "head_bucket": OWNED,
    "get_bucket_policy": OWNED,
    "list_objects_v2": OWNED,
}


def test_templates_may_be_uploaded_into_a_bucket_that_is_made_for_them() -> None:
    api = Answers({})
    api.answer = lambda model, params: (type("R", (), {"status_code": 200})(), {})  # type: ignore[method-assign]
    s3 = planning(api).client("s3")
    for name, arguments in UPLOADING.items():
        getattr(s3, name)(**arguments)
    for name, arguments in {"delete_bucket": OWNED, "delete_object": {**OWNED, "Key": "k"}}.items():
        with pytest.raises(PlanChangesError, match=r"s3:Delete(Bucket|Object) was not sent"):
            getattr(s3, name)(**arguments)


@pytest.mark.parametrize(("kind", "stack_too"), [("CREATE", True), ("UPDATE", False)])
def test_what_the_plan_has_made_it_may_remove(kind: str, stack_too: bool) -> None:
    def answer(model: Any, _: Any) -> tuple[Any, dict[str, Any]]:
        made = {"Id": CHANGE_SET, "StackId": STACK_ID} if model.name == "CreateChangeSet" else {}
        return type("R", (), {"status_code": 200})(), made

    api = Answers({})
    api.answer = answer  # type: ignore[method-assign]
    account = planning(api)
    client = account.client("cloudformation")
    assert account.client("cloudformation") is client
    for attempt in (
        lambda: client.delete_change_set(ChangeSetName=CHANGE_SET),
        lambda: client.delete_stack(StackName=STACK_ID),
    ):
        with pytest.raises(PlanChangesError) as raised:
            attempt()
        assert "please report it" in raised.value.hint
    client.create_change_set(StackName="k8s", ChangeSetName="one", ChangeSetType=kind, TemplateBody="{}")
    assert account.created_arns == ({CHANGE_SET, STACK_ID} if stack_too else {CHANGE_SET})
    client.delete_change_set(ChangeSetName=CHANGE_SET)
    if stack_too:
        client.delete_stack(StackName=STACK_ID)
    else:
        with pytest.raises(PlanChangesError, match="cloudformation:DeleteStack was not sent"):
            client.delete_stack(StackName=STACK_ID)
    assert account.only_planning
    assert not api.account.only_planning


def test_a_change_set_that_was_refused_is_not_the_plans() -> None:
    def answer(*_: Any) -> tuple[Any, dict[str, Any]]:
        return type("R", (), {"status_code": 400})(), {"Error": {"Code": "AlreadyExistsException", "Message": "no"}}

    api = Answers({})
    api.answer = answer  # type: ignore[method-assign]
    account = planning(api)
    with pytest.raises(Exception, match="AlreadyExists"):
        account.client("cloudformation").create_change_set(StackName="k8s", ChangeSetName="one", TemplateBody="{}")
    assert account.created_arns == set()


@pytest.mark.parametrize(
    ("service", "method", "arguments"),
    [
        ("ec2", "create_tags", {"Resources": ["i-1"], "Tags": []}),
        ("ec2", "delete_volume", {"VolumeId": "vol-1"}),
        ("cloudformation", "update_termination_protection", {"StackName": "x", "EnableTerminationProtection": False}),
    ],
)
def test_other_services_are_only_asked(service: str, method: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(PlanChangesError, match=f"{service}:"):
        getattr(planning(Answers({})).client(service), method)(**arguments)


def test_permissions_may_be_simulated() -> None:
    api = Answers({})
    api.answer = lambda model, params: (type("R", (), {"status_code": 200})(), {"of": model.name})  # type: ignore[method-assign]
    arguments = {"PolicySourceArn": "arn:aws:iam::123456789012:role/deploys", "ActionNames": ["ec2:RunInstances"]}
    assert planning(api).client("iam").simulate_principal_policy(**arguments) == {"of": "SimulatePrincipalPolicy"}


def test_the_same_account_is_planned_in() -> None:
    api = Answers({})
    account = PlanningAccount.of(api.account)
    same = ("id", "region", "partition", "caller", "clock", "attempts")
    assert [getattr(account, name) for name in same] == [getattr(api.account, name) for name in same]
