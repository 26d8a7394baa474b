"""How the commands of the pages are typed: what stands for a placeholder, what was before, and how they end.

A command that is in none of these tables is typed as it stands, and has to end with 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfngen.cli.application import application

if TYPE_CHECKING:
    from test_pages import Reader

GENERAL = "NodeGroupGeneralAutoScalingGroup"
LARGER = ("--set", "nodeGroups[0].instanceType=m7g.xlarge")


@dataclass(frozen=True)
class Typed:
    """How a command is typed.

    Attributes:
        lines: with placeholders filled in; if there are none, the command as the page has it.
        fill: what stands for a placeholder, if only an account knows it.
        before: what has happened by then.
        code: how it ends.
        answers: what is typed at its questions, all of which must be asked.
    """

    lines: tuple[str, ...] = ()
    fill: Mapping[str, Callable[[Reader], str]] = field(default_factory=dict)
    before: Callable[[Reader], None] = lambda reader: None
    code: int = 0
    answers: tuple[str, ...] | None = None


def deployed(reader: Reader) -> None:
    """The cluster is there, and has a snapshot."""
    reader.account.use(sandbox=False)
    if not reader.account.stacks(reader.region):
        reader.run("deploy", "--yes")
        reader.account.sleep(20 * 60)


def nothing(reader: Reader) -> None:
    """The account is empty."""
    reader.account.close()
    reader.account.use(sandbox=False)


def failed_and_kept(reader: Reader) -> None:
    """An update of a node group has failed, and was left as it is."""
    deployed(reader)
    machines = reader.account.worlds[reader.region].machines
    machines.inject_failure(GENERAL, "downloads", "no route to dl.k8s.io")
    reader.run("deploy", "--yes", "--on-failure", "keep", *LARGER, code=1)
    machines.remove_faults()


def failed_twice(reader: Reader) -> None:
    """An update of a node group has failed, and its rollback too."""
    deployed(reader)
    machines = reader.account.worlds[reader.region].machines
    machines.inject_failure(GENERAL, "downloads", "no route to dl.k8s.io")
    reader.run("deploy", "--yes", *LARGER, code=1)
    [stack] = reader.account.client("cloudformation", reader.region).describe_stacks(StackName=reader.stack)["Stacks"]
    assert stack["StackStatus"] == "UPDATE_ROLLBACK_FAILED"
    machines.remove_faults()


def templates_in_output(reader: Reader) -> None:
    """The templates of the default cluster are in `output/`, the account is empty but for the page's bucket."""
    nothing(reader)
    reader.account.client("s3", "us-west-2").create_bucket(
        Bucket="my-templates", CreateBucketConfiguration={"LocationConstraint": "us-west-2"}
    )


def templates_written(reader: Reader) -> None:
    """The templates of the cluster file are in `output/`."""
    reader.run("templates")


def deleted(reader: Reader) -> None:
    """There was a cluster."""
    deployed(reader)
    reader.run("delete", "--yes")


def made_again(reader: Reader) -> None:
    """The cluster file names the bucket of the cluster that was deleted, and the new cluster is there."""
    reader.cluster_file(reader.example + f"etcd: {{backups: {{bucket: {bucket(reader)}}}}}\n")
    deployed(reader)


def nodes_terminated(reader: Reader) -> None:
    """The nodes' instances, which have joined with another authority, are terminated; others take their place."""
    ec2 = reader.account.client("ec2", reader.region)
    machines = reader.account.worlds[reader.region].machines
    running = {"Name": "instance-state-name", "Values": ["running"]}
    for reservation in ec2.describe_instances(Filters=[running])["Reservations"]:
        for instance in reservation["Instances"]:
            if machines.instances[instance["InstanceId"]].boot_data.references["resource"] == GENERAL:
                ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])


def a_node(reader: Reader) -> str:
    """Id of a node."""
    machines = reader.account.worlds[reader.region].machines
    nodes = [
        instance.id for instance in machines.instances.values() if instance.boot_data.references["resource"] == GENERAL
    ]
    return nodes[-1]


def three_masters(reader: Reader) -> None:
    """The cluster file asks for three masters."""
    deployed(reader)
    file = Path("cluster.yaml")
    file.write_text(file.read_text() + "controlPlane: {count: 3}\n")


def newer_version(reader: Reader) -> None:
    """A cluster of one minor version is there, and the cluster file asks for the next one."""
    nothing(reader)
    reader.cluster_file(reader.example + "kubernetesVersion: '1.35'\n")
    deployed(reader)
    reader.cluster_file(reader.example + "kubernetesVersion: '1.36'\n")


def older_snapshot(reader: Reader) -> str:
    """Key of the oldest snapshot."""
    return str(json.loads(reader.run("etcd", "list", "--all", "-o", "json").out)["snapshots"][-1]["key"])


