"""Deletions that fail, are interrupted, find the stack in any status, or let Kubernetes do its part."""

from __future__ import annotations

from collections.abc import Iterator

import made_by_kubernetes as made
import pytest
from cloud import Cloud, cloud_of
from cluster_objects import add_load_balancer, claim, kubectl, pod_with
from clusters import golden, inventory, landlord, resources
from deleting import NAME, REGION, Operator, created, place_of
from deployed import place

from cfngen.deploy.access import cluster_access
from cfngen.deploy.aws import stacks
from cfngen.deploy.aws.account import connect
from cfngen.deploy.messages.message import Report, Step
from cfngen.deploy.operations.deletion.execution import preview_with_refusal
from cfngen.deploy.operations.deletion.kubernetes import delete_load_balancer_services
from cfngen.deploy.operations.deletion.template_bucket import TemplatesInUseError
from cfngen.deploy.plan.deletion.plan import DeletionRequest
from cfngen.deploy.preflight.stack_checks import SameNameClusterError
from cfngen.sandbox.moto_patches.dependencies import refuse_dependency_violations as dependencies

pytestmark = pytest.mark.drill

LEFT_BEHIND = "Delete kubernetes and leave behind the resources that cannot be deleted?"


@pytest.fixture
def operator(cloud: Cloud) -> Iterator[Operator]:
    with dependencies():
        yield Operator(connect(cloud.session, REGION, clock=cloud.clock))


def test_a_failed_deletion_is_tried_again(cloud: Cloud, operator: Operator) -> None:
    stack = created(cloud)
    cloud.engine.fail("NodeSecurityGroup", "resource sg-1 has a dependent object", during="DELETE", times=2)
    assert operator.deletes().succeeded
    assert [(failure.round, failure.rounds) for failure in operator.failures()] == [(1, 3), (2, 3)]
    [undeleted] = operator.failures()[0].undeleted
    assert undeleted.name == "SecurityGroupsStack/NodeSecurityGroup"
    assert "has a dependent object" in undeleted.reason
    assert stack.status == "DELETE_COMPLETE"
    assert len(operator.questions) == 1


def test_after_three_rounds_the_user_decides(cloud: Cloud, operator: Operator) -> None:
    stack = created(cloud)
    cloud.engine.fail("Vpc", "nobody knows why", during="DELETE", times=3)
    operator.answers = lambda question: question.text != LEFT_BEHIND
    deleted = operator.deletes()
    assert (deleted.succeeded, deleted.status, deleted.in_progress) == (False, "DELETE_FAILED", False)
    vpc = resources(stack)["Vpc"].physical_id
    assert operator.questions[-1].text == LEFT_BEHIND
    assert operator.questions[-1].consequences == (f"VpcStack/Vpc ({vpc}) remains: nobody knows why",)
    [stays] = [each for each in deleted.retained if each.id == vpc]
    assert "CloudFormation failed to delete it" in stays.why
    assert operator.deletes().succeeded
    assert stack.status == "DELETE_COMPLETE"


@pytest.mark.parametrize("form", ["standalone", "cluster"])
def test_what_is_left_behind_is_reported(cloud: Cloud, operator: Operator, form: str) -> None:
    stack = created(cloud, form)
    cloud.engine.fail("Vpc", "nobody knows why", during="DELETE", times=4 if form == "cluster" else 3)
    deleted = operator.deletes(leave_behind=True)
    assert deleted.succeeded
    assert stack.status == "DELETE_COMPLETE"
    vpc = resources(stack)["Vpc"].physical_id
    assert vpc in inventory(REGION)["VPCs"]
    [stays] = [each for each in deleted.retained if each.id == vpc]
    assert stays.command == f"aws ec2 delete-vpc --vpc-id {vpc} --region {REGION}"
    assert [each.left for each in deleted.counted if each.kind == "VPCs"] == [(vpc,)]


def test_a_deletion_under_way_is_attached_to(cloud: Cloud, operator: Operator) -> None:
    stack = created(cloud)
    cloud.engine.durations["AWS::AutoScaling::AutoScalingGroup"] = 120
    cloud.engine.delete_stack(NAME)
    cloud.engine.advance(10)
    assert stack.status == "DELETE_IN_PROGRESS"
    deleted = operator.deletes()
    assert deleted.succeeded
    assert operator.questions == []
    assert not any(isinstance(each, Step) and each.text.startswith("deleting the stack") for each in operator.told)


