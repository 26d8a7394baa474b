"""How the commands of the pages are typed: what stands for a placeholder, what was before, and how they end.

A command that is in none of these tables is typed as it is printed, and has to end with 0. No table can put another
command in its place: only what the page marks as a placeholder is filled in.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from cfngen.cli.application import application

if TYPE_CHECKING:
    from test_pages import Reader

GENERAL = "NodeGroupGeneralAutoScalingGroup"
LARGER = ("--set", "nodeGroups[0].instanceType=m7g.xlarge")
# How a page marks what its reader fills in: a word in capitals, also in brackets if it may be left out, or one between
# angle brackets; the id that AWS's documentation uses in examples; the time of a snapshot.
PLACEHOLDER = re.compile(r"<[a-z-]+>|\[[A-Z]+\]|[A-Z]{2,}|[a-z]+-0123456789abcdef0|2026-11-21T\d{6}Z")
Filling: TypeAlias = "str | Callable[[Reader], str]"


@dataclass(frozen=True)
class Typed:
    """How a command is typed.

    Attributes:
        fill: what stands for each placeholder, in turn if there are several values; a function, if only an account
            knows.
        before: what has happened by then.
        code: how it ends.
        answers: what is typed at its questions, all of which must be asked.
    """

    fill: Mapping[str, Filling | tuple[Filling, ...]] = field(default_factory=dict)
    before: Callable[[Reader], None] = lambda reader: None
    code: int = 0
    answers: tuple[str, ...] | None = None

    def lines(self, printed: str, reader: Reader) -> list[str]:
        """The lines to type for a printed one."""
        lines = [printed]
        for placeholder, value in self.fill.items():
            assert PLACEHOLDER.fullmatch(placeholder), f"{placeholder} is not marked as a placeholder"
            assert re.search(_whole(placeholder), printed), f"`{printed}` has no {placeholder}"
            values = [
                filling if isinstance(filling, str) else filling(reader)
                for filling in (value if isinstance(value, tuple) else (value,))
            ]
            assert all(re.fullmatch(r"[\w.:/-]*", text) for text in values), f"more than a value: {values}"
            lines = [re.sub(_whole(placeholder), text, line) for line in lines for text in values]
        return lines


def _whole(placeholder: str) -> str:
    return rf"(?<![A-Za-z]){re.escape(placeholder)}(?![A-Za-z])"


def deployed(reader: Reader) -> None:
    """The cluster is there, and has a snapshot."""
    reader.account.use(sandbox=False)
    if not reader.account.stacks(reader.region):
        reader.run("deploy", "--yes")
        reader.account.sleep(20 * 60)


def two_hours_old(reader: Reader) -> None:
    """The cluster is there for two hours, and has snapshots of them."""
    deployed(reader)
    for _ in range(8):
        reader.account.sleep(15 * 60)


def deployed_anew(reader: Reader) -> None:
    """The cluster is there, with the instances that it was created with."""
    nothing(reader)
    deployed(reader)


def example_file(reader: Reader) -> None:
    """The cluster file is the README's."""
    reader.cluster_file(reader.example)


def no_cluster_file(reader: Reader) -> None:
    """There is no cluster file yet."""
    for name in ("cluster.yaml", "cluster.schema.json"):
        Path(name).unlink(missing_ok=True)


def price_list(reader: Reader) -> None:
    """prices.yaml has the prices of the page on deploying, the cluster is in their region; the account is empty."""
    nothing(reader)
    reader.cluster_file("region: us-west-2\napi: {allowedCidrs: [203.0.113.0/24]}\n")
    [text] = (text for text in reader.blocks("docs/deploy/deploy.md") if text.startswith("currency:"))
    Path("prices.yaml").write_text(text)


def deployed_as_prod(reader: Reader) -> None:
    """There is a stack `prod`."""
    nothing(reader)
    reader.run("deploy", "--yes", "--stack-name", "prod")


def internal_endpoint(reader: Reader) -> None:
    """The cluster has an internal endpoint, too."""
    nothing(reader)
    reader.cluster_file(reader.example.replace("api:\n", "api:\n  internal: true\n"))
    deployed(reader)


def own_template(reader: Reader) -> None:
    """There is a template that cfngen has not made."""
    Path("your-own.yaml").write_text("Resources: {Topic: {Type: 'AWS::SNS::Topic'}}\n")


