"""The account: our CloudFormation and moto's services on simulated time that passes like the real one.

Instances reach it over HTTP with the keys of their role, and may do what the role's policies allow, as far as the
sandbox's `identity` decides that.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError
from identity_policies import Credentials
from lab_network import SERVICES, Network
from lab_root import API_PORT
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from served_api import Served, serving
from werkzeug.serving import make_server

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import DRAIN_HOOK
from cfngen.sandbox.cloudformation import CloudFormation, Stack, client
from cfngen.sandbox.cloudformation.simulation import SIMULATION_START
from cfngen.sandbox.emulated_account import PublicParameters
from cfngen.sandbox.instances.instance import attach_interface, release_interface
from cfngen.templates import generate

BUCKET = "templates-of-the-operator"
GROUP_TAG = "aws:autoscaling:groupName"
TEMPLATE_TAGS = ("aws:ec2launchtemplate:id", "aws:ec2launchtemplate:version")
ALLOWED = "203.0.113.7/32"
TICK = 0.1  # seconds


@dataclass(frozen=True)
class Role:
    """A role, and the keys that stand for it."""

    name: str
    access_key: str
    secret_key: str


class Account:
    """One region of an account.

    Args:
        region: its name.

    Attributes:
        lock: held by whoever does anything in the account.
        refusals: answers to instances that were errors.
        announce_termination: lets the metadata service of an instance say that Auto Scaling is to terminate it.
    """

    def __init__(self, region: str) -> None:
        self.region = region
        self.lock = threading.RLock()
        self.cloud = CloudFormation(region)
        self.cloud.on_terminating = self._held
        self.cloud.parameter_store = PublicParameters(region)
        # Instances know the real time, and the operator's programs compare it with the account's.
        self.cloud.clock.now = (datetime.datetime.now(datetime.UTC) - SIMULATION_START).total_seconds()
        self.served: Served
        self.refusals: list[str] = []
        self.announce_termination: Callable[[str], None] = lambda identifier: None
        self._roles: dict[str, Role] = {}
        self._published: set[str] = set()

    def _held(self, identifier: str) -> None:
        """Tell a master of its termination, which a lifecycle hook delays; let a node go, which would drain long."""
        group = _tags(self.ec2.get_instance(identifier))[GROUP_TAG]
        if "Master" in group:
            self.announce_termination(identifier)
        else:
            self.cloud.clock.schedule(1.0, lambda: self._let_go(identifier, group))

    def _let_go(self, identifier: str, group: str) -> None:
        with contextlib.suppress(ClientError):  # the hook may be gone
            client("autoscaling", self.region).complete_lifecycle_action(
                LifecycleHookName=DRAIN_HOOK,
                AutoScalingGroupName=group,
                InstanceId=identifier,
                LifecycleActionResult="CONTINUE",
            )

    @property
    def ec2(self) -> Any:
        """moto's own record of EC2."""
        return ec2_backends[DEFAULT_ACCOUNT_ID][self.region]

    def call(self, service: str, operation: str, **arguments: Any) -> Any:
        """Call a service as nobody in particular, past all checks."""
        with self.lock:
            return getattr(client(service, self.region), operation)(**arguments)

    def create(self, name: str, cluster: Cluster) -> Stack:
        """Begin to create a cluster from its one template."""
        url = self._upload(cluster)
        with self.lock:
            return self.cloud.create_stack(name, url=url, **_given(cluster))

    def update(self, name: str, cluster: Cluster) -> Stack:
        """Begin to make a stack that of another cluster."""
        url = self._upload(cluster)
        with self.lock:
            return self.cloud.update_stack(name, url=url, **_given(cluster))

    def _upload(self, cluster: Cluster) -> str:
        body = next(each.body for each in generate(cluster) if each.name == "standalone")
        where = {"LocationConstraint": self.region}
        if BUCKET not in self._published:
            self._published.add(BUCKET)
            self.call("s3", "create_bucket", Bucket=BUCKET, CreateBucketConfiguration=where)
        self.call("s3", "put_object", Bucket=BUCKET, Key="standalone.json", Body=json.dumps(body).encode())
        return f"https://{BUCKET}.s3.{self.region}.amazonaws.com/standalone.json"

    def running(self) -> dict[str, str]:
        """Return the groups of the instances that run, by instance id."""
        with self.lock:
            found = [each for each in self.ec2.all_instances() if each.state in ("pending", "running")]
            return {each.id: _tags(each).get(GROUP_TAG, "") for each in found}

    def user_data(self, identifier: str) -> bytes:
        """Return an instance's user data."""
        answer = self.call("ec2", "describe_instance_attribute", InstanceId=identifier, Attribute="userData")
        return base64.b64decode(answer["UserData"]["Value"])

    def role(self, identifier: str) -> Role:
        """Return the role of an instance, from its launch template; its keys may do what its policies allow."""
        with self.lock:
            template, version = (_tags(self.ec2.get_instance(identifier))[key] for key in TEMPLATE_TAGS)
            asked = {"LaunchTemplateId": template, "Versions": [version]}
            [found] = self.call("ec2", "describe_launch_template_versions", **asked)["LaunchTemplateVersions"]
            given = found["LaunchTemplateData"]["IamInstanceProfile"]
            profile = given.get("Name") or given["Arn"].rpartition("/")[2]
            answer = self.call("iam", "get_instance_profile", InstanceProfileName=profile)["InstanceProfile"]
            name, arn = answer["Roles"][0]["RoleName"], answer["Roles"][0]["Arn"]
            if name not in self._roles:
                made = Role(name, f"ASIA{len(self._roles):016d}", f"secret-of-{name}")
                self._roles[name] = made
            role = self._roles[name]
            # Anew with each launch: an update may have changed them.
            credentials = Credentials(role.access_key, role.secret_key, arn)
            self.served.permissions.policies[role.access_key] = (credentials, self._policies(name))
            return role

    def _policies(self, role: str) -> list[Any]:
        names = self.call("iam", "list_role_policies", RoleName=role)["PolicyNames"]
        found = [
            self.call("iam", "get_role_policy", RoleName=role, PolicyName=each)["PolicyDocument"] for each in names
        ]
        for each in self.call("iam", "list_attached_role_policies", RoleName=role)["AttachedPolicies"]:
            with contextlib.suppress(Exception):  # those that AWS manages are not all in moto
                policy = self.call("iam", "get_policy", PolicyArn=each["PolicyArn"])["Policy"]
                version = {"PolicyArn": each["PolicyArn"], "VersionId": policy["DefaultVersionId"]}
                found.append(self.call("iam", "get_policy_version", **version)["PolicyVersion"]["Document"])
        return found

    def attach_interface(self, identifier: str) -> None:
        """Give an instance the interface that its launch template names."""
        with self.lock:
            attach_interface(self.region, identifier)

    def attachments(self) -> dict[str, tuple[str, int, str]]:
        """Return instance, size (GiB) and device of attached data volumes, by volume; root volumes are left out."""
        with self.lock:
            return {
                each.id: (each.attachment.instance.id, int(each.size), each.attachment.device)
                for each in self.ec2.volumes.values()
                if each.attachment
                and each.attachment.device[:7] == "/dev/sd"
                and each.attachment.device[7:] in "fghijklmnop"
            }

    def release(self, identifier: str) -> None:
        """Let go of the interface and the volumes of a terminated instance, as EC2 does."""
        with self.lock:
            release_interface(self.region, identifier)
            for each in self.ec2.volumes.values():
                if each.attachment and each.attachment.instance.id == identifier:
                    each.attachment = None


