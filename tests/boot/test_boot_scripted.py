"""The instance in memory says no to what an instance, or AWS, would say no to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scripted_machine import ScriptedMachine, refusal

from cfngen.boot.machine import BootError

Failed = pytest.fail.Exception
EVICTION = (
    "kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout=30s create"
    " --raw /api/v1/namespaces/default/pods/web/eviction"
)
NODES = (
    "kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=30s get nodes"
    " -l node-role.kubernetes.io/control-plane -o json"
)
SIGNAL = {"StackName": "k8s", "LogicalResourceId": "Master", "UniqueId": "i-1", "Status": "SUCCESS"}


@pytest.mark.parametrize(
    ("operation", "arguments", "reason"),
    [
        ("signal_resources", SIGNAL, "cloudformation has no operation signal_resources"),
        ("signal_resource", {**SIGNAL, "LogicalID": "Master"}, 'Unknown parameter in input: "LogicalID"'),
        ("signal_resource", {"StackName": "k8s"}, 'Missing required parameter in input: "UniqueId"'),
        ("signal_resource", {**SIGNAL, "UniqueId": 1}, "Invalid type for parameter UniqueId"),
        ("signal_resource", {**SIGNAL, "Status": "OK"}, "'OK' is none of ResourceSignalStatus's SUCCESS, FAILURE"),
        ("describe_stacks", {"StackName": "k8s"}, "nobody answers cloudformation.describe_stacks"),
    ],
)
def test_call_that_boto3_or_aws_would_refuse_ends_the_test(
    operation: str, arguments: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Failed, match=reason):
        ScriptedMachine().aws("cloudformation", operation, **arguments)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"Reservation": []}, 'Unknown parameter in input: "Reservation"'),
        ({"Reservations": {}}, "Invalid type for parameter Reservations"),
        ({"Reservations": [{"Instances": [{"State": {"Name": "gone"}}]}]}, "'gone' is none of InstanceStateName's"),
        (refusal("ResourceNotFoundException"), "DescribeInstances never answers with ResourceNotFoundException"),
    ],
)
def test_answer_that_the_service_never_gives_ends_the_test(answer: dict[str, Any], reason: str) -> None:
    machine = ScriptedMachine()
    machine.cloud["ec2.describe_instances"] = lambda: answer
    with pytest.raises(Failed, match=reason):
        machine.aws("ec2", "describe_instances")


def test_refusal_reaches_the_program_as_it_does_on_an_instance() -> None:
    machine = ScriptedMachine()
    machine.cloud["s3.head_object"] = lambda Bucket, Key: refusal("404", "Not Found")  # noqa: N803
    with pytest.raises(BootError, match=r"An error occurred \(404\) when calling the HeadObject operation: Not Found"):
        machine.aws("s3", "head_object", Bucket="backups", Key="nothing")
    assert machine.passed == 0
    machine.cloud["s3.list_objects_v2"] = lambda Bucket: refusal("AccessDenied")  # noqa: N803
    with pytest.raises(BootError, match=r"waited 6[0-9] s for list_objects_v2"):
        machine.aws("s3", "list_objects_v2", Bucket="backups")


@pytest.mark.parametrize(
    "command",
    [
        "systemctl enable --nwo cfngen-drain.service",
        "mkfs.ext4 -q -m 0 /dev/nvme1n1",
        "rm -rf /",
        "kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes",
        f"{NODES} wide",
    ],
)
def test_command_that_nobody_has_scripted_ends_the_test(command: str) -> None:
    with pytest.raises(Failed, match="nobody knows what this command does"):
        ScriptedMachine().run(*command.split())


def test_option_that_a_program_does_not_have_ends_the_test() -> None:
    machine = ScriptedMachine()
    machine.on("kubectl", (0, ""))
    machine.run(*NODES.split())
    with pytest.raises(Failed, match="kubectl has no option --ignore-notfound"):
        machine.run(*NODES.split(), "--ignore-notfound")


@pytest.mark.parametrize(
    ("command", "options", "reason"),
    [
        ("pgrep -x etcd", {}, r"its exit codes \(0,\) are no answer, only \[\(0, 1\)\]"),
        ("pgrep -x etcd", {"expect": (0, 1, 2)}, r"its exit codes \(0, 1, 2\) are no answer"),
        (NODES, {"expect": (0, 1)}, r"its exit codes \(0, 1\) are no answer"),
        ("swapoff -a", {"timeout": 60}, "it may take 900 s, not 60"),
        ("e2fsck -p /dev/nvme1n1", {"expect": tuple(range(16))}, "it may take 21600 s, not 900"),
        (NODES, {}, "nobody has scripted an answer to this command"),
    ],
)
def test_exit_codes_and_limits_of_a_command_are_those_of_its_manual(
    command: str, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Failed, match=reason):
        ScriptedMachine().run(*command.split(), **options)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"apiVersion": "v1"}, "there is no kind Eviction of v1"),
        ({"kind": "Evict"}, "there is no kind Evict of policy/v1"),
        ({"metadata": {"name": "web"}}, r"\[\] unknown, \['metadata.namespace'\] missing"),
        ({"grace": 1}, r"\['grace'\] unknown, \[\] missing"),
    ],
)
def test_object_that_the_api_server_would_not_take_ends_the_test(change: dict[str, Any], reason: str) -> None:
    machine = ScriptedMachine()
    machine.on("kubectl", (0, ""))
    metadata = {"name": "web", "namespace": "default"}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    command = (*EVICTION.split(), "-f", "-")
    machine.run(*command, stdin=json.dumps(eviction), timeout=45)
    with pytest.raises(Failed, match=reason):
        machine.run(*command, stdin=json.dumps({**eviction, **change}), timeout=45)


@pytest.mark.parametrize(
    ("path", "mode", "reason"),
    [
        ("/etc/kubernetes/pki/ca.key", 0o644, "/etc/kubernetes/pki/ca.key is written with mode 644, not 600"),
        ("/mnt/master/restore", 0o644, "nobody knows what this file is: /mnt/master/restore"),
    ],
)
def test_file_that_nobody_knows_or_that_others_may_read_ends_the_test(path: str, mode: int, reason: str) -> None:
    with pytest.raises(Failed, match=reason):
        ScriptedMachine().write(path, "", mode)


def test_removal_of_what_is_not_the_programs_ends_the_test() -> None:
    machine = ScriptedMachine()
    machine.remove("/etc/kubernetes/pki/")
    with pytest.raises(Failed, match=r"no business to remove /etc/kubernetes/pki/ca\.key\.old$"):
        machine.remove("/etc/kubernetes/pki/ca.key", "/etc/kubernetes/pki/ca.key.old")