def fish_is_there(reader: Reader) -> None:
    """The shell `fish` is set up."""
    (Path.home() / ".config/fish/completions").mkdir(parents=True, exist_ok=True)


def folder_of_files(reader: Reader) -> None:
    """There is a folder with two cluster files."""
    nothing(reader)
    Path("clusters").mkdir(exist_ok=True)
    for name in ("prod", "trial"):
        groups = "nodeGroups: [{name: nodes, minSize: 1}]"
        text = f"name: {name}\napi: {{allowedCidrs: [203.0.113.7/32]}}\n{groups}\n"
        Path(f"clusters/{name}.yaml").write_text(text)


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


def made_in_console(reader: Reader) -> None:
    """The console has made the stack of the default cluster."""
    templates_in_output(reader)
    reader.run("templates")
    options = shlex.split(CREATES_STACK)[3:]
    reader.deploy_template({name[2:]: value for name, value in zip(options[::2], options[1::2], strict=True)})


def larger_group(reader: Reader) -> None:
    """The cluster file has been changed, and the templates were generated."""
    reader.cluster_file("nodeGroups:\n- name: nodes\n  minSize: 4\n  maxSize: 5\n  instanceType: t3.large\n")
    templates_written(reader)


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


def stack_of_nodes(reader: Reader) -> str:
    """Name of the nested stack of a node group."""
    cloudformation = reader.account.client("cloudformation", reader.region)
    nested = cloudformation.describe_stack_resource(StackName=reader.stack, LogicalResourceId="NodeGroupGeneralStack")
    return str(nested["StackResourceDetail"]["PhysicalResourceId"]).split("/")[1]


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


def older_version(reader: Reader) -> None:
    """A cluster of the minor version before the newest is there."""
    nothing(reader)
    reader.cluster_file(reader.example + "kubernetesVersion: '1.35'\n")
    deployed(reader)


def newer_version(reader: Reader) -> None:
    """The cluster file asks for the newest minor version."""
    reader.cluster_file(reader.example + "kubernetesVersion: '1.36'\n")


def older_snapshot(reader: Reader) -> str:
    """Key of the oldest snapshot."""
    return str(json.loads(reader.run("etcd", "list", "--all", "-o", "json").out)["snapshots"][-1]["key"])


def older_time(reader: Reader) -> str:
    """When the oldest snapshot was taken, as its file is named."""
    return Path(older_snapshot(reader)).stem


def bucket(reader: Reader) -> str:
    """Name of the bucket of snapshots, which outlives its cluster."""
    buckets = reader.account.client("s3", reader.region).list_buckets()["Buckets"]
    return next(str(bucket["Name"]) for bucket in buckets if "-backupbucket-" in bucket["Name"])


def time_of_copy(reader: Reader) -> str:
    """When a deletion has made the copy of the authorities, as the secret is named."""
    secrets = reader.account.client("secretsmanager", reader.region).list_secrets(IncludePlannedDeletion=True)
    copies = f"cfngen/{reader.stack}/authorities-"
    names = (str(secret["Name"]) for secret in secrets["SecretList"])
    return next(name.removeprefix(copies) for name in names if name.startswith(copies))


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

MAKES_BUCKET = ("y",)  # the first plan of an account asks whether to make the bucket for templates
WHO_AND_KEPT = ("203.0.113.7/32", "y")  # who may reach the API, and whether the cluster file is to say so
EXAMPLE_INSTANCE = "i-0123456789abcdef0"
CLUSTERS_NAME = {"NAME": "kubernetes"}
ROLES = ("master", "nodes-spot")
READS_AUTHORITIES = (
    "(umask 077; aws secretsmanager get-secret-value --secret-id cfngen/CLUSTER/authorities-TIME "
    "--query SecretString --output text > authorities.json)"
)
DEPLOYS_TEMPLATE = (
    "aws cloudformation deploy --region us-west-2 --stack-name kubernetes --capabilities CAPABILITY_IAM "
    "--template-file output/standalone.json --s3-bucket my-templates --parameter-overrides "
)
CREATES_STACK = f"{DEPLOYS_TEMPLATE}ApiAllowedCidr=203.0.113.7/32"
PLANS_IN_JOB = "code=0; cfngen plan --account 123456789012 --create-bucket --graph plan.html > plan.txt || code=$?"
COPY = {"CLUSTER": lambda reader: reader.stack, "TIME": time_of_copy}

