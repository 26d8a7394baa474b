"""A cluster that is protected against accidents, and is protected again after whatever was allowed once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from cfngen.deploy.aws import protection
from cfngen.deploy.aws.account import connect
from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.aws.stacks import find_stack, list_resources
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.operations import stack_protection

pytestmark = pytest.mark.drill

OTHERS = {"Statement": [{"Effect": "Deny", "Action": "Update:*", "Principal": "*", "Resource": "*"}]}


@pytest.fixture
def account(cloud):
    cloud.account.create("cluster")
    return connect(cloud.session, "us-west-2", clock=cloud.clock, attempts=1)


@pytest.fixture
def root(account):
    return find_stack(account, "k8s")


@pytest.fixture
def sent(account, root):
    """The calls that change something, from now on."""
    names = []

    def note(model, **_):
        if model.name.startswith(("Set", "Update", "Delete", "Create")):
            names.append(model.name)

    account.client("cloudformation").meta.events.register("before-parameter-build", note)
    return names


@pytest.fixture
def said():
    return []


def policy(account, stack):
    body = account.client("cloudformation").get_stack_policy(StackName=stack).get("StackPolicyBody")
    return json.loads(body) if body else None


def nested(account, logical_id):
    return next(
        resource.physical_id for resource in list_resources(account, "k8s") if resource.logical_id == logical_id
    )


def policies(account):
    return {name: policy(account, nested(account, name)) for name in ("MasterStack", "SecretsStack", "VpcStack")} | {
        "": policy(account, "k8s")
    }


PROTECTED = {
    "": protection.ROOT_POLICY,
    "MasterStack": protection.STATEFUL_STACK_POLICY,
    "SecretsStack": protection.STATEFUL_STACK_POLICY,
    "VpcStack": None,
}


def test_a_new_cluster_is_protected(account, root, said):
    stack_protection.protect_stack(account, root, report=said.append)
    assert find_stack(account, "k8s").protected
    assert policies(account) == PROTECTED
    assert said == []


def test_what_is_protected_already_is_left_alone(account, root, sent, said):
    stack_protection.protect_stack(account, root, report=said.append)
    assert sorted(sent) == ["SetStackPolicy"] * 3 + ["UpdateTerminationProtection"]
    sent.clear()
    stack_protection.protect_stack(account, find_stack(account, "k8s"), report=said.append)
    assert sent == []


def test_termination_protection_can_be_left_out_and_is_not_taken_away(account, root, said):
    stack_protection.protect_stack(account, root, termination=False, report=said.append)
    assert not find_stack(account, "k8s").protected
    stack_protection.protect_stack(account, root, report=said.append)
    stack_protection.protect_stack(account, find_stack(account, "k8s"), termination=False, report=said.append)
    assert find_stack(account, "k8s").protected


def test_a_policy_of_somebody_elses_stays_and_is_reported(account, root, said):
    client = account.client("cloudformation")
    client.set_stack_policy(StackName=nested(account, "SecretsStack"), StackPolicyBody=json.dumps(OTHERS))
    stack_protection.protect_stack(account, root, report=said.append)
    assert policies(account) == {**PROTECTED, "SecretsStack": OTHERS}
    (notice,) = said
    assert "SecretsStack" in notice.text
    assert "aws cloudformation get-stack-policy --region us-west-2" in notice.hint


def test_it_is_lifted_for_one_operation(account, root, said):
    stack_protection.protect_stack(account, root, report=said.append)
    with stack_protection.lift_stack_policies(account, root, report=said.append):
        documents = policies(account)
        assert [documents[name] for name in PROTECTED if PROTECTED[name]] == [protection.ALLOW_ALL_POLICY] * 3
        # An update is no deletion.
        assert find_stack(account, "k8s").protected
    assert policies(account) == PROTECTED


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, RuntimeError])
def test_it_is_put_back_whatever_happens(account, root, said, interruption):
    stack_protection.protect_stack(account, root, report=said.append)
    with pytest.raises(interruption), stack_protection.lift_stack_policies(account, root, report=said.append):
        raise interruption
    assert policies(account) == PROTECTED
    assert said == []


def test_what_is_not_protected_is_not_lifted(account, root, sent, said):
    with stack_protection.lift_stack_policies(account, root, report=said.append):
        pass
    assert sent == []


def test_somebody_elses_policy_is_put_back_as_it_was(account, root, said):
    account.client("cloudformation").set_stack_policy(StackName="k8s", StackPolicyBody=json.dumps(OTHERS))
    with stack_protection.lift_stack_policies(account, root, report=said.append):
        assert policy(account, "k8s") == protection.ALLOW_ALL_POLICY
    assert policy(account, "k8s") == OTHERS


def refuse(account, stack):
    """Have a policy of one stack refused from now on."""

    def check(params, **_):
        if params["StackName"] == stack:
            raise AwsError("not today")

    account.client("cloudformation").meta.events.register("before-parameter-build.cloudformation.SetStackPolicy", check)


def test_a_policy_that_cannot_be_put_back_is_a_failure_of_its_own(account, root, said):
    stack_protection.protect_stack(account, root, report=said.append)
    master = nested(account, "MasterStack")
    with (
        pytest.raises(stack_protection.PolicyNotRestoredError) as failed,
        stack_protection.lift_stack_policies(account, root, report=said.append),
    ):
        refuse(account, master)
    assert failed.value.stacks == (master,)
    assert "could not be restored on k8s-MasterStack-" in str(failed.value)
    # The others are.
    assert policies(account) == {**PROTECTED, "MasterStack": protection.ALLOW_ALL_POLICY}


def test_it_does_not_hide_what_went_wrong_before(account, root, said):
    stack_protection.protect_stack(account, root, report=said.append)

    def fail():
        refuse(account, root.id)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), stack_protection.lift_stack_policies(account, root, report=said.append):
        fail()
    assert ["could not be restored on k8s" in each.text for each in said] == [True]


def test_a_second_ctrl_c_leaves_no_other_stack_open(account, root, said):
    stack_protection.protect_stack(account, root, report=said.append)
    raised = []

    def interrupt(**_):
        if not raised:
            raised.append(True)
            raise KeyboardInterrupt

    def fail():
        events = account.client("cloudformation").meta.events
        events.register("before-parameter-build.cloudformation.SetStackPolicy", interrupt)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), stack_protection.lift_stack_policies(account, root, report=said.append):
        fail()
    documents = policies(account)
    assert [name for name in PROTECTED if documents[name] != PROTECTED[name]] == [""]
    assert len(said) == 1


def give_the_master_another_address(cloud):
    """An update that replaces the master's network interface."""
    keep = [
        {"ParameterKey": name, "UsePreviousValue": True}
        for name in find_stack(connect(cloud.session, "us-west-2", clock=cloud.clock), "k8s").parameters
        if name != "MasterAAddress"
    ]
    cloud.client("cloudformation").update_stack(
        StackName="k8s",
        UsePreviousTemplate=True,
        Capabilities=["CAPABILITY_IAM"],
        Parameters=[*keep, {"ParameterKey": "MasterAAddress", "ParameterValue": "172.20.0.77"}],
    )
    cloud.engine.wait(cloud.engine.stack("k8s"))