def _given(cluster: Cluster) -> dict[str, Any]:
    """Return what `cfngen deploy` gives beside the template; by the tag it knows its stacks."""
    tags = {"cfngen:cluster": cluster.name}
    # Roles of service accounts have names.
    capability = "CAPABILITY_NAMED_IAM" if cluster.service_account_issuer else "CAPABILITY_IAM"
    return {"parameters": {"ApiAllowedCidr": ALLOWED}, "capabilities": [capability], "tags": tags}


def _tags(instance: Any) -> dict[str, str]:
    return {each["key"]: each["value"] for each in instance.get_tags()}


@contextlib.contextmanager
def account(region: str, network: Network) -> Iterator[Account]:
    """An empty account that answers in a network; its time passes in the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
        with mock_aws():
            made = Account(region)
            with serving(made.cloud) as served:
                made.served = served
                yield from _answering(made, network)


def _answering(made: Account, network: Network) -> Iterator[Account]:
    inner = made.served.gate.wsgi(DomainDispatcherApplication(create_backend_app))

    def application(environ: Any, start_response: Any) -> list[bytes]:
        statuses: list[str] = []

        def noting(status: str, *more: Any) -> Any:
            statuses.append(status)
            return start_response(status, *more)

        with made.lock:
            answer = list(inner(environ, noting))
        if not statuses or statuses[-1] >= "4":
            made.refusals.append(f"{statuses} {b''.join(answer)[:300]!r}")
        return answer

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    with network.listen(SERVICES, API_PORT) as sock:
        options = {"threaded": True, "request_handler": MotoRequestHandler, "fd": sock.fileno()}
        server = make_server(SERVICES, API_PORT, application, **options)
    server.daemon_threads = True
    stopped = threading.Event()
    threads = [
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": TICK}, daemon=True),
        threading.Thread(target=_pass_time, args=(made, stopped), daemon=True),
    ]
    for each in threads:
        each.start()
    try:
        yield made
    finally:
        stopped.set()
        server.shutdown()
        for each in threads:
            each.join()
        server.server_close()


def _pass_time(made: Account, stopped: threading.Event) -> None:
    last = time.monotonic()
    while not stopped.wait(TICK):
        now = time.monotonic()
        with made.lock:
            made.cloud.advance(now - last)
        last = now