# By page; then by section and command.
TYPED: Mapping[str, Mapping[tuple[str, str], Typed]] = {
    "cfngen init --help": {
        ("", "cfngen init"): Typed(before=no_cluster_file),
        ("", "cfngen init --from production --name blue --region eu-west-1"): Typed(before=no_cluster_file),
    },
    "cfngen config --help": {
        ("", "cfngen config --deployed --stack-name staging > deployed.yaml"): Typed(before=deployed),
    },
    "cfngen templates --help": {("", "cfngen templates --check"): Typed(before=templates_written)},
    "cfngen lint --help": {
        ("", "cfngen lint output/*.json"): Typed(before=templates_written),
        ("", "cfngen lint --region eu-west-1 your-own.yaml"): Typed(before=own_template),
    },
    "cfngen graph --help": {("", "cfngen graph --templates output/"): Typed(before=templates_written)},
    "cfngen deploy --help": {
        ("", "cfngen deploy -f clusters/ --canary clusters/trial.yaml --yes"): Typed(before=folder_of_files),
    },
    "cfngen plan --help": {
        ("", "cfngen plan"): Typed(answers=MAKES_BUCKET, code=4),
        ("", "cfngen plan -f prod.yaml --profile prod"): Typed(code=4),
        ("", """cfngen plan --output json | jq 'select(.type == "plan").stacks'"""): Typed(code=4),
        ("", "cfngen plan --full"): Typed(code=4),
        ("", "cfngen plan --prices prices.yaml"): Typed(before=price_list, answers=MAKES_BUCKET, code=4),
        ("", "cfngen plan --graph plan.html"): Typed(code=4),
        ("", "cfngen plan --sandbox"): Typed(code=4),
    },
    "cfngen permissions --help": {
        ("", "cfngen permissions --diff prod.yaml"): Typed(code=5),
        ("", "cfngen permissions --diff-deployed --profile prod"): Typed(before=deployed),
    },
    "cfngen watch --help": {("", "cfngen watch --stack-name prod --output json"): Typed(before=deployed_as_prod)},
    "cfngen kubeconfig --help": {
        ("", "cfngen kubeconfig --internal --context prod-internal"): Typed(before=internal_endpoint),
    },
    "cfngen etcd restore --help": {
        ("", "cfngen etcd restore 2026-11-21T120000Z.db"): Typed(
            fill={"2026-11-21T120000Z": older_time}, answers=ASKS_FOR_NAME
        ),
        ("", "cfngen etcd restore 1h30m"): Typed(before=two_hours_old, answers=ASKS_FOR_NAME),
        ("", "cfngen etcd restore KEY --yes"): Typed(fill={"KEY": older_snapshot}),
    },
    "cfngen sandbox start --help": {("", "cfngen sandbox start --speed 60"): Typed(code=1)},  # one runs by now
    "cfngen replace --help": {("", f"cfngen replace {EXAMPLE_INSTANCE}"): Typed(fill={EXAMPLE_INSTANCE: a_node})},
    "cfngen rollback --help": {
        ("", "cfngen rollback"): Typed(before=failed_and_kept),
        ("", "cfngen rollback --skip STACK.RESOURCE"): Typed(
            before=failed_twice, fill={"STACK": stack_of_nodes, "RESOURCE": GENERAL}
        ),
        ("", "cfngen rollback --force"): Typed(before=failed_twice),
    },
    "cfngen delete --help": {("", "cfngen delete --authorities file"): Typed(before=deployed, answers=ASKS_FOR_NAME)},
    "cfngen completion --help": {
        ("", "cfngen completion fish > ~/.config/fish/completions/cfngen.fish"): Typed(before=fish_is_there),
    },
    "cfngen --help": {
        ("", "cfngen plan"): Typed(answers=WHO_AND_KEPT + MAKES_BUCKET, code=4),
    },
    "README.md": {
        ("Quick start", "cfngen plan --sandbox --set 'nodeGroups[0].instanceType=m7g.large'"): Typed(code=4),
        ("Your own cluster", "cfngen init"): Typed(before=no_cluster_file),
        ("Time and cost", "cfngen plan --prices FILE"): Typed(
            before=price_list, fill={"FILE": "prices.yaml"}, answers=MAKES_BUCKET, code=4
        ),
    },
    "docs/start/first-deployment.md": {
        ("3. The plan", "cfngen plan"): Typed(answers=WHO_AND_KEPT + MAKES_BUCKET, code=4),
        ("4. The cluster", "cfngen deploy"): Typed(answers=("y",)),
        ("7. Delete the cluster", "cfngen delete"): Typed(answers=DELETION),
        ("Where next", "cfngen init --from production"): Typed(before=no_cluster_file),
    },
    "docs/reference/commands.md": {
        ("Commands", "cfngen COMMAND --help"): Typed(
            fill={"COMMAND": tuple(application.list_commands(click.Context(application)))}
        ),
        ("Describe the cluster", "cfngen init [FILE]"): Typed(fill={"[FILE]": "another.yaml"}),
        ("Describe the cluster", "cfngen init --from NAME"): Typed(before=no_cluster_file, fill={"NAME": "production"}),
        ("Describe the cluster", "cfngen init --iam-path PATH"): Typed(
            before=no_cluster_file, fill={"PATH": "/kubernetes/"}
        ),
        ("Describe the cluster", "cfngen config"): Typed(before=example_file),
        ("Describe the cluster", "cfngen config --deployed"): Typed(before=deployed),
        ("Generate and review", "cfngen lint [FILES]"): Typed(fill={"[FILES]": ("", "output/cluster.json")}),
        ("Generate and review", "cfngen userdata [ROLE]"): Typed(fill={"[ROLE]": ("", *ROLES)}),
        ("Generate and review", "cfngen permissions [NAME]"): Typed(fill={"[NAME]": ("", "execution", "nodes-spot")}),
        ("Deploy", "cfngen plan"): Typed(before=nothing, answers=MAKES_BUCKET, code=4),
        ("Deploy", "cfngen deploy"): Typed(answers=("y",)),
        ("Deploy", "cfngen rollback"): Typed(before=failed_and_kept),
        ("Deploy", "cfngen delete"): Typed(answers=DELETION),
        ("Operate", "cfngen etcd restore [KEY]"): Typed(fill={"[KEY]": ("", older_snapshot)}, answers=ASKS_FOR_NAME),
        ("Operate", "cfngen replace INSTANCE"): Typed(before=deployed_anew, fill={"INSTANCE": a_node}),
        ("Try and find out", "cfngen completion SHELL"): Typed(fill={"SHELL": ("bash", "zsh", "fish")}),
    },
    "docs/build/graph.md": {
        ("Pictures of a cluster", "cfngen graph --templates output/ --output-file cluster.svg"): Typed(
            before=templates_written
        ),
        ("Pictures of a cluster", "cfngen plan --graph plan.html"): Typed(answers=MAKES_BUCKET, code=4),
        ("What a deployment changes", "cfngen plan --graph plan.svg"): Typed(code=4),
    },
    "docs/build/images.md": {
        ("Images of your own", "cfngen userdata ROLE --file config.json"): Typed(fill={"ROLE": ROLES}),
        ("Images of your own", "cfngen userdata ROLE --file role.json"): Typed(fill={"ROLE": ROLES}),
    },
    "docs/build/nodes.md": {
        ("Reserved capacity of masters", "cfngen replace SLOT --instance-type TYPE"): Typed(
            before=deployed, fill={"SLOT": "a", "TYPE": "t3a.medium"}
        ),
    },
    "docs/deploy/console.md": {
        ("Changing a cluster", "cfngen plan --stack-name NAME"): Typed(
            before=made_in_console, fill=CLUSTERS_NAME, answers=MAKES_BUCKET
        ),
        ("Changing a cluster", "cfngen deploy"): Typed(code=1),  # it leaves such a stack alone
        ("Changing a cluster", "cfngen status --stack-name NAME"): Typed(fill=CLUSTERS_NAME),
        ("Deleting a cluster", "cfngen delete --stack-name NAME"): Typed(fill=CLUSTERS_NAME, answers=DELETION),
    },
    "docs/deploy/pipelines.md": {
        ("AWS CLI", CREATES_STACK): Typed(before=templates_in_output),
        ("AWS CLI", f"{DEPLOYS_TEMPLATE}file://output/parameters/aws-cli.json"): Typed(before=larger_group),
    },
    "docs/deploy/deploy.md": {
        ("Deploying with cfngen", "cfngen plan"): Typed(before=nothing, answers=MAKES_BUCKET, code=4),
        ("Deploying with cfngen", "cfngen deploy"): Typed(answers=("y",)),
        ("Deploying with cfngen", "cfngen delete"): Typed(answers=DELETION),
        ("Several clusters, several regions", "cfngen plan -f trial.yaml"): Typed(
            answers=WHO_AND_KEPT + MAKES_BUCKET, code=4
        ),
        ("When something fails", "cfngen rollback"): Typed(before=failed_and_kept),
        ("Reaching the cluster", "cfngen kubeconfig"): Typed(before=deployed),
    },
    "docs/deploy/pull-requests.md": {
        ("Without an AWS account", "cfngen templates --check"): Typed(before=templates_written),
        ("With an account", "cfngen plan --create-bucket --output json"): Typed(code=4),
        ("With an account", "cfngen plan --graph plan.html"): Typed(code=4),
        ("A whole job", PLANS_IN_JOB): Typed(code=4),
    },
    "docs/build/push-to-pod.md": {
        (
            "One namespace for the pipeline",
            "cfngen kubeconfig --user ci --group deployers --duration 1d --file ci.kubeconfig",
        ): Typed(before=deployed),
    },
    "docs/deploy/several-clusters.md": {
        ("One command for all", "cfngen lint -f clusters/"): Typed(before=folder_of_files),
        ("One command for all", "cfngen plan -f clusters/"): Typed(answers=MAKES_BUCKET, code=4),
        ("Deleting", "cfngen delete -f clusters/"): Typed(answers=("prod trial",)),
    },
    "docs/start/coming-from.md": {
        ("From kube-up", "cfngen init --from kube-up"): Typed(before=no_cluster_file),
    },
    "docs/operate/access.md": {
        ("A second administrator", "cfngen kubeconfig"): Typed(before=deployed),
    },
    "docs/operate/backups.md": {
        ("Backups of etcd, and the way back", "cfngen etcd restore"): Typed(before=deployed, answers=ASKS_FOR_NAME),
        ("Going back", "cfngen etcd restore 2026-11-21T120000Z.db"): Typed(
            fill={"2026-11-21T120000Z": older_time}, answers=ASKS_FOR_NAME
        ),
        # The nodes have joined after that snapshot.
        ("Going back", "cfngen validate cluster"): Typed(code=2),
        ("The drill", "cfngen etcd backup"): Typed(before=deployed),
        (
            "A stack that is made again",
            "aws secretsmanager restore-secret --secret-id cfngen/CLUSTER/authorities-TIME",
        ): Typed(fill=COPY),
        ("A stack that is made again", READS_AUTHORITIES): Typed(fill=COPY),
        (
            "A stack that is made again",
            "aws secretsmanager put-secret-value --secret-id ARN --secret-string file://authorities.json",
        ): Typed(before=made_again, fill={"ARN": secret_of_authorities}),
        ("A stack that is made again", "cfngen delete"): Typed(before=deployed, answers=DELETION),
        ("A stack that is made again", "cfngen etcd restore KEY"): Typed(
            fill={"KEY": older_snapshot}, answers=ASKS_FOR_NAME
        ),
        ("A stack that is made again", "cfngen validate cluster --wait 20m"): Typed(before=nodes_terminated),
        ("A stack that is made again", "cfngen etcd list --set etcd.backups.bucket=NAME"): Typed(
            before=deleted, fill={"NAME": bucket}
        ),
    },
    "docs/operate/operations.md": {
        ("Overnight: a cluster without instances", "cfngen pause"): Typed(before=deployed, answers=("y",)),
        ("The API does not answer", "curl -k https://<address>/readyz"): Typed(fill={"<address>": "203.0.113.80"}),
        (
            "The master says that its volume is blank, but the cluster exists",
            "sudo dd if=/dev/<old> of=/dev/<slot> bs=4M conv=fsync",
        ): Typed(fill={"<old>": "nvme2n1", "<slot>": "nvme1n1"}),
        ("More masters", "cfngen deploy --on-failure keep"): Typed(before=three_masters, answers=ASKS_FOR_NAME),
        (
            "The cluster file was lost",
            "cfngen config --deployed --set region=eu-central-1 --stack-name staging > cluster.yaml",
        ): Typed(before=deployed),
        ("Replacing an instance", "cfngen replace a"): Typed(before=deployed),
        ("Replacing an instance", "cfngen replace INSTANCE"): Typed(fill={"INSTANCE": a_node}, before=deployed),
        ("A master's instance type is sold out", "cfngen replace a --instance-type t3a.medium"): Typed(before=deployed),
        ("An update hangs or failed", "cfngen rollback"): Typed(before=failed_twice),
        ("An update hangs or failed", "cfngen rollback --force"): Typed(before=failed_twice),
    },
    "docs/operate/security.md": {
        ("Reviewing what runs", "cfngen userdata ROLE"): Typed(fill={"ROLE": ROLES}),
    },
    "docs/operate/upgrade.md": {
        ("Before", "cfngen validate cluster"): Typed(before=older_version),
        ("The upgrade", "cfngen plan"): Typed(before=newer_version, code=5),
        ("The upgrade", "cfngen deploy"): Typed(answers=ASKS_FOR_NAME),
        ("If it fails", "cfngen etcd restore KEY"): Typed(fill={"KEY": older_snapshot}),
        ("If it fails", "cfngen rollback"): Typed(before=failed_twice),
    },
}