def test_an_interrupted_watch_leaves_cloudformation_to_it(cloud: Cloud, operator: Operator) -> None:
    stack = created(cloud)
    cloud.engine.durations["AWS::AutoScaling::AutoScalingGroup"] = 120

    def interrupt() -> None:
        raise KeyboardInterrupt

    cloud.faults.after("DescribeStackEvents", interrupt, nth=4)
    deleted = operator.deletes()
    assert (deleted.in_progress, deleted.succeeded, deleted.status) == (True, False, "DELETE_IN_PROGRESS")
    assert operator.deletes().succeeded
    assert stack.status == "DELETE_COMPLETE"


def test_an_interrupted_sweep_goes_on_where_it_was(cloud: Cloud, operator: Operator) -> None:
    where = place_of(created(cloud), operator.account)
    balancer = made.classic(where, NAME)

    def interrupt() -> None:
        raise KeyboardInterrupt

    cloud.faults.after("DeleteLoadBalancer", interrupt)
    with pytest.raises(KeyboardInterrupt):
        operator.deletes()
    assert balancer.name not in made.balancer_names(operator.account)
    assert balancer.group in made.group_ids(operator.account)
    deleted = operator.deletes()
    assert deleted.succeeded
    assert [each.id for each in deleted.removed] == [balancer.group]


def test_a_failed_creation_is_deleted(cloud: Cloud, operator: Operator) -> None:
    before = inventory(REGION)
    cloud.engine.fail("NodeGroupNodesLaunchTemplate", "no")
    stack = cloud.account.create("cluster", name=NAME)
    stack.tags["cfngen:cluster"] = NAME
    assert stack.status == "ROLLBACK_COMPLETE"
    assert operator.deletes().succeeded
    after = inventory(REGION)
    assert {kind for kind in after if after[kind] - before[kind]} <= {"snapshots"}


def test_a_creation_under_way_can_be_ended(cloud: Cloud, operator: Operator) -> None:
    url = cloud.account.url("standalone")
    stack = cloud.engine.create_stack(
        NAME,
        url=url,
        parameters={"ApiAllowedCidr": "203.0.113.7/32"},
        capabilities=["CAPABILITY_IAM"],
        tags={"cfngen:cluster": NAME},
    )
    cloud.engine.advance(10)
    assert stack.status == "CREATE_IN_PROGRESS"
    assert operator.deletes().succeeded
    assert stack.status == "DELETE_COMPLETE"
    assert "(CREATE_IN_PROGRESS) is deleted" in operator.questions[0].consequences[0]


def test_an_empty_stack_goes_without_ceremony(cloud: Cloud, operator: Operator) -> None:
    operator.account.client("cloudformation").create_change_set(
        StackName=NAME,
        ChangeSetName="plan",
        ChangeSetType="CREATE",
        TemplateURL=cloud.account.url("standalone"),
        Parameters=[{"ParameterKey": "ApiAllowedCidr", "ParameterValue": "203.0.113.7/32"}],
        Capabilities=["CAPABILITY_IAM"],
        Tags=[{"Key": "cfngen:cluster", "Value": NAME}],
    )
    cloud.engine.advance(60)
    assert operator.deletes().succeeded
    [question] = operator.questions
    assert (question.dangerous, question.text.startswith("Delete the empty stack")) == (False, True)


def test_a_living_cluster_of_the_same_name_keeps_its_volumes(cloud: Cloud, operator: Operator) -> None:
    created(cloud)
    created(cloud, name="the-other")
    volume = made.volume(operator.account, made.claimed(NAME))
    with pytest.raises(SameNameClusterError):
        operator.deletes(delete_volumes=True)
    assert operator.questions == []
    assert operator.deletes().succeeded
    assert volume in inventory(REGION)["volumes"]


def test_what_may_not_be_looked_for_is_said_to_be_unknown(cloud: Cloud, operator: Operator) -> None:
    created(cloud)
    cloud.faults.deny("iam:GetRole", "logs:DescribeLogGroups", "kms:DescribeKey")
    deleted = operator.deletes()
    assert deleted.succeeded
    [roles] = [each for each in deleted.counted if each.kind == "roles"]
    assert (roles.gone, len(roles.unknown)) == (0, 2)