def test_an_update_may_not_replace_what_others_know(cloud, account, root, said):
    stack_protection.protect_stack(account, root, report=said.append)
    master = nested(account, "MasterStack")
    before = {resource.logical_id: resource.physical_id for resource in list_resources(account, master)}
    give_the_master_another_address(cloud)
    assert find_stack(account, "k8s").status.name == "UPDATE_ROLLBACK_COMPLETE"
    after = {resource.logical_id: resource.physical_id for resource in list_resources(account, master)}
    assert after["MasterANetworkInterface"] == before["MasterANetworkInterface"]


INTERFACE = {
    "Parameters": {"Subnet": {"Type": "String"}, "Text": {"Type": "String", "Default": "made"}},
    "Resources": {
        "Held": {
            "Type": "AWS::EC2::NetworkInterface",
            "Properties": {"SubnetId": {"Ref": "Subnet"}, "Description": {"Ref": "Text"}},
        }
    },
}


@pytest.mark.parametrize(
    ("policy", "parameters", "outcome"),
    [
        (protection.STATEFUL_STACK_POLICY, {"Subnet": 1}, "UPDATE_ROLLBACK_COMPLETE"),
        (protection.STATEFUL_STACK_POLICY, {"Subnet": 0, "Text": "changed"}, "UPDATE_COMPLETE"),
        (protection.ALLOW_ALL_POLICY, {"Subnet": 1}, "UPDATE_COMPLETE"),
    ],
)
def test_an_interface_may_change_and_may_not_be_replaced(cloud, policy, parameters, outcome):
    client = cloud.client("cloudformation")
    subnets = [subnet["SubnetId"] for subnet in cloud.client("ec2").describe_subnets()["Subnets"]]

    def given(**values):
        return [
            {"ParameterKey": key, "ParameterValue": subnets[value] if key == "Subnet" else value}
            for key, value in values.items()
        ]

    client.create_stack(StackName="one", TemplateBody=json.dumps(INTERFACE), Parameters=given(Subnet=0))
    cloud.engine.wait(cloud.engine.stack("one"))
    client.set_stack_policy(StackName="one", StackPolicyBody=json.dumps(policy))
    client.update_stack(StackName="one", UsePreviousTemplate=True, Parameters=given(**parameters))
    cloud.engine.wait(cloud.engine.stack("one"))
    assert client.describe_stacks(StackName="one")["Stacks"][0]["StackStatus"] == outcome