def older_file(reader: Reader) -> str:
    """Name of the oldest snapshot's file."""
    return older_snapshot(reader).rpartition("/")[2]


def bucket(reader: Reader) -> str:
    """Name of the bucket of snapshots, which outlives its cluster."""
    buckets = reader.account.client("s3", reader.region).list_buckets()["Buckets"]
    return next(str(bucket["Name"]) for bucket in buckets if "-backupbucket-" in bucket["Name"])


def copy_of_authorities(reader: Reader) -> str:
    """Name of the secret that a deletion has left, behind the cluster's name."""
    secrets = reader.account.client("secretsmanager", reader.region).list_secrets(IncludePlannedDeletion=True)
    names = (str(each["Name"]) for each in secrets["SecretList"])
    return next(name.removeprefix("cfngen/") for name in names if name.startswith("cfngen/"))


def secret_of_authorities(reader: Reader) -> str:
    """ARN of the new cluster's secret, which its stack has among its outputs."""
    [stack] = reader.account.client("cloudformation", reader.region).describe_stacks(StackName=reader.stack)["Stacks"]
    return next(str(output["OutputValue"]) for output in stack["Outputs"] if output["OutputKey"] == "CaSecretArn")


ASKS_FOR_NAME = ("NAME",)
DELETION = ("r", "NAME")  # what becomes of the certificate authorities, and the cluster's name
# What is typed at the questions of a command, where the page's own table below has nothing; `NAME` is the cluster's.
ANSWERS: Mapping[str, tuple[str, ...]] = {
    "deploy": ("y",),
    "init": ("",) * 5,  # the default of every question
    "delete": DELETION,
    "etcd restore": ASKS_FOR_NAME,
    "replace": ("y",),
    "pause": ("y",),
    "resume": ("y",),
    "rollback": ("y",),
}

READS_AUTHORITIES = (
    "(umask 077; aws secretsmanager get-secret-value --secret-id cfngen/CLUSTER/authorities-TIME "
    "--query SecretString --output text > authorities.json)"
)
CREATES_STACK = (
    "aws cloudformation deploy --region us-west-2 --stack-name kubernetes --capabilities CAPABILITY_IAM "
    "--template-file output/standalone.json --s3-bucket my-templates "
    "--parameter-overrides ApiAllowedCidr=203.0.113.7/32"
)