def test_interfaces_of_a_load_balancer_that_is_gone_are_no_obstacle(cloud: Cloud, operator: Operator) -> None:
    where = place_of(created(cloud), operator.account)
    interface = made.interface(where, "ELB net/n-gone/0123456789abcdef")
    cloud.engine.clock.schedule(90, lambda: where.ec2.delete_network_interface(NetworkInterfaceId=interface))
    assert operator.deletes().succeeded
    assert operator.failures() == []


def test_kubernetes_takes_its_load_balancers_down_itself() -> None:
    with place() as where:
        stack = where.create()
        stack.tags["cfngen:cluster"] = where.cluster.name
        for name, network in (("web", False), ("api", True)):
            add_load_balancer(where.kubernetes.controllers, name, network_load_balancer=network)
        account = where.account
        root = stacks.require_root_stack(account, where.name)
        values = stacks.read_outputs(account, root)
        operator = Operator(account)

        def asking(report: Report) -> tuple[str, ...]:
            found = cluster_access.find_authority(account, root, values)
            endpoint = cluster_access.find_api_endpoint(root, values, where.override)
            with cluster_access.connect_as_administrator(
                endpoint, found, account.caller, account.clock.now()
            ) as kubernetes:
                return delete_load_balancer_services(kubernetes, account.clock, report)

        assert len(made.balancer_names(account)) == 2
        deleted = operator.deletes(where.name, drain=asking)
        assert deleted.succeeded
        assert deleted.removed == ()
        assert made.balancer_names(account) == set()
        said = [each.text for each in operator.told if isinstance(each, Step)]
        assert any("default/api, default/web" in text or "default/web, default/api" in text for text in said)


def test_volumes_of_claims_are_named_and_go_on_request() -> None:
    with place() as where:
        stack = where.create()
        stack.tags["cfngen:cluster"] = where.cluster.name
        for path, item in (("persistentvolumeclaims", claim()), ("pods", pod_with("data"))):
            kubectl(where.kubernetes, "POST", f"/api/v1/namespaces/default/{path}", item)
        where.clock.sleep(60)
        operator = Operator(where.account)
        preview, _ = preview_with_refusal(
            where.account, DeletionRequest(where.name, cluster=where.cluster.name, pod_cidr="10.244.0.0/16")
        )
        [volume] = preview.volumes
        assert (volume.purpose, volume.gigabytes) == ("claim default/data", 4)
        deleted = operator.deletes(where.name, delete_volumes=True)
        assert deleted.succeeded
        assert volume.id in [each.id for each in deleted.removed]
        assert volume.id not in inventory(REGION)["volumes"]


def test_a_load_balancer_that_goes_while_it_is_looked_at_is_no_error(cloud: Cloud, operator: Operator) -> None:
    where = place_of(created(cloud), operator.account)
    first, second = made.classic(where, NAME), made.classic(where, NAME, "default/other")
    elb = operator.account.client("elb")
    cloud.faults.before("DescribeTags", lambda: elb.delete_load_balancer(LoadBalancerName=first.name))
    deleted = operator.deletes()
    assert deleted.succeeded
    assert first.id not in {each.id for each in deleted.removed}
    assert second.id in {each.id for each in deleted.removed}
    assert made.balancer_names(operator.account) == set()


@pytest.mark.parametrize("case", ["private-api", "several-groups"])
def test_nothing_of_a_clusters_own_is_taken_for_an_obstacle(case: str) -> None:
    cluster = golden(case)
    with cloud_of(cluster) as cloud, dependencies():
        account = connect(cloud.session, cluster.region, clock=cloud.clock)
        lent, names = landlord(cloud.account), cloud.account.templates["cluster"]["Parameters"]
        given = {key: value for key, value in lent.items() if key in names}
        created(cloud, "cluster", cluster.name, {"cfngen:cluster": cluster.name}, **given)
        before = preview_with_refusal(
            account, DeletionRequest(cluster.name, cluster.name, vpc_id=given.get("VpcId", ""))
        )[0]
        assert (before.blockers, before.removed) == ((), ())
        assert Operator(account).deletes(cluster.name, cluster=cluster.name, vpc_id=given.get("VpcId", "")).succeeded


def test_templates_that_another_stack_lives_on_are_not_deleted(cloud: Cloud, operator: Operator) -> None:
    created(cloud)
    created(cloud, name="the-other")
    with pytest.raises(TemplatesInUseError, match="also used by the stack the-other"):
        operator.deletes(bucket="templates-of-the-operator", empty_bucket=True)
    assert operator.questions == []
