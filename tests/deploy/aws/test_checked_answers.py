"""What is left out of an answer of AWS: an empty list, or an error that says what is missing."""

from __future__ import annotations

from dataclasses import replace

import boto3
import pytest
from answers import REGION, Answers

from cfngen import __version__
from cfngen.deploy.aws.account import MAX_ATTEMPTS, Account
from cfngen.deploy.aws.checked_answers import read_document
from cfngen.deploy.aws.errors import IncompleteAnswerError


def test_a_list_that_is_left_out_is_empty() -> None:
    account = Answers({"ec2:DescribeInstances": {"Reservations": [{}]}}).account
    [reservation] = account.client("ec2").describe_instances()["Reservations"]
    assert reservation["Instances"] == []
    assert Answers({"ec2:DescribeVpcs": {}}).account.client("ec2").describe_vpcs()["Vpcs"] == []


def test_anything_else_that_is_left_out_is_an_error_that_names_it() -> None:
    answers = {"ec2:DescribeInstances": {"Reservations": [{"Instances": [{"InstanceId": "i-1"}]}]}}
    [reservation] = Answers(answers).account.items("ec2.describe_instances", "Reservations")
    [instance] = reservation["Instances"]
    assert (instance["InstanceId"], instance.get("State")) == ("i-1", None)
    with pytest.raises(IncompleteAnswerError, match=r"AWS's answer to ec2:DescribeInstances has no State") as raised:
        instance["State"]
    assert "report" in raised.value.hint
    # What is no member at all is a fault of cfngen.
    with pytest.raises(KeyError):
        instance["Statt"]


def test_keys_of_maps_may_be_missing_too() -> None:
    account = Answers({"iam:GetAccountSummary": {"SummaryMap": {"Roles": 3}}}).account
    summary = account.client("iam").get_account_summary()["SummaryMap"]
    assert summary["Roles"] == 3
    with pytest.raises(IncompleteAnswerError, match="has no RolesQuota"):
        summary["RolesQuota"]


@pytest.mark.parametrize("text", ["", "****", "[]", "3"])
def test_a_document_that_is_no_object_is_an_error(text: str) -> None:
    with pytest.raises(IncompleteAnswerError, match="kms:GetKeyPolicy has no JSON object as its Policy"):
        read_document(text, "kms:GetKeyPolicy", "Policy")
    assert read_document('{"Version": "1"}', "kms:GetKeyPolicy", "Policy") == {"Version": "1"}


def test_clients_of_an_account_are_checked() -> None:
    api = Answers({"ec2:DescribeVpcs": {"Vpcs": [{}]}})
    session = boto3.Session("AKIDEXAMPLE", "secret", region_name=REGION)
    account = Account(api.account.id, REGION, "aws", "", session, api.clock)  # type: ignore[arg-type]
    client = account.client("ec2")
    client.meta.events.register("before-call", lambda model, **_: api.answer(model, {}))
    [vpc] = client.describe_vpcs()["Vpcs"]
    with pytest.raises(IncompleteAnswerError, match="ec2:DescribeVpcs has no VpcId"):
        vpc["VpcId"]


@pytest.mark.parametrize("attempts", [MAX_ATTEMPTS, 1])
def test_a_client_is_patient_and_says_whose_it_is(attempts: int) -> None:
    session = boto3.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    account = replace(Answers({}).account, session=session, attempts=attempts, _clients={})
    client = account.client("sts")
    assert account.client("sts") is client
    config = client.meta.config
    assert client.meta.region_name == REGION
    assert config.retries == {"mode": "standard", "total_max_attempts": attempts}
    assert (config.connect_timeout, config.read_timeout) == (10, 60)
    assert config.user_agent_extra == f"cfngen/{__version__}"