TYPED: Mapping[tuple[str, str, str], Typed] = {
    # page, section, command
    ("README.md", "Five minutes", "cfngen init [FILE]"): Typed(("cfngen init another.yaml",)),
    ("README.md", "Five minutes", "cfngen lint [FILES…]"): Typed(("cfngen lint mine/cluster.json",)),
    ("README.md", "Five minutes", "cfngen userdata [ROLE]"): Typed(
        ("cfngen userdata", "cfngen userdata master", "cfngen userdata nodes-spot")
    ),
    ("README.md", "Five minutes", "cfngen permissions [NAME]"): Typed(
        ("cfngen permissions", "cfngen permissions execution", "cfngen permissions nodes-spot")
    ),
    ("README.md", "Five minutes", "cfngen plan"): Typed(code=4),
    ("README.md", "Five minutes", "cfngen deploy"): Typed(answers=("y",)),
    ("README.md", "Five minutes", "cfngen etcd"): Typed(("cfngen etcd --help",)),
    ("README.md", "Five minutes", "cfngen replace INSTANCE"): Typed(("cfngen replace --help",)),
    ("nodes.md", "Reserved capacity of masters", "cfngen replace SLOT --instance-type TYPE"): Typed(
        ("cfngen replace --help",)
    ),
    ("README.md", "Five minutes", "cfngen delete"): Typed(answers=DELETION),
    ("README.md", "Five minutes", "cfngen rehearse"): Typed(("cfngen rehearse --list",)),
    ("README.md", "Five minutes", "cfngen sandbox"): Typed(("cfngen sandbox --help",)),
    ("README.md", "Five minutes", "cfngen completion SHELL"): Typed(
        tuple(f"cfngen completion {shell}" for shell in ("bash", "zsh", "fish"))
    ),
    ("README.md", "Five minutes", "cfngen COMMAND --help"): Typed(
        tuple(f"cfngen {name} --help" for name in application.list_commands(click.Context(application)))
    ),
    ("README.md", "Deploying", "cfngen deploy --sandbox"): Typed(answers=("y",)),
    ("README.md", "Deploying", "cfngen plan"): Typed(code=4),
    ("README.md", "Deploying", "cfngen deploy"): Typed(answers=("y",)),
    ("README.md", "Deploying", "cfngen delete"): Typed(answers=DELETION),
    ("README.md", "Deploying", "cfngen plan --defaults --parameter ApiAllowedCidr=203.0.113.7/32"): Typed(code=4),
    ("backups.md", "Backups of etcd, and the way back", "cfngen etcd restore"): Typed(
        before=deployed, answers=ASKS_FOR_NAME
    ),
    ("backups.md", "Going back", "cfngen etcd restore 2026-11-21T120000Z.db"): Typed(
        fill={"2026-11-21T120000Z.db": older_file}, answers=ASKS_FOR_NAME
    ),
    # The nodes have joined after that snapshot.
    ("backups.md", "Going back", "cfngen validate cluster"): Typed(code=2),
    ("backups.md", "The drill", "cfngen etcd backup"): Typed(before=deployed),
    (
        "backups.md",
        "A stack that is made again",
        "aws secretsmanager restore-secret --secret-id cfngen/CLUSTER/authorities-TIME",
    ): Typed(fill={"CLUSTER/authorities-TIME": copy_of_authorities}),
    (
        "backups.md",
        "A stack that is made again",
        READS_AUTHORITIES,
    ): Typed(fill={"CLUSTER/authorities-TIME": copy_of_authorities}),
    (
        "backups.md",
        "A stack that is made again",
        "aws secretsmanager put-secret-value --secret-id ARN --secret-string file://authorities.json",
    ): Typed(before=made_again, fill={"ARN": secret_of_authorities}),
    ("backups.md", "A stack that is made again", "cfngen delete"): Typed(before=deployed, answers=DELETION),
    ("backups.md", "A stack that is made again", "cfngen etcd restore KEY"): Typed(
        fill={"KEY": older_snapshot}, answers=ASKS_FOR_NAME
    ),
    ("backups.md", "A stack that is made again", "cfngen validate cluster --wait 20m"): Typed(before=nodes_terminated),
    ("backups.md", "A stack that is made again", "cfngen etcd list --set etcd.backups.bucket=NAME"): Typed(
        before=deleted, fill={"NAME": bucket}
    ),
    ("console.md", "Deploying through the CloudFormation console", "cfngen deploy"): Typed(
        ("cfngen deploy --parameter ApiAllowedCidr=203.0.113.7/32",)
    ),
    (
        "console.md",
        "By AWS CLI",
        CREATES_STACK,
    ): Typed(before=templates_in_output),
    ("console.md", "Changing a cluster", "cfngen deploy"): Typed(code=1),  # it leaves such a stack alone
    ("console.md", "Changing a cluster", "cfngen status --stack-name NAME"): Typed(
        ("cfngen status --stack-name kubernetes",)
    ),
    ("console.md", "Deleting a cluster", "cfngen delete --stack-name NAME"): Typed(
        ("cfngen delete --stack-name kubernetes",), answers=DELETION
    ),
    ("deploy.md", "Deploying with cfngen", "cfngen plan"): Typed(before=nothing, code=4),
    ("deploy.md", "Deploying with cfngen", "cfngen deploy"): Typed(answers=("y",)),
    ("deploy.md", "Deploying with cfngen", "cfngen delete"): Typed(answers=DELETION),
    ("deploy.md", "When something fails", "cfngen rollback"): Typed(before=failed_and_kept),
    ("deploy.md", "Reaching the cluster", "cfngen kubeconfig"): Typed(before=deployed),
    ("deploy.md", "Permissions", "cfngen permissions etcd --account 123456789012 > etcd.json"): Typed(
        ("cfngen permissions etcd --account 123456789012",)
    ),
    ("graph.md", "Pictures of a cluster", "cfngen graph --templates output/ --output cluster.svg"): Typed(
        before=templates_written
    ),
    ("graph.md", "Pictures of a cluster", "cfngen plan --graph plan.html"): Typed(code=4),
    ("graph.md", "What a deployment changes", "cfngen plan --graph plan.svg"): Typed(code=4),
    ("images.md", "Images of your own", "cfngen userdata ROLE --file config.json"): Typed(
        ("cfngen userdata master --file config.json", "cfngen userdata nodes-spot --file config.json")
    ),
    ("images.md", "Images of your own", "cfngen userdata ROLE --file role.json"): Typed(
        ("cfngen userdata master --file role.json", "cfngen userdata nodes-spot --file role.json")
    ),
    ("operations.md", "Overnight: a cluster without instances", "cfngen pause"): Typed(before=deployed, answers=("y",)),
    ("operations.md", "More masters", "cfngen deploy --on-failure keep"): Typed(
        before=three_masters, answers=ASKS_FOR_NAME
    ),
    ("operations.md", "A new Kubernetes version", "cfngen deploy"): Typed(before=newer_version, answers=ASKS_FOR_NAME),
    ("operations.md", "Replacing an instance", "cfngen replace a"): Typed(before=deployed),
    ("operations.md", "Replacing an instance", "cfngen replace INSTANCE"): Typed(
        fill={"INSTANCE": a_node}, before=deployed
    ),
    ("operations.md", "A master's instance type is sold out", "cfngen replace a --instance-type t3a.medium"): Typed(
        before=deployed
    ),
    ("operations.md", "A new Kubernetes version", "cfngen etcd restore KEY"): Typed(
        fill={"KEY": older_snapshot}, answers=ASKS_FOR_NAME
    ),
    ("operations.md", "A new Kubernetes version", "cfngen rollback"): Typed(before=failed_twice),
    ("operations.md", "An update hangs or failed", "cfngen rollback --force"): Typed(before=failed_twice),
    ("security.md", "Reviewing what runs", "cfngen userdata ROLE"): Typed(
        ("cfngen userdata master", "cfngen userdata nodes-spot")
    ),
}