COMMANDS_PAGE = "docs/reference/commands.md"
_CHECK, _REHEARSE = "tests/cli/test_check_command.py", "tests/cli/test_rehearse_command.py"
_REPLACE, _SANDBOX = "tests/cli/test_replace_command.py", "tests/cli/test_sandbox_command.py"
# Sentences that only mention what another page shows, or what a test runs in a sandbox that is a process.
MENTIONED: Mapping[str, Mapping[str, str]] = {
    "cfngen rehearse --help": dict.fromkeys(
        (
            "cfngen rehearse --up-to change-set",
            "cfngen rehearse --profile trial",
            "cfngen rehearse --clean-up",
            "cfngen rehearse --sandbox --yes",
        ),
        _REHEARSE,
    ),
    "cfngen sandbox --help": {"cfngen sandbox status": _SANDBOX, "cfngen sandbox fail general": _SANDBOX},
    "cfngen sandbox status --help": dict.fromkeys(
        ("cfngen sandbox status", "cfngen sandbox status --output json | jq .stacks"), _SANDBOX
    ),
    "cfngen sandbox fail --help": dict.fromkeys(
        (
            "cfngen sandbox fail nodes",
            "cfngen sandbox fail master --step volume --message 'not attached after 900 s'",
            "cfngen sandbox fail master-b --message ''",
        ),
        _SANDBOX,
    ),
    "cfngen sandbox heal --help": {"cfngen sandbox heal": _SANDBOX},
    "cfngen sandbox interrupt --help": dict.fromkeys(
        (
            "cfngen sandbox interrupt spot",
            "cfngen sandbox interrupt master-b",
            "cfngen sandbox interrupt spot --times 2",
            "cfngen sandbox interrupt spot --notice rebalance",
        ),
        _SANDBOX,
    ),
    "README.md": {
        "cfngen rehearse": _REHEARSE,
        "cfngen deploy": COMMANDS_PAGE,
        "cfngen plan": COMMANDS_PAGE,
    },
    COMMANDS_PAGE: {
        "cfngen check network": _CHECK,
        "cfngen rehearse": _REHEARSE,
        "cfngen sandbox status": _SANDBOX,
    },
    "docs/reference/limits.md": {"cfngen rehearse": _REHEARSE},
    "docs/reference/stacks.md": {"cfngen deploy": COMMANDS_PAGE},
    "docs/reference/verification.md": {"cfngen replace": _REPLACE, "cfngen rehearse": _REHEARSE},
    "docs/build/networking.md": {
        "cfngen check network": _CHECK,
        "cfngen deploy": COMMANDS_PAGE,
        "cfngen kubeconfig --internal": "tests/cli/test_kubeconfig_internal.py",
        "cfngen plan": COMMANDS_PAGE,
        "cfngen validate cluster": COMMANDS_PAGE,
    },
    "docs/build/nodes.md": {"cfngen sandbox interrupt batch": _SANDBOX},
    "docs/build/open-a-port.md": {
        "cfngen check network": _CHECK,
        "cfngen deploy": "tests/deploy/operations/test_ports_deployed.py",
        "cfngen plan": "tests/deploy/operations/test_ports_deployed.py",
    },
    "docs/build/push-to-pod.md": {
        "cfngen delete": "tests/deploy/operations/test_registry_deployed.py",
        "cfngen plan": "tests/deploy/operations/test_registry_deployed.py",
    },
    "docs/build/vpc.md": {
        "cfngen plan": COMMANDS_PAGE,
        "cfngen deploy --parameter SubnetAId=/other/name": "tests/deploy/preflight/test_references.py",
    },
    "docs/deploy/console.md": {"cfngen deploy": COMMANDS_PAGE},
    "docs/deploy/pipelines.md": {
        "cfngen deploy": COMMANDS_PAGE,
        "cfngen plan": "tests/deploy/operations/test_made_elsewhere.py",
        "cfngen status": COMMANDS_PAGE,
        "cfngen validate cluster": COMMANDS_PAGE,
    },
    "docs/deploy/deploy.md": dict.fromkeys(
        ("cfngen sandbox fail nodes", "cfngen sandbox interrupt nodes", "cfngen sandbox status"), _SANDBOX
    ),
    "docs/deploy/rehearsal.md": {
        "cfngen delete": COMMANDS_PAGE,
        "cfngen deploy": COMMANDS_PAGE,
        "cfngen rehearse": _REHEARSE,
        "cfngen rehearse --clean-up": _REHEARSE,
        "cfngen rehearse --offline-report FILE": _REHEARSE,
    },
    "docs/develop/architecture.md": {
        "cfngen delete": COMMANDS_PAGE,
        "cfngen replace": _REPLACE,
        "cfngen rollback --force": "docs/operate/operations.md",
    },
    "docs/operate/operations.md": {"cfngen check network": _CHECK},
    "docs/operate/security.md": {"cfngen plan": COMMANDS_PAGE, "cfngen status": COMMANDS_PAGE},
    "docs/operate/audit.md": {"cfngen plan": COMMANDS_PAGE},
    "docs/start/coming-from.md": {
        "cfngen init": "README.md",
        "cfngen plan": COMMANDS_PAGE,
        "cfngen deploy": COMMANDS_PAGE,
        "cfngen validate cluster": COMMANDS_PAGE,
        "cfngen status": COMMANDS_PAGE,
        "cfngen kubeconfig": COMMANDS_PAGE,
        "cfngen replace": _REPLACE,
        "cfngen etcd list": "docs/operate/backups.md",
        "cfngen etcd restore": "docs/operate/backups.md",
        "cfngen delete": COMMANDS_PAGE,
    },
}