def test_deletion_is_allowed_once_protection_is_off(account, root, said, sent):
    stack_protection.protect_stack(account, root, report=said.append)
    protection.disable_termination_protection(account, find_stack(account, "k8s"))
    assert not find_stack(account, "k8s").protected
    sent.clear()
    protection.disable_termination_protection(account, find_stack(account, "k8s"))
    assert sent == []


def forbid(account, operation):
    """Have CloudFormation refuse an operation from now on, as by a policy."""

    def refused(**_):
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": f"no {operation}"}}, operation)

    account.client("cloudformation").meta.events.register(f"before-call.cloudformation.{operation}", refused)


def test_a_new_stack_that_may_not_be_protected_is_created_all_the_same(account, root):
    forbid(account, "UpdateTerminationProtection")
    stack_protection.protect_new_stack(account, root.id)
    assert not find_stack(account, "k8s").protected


@pytest.mark.parametrize("operation", ["UpdateTerminationProtection", "SetStackPolicy"])
def test_protection_that_could_not_be_set_does_not_fail_the_deployment_and_is_told(account, root, said, operation):
    forbid(account, operation)
    stack_protection.protect_deployed_stack(account, root, True, report=said.append)
    [notice] = said
    assert notice.text.startswith("k8s is up to date, but not protected: ")
    assert f"not allowed to call {operation}" in notice.text
    assert notice.hint


def test_a_failed_creation_that_stays_protected_is_told(account, root, said):
    stack_protection.protect_new_stack(account, root.id)
    failed = replace(find_stack(account, "k8s"), status=StackStatus("ROLLBACK_COMPLETE"))
    forbid(account, "UpdateTerminationProtection")
    stack_protection.unprotect_failed_creation(account, failed, said.append)
    [notice] = said
    assert notice.text.startswith("k8s is still protected against deletion: ")
    assert "not allowed to call UpdateTerminationProtection" in notice.text


def test_only_a_creation_that_failed_for_good_gives_up_its_protection(account, root, said):
    stack_protection.protect_new_stack(account, root.id)
    stack_protection.unprotect_failed_creation(account, find_stack(account, "k8s"), said.append)
    assert find_stack(account, "k8s").protected
    stack_protection.unprotect_failed_creation(
        account, replace(find_stack(account, "k8s"), status=StackStatus("ROLLBACK_COMPLETE")), said.append
    )
    assert not find_stack(account, "k8s").protected
    assert said == []


def test_a_caller_who_may_not_protect_is_told(cloud, account, root, said):
    read = {"Effect": "Allow", "Action": ["cloudformation:Describe*", "cloudformation:List*"], "Resource": "*"}
    with cloud.permissions.enforcing({"Version": "2012-10-17", "Statement": [read]}) as credentials:
        other = connect(cloud.session_of(credentials), "us-west-2", clock=cloud.clock, attempts=1)
        with pytest.raises(AwsError, match="not allowed to call UpdateTerminationProtection"):
            stack_protection.protect_stack(other, root, report=said.append)
