"""The account that tests of deployment use: ordinary clients, simulated time, consoles, faults."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta

import pytest
from botocore.exceptions import ClientError
from sandboxed import MASTERS, golden
from simulated_account import open_account

from cfngen.templates import generate


def test_a_cluster_is_created_while_its_creator_sleeps() -> None:
    cluster = golden("default")
    body = {each.name: each for each in generate(cluster)}["standalone"].body
    with open_account(cluster.region) as where:
        session, begin = where.session(), where.clock.now()
        s3 = session.client("s3")
        s3.create_bucket(Bucket="mine", CreateBucketConfiguration={"LocationConstraint": cluster.region})
        s3.put_object(Bucket="mine", Key="one.json", Body=json.dumps(body).encode())
        cloudformation = session.client("cloudformation")
        cloudformation.create_stack(
            StackName="k8s",
            TemplateURL=f"https://mine.s3.{cluster.region}.amazonaws.com/one.json",
            Parameters=[{"ParameterKey": "ApiAllowedCidr", "ParameterValue": "203.0.113.7/32"}],
            Capabilities=["CAPABILITY_IAM"],
        )
        where.clock.sleep(60)
        assert cloudformation.describe_stacks()["Stacks"][0]["StackStatus"] == "CREATE_IN_PROGRESS"
        [master] = [
            instance
            for instance in where.account.machines.instances.values()
            if instance.boot_data.references["resource"] == MASTERS
        ]
        console = session.client("ec2").get_console_output(InstanceId=master.id)["Output"]
        assert re.search(r"cfngen: \[\d+/\d+] settings", console)
        assert "add-ons" not in console
        where.clock.sleep(240)
        assert cloudformation.describe_stacks()["Stacks"][0]["StackStatus"] == "CREATE_COMPLETE"
        assert where.clock.now() - begin == timedelta(minutes=5)
        assert len(where.account.cluster("kubernetes").state.list("nodes")) == 5
        ec2 = session.client("ec2")
        launched = [
            instance["LaunchTime"]
            for group in ec2.describe_instances()["Reservations"]
            for instance in group["Instances"]
        ]
        assert len(launched) == 5
        assert all(begin <= each < where.clock.now() for each in launched)
        [made] = {image["CreationDate"] for image in ec2.describe_images()["Images"]}
        assert begin <= datetime.fromisoformat(made.replace("Z", "+00:00")) < where.clock.now()
        [disk] = [
            volume for volume in ec2.describe_volumes()["Volumes"] if volume["Attachments"][0]["Device"] == "/dev/sdf"
        ]
        assert begin <= disk["CreateTime"] < where.clock.now()
        assert [attachment["InstanceId"] for attachment in disk["Attachments"]] == [master.id]


def test_faults_are_for_operators_and_not_for_the_emulator_itself() -> None:
    with open_account("us-west-2") as where:
        where.served.faults.deny("ec2:DescribeVpcs")
        with pytest.raises(ClientError, match="UnauthorizedOperation"):
            where.session().client("ec2").describe_vpcs()
        where.account.advance(60)
