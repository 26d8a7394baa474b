"""Termination protection and stack policies: what is read, what is set, and what is said where that fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from answers import DENIED, Answers
from recorded import NESTED, NOW, STACK_ID, RefusedError
from recorded_stack import NAME, arn, resource

from cfngen.deploy.aws import protection
from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.aws.protection import ALLOW_ALL_POLICY
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Message, Notice
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.operations import stack_protection
from cfngen.deploy.operations.stack_protection import PolicyNotRestoredError

MASTER, SECRETS = f"{NAME}-MasterStack-1", f"{NAME}-SecretsStack-1"
ALLOW = {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}
LOSS = {"Effect": "Deny", "Action": ["Update:Replace", "Update:Delete"], "Principal": "*"}
ROOT_POLICY = {
    "Statement": [ALLOW, {**LOSS, "Resource": ["LogicalResourceId/MasterStack", "LogicalResourceId/SecretsStack"]}]
}
KEPT = [
    "AWS::EC2::EIP",
    "AWS::EC2::NetworkInterface",
    "AWS::EC2::Volume",
    "AWS::ElasticLoadBalancingV2::LoadBalancer",
    "AWS::KMS::Key",
    "AWS::SecretsManager::Secret",
]
HOLDER_POLICY = {"Statement": [ALLOW, {**LOSS, "Resource": "*", "Condition": {"StringEquals": {"ResourceType": KEPT}}}]}
OTHERS = {"Statement": [LOSS]}


class Protected(Answers):
    """A cluster's stacks with their policies.

    Attributes:
        policies: by the stack's name.
        status: of the root; empty where there is none.
    """

    def __init__(self, **policies: Mapping[str, Any]) -> None:
        self.policies: dict[str, Any] = dict(policies)
        self.status = "UPDATE_COMPLETE"
        self.gone: set[str] = set()
        self.refused: dict[str, Exception] = {}
        holders = [
            resource("MasterStack", "CREATE_COMPLETE", type_=NESTED, physical_id=arn(MASTER)),
            resource("SecretsStack", "UPDATE_COMPLETE", type_=NESTED, physical_id=arn(SECRETS)),
            # Neither another stack, nor one that is gone or has not come about, nor what is none.
            resource("VpcStack", "CREATE_COMPLETE", type_=NESTED, physical_id=arn("vpc")),
            resource("MasterStack", "DELETE_COMPLETE", type_=NESTED, physical_id=arn("old")),
            {**resource("SecretsStack", "CREATE_FAILED", type_=NESTED), "PhysicalResourceId": ""},
            resource("MasterStack", "CREATE_COMPLETE", physical_id="i-1"),
        ]
        super().__init__(
            {
                "cloudformation:ListStackResources": {"StackResourceSummaries": holders},
                "cloudformation:GetStackPolicy": self._read,
                "cloudformation:SetStackPolicy": self._set,
                "cloudformation:UpdateTerminationProtection": {},
                "cloudformation:DescribeStacks": self._describe,
            }
        )

    def _read(self, sent: dict[str, Any]) -> dict[str, Any]:
        policy = self.policies.get(sent["StackName"].split("/")[1])
        return {} if policy is None else {"StackPolicyBody": json.dumps(policy)}

    def _set(self, sent: dict[str, Any]) -> dict[str, Any]:
        name = sent["StackName"].split("/")[1]
        if error := self.refused.pop(name, None):
            raise error
        if name in self.gone:
            raise RefusedError("ValidationError", "Stack is in DELETE_COMPLETE")
        self.policies[name] = json.loads(sent["StackPolicyBody"])
        return {}

    def _describe(self, sent: dict[str, Any]) -> dict[str, Any]:
        name = sent["StackName"].split("/")[1]
        status = "DELETE_COMPLETE" if name in self.gone else self.status
        if not status:
            raise RefusedError("ValidationError", "Stack does not exist")
        return {"Stacks": [{"StackName": name, "StackId": arn(name), "StackStatus": status, "CreationTime": NOW}]}

    def switched(self) -> list[bool]:
        """What termination protection was set to, each time at the root."""
        calls = self.named("cloudformation:UpdateTerminationProtection")
        assert {call["StackName"] for call in calls} <= {STACK_ID}
        return [call["EnableTerminationProtection"] for call in calls]


def root(status: str = "UPDATE_COMPLETE", *, protected: bool = False) -> StackView:
    return StackView(NAME, STACK_ID, StackStatus(status), protected=protected)


ALL = {NAME: ROOT_POLICY, MASTER: HOLDER_POLICY, SECRETS: HOLDER_POLICY}
PRIOR = {NAME: ROOT_POLICY, MASTER: HOLDER_POLICY}


def test_policies_are_set_on_the_root_and_on_what_holds_state() -> None:
    api, said = Protected(), list[Message]()
    stack_protection.protect_stack(api.account, root(), report=said.append)
    assert api.policies == ALL
    assert api.switched() == [True]
    assert said == []
    api.calls.clear()
    stack_protection.protect_stack(api.account, root(protected=True), report=said.append)
    assert api.writes == []


def test_what_has_no_policy_is_named() -> None:
    api = Protected(**{MASTER: HOLDER_POLICY, SECRETS: ALLOW_ALL_POLICY})  # type: ignore[arg-type]
    assert protection.find_stacks_without_policy(api.account, root()) == (NAME, SECRETS)
    api.policies = {**ALL, MASTER: OTHERS}
    assert protection.find_stacks_without_policy(api.account, root()) == ()


def test_one_that_allows_everything_is_replaced_and_somebody_elses_stays() -> None:
    api, said = Protected(**{NAME: ALLOW_ALL_POLICY, MASTER: OTHERS}), list[Message]()  # type: ignore[arg-type]
    stack_protection.protect_stack(api.account, root(protected=True), False, report=said.append)
    assert api.policies == {NAME: ROOT_POLICY, MASTER: OTHERS, SECRETS: HOLDER_POLICY}
    [notice] = said
    assert isinstance(notice, Notice)
    assert notice.text == f"the stack {MASTER} has a policy that is not cfngen's; it is unchanged"
    assert f"--region us-west-2 --stack-name {arn(MASTER)}" in notice.hint
    assert api.switched() == []


@pytest.mark.parametrize(
    ("status", "protected", "switched"),
    [
        ("ROLLBACK_COMPLETE", True, [False]),
        ("ROLLBACK_FAILED", True, [False]),
        ("ROLLBACK_COMPLETE", False, []),
        ("CREATE_FAILED", True, []),
        ("UPDATE_ROLLBACK_COMPLETE", True, []),
    ],
)
def test_protection_is_given_up_only_where_a_creation_failed_for_good(
    status: str, protected: bool, switched: list[bool]
) -> None:
    api = Protected()
    stack_protection.unprotect_failed_creation(api.account, root(status, protected=protected), list[Message]().append)
    assert api.switched() == switched


def test_protection_that_may_not_be_given_up_is_told() -> None:
    api, said = Protected(), list[Message]()
    api.given["cloudformation:UpdateTerminationProtection"] = DENIED
    stack_protection.unprotect_failed_creation(api.account, root("ROLLBACK_COMPLETE", protected=True), said.append)
    [notice] = said
    assert isinstance(notice, Notice)
    assert notice.text.startswith(f"{NAME} is still protected against deletion: not allowed to call Update")
    assert notice.hint
    with pytest.raises(AwsError):
        protection.disable_termination_protection(api.account, root(protected=True))
    # A new stack is protected later, where that is not allowed at once.
    stack_protection.protect_new_stack(api.account, STACK_ID)
    api.given["cloudformation:UpdateTerminationProtection"] = {}
    stack_protection.protect_new_stack(api.account, STACK_ID)
    assert api.switched()[-1] is True


@pytest.mark.parametrize(
    ("operation", "refusal", "says", "hint"),
    [
        ("UpdateTerminationProtection", DENIED, "not allowed to call UpdateTerminationProtection", "docs/deploy/"),
        ("SetStackPolicy", DENIED, "not allowed to call SetStackPolicy", "docs/deploy/deploy.md lists"),
        ("SetStackPolicy", RefusedError("InternalFailure"), "SetStackPolicy: no", "the next deployment tries again."),
    ],
)
def test_protection_that_could_not_be_set_does_not_fail_the_deployment_and_is_told(
    operation: str, refusal: RefusedError, says: str, hint: str
) -> None:
    api, said = Protected(), list[Message]()
    api.given[f"cloudformation:{operation}"] = refusal
    stack_protection.protect_deployed_stack(api.account, root(), True, report=said.append)
    [notice] = said
    assert isinstance(notice, Notice)
    assert notice.text.startswith(f"{NAME} is up to date, but not protected: {says}")
    assert str(notice.hint).startswith(hint)


@pytest.mark.parametrize("fails", [False, True])
def test_policies_are_lifted_for_one_update_and_put_back(fails: bool) -> None:
    api, said = Protected(**{**PRIOR, SECRETS: ALLOW_ALL_POLICY}), list[Message]()  # type: ignore[arg-type]
    lifted: dict[str, Any] = {}
    try:
        with stack_protection.lift_stack_policies(api.account, root(), report=said.append):
            lifted |= api.policies
            if fails:
                raise KeyError
    except KeyError:
        assert fails
    assert lifted == dict.fromkeys((NAME, MASTER, SECRETS), ALLOW_ALL_POLICY)
    assert api.policies == {**PRIOR, SECRETS: ALLOW_ALL_POLICY}
    assert said == []
    # What was open is not written.
    assert SECRETS not in {each["StackName"].split("/")[1] for each in api.named("cloudformation:SetStackPolicy")}


def test_while_the_update_goes_on_they_stay_lifted() -> None:
    api, said = Protected(**PRIOR), list[Message]()  # type: ignore[arg-type]
    with stack_protection.lift_stack_policies(api.account, root(), report=said.append):
        api.status = "UPDATE_IN_PROGRESS"
    assert api.policies == dict.fromkeys((NAME, MASTER), ALLOW_ALL_POLICY)
    [notice] = said
    assert isinstance(notice, Notice)
    assert notice.text == "the stack policies stay lifted while the update continues"
    assert f"`cfngen watch --stack-name {NAME}`" in str(notice.hint)
    api, said = Protected(), list[Message]()
    with stack_protection.lift_stack_policies(api.account, root(), report=said.append):
        api.status = "UPDATE_IN_PROGRESS"
    assert said == []


@pytest.mark.parametrize("status", ["", "DENIED"])
def test_where_the_status_cannot_be_read_putting_back_is_tried(status: str) -> None:
    api = Protected(**PRIOR)  # type: ignore[arg-type]
    with stack_protection.lift_stack_policies(api.account, root(), report=list[Message]().append):
        api.status = status
        if status:
            api.given["cloudformation:DescribeStacks"] = DENIED
    assert api.policies == PRIOR


def test_a_stack_that_the_update_has_deleted_needs_none() -> None:
    api = Protected(**PRIOR)  # type: ignore[arg-type]
    with stack_protection.lift_stack_policies(api.account, root(), report=list[Message]().append):
        api.gone = {MASTER}
    assert api.policies[NAME] == ROOT_POLICY


@pytest.mark.parametrize(
    "refusal", [RefusedError("ValidationError", "some rule"), RefusedError("AccessDenied", "no", 403)]
)
def test_a_policy_that_cannot_be_put_back_is_an_error_that_hides_no_other(refusal: RefusedError) -> None:
    api, said = Protected(**PRIOR), list[Message]()  # type: ignore[arg-type]
    with (
        pytest.raises(PolicyNotRestoredError) as raised,
        stack_protection.lift_stack_policies(api.account, root(), report=said.append),
    ):
        api.refused[NAME] = refusal
    assert raised.value.stacks == (STACK_ID,)
    assert f"the stack policy could not be restored on {NAME}: " in str(raised.value)
    assert "deploy again" in raised.value.hint
    # The other one was put back all the same.
    assert api.policies[MASTER] == HOLDER_POLICY
    api = Protected(**PRIOR)  # type: ignore[arg-type]

    def break_off() -> None:
        api.refused[MASTER] = refusal
        raise KeyError

    with pytest.raises(KeyError), stack_protection.lift_stack_policies(api.account, root(), report=said.append):
        break_off()
    [notice] = said
    assert isinstance(notice, Notice)
    assert f"could not be restored on {MASTER}" in notice.text


def test_ctrl_c_while_they_are_put_back_leaves_no_other_open() -> None:
    api, said = Protected(**PRIOR), list[Message]()  # type: ignore[arg-type]
    with (
        pytest.raises(KeyboardInterrupt),
        stack_protection.lift_stack_policies(api.account, root(), report=said.append),
    ):
        api.refused[NAME] = KeyboardInterrupt()  # type: ignore[assignment]
    assert api.policies == {NAME: ALLOW_ALL_POLICY, MASTER: HOLDER_POLICY}
    [notice] = said
    assert isinstance(notice, Notice)
    assert notice.text == f"the stack policy could not be restored on {NAME}: interrupted"
