"""What docs/deploy/pipelines.md says, done with the real AWS CLI and CDK in a sandbox; skipped where these are not.

They come from `pip install awscli` and `npm install --global aws-cdk aws-cdk-lib constructs`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cfngen.sandbox.process import running as process

pytestmark = pytest.mark.drill

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/deploy/pipelines.md").read_text()
CREATES, UPDATES = re.findall(r"^    (aws cloudformation deploy (?:.*\\\n)*.*)", PAGE, re.MULTILINE)
[INCLUDES] = re.findall(r"^    (new CfnInclude.*)", PAGE, re.MULTILINE)
[DEPLOYS_STACK] = re.findall(r"^    (cdk deploy.*)", PAGE, re.MULTILINE)
APP = f"""
const cdk = require('aws-cdk-lib');
const {{ CfnInclude }} = require('aws-cdk-lib/cloudformation-include');
const synthesizer = new cdk.CliCredentialsStackSynthesizer({{ fileAssetsBucketName: 'my-templates' }});
const env = {{ account: '123456789012', region: 'us-west-2' }};
const stack = new cdk.Stack(new cdk.App(), 'cdk', {{ env, synthesizer }});
{INCLUDES}
"""
LARGER = "nodeGroups:\n- name: nodes\n  minSize: 4\n  maxSize: 5\n  instanceType: t3.large\n"
# Between two looks at a stack the AWS CLI sleeps for half a minute, in which it changes long since.
SHORT_SLEEPS = "import time\n_sleep = time.sleep\ntime.sleep = lambda seconds: _sleep(seconds / 30)\n"
HANDED_OVER = re.search(r"`(--tags cfngen:cluster=)kubernetes`", PAGE)
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[process.RunningSandbox, dict[str, str]]]:
    """A running sandbox with a bucket for templates, and the environment that leads every client to it."""
    own = {**os.environ, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("state"))}
    try:
        started = process.start(own, speed=600.0)
        s3 = started.session("us-west-2").client("s3")
        s3.create_bucket(Bucket="my-templates", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        variables = {"AWS_ENDPOINT_URL": started.endpoint, "AWS_REGION": "us-west-2", "AWS_DEFAULT_REGION": "us-west-2"}
        keys = {"AWS_ACCESS_KEY_ID": "sandbox", "AWS_SECRET_ACCESS_KEY": "sandbox", "AWS_EC2_METADATA_DISABLED": "true"}
        keys["AWS_SESSION_TOKEN"] = started.state.token
        yield started, {**own, **variables, **keys, "PYTHONPATH": str(ROOT), "CI": "true"}
    finally:
        process.stop(own)


@pytest.fixture
def run(sandbox: tuple[process.RunningSandbox, dict[str, str]], tmp_path: Path) -> Run:
    """What runs a command in a folder of its own."""
    impatient = tmp_path / "impatient"
    impatient.mkdir()
    (impatient / "sitecustomize.py").write_text(SHORT_SLEEPS)

    def run_command(command: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        words = command.replace("cfngen ", f"{sys.executable} -m cfngen ", 1) if command[:7] == "cfngen " else command
        environ = {**sandbox[1], "PYTHONPATH": str(impatient)} if command[:4] == "aws " else sandbox[1]
        done = subprocess.run(["sh", "-c", words], cwd=tmp_path, env=environ, capture_output=True, text=True)
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done

    return run_command


def values(sandbox: tuple[process.RunningSandbox, dict[str, str]], stack: str) -> dict[str, str]:
    """The parameters of a stack."""
    cloudformation = sandbox[0].session("us-west-2").client("cloudformation")
    [described] = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    return {parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in described["Parameters"]}


def test_the_aws_cli_creates_updates_and_hands_over(
    run: Run, sandbox: tuple[process.RunningSandbox, dict[str, str]], tmp_path: Path
) -> None:
    if not shutil.which("aws") or run("aws --version", code=None).returncode:
        pytest.skip("there is no AWS CLI on PATH")
    run("cfngen templates")
    run(CREATES)
    (tmp_path / "cluster.yaml").write_text(LARGER)
    run("cfngen templates")
    assert "pass NodeGroupNodesMaxSize=5" in run(CREATES, code=None).stderr  # it keeps 4
    assert "NodeGroupNodesInstanceType is t3.medium in the stack" in run("cfngen validate cluster --sandbox").stdout
    run("cfngen plan --sandbox", code=4)
    run(UPDATES)
    assert values(sandbox, "kubernetes")["NodeGroupNodesInstanceType"] == "t3.large"
    assert run("cfngen validate cluster --sandbox").stdout.endswith("The cluster is valid.\n")
    assert "made by the console, the AWS CLI or the CDK" in run("cfngen deploy --sandbox --yes", code=1).stderr
    assert HANDED_OVER
    run(f"{UPDATES} {HANDED_OVER[1]}kubernetes")
    run("cfngen deploy --sandbox --yes")


def test_the_cdk_creates_updates_and_hands_over(
    run: Run, sandbox: tuple[process.RunningSandbox, dict[str, str]], tmp_path: Path
) -> None:
    if not shutil.which("cdk") or run("node --eval 'require.resolve(\"aws-cdk-lib\")'", code=None).returncode:
        pytest.skip("there is no AWS CDK on PATH, or no aws-cdk-lib that Node finds (NODE_PATH)")
    (tmp_path / "app.js").write_text(APP)
    (tmp_path / "cdk.json").write_text('{"app": "node app.js", "versionReporting": false, "requireApproval": "never"}')
    file = "name: cdk\napi:\n  allowedCidrs: [203.0.113.7/32]\n"
    (tmp_path / "cluster.yaml").write_text(file)
    run("cfngen templates")
    run(DEPLOYS_STACK)
    (tmp_path / "cluster.yaml").write_text(file + LARGER.replace("maxSize: 5", "maxSize: 4"))
    run("cfngen templates")
    run("cdk deploy")
    assert values(sandbox, "cdk")["NodeGroupNodesInstanceType"] == "t3.medium"  # as the page says: it keeps the value
    run(DEPLOYS_STACK)
    assert values(sandbox, "cdk")["NodeGroupNodesInstanceType"] == "t3.large"
    assert HANDED_OVER
    run(f"{DEPLOYS_STACK} {HANDED_OVER[1]}cdk")
    run("cfngen deploy --sandbox --yes")
