"""Plans of a cluster that runs in the emulator: what an operator changes, and what the plan makes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click
import pytest
from cloud import Cloud, default_cloud
from clusters import templates_of

from cfngen.cli.render.plan import plan_lines
from cfngen.cluster.load import parse
from cfngen.deploy.aws.account import Account, connect
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.messages.message import Danger
from cfngen.deploy.operations.deployment.execution import execute
from cfngen.deploy.plan.change_sets import EarlyValidationError, discard, make_plan
from cfngen.deploy.plan.plan import Change, Plan, PlanRequest, Replacement
from cfngen.deploy.plan.publishing.publish import publish

pytestmark = pytest.mark.drill

CIDR = {"ApiAllowedCidr": "203.0.113.7/32"}
NODES = {"name": "nodes", "minSize": 4}
GPU = {"name": "gpu", "minSize": 2, "instanceType": "t3.large"}
TWO = {"nodeGroups": [NODES, GPU]}


class Operator:
    """Plans for a stack; every plan is discarded, unless it is to be carried out."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.account: Account = connect(cloud.session, cloud.cluster.region, clock=cloud.clock)
        self.made = 0

    def request(
        self, file: Mapping[str, Any], alter: Callable[[dict[str, Any]], None] | None, **given: str
    ) -> PlanRequest:
        cluster = parse(dict(file))
        documents = templates_of(cluster)
        if alter:
            alter({each.name: each.body for each in documents})
        published = publish(self.account, documents, cluster=cluster.name, report=lambda _: None)
        values = {**CIDR, **given}
        self.made += 1
        return PlanRequest(
            stack=cluster.name,
            cluster=cluster,
            template_url=published.template_url,
            documents=documents,
            token=f"test{self.made}",
            parameters=tuple({"ParameterKey": key, "ParameterValue": value} for key, value in values.items()),
            values=values,
            capabilities=("CAPABILITY_IAM",),
            tags={"cfngen:cluster": cluster.name},
        )

    def plan(
        self,
        file: Mapping[str, Any] | None = None,
        *,
        alter: Callable[[dict[str, Any]], None] | None = None,
        **given: str,
    ) -> Plan:
        request = self.request(file if file is not None else TWO, alter, **given)
        plan = make_plan(self.account, request, report=lambda _: None)
        discard(self.account, plan)
        assert {property_.only_in for change in plan.changes for property_ in change.properties} <= {""}
        return plan

    def deploy(self, file: Mapping[str, Any]) -> None:
        plan = make_plan(self.account, self.request(file, None), report=lambda _: None)
        execute(self.account, plan)
        while (
            (stack := find_stack(self.account, plan.stack_id)) is None
            or stack.status.in_progress
            or not stack.status.succeeded
        ):
            self.cloud.clock.sleep(30)


@pytest.fixture(scope="module")
def new_cluster() -> Plan:
    """The plan of a cluster that does not exist, with another type of nodes than its file has."""
    with default_cloud() as cloud:
        operator = Operator(cloud)
        plan = operator.plan(TWO, NodeGroupNodesInstanceType="t3.xlarge")
        assert find_stack(operator.account, "kubernetes") is None
        return plan


@pytest.fixture(scope="module")
def operator(new_cluster: Plan) -> Iterator[Operator]:
    """Somebody whose cluster has a group of nodes and one called gpu; no test changes it.

    In another account than the new cluster, of which there is none any more: there is one account at a time.
    """
    with default_cloud() as cloud:
        made = Operator(cloud)
        made.deploy(TWO)
        yield made


def text_of(plan: Plan) -> str:
    return click.unstyle("\n".join(plan_lines(plan, width=100)))


def only(plan: Plan, path: str) -> dict[str, Change]:
    """The changes of a plan that changes a single stack."""
    assert ["/".join(each.path) for each in plan.stacks] == [path]
    return {each.logical_id: each for each in plan.stacks[0].changes}