# What a test on its own runs, or nothing here can; `make` by its target, else program and command.
MAKE_ELSEWHERE: Mapping[str, str] = {
    "test": "it is what runs this",
    "demo": "starts a sandbox as a process; its commands are run below, and as a process by tests/sandbox",
    "sandbox": "installs packages: tests/test_make.py",
    "plan": "tests/test_make.py",
    "lock": "writes files of the project",
    "oldest": "installs packages, and runs tests with them",
    "pythons": "runs tests under other Pythons",
    "lint": "ruff, mypy and `cfngen templates --check`, which the pipeline runs",
    "boot-test": "needs root and containers: tests/bootlab",
    "drills": "this test is one of them",
    "soak": "takes as long as one likes, and is for finding what no test knows",
    "bench": "measures, and asserts nothing",
    "audit": "installs packages and checkers; what it counts is in tests/test_audit.py",
    "matrix": "generates thousands of templates",
    "mutants": "runs tests for half an hour; its parts are tested in tests/mutants",
    "docs": "writes files of the project",
    "golden": "writes files of the project",
    "statuses": "writes files of the project",
    "help": "tests/test_make.py",
}
NOT_RUN: Mapping[str, str] = {
    ".ci/run": "it is what runs this",
    ".ci/walkthrough": "writes files of the project",
    ".ci/add-release": "writes files of the project: tests/test_add_release.py",
    "pipx install": "fetches packages",
    "git diff": "shows what the reader has changed",
    "jq": "reads what cfngen has printed, and need not be on this machine",
    "dot": "reads what cfngen has printed, and need not be on this machine",
    "cfn-lint": "tests/cli/test_lint_command.py",
    "curl": "there is no network",
    "ssh": "there is no instance to reach",
    "kubectl": "but for `get nodes` on a first page; what it calls is tested in tests/sandbox",
    "helm list": "there is no Helm on this machine",
    "sh": "there is no docker: tests/kind runs the script",
    "docker": "it is not on this machine",
    "kind": "it is not on this machine",
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