# Sentences that only mention what another page shows, or what a test runs in a sandbox that is a process.
MENTIONED: Mapping[tuple[str, str], str] = {
    ("README.md", "cfngen rollback"): "deploy.md",
    ("architecture.md", "cfngen delete"): "README.md",
    ("architecture.md", "cfngen replace"): "tests/cli/test_replace_command.py",
    ("verification.md", "cfngen replace"): "tests/cli/test_replace_command.py",
    ("architecture.md", "cfngen rollback --force"): "operations.md",
    ("deploy.md", "cfngen sandbox fail nodes"): "tests/cli/test_sandbox_command.py",
    ("nodes.md", "cfngen sandbox interrupt batch"): "tests/cli/test_sandbox_command.py",
    ("deploy.md", "cfngen sandbox status"): "tests/cli/test_sandbox_command.py",
    ("README.md", "cfngen check network"): "tests/cli/test_check_command.py",
    ("networking.md", "cfngen check network"): "tests/cli/test_check_command.py",
    ("networking.md", "cfngen deploy"): "README.md",
    ("networking.md", "cfngen kubeconfig --internal"): "tests/cli/test_kubeconfig_internal.py",
    ("networking.md", "cfngen plan"): "README.md",
    ("operations.md", "cfngen check network"): "tests/cli/test_check_command.py",
    ("networking.md", "cfngen validate cluster"): "README.md",
    ("README.md", "cfngen rehearse"): "tests/cli/test_rehearse_command.py",
    ("rehearsal.md", "cfngen delete"): "README.md",
    ("rehearsal.md", "cfngen deploy"): "README.md",
    ("rehearsal.md", "cfngen rehearse"): "tests/cli/test_rehearse_command.py",
    ("rehearsal.md", "cfngen rehearse --clean-up"): "tests/cli/test_rehearse_command.py",
    ("verification.md", "cfngen rehearse"): "tests/cli/test_rehearse_command.py",
    ("security.md", "cfngen plan"): "README.md",
    ("security.md", "cfngen status"): "README.md",
    ("vpc.md", "cfngen plan"): "README.md",
    ("vpc.md", "cfngen deploy --parameter SubnetAId=/other/name"): "tests/deploy/test_references.py",
}

# What a test on its own runs, or nothing here can; `make` by its target, else program and command.
MAKE_ELSEWHERE: Mapping[str, str] = {
    "test": "it is what runs this",
    "demo": "starts a sandbox as a process; its commands are run below, and as a process by tests/sandbox",
    "sandbox": "installs packages: tests/test_make.py",
    "lint": "ruff, mypy and `cfngen templates --check`, which the pipeline runs",
    "boot-test": "needs root and containers: tests/bootlab",
    "drills": "this test is one of them",
    "soak": "takes as long as one likes, and is for finding what no test knows",
    "bench": "measures, and asserts nothing",
    "matrix": "generates thousands of templates",
    "mutants": "runs tests for half an hour; its parts are tested in tests/mutants",
    "docs": "writes files of the project",
    "golden": "writes files of the project",
    "statuses": "writes files of the project",
    "help": "tests/test_make.py",
}
NOT_RUN: Mapping[str, str] = {
    ".": "changes the reader's shell",
    ".ci/run": "it is what runs this",
    ".ci/walkthrough": "writes files of the project",
    ".ci/add-release": "writes files of the project: tests/test_add_release.py",
    "pipx install": "fetches packages",
    "git diff": "shows what the reader has changed",
    "curl": "there is no network",
    "ssh": "there is no instance to reach",
    "kubectl": "there is no kubectl; what it calls is tested in tests/sandbox",
    "helm list": "there is no Helm on this machine",
    # On an instance:
    "ip link": "on an instance",
    "systemctl": "on an instance",
    "journalctl": "on an instance",
    "ctr": "on an instance",
    "kubeadm": "on an instance",
    "etcdctl snapshot": "on an instance; the boot program runs it: tests/boot/test_boot_backup.py",
    "e2fsck": "on an instance",
    "less": "on an instance",
    "dd": "on an instance, with devices that are chosen",
    "rm": "on an instance",
    "cloud-init": "on an instance",
}