class TestNewCluster:
    def test_says_what_the_cluster_consists_of(self, new_cluster: Plan):
        items = {(each.count, each.what, each.detail) for each in new_cluster.creation.items}
        assert {
            (1, "master", "t3.medium"),
            (4, "node", "t3.xlarge, group nodes"),
            (2, "node", "t3.large, group gpu"),
            (1, "VPC", ""),
            (2, "secret", ""),
            (1, "bucket of etcd's snapshots", "stays when the cluster is deleted"),
        } <= items

    def test_says_what_costs_money(self, new_cluster: Plan):
        costs = {(each.quantity, each.unit, each.what) for each in new_cluster.creation.costs}
        # 20 GiB root and 20 GiB data of the master, 32 GiB for each of six nodes; one Elastic IP and six of nodes.
        assert {(4, "instance", "t3.xlarge"), (232, "GiB", "gp3 volumes"), (7, "address", "public IPv4")} <= costs

    def test_counts_every_resource_of_every_stack(self, new_cluster: Plan):
        counts = {
            "/".join(each.path): sum(not change.type.startswith("AWS::CloudFormation::") for change in each.changes)
            for each in new_cluster.stacks
        }
        assert counts["VpcStack"] == 9
        assert sum(counts.values()) == new_cluster.counts.total == new_cluster.counts.add
        assert not new_cluster.is_dangerous

    def test_reads_as_a_list_of_what_there_will_be(self, new_cluster: Plan):
        text = text_of(new_cluster)
        assert text.startswith("New cluster in the stack kubernetes (us-west-2, account 123456789012)\n")
        assert "t3.xlarge, group nodes" in text
        assert re.search(r"Plan: \d\d to add in 8 stacks", text)


class TestNothingToDo:
    def test_the_same_again_is_nothing_to_do(self, operator: Operator):
        plan = operator.plan()
        assert plan.is_empty
        assert text_of(plan) == "No changes: the stack kubernetes is up to date."

    def test_leaves_no_change_set_behind(self, operator: Operator):
        operator.plan()
        client = operator.account.client("cloudformation")
        found = client.list_change_sets(StackName="kubernetes")["Summaries"]
        assert [each for each in found if each["ExecutionStatus"] != "EXECUTE_COMPLETE"] == []

    def test_another_description_is_a_change_of_templates_only(self, operator: Operator):
        def described(bodies: dict[str, Any]) -> None:
            bodies["vpc"]["Outputs"]["VpcId"]["Description"] = "The VPC"

        plan = operator.plan(alter=described)
        assert plan.counts.total == 0
        assert plan.templates_only != plan.is_empty


class TestNodeGroups:
    def test_another_type_rolls_the_group_and_nothing_else(self, operator: Operator):
        plan = operator.plan(NodeGroupGpuInstanceType="t3.2xlarge")
        changes = only(plan, "NodeGroupGpuStack")
        [kind] = changes["NodeGroupGpuLaunchTemplate"].properties
        assert (kind.before, kind.after, kind.certain) == ("t3.large", "t3.2xlarge", True)
        assert kind.cause == "parameter NodeGroupGpuInstanceType"
        group = changes["NodeGroupGpuAutoScalingGroup"]
        assert group.replacement is Replacement.NO
        assert group.impact.text == (
            "node group `gpu`: its instances are replaced one at a time; pods are drained first"
        )
        assert plan.danger is Danger.DISRUPTIVE

    def test_a_new_group_is_a_stack_of_its_own(self, operator: Operator):
        new = {"name": "big-one", "minSize": 1, "maxSize": 3, "instanceType": "m5.xlarge"}
        plan = operator.plan({"nodeGroups": [NODES, GPU, new]})
        [stack] = plan.stacks
        assert (stack.path, stack.action) == (("NodeGroupBigOneStack",), "create")
        assert stack.impact.text == "new node group `big-one`: 1-3 nodes of m5.xlarge"
        assert (plan.counts.add, len(stack.changes)) == (3, 4)  # the boot program is none
        assert plan.danger is Danger.NONE

    def test_a_group_that_is_left_out_goes_with_its_instances(self, operator: Operator):
        plan = operator.plan({"nodeGroups": [NODES]})
        [stack] = plan.stacks
        assert (stack.path, stack.action) == (("NodeGroupGpuStack",), "delete")
        assert "node group `gpu` is removed with its instances" in stack.impact.text
        assert {re.sub("[0-9a-f]{12}$", "", each.logical_id) for each in stack.changes} == {
            "NodeGroupGpuLaunchTemplate",
            "NodeGroupGpuAutoScalingGroup",
            "NodeGroupGpuProgram",
            "NodeGroupGpuSecurityGroup",
        }
        assert plan.counts.remove == 3
        assert plan.danger is Danger.DISRUPTIVE
        assert "NodeGroupGpuStack stack is deleted with everything in it" in text_of(plan)

    def test_tags_are_told_by_their_keys(self, operator: Operator):
        plan = operator.plan({**TWO, "tags": {"team": "platform"}})
        changes = {each.logical_id: each for each in plan.changes}
        [tag] = changes["Vpc"].properties
        assert (tag.path, tag.before, tag.after) == ("/Properties/Tags[team]", None, "platform")
        assert changes["Vpc"].impact.text == "tags only"
        # Volumes and network interfaces of instances have tags by the launch template, which so gets a new version.
        assert "replaced one at a time" in changes["NodeGroupGpuAutoScalingGroup"].impact.text
        assert not [each for each in plan.changes if each.type == "AWS::CloudFormation::Stack"]


