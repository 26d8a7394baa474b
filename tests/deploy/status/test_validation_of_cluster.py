"""Whether a deployed cluster works: what is found wrong with it, and waiting until nothing is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from cluster_objects import set_waiting
from deployed import Place, allow_everything_but, place

from cfngen.deploy.access.authorities import SecretDeniedError
from cfngen.deploy.access.kubernetes_objects import Node, Readiness
from cfngen.deploy.aws import stacks
from cfngen.deploy.aws.errors import ThrottledError
from cfngen.deploy.aws.groups import GroupView, InstanceView
from cfngen.deploy.aws.pod_routes import InstanceRoute
from cfngen.deploy.aws.stacks import NoStackError
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.status.cluster_problems import ClusterState, KubernetesReading, Problem, describe_skew
from cfngen.deploy.status.validation import Validation, validate, validate_state, wait_until_valid
from cfngen.sandbox.cloudformation import client

MASTERS, NODES = "MasterAAutoScalingGroup", "NodeGroupNodesAutoScalingGroup"
NOWHERE = "https://127.0.0.1:1"


@pytest.fixture(scope="module")
def where() -> Iterator[Place]:
    """The default cluster; a test that changes something puts it back."""
    with place() as made:
        made.create()
        yield made


def looked(where: Place) -> Validation:
    return validate(where.account, where.name, where.cluster, find_url_override=where.override)


def said(found: Validation) -> list[tuple[str, str, str]]:
    return [(each.area, each.subject, each.text) for each in found.problems]


def test_a_new_cluster_is_valid(where):
    found = looked(where)
    assert (found.valid, found.problems) == (True, ())
    assert (found.cluster, found.stack, found.version) == ("kubernetes", "k8s", "1.36.3")
    assert [(each.role, each.group, each.ready, each.version) for each in found.members] == [
        ("master", "a", True, "1.36.3"),
        *[("node", "nodes", True, "1.36.3")] * 4,
    ]


def test_a_node_that_is_not_ready_says_why(where):
    [node, *_] = where.instances(NODES)
    where.kubernetes.state.set_ready(node, False, "KubeletNotReady", "cni plugin not initialized")
    found = looked(where)
    where.kubernetes.state.set_ready(node, True)
    assert said(found) == [("node", node, "of node group nodes is not Ready")]
    [problem] = found.problems
    assert problem.detail == "KubeletNotReady: cni plugin not initialized"
    assert "journalctl" in str(problem.hint)
    assert [each.ready for each in found.members if each.instance == node] == [False]


def test_a_node_without_network_plugin_wants_one(where):
    [node, *_] = where.instances(NODES)
    where.kubernetes.state.set_ready(node, False)
    found = looked(where)
    where.kubernetes.state.set_ready(node, True)
    [problem] = found.problems
    assert "reason:NetworkPluginNotReady" in problem.detail
    assert "if network.plugin is none, install one, or list its chart in addons.charts" in str(problem.hint)


def test_pods_on_a_node_that_is_not_ready_are_not_listed_as_well(where):
    state = where.kubernetes.state
    [master] = where.instances(MASTERS)
    state.set_ready(master, False)
    set_waiting(state, f"kube-scheduler-{master}", "CrashLoopBackOff")
    found = looked(where)
    state.set_ready(master, True)
    state.remove("pods", f"kube-scheduler-{master}", "kube-system")
    state.add_pod(f"kube-scheduler-{master}", master)
    assert said(found) == [("node", master, "of master a is not Ready")]


def test_an_instance_that_never_joined_is_found(where):
    state = where.kubernetes.state
    [node, *_] = where.instances(NODES)
    item = state.get("nodes", node)
    state.remove("nodes", node)
    found = looked(where)
    state.put("nodes", item)
    [problem] = [each for each in found.problems if each.area == "instance"]
    assert problem.text == "of node group nodes is in service, but has no Node in the cluster"
    assert f"get-console-output --latest --output text --region us-west-2 --instance-id {node}" in str(problem.hint)
    assert f"cfngen replace {node}" in str(problem.hint)


def route_problems(found: Validation) -> list[Problem]:
    return [each for each in found.problems if each.area == "route"]


def test_a_route_to_a_living_instance_without_node_is_found(where):
    state = where.kubernetes.state
    [node, *_] = where.instances(NODES)
    item = state.get("nodes", node)
    state.remove("nodes", node)
    found = looked(where)
    state.put("nodes", item)
    [problem] = route_problems(found)
    assert problem.subject == where.kubernetes.controllers.route_table_id
    pods = item["spec"]["podCIDR"]
    assert problem.text.startswith(f"has a route for {pods} to {node}, which is not a Node: ")
    assert f"`cfngen replace {node}`" in str(problem.hint)


def test_a_route_through_an_instance_that_is_no_clusters_is_found(where):
    # A NAT instance, as old VPCs have them.
    ec2, table = client("ec2", "us-west-2"), where.kubernetes.controllers.route_table_id
    image = ec2.describe_images(Owners=["self"])["Images"][0]["ImageId"]
    [found] = ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]
    [subnet] = [each["SubnetId"] for each in found["Associations"] if "SubnetId" in each]
    [nat] = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, SubnetId=subnet)["Instances"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="192.0.2.0/24", InstanceId=nat["InstanceId"])
    found = looked(where)
    ec2.delete_route(RouteTableId=table, DestinationCidrBlock="192.0.2.0/24")
    ec2.terminate_instances(InstanceIds=[nat["InstanceId"]])
    [problem] = found.problems
    assert (problem.area, problem.subject) == ("route", table)
    assert nat["InstanceId"] in problem.text
    assert (
        f"delete-route --region us-west-2 --route-table-id {table} --destination-cidr-block 192.0.2.0/24"
        in problem.hint
    )


def test_a_route_to_an_instance_that_is_leaving_is_no_problem(where):
    leaving = InstanceView("i-1", "us-west-2a", "Terminating:Wait")
    group = GroupView("node", "a", "asg", instances=(leaving,))
    seen = ClusterState(STACK, (group,), WORKING, (InstanceRoute("rtb-1", "10.244.1.0/24", "i-1"),))
    assert validate_state(seen, where.cluster, where.clock.now()).valid


def test_a_node_of_an_instance_that_is_gone_is_found(where):
    state = where.kubernetes.state
    [node, *_] = where.instances(NODES)
    item = {**state.get("nodes", node)}
    item |= {"metadata": {"name": "i-gone"}, "spec": {"providerID": "aws:///us-west-2a/i-gone"}}
    state.put("nodes", item)
    state.add_pod("coredns-1", "i-gone")
    still_ready = looked(where)
    state.set_ready("i-gone", False, "NodeStatusUnknown")
    found = looked(where)
    state.remove("nodes", "i-gone")
    state.remove("pods", "coredns-1", "kube-system")
    assert said(still_ready) == [("node", "i-gone", "counts as Ready, but its instance no longer exists")]
    assert said(found) == [("node", "i-gone", "is not Ready, and is not an instance of any group")]


def test_a_ready_node_of_an_instance_outside_of_the_groups_is_no_problem(where):
    ec2, state = where.account.client("ec2"), where.kubernetes.state
    [node, *_] = where.instances(NODES)
    [reservation] = ec2.describe_instances(InstanceIds=[node])["Reservations"]
    image, subnet = (reservation["Instances"][0][key] for key in ("ImageId", "SubnetId"))
    started = ec2.run_instances(ImageId=image, SubnetId=subnet, InstanceType="m5.large", MinCount=1, MaxCount=1)
    [other] = [instance["InstanceId"] for instance in started["Instances"]]
    for name in (other, "rack-7"):
        item = {**state.get("nodes", node), "metadata": {"name": name}, "spec": {}}
        state.put("nodes", item)
    outside = looked(where)
    ec2.terminate_instances(InstanceIds=[other])
    gone = looked(where)
    for name in (other, "rack-7"):
        state.remove("nodes", name)
    assert outside.valid
    assert said(gone) == [("node", other, "counts as Ready, but its instance no longer exists")]


@pytest.mark.parametrize("ended", ["", "Succeeded", "deleted"])
def test_a_pod_of_a_node_that_is_gone_does_not_run(ended, where):
    state = where.kubernetes.state
    pod = state.add_pod("coredns-1", "i-gone")
    if ended == "deleted":
        pod["metadata"]["deletionTimestamp"] = state.time()
    elif ended:
        pod["status"]["phase"] = ended
    found = looked(where)
    state.remove("pods", "coredns-1", "kube-system")
    assert said(found) == ([] if ended else [("pod", "coredns-1", "counts as Running, but its Node i-gone is gone")])


def test_a_system_pod_in_trouble_is_found(where):
    state = where.kubernetes.state
    [pod] = [
        each["metadata"]["name"] for each in state.list("pods") if each["metadata"]["name"].startswith("cloud-contr")
    ]
    item = state.get("pods", pod, "kube-system")
    set_waiting(state, pod, "CrashLoopBackOff", "back-off 5m0s restarting failed container")
    found = looked(where)
    state.put("pods", {**item, "status": {**item["status"], "phase": "Pending"}})
    pending = looked(where)
    node = item["spec"]["nodeName"]
    state.remove("pods", pod, "kube-system")
    state.add_pod(pod, node)
    assert said(found) == [("pod", pod, "is Running and not ready (CrashLoopBackOff)")]
    assert found.problems[0].detail == "back-off 5m0s restarting failed container"
    assert f"describe pod {pod}" in found.problems[0].hint
    assert pending.problems[0].text.startswith("is Pending")


@pytest.mark.parametrize("change", ["finished", "leaving"])
def test_a_pod_that_has_finished_or_is_leaving_is_no_problem(change, where):
    state = where.kubernetes.state
    made = state.add_pod("job-1", where.instances(NODES)[0])
    set_waiting(state, "job-1", "Completed")
    if change == "finished":
        made["status"]["phase"] = "Succeeded"
    else:
        made["metadata"]["deletionTimestamp"] = state.time()
    found = looked(where)
    state.remove("pods", "job-1", "kube-system")
    assert found.valid


def test_a_master_without_a_part_of_its_control_plane_is_found(where):
    [master] = where.instances(MASTERS)
    name = f"kube-controller-manager-{master}"
    where.kubernetes.state.remove("pods", name, "kube-system")
    found = looked(where)
    where.kubernetes.state.add_pod(name, master)
    assert said(found) == [("pod", name, f"does not run on the master {master}")]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"spec": {"taints": [{"key": "node.cloudprovider.kubernetes.io/uninitialized"}]}},
            "accepts no pods: the cloud controller manager has not initialised it",
        ),
        (
            {
                "status": {
                    "conditions": [
                        {"type": "Ready", "status": "True"},
                        {"type": "NetworkUnavailable", "status": "True"},
                    ]
                }
            },
            "has no route to its pods (NetworkUnavailable)",
        ),
    ],
)
def test_a_ready_node_that_is_of_no_use_is_found(change, text, where):
    state = where.kubernetes.state
    [node, *_] = where.instances(NODES)
    item = state.get("nodes", node)
    state.put("nodes", {key: {**value, **change.get(key, {})} for key, value in item.items()})
    found = looked(where)
    state.put("nodes", item)
    assert said(found) == [("node", node, text)]


def test_an_instance_that_auto_scaling_gave_up_is_found(where):
    [node, *_] = where.instances(NODES)
    scaling = client("autoscaling", where.cluster.region)
    [group] = scaling.describe_auto_scaling_instances(InstanceIds=[node])["AutoScalingInstances"]
    # Otherwise the group replaces the instance at once.
    processes = {"AutoScalingGroupName": group["AutoScalingGroupName"], "ScalingProcesses": ["ReplaceUnhealthy"]}
    scaling.suspend_processes(**processes)
    scaling.set_instance_health(InstanceId=node, HealthStatus="Unhealthy")
    found = looked(where)
    scaling.set_instance_health(InstanceId=node, HealthStatus="Healthy")
    scaling.resume_processes(**processes)
    assert said(found) == [
        ("group", "node group nodes", "has 3 of 4 instances in service"),
        ("instance", node, "of node group nodes is InService, unhealthy"),
    ]
    assert [each.instance for each in found.members if not each.in_service] == [node]


def test_an_api_server_that_nobody_reaches_is_a_problem(where):
    found = validate(where.account, where.name, where.cluster, find_url_override=lambda url: NOWHERE)
    [problem] = found.problems
    assert problem.area == "api"
    assert problem.sentence.startswith(
        "the API server cannot be queried: the Kubernetes API at https://127.0.0.1:1 does not"
    )
    assert "ApiAllowedCidr" in problem.hint
    assert {each.ready for each in found.members} == {None}


def test_a_missing_permission_is_no_verdict(where):
    with where.served.permissions.enforcing(allow_everything_but("secretsmanager:GetSecretValue")) as credentials:
        account = where.connected(where.session_of(credentials))
        with pytest.raises(SecretDeniedError):
            validate(account, where.name, where.cluster, find_url_override=where.override)


def test_no_stack_is_no_verdict(where):
    with pytest.raises(NoStackError):
        validate(where.account, "nothing", where.cluster, find_url_override=where.override)


def test_versions_are_compared_with_the_cluster_file(where):
    older = where.cluster.model_copy(update={"kubernetes_version": "1.35"})
    found = validate(where.account, where.name, older, find_url_override=where.override)
    [problem] = found.problems
    assert problem.area == "version"
    assert problem.text.startswith("runs Kubernetes 1.36.3, but the cluster file says 1.35.")


def test_a_kubelet_of_another_version_is_found(where):
    state = where.kubernetes.state
    [node, *_] = where.instances(NODES)
    info = state.get("nodes", node)["status"]["nodeInfo"]
    texts = {}
    for version in ("v1.35.9", "v1.37.0", "v1.32.0", "v1.36.1"):
        info["kubeletVersion"] = version
        texts[version] = [each.text for each in looked(where).problems]
    info["kubeletVersion"] = "v1.36.3"
    assert texts == {
        "v1.35.9": ["has a kubelet of version 1.35.9, but the cluster file says 1.36.3"],
        "v1.37.0": ["has a kubelet of version 1.37.0, newer than the API server (1.36.3)"],
        "v1.32.0": ["has a kubelet of version 1.32.0, more than 3 minor versions older than the API server (1.36.3)"],
        "v1.36.1": ["has a kubelet of version 1.36.1, but the cluster file says 1.36.3"],
    }


@pytest.mark.parametrize(("kubelet", "server"), [("1.33.0", "1.36.3"), ("1.36.9", "1.36.0"), ("", "1.36.0")])
def test_versions_that_go_together(kubelet, server):
    assert describe_skew(kubelet, server) == ""


STACK = stacks.StackView("k8s", "arn", StackStatus("CREATE_COMPLETE"), tags={"cfngen:cluster": "kubernetes"})
WORKING = KubernetesReading("1.36.3", Readiness(ready=True), (), ())


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        ("CREATE_IN_PROGRESS", "cfngen watch"),
        ("UPDATE_ROLLBACK_FAILED", "cfngen rollback"),
        ("CREATE_FAILED", "cfngen deploy"),
        ("ROLLBACK_COMPLETE", "cfngen delete"),
        ("DELETE_FAILED", "cfngen delete"),
    ],
)
def test_a_stack_that_is_not_at_rest_is_a_problem(status, hint, where):
    seen = ClusterState(replace(STACK, status=StackStatus(status)), (), WORKING)
    [problem] = validate_state(seen, where.cluster, where.clock.now()).problems
    assert (problem.area, problem.text) == ("stack", f"is {status}")
    assert hint in str(problem.hint)


@pytest.mark.parametrize(
    "status", ["UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"]
)
def test_a_stack_whose_resources_work_is_none(status, where):
    seen = ClusterState(replace(STACK, status=StackStatus(status)), (), WORKING)
    assert validate_state(seen, where.cluster, where.clock.now()).valid


def test_an_api_server_that_is_not_ready_says_what_fails(where):
    api = replace(WORKING, readiness=Readiness(ready=False, failing=("etcd",)))
    [problem] = validate_state(ClusterState(STACK, (), api), where.cluster, where.clock.now()).problems
    assert (problem.area, problem.text) == ("api", "is not ready: etcd")


def test_groups_that_are_gone_or_leaving(where):
    leaving = InstanceView("i-1", "us-west-2a", "Terminating:Wait")
    seen = ClusterState(
        STACK,
        (GroupView("node", "a", "asg-a", missing=True), GroupView("node", "b", "asg-b", instances=(leaving,))),
        WORKING,
    )
    found = validate_state(seen, where.cluster, where.clock.now())
    assert said(found) == [("group", "node group a", "has no Auto Scaling group: asg-a does not exist")]
    assert found.members == ()


def test_a_node_is_known_by_its_name_where_it_has_no_provider_id(where):
    instance = InstanceView("i-1", "us-west-2a", "InService")
    api = replace(WORKING, nodes=(Node("i-1", ready=True, version="1.36.3"),))
    seen = ClusterState(STACK, (GroupView("node", "a", "asg", desired=1, instances=(instance,)),), api)
    assert validate_state(seen, where.cluster, where.clock.now()).valid


def test_waiting_ends_when_time_is_up(where):
    [node, *_] = where.instances(NODES)
    where.kubernetes.state.set_ready(node, False)
    began = where.clock.now()
    reports = []
    found = wait_until_valid(partial(looked, where), where.clock, timedelta(minutes=1), reports.append)
    where.kubernetes.state.set_ready(node, True)
    assert not found.valid
    assert where.clock.now() - began == timedelta(minutes=1)
    assert [each.open for each in reports] == [1]


def test_without_patience_there_is_one_look(where):
    [node, *_] = where.instances(NODES)
    where.kubernetes.state.set_ready(node, False)
    before, reports = where.clock.sleeps, []
    found = wait_until_valid(partial(looked, where), where.clock, timedelta(0), reports.append)
    where.kubernetes.state.set_ready(node, True)
    assert (found.valid, reports, where.clock.sleeps) == (False, [], before)


class Answers:
    """Attempts that come to this and that, in turn."""

    def __init__(self, *answers: Validation | Exception) -> None:
        self.answers = list(answers)

    def __call__(self) -> Validation:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_problems_that_come_and_go_are_told_as_they_do(where):
    one, two = Problem("node", "i-1", "is not Ready", "first words"), Problem("pod", "dns", "is Pending")
    empty = Validation("k", "s", where.clock.now(), valid=True)
    looks = Answers(
        replace(empty, valid=False, problems=(one, two)),
        replace(empty, valid=False, problems=(replace(one, detail="other words"), two)),
        ThrottledError("slow down"),
        replace(empty, valid=False, problems=(two,)),
        empty,
    )
    reports = []
    assert wait_until_valid(looks, where.clock, timedelta(minutes=5), reports.append).valid
    assert [(each.appeared, each.resolved, each.open) for each in reports] == [((one, two), (), 2), ((), (one,), 1)]


def test_throttling_to_the_end_is_no_verdict(where):
    with pytest.raises(ThrottledError):
        wait_until_valid(Answers(ThrottledError("slow down")), where.clock, timedelta(minutes=1), lambda message: None)


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (Problem("stack", "k8s", "is ROLLBACK_COMPLETE"), "the stack k8s is ROLLBACK_COMPLETE"),
        (Problem("api", "API server", "is not ready: etcd"), "the API server is not ready: etcd"),
        (Problem("version", "i-1", "has a kubelet of version 1.30.0"), "the Node i-1 has a kubelet of version 1.30.0"),
        (Problem("group", "node group a", "has 1 of 2 in service"), "node group a has 1 of 2 in service"),
        (Problem("instance", "i-1", "of master a is Pending"), "the instance i-1 of master a is Pending"),
        (Problem("pod", "etcd-i-1", "is Pending and not ready"), "the pod etcd-i-1 is Pending and not ready"),
    ],
)  # fmt: skip
def test_a_problem_is_a_sentence(problem, sentence):
    assert problem.sentence == sentence