class TestMaster:
    def test_another_address_is_dangerous_and_comes_first(self, operator: Operator):
        plan = operator.plan(MasterAAddress="172.20.0.10")
        changes = only(plan, "MasterStack")
        first = plan.stacks[0].changes[0]
        assert (first.logical_id, first.replacement) == ("MasterANetworkInterface", Replacement.WILL)
        assert "from 172.20.0.9 to 172.20.0.10" in first.impact.text
        assert "MasterAVolume" not in changes
        assert plan.is_dangerous
        text = text_of(plan)
        assert text.index("Plan: ") < text.index("DANGER")

    def test_a_volume_that_is_left_out_leaves_only_a_snapshot(self, operator: Operator):
        def renamed(bodies: dict[str, Any]) -> None:
            master = json.dumps(bodies["master"]).replace("MasterAVolume", "MasterADisk")
            bodies["master"].update(json.loads(master))

        plan = operator.plan(alter=renamed)
        changes = only(plan, "MasterStack")
        volume = changes["MasterAVolume"]
        assert (volume.action, volume.policy) == ("remove", "snapshot")
        assert "LOST" in volume.impact.text
        assert volume.impact.text.endswith("only a snapshot of the old volume is kept")
        assert changes["MasterADisk"].action == "add"
        assert plan.is_dangerous

    def test_an_add_on_is_named_with_what_masters_do_about_it(self, operator: Operator):
        plan = operator.plan({**TWO, "addons": {"headlamp": {"enabled": True}}})
        text = text_of(plan)
        assert "LaunchTemplateData.UserData: add-on headlamp 0.45.0 is installed\n" in text
        assert "a new master applies the add-ons to the cluster; no node is replaced for them" in " ".join(text.split())
        assert "Plan: 2 to update." in text

    def test_another_architecture_is_what_disrupts(self, operator: Operator):
        plan = operator.plan({"nodeGroups": [{**NODES, "instanceType": "m7g.large"}, GPU]})
        disruptive = " ".join(text_of(plan).partition("Disruptive:")[2].split())
        assert "node group `nodes`: CPU architecture amd64 becomes arm64; pods whose images are not built" in disruptive

    def test_user_data_is_described_and_not_printed(self, operator: Operator):
        kubelet = {"kubernetes": {"kubeletConfiguration": {"maxPods": 50}}}
        plan = operator.plan({**TWO, **kubelet})
        properties = [each for change in plan.changes for each in change.properties if each.path.endswith("/UserData")]
        assert {each.note for each in properties} == {"the kubelet's configuration: maxPods (none) -> 50"}
        assert all(each.before and each.after and each.before not in text_of(plan) for each in properties)
        whole = click.unstyle("\n".join(plan_lines(plan, width=100, full=True)))
        assert "the kubelet's configuration: maxPods (none) -> 50" in whole
        assert not re.search(r"role\.json|[+-]\S+: [0-9a-f]{8,}$", whole, re.MULTILINE)
        assert len(properties) == 3
        assert max(len(line) for line in text_of(plan).splitlines()) <= 100


class TestAccess:
    def test_further_ranges_and_ssh_are_named(self, operator: Operator):
        file = {
            **TWO,
            "api": {"allowedCidrs": ["203.0.113.7/32", "10.0.0.0/8"]},
            "ssh": {"allowedCidrs": ["0.0.0.0/0"]},
        }

        request = operator.request(file, None)
        request = PlanRequest(**{**request.__dict__, "parameters": ()})
        plan = make_plan(operator.account, request, report=lambda _: None)
        discard(operator.account, plan)
        texts = {each.logical_id: each.impact.text for each in plan.changes}
        assert texts["MasterApiFrom10x0x0x0x8"] == "the API becomes reachable from 10.0.0.0/8 in addition"
        assert texts["MasterApiFromAllowedCidr"] == "the API is no longer reachable from 203.0.113.7/32"
        assert texts["NodeSshFrom0x0x0x0x0"].endswith("from 0.0.0.0/0 in addition: from the whole internet")


class TestNetwork:
    def test_another_vpc_is_another_cluster(self, operator: Operator):
        plan = operator.plan(VpcCidr="10.1.0.0/16", SubnetACidr="10.1.0.0/24", MasterAAddress="10.1.0.9")
        vpc = next(each for each in plan.changes if each.logical_id == "Vpc")
        assert vpc.replacement is Replacement.WILL
        assert "Create a new cluster instead" in vpc.impact.text
        certain = {each.logical_id for each in plan.changes if each.replacement is Replacement.WILL}
        # Followed through outputs and parameters of the stacks: certain too.
        assert {"SubnetA", "MasterSecurityGroup", "MasterANetworkInterface"} <= certain
        assert plan.is_dangerous


class TestRefusal:
    def test_early_validation_names_the_place_in_the_nested_template(self, operator: Operator):
        def broken(bodies: dict[str, Any]) -> None:
            bodies["master"]["Resources"]["MasterAVolume"]["Properties"]["Size"] = "many"

        with pytest.raises(EarlyValidationError) as caught:
            operator.plan(alter=broken)
        [problem] = caught.value.problems
        assert problem.path.startswith("/Resources/MasterAVolume/Properties")
        assert problem.stack.startswith("kubernetes-MasterStack-")


class TestTrouble:
    def test_small_pages_hide_nothing(self, operator: Operator):
        whole = operator.plan(VpcCidr="10.1.0.0/16", SubnetACidr="10.1.0.0/24")
        operator.cloud.faults.page_size = 2
        try:
            paged = operator.plan(VpcCidr="10.1.0.0/16", SubnetACidr="10.1.0.0/24")
        finally:
            operator.cloud.faults.clear()
        assert paged.counts == whole.counts
        assert paged.counts.total > 20

    def test_a_connection_that_ends_while_the_change_set_is_made_makes_no_second_one(self, operator: Operator):
        operator.cloud.faults.disconnect("CreateChangeSet", kind="answer")
        try:
            assert operator.plan(MasterVolumeSize="40").counts.update == 1
        finally:
            operator.cloud.faults.clear()
        names = {
            each.name for each in operator.cloud.engine.change_sets("kubernetes") if each.status == "CREATE_COMPLETE"
        }
        assert len(names) <= 1


def test_the_order_of_a_plan_is_the_same_every_time(operator: Operator):
    plans = [text_of(operator.plan(MasterAAddress="172.20.0.10", NodeGroupGpuMaxSize="8")) for _ in range(2)]
    assert plans[0] == plans[1]


UBUNTU = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
DEBIAN = "/aws/service/debian/release/13/latest/amd64"


def with_another_statement(bodies: dict[str, Any]) -> None:
    policies = bodies["iam"]["Resources"]["MasterRole"]["Properties"]["Policies"]
    policies[0]["PolicyDocument"]["Statement"].append(
        {"Sid": "Another", "Effect": "Allow", "Action": "s3:ListAllMyBuckets", "Resource": "*"}
    )


@pytest.mark.parametrize(
    ("file", "values", "image"),
    [
        ({"name": "another"}, {}, None),
        ({"nodeGroups": [{**NODES, "instanceType": "m6i.large"}, GPU]}, {}, None),
        (TWO, {"NodeGroupGpuInstanceType": "t3.2xlarge"}, None),
        (TWO, {"NodeImageUbuntu2404Amd64": DEBIAN}, None),
        ({"nodeGroups": [NODES, GPU, {"name": "spare", "minSize": 1, "instanceType": "m5.large"}]}, {}, None),
        ({"nodeGroups": [NODES]}, {}, None),
        (TWO, {"alter": with_another_statement}, None),
        ({**TWO, "tags": {"team": "blue"}}, {}, None),
        ({**TWO, "controlPlane": {"volume": {"size": 100}}}, {}, None),
        ({**TWO, "kubernetesVersion": "1.35"}, {}, None),
        # A newer image behind the same path in Parameter Store.
        (TWO, {}, DEBIAN),
    ],
)
def test_a_plan_is_the_same_whatever_cloudformation_tells_of_its_change_set(
    operator: Operator, file: Mapping[str, Any], values: Mapping[str, Any], image: str | None
) -> None:
    answers, images = operator.cloud.engine.answers, operator.cloud.engine.parameter_store
    old_image = images[UBUNTU]
    told = {}
    try:
        images[UBUNTU] = images[image or UBUNTU]
        for mode, size in (("generous", 0), ("aws", 40), ("aws", 1_024), ("aws", 65_536)):
            answers.mode, answers.max_length = mode, size
            plan = operator.plan(file, **values)
            impacts = [(each.path, each.impact) for each in plan.stacks]
            told[mode, size] = text_of(plan), plan.creation, plan.counts, plan.danger, impacts
    finally:
        operator.cloud.engine.answers = type(answers)()
        images[UBUNTU] = old_image
    assert told["generous", 0][0].count("\n") > 3
    for different in told:
        assert told[different] == told["generous", 0], different
        assert " say so" not in told[different][0]
        assert " says so" not in told[different][0]
