"""Clusters in a sandboxed account of this process, and ways to look at them."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.sandbox.cloudformation import Stack, client
from cfngen.sandbox.emulated_account import EmulatedAccount, open_emulated_account
from cfngen.sandbox.instances.instance import Instance
from cfngen.templates import generate

CASES = Path(__file__).parents[1] / "golden" / "cases"
BUCKET = "templates-of-a-newcomer"
GIVEN: dict[str, Any] = {
    "parameters": {"ApiAllowedCidr": "203.0.113.7/32"},
    "capabilities": ["CAPABILITY_IAM"],
}
MASTERS = "MasterAAutoScalingGroup"
NODES = "NodeGroupNodesAutoScalingGroup"


@functools.cache
def golden(case: str) -> Cluster:
    environment = CASES / case / "environment.yaml"
    environ = yaml.safe_load(environment.read_text()) if environment.exists() else {}
    return load(CASES / case / "cluster.yaml", environ=environ).cluster


def given(cluster: Cluster) -> dict[str, Any]:
    """Parameters and capabilities of a stack operation: roles of service accounts have names."""
    return {**GIVEN, "capabilities": ["CAPABILITY_NAMED_IAM"]} if cluster.service_account_issuer else GIVEN


@dataclass(frozen=True)
class Place:
    """An emulated account and the cluster that is created in it."""

    account: EmulatedAccount
    cluster: Cluster

    def create(self, name: str = "k8s", **arguments: Any) -> Stack:
        """Create the cluster as one stack and wait for the end."""
        given_here = {**given(self.cluster), **arguments}
        stack = self.account.cloud.create_stack(name, url=self._published(self.cluster), **given_here)
        return self.account.cloud.wait(stack)

    def update(self, cluster: Cluster, name: str = "k8s", **arguments: Any) -> Stack:
        """Make the stack that of another cluster, and wait for the end."""
        return self.account.cloud.wait(self.begin_update(cluster, name, **arguments))

    def begin_update(self, cluster: Cluster, name: str = "k8s", **arguments: Any) -> Stack:
        """Begin to make the stack that of another cluster."""
        return self.account.cloud.update_stack(name, url=self._published(cluster), **given(cluster), **arguments)

    def with_kubernetes(self, version: str) -> Cluster:
        """Return the cluster with another version of Kubernetes."""
        file = CASES / "default" / "cluster.yaml"
        return load(file, environ={}, overrides=(f"kubernetesVersion={version}",)).cluster

    def _published(self, cluster: Cluster) -> str:
        standalone = {each.name: each for each in generate(cluster)}["standalone"].body
        s3 = client("s3", self.account.region)
        with contextlib.suppress(s3.exceptions.BucketAlreadyOwnedByYou):
            s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": self.account.region})
        s3.put_object(Bucket=BUCKET, Key="standalone.json", Body=json.dumps(standalone).encode())
        return f"https://{BUCKET}.s3.{self.account.region}.amazonaws.com/standalone.json"

    def instances(self, resource: str) -> list[Instance]:
        """Instances of a group, in the order of their launch; its logical id names it."""
        launched = self.account.machines.instances.values()
        return [each for each in launched if each.boot_data.references["resource"] == resource]

    def secret(self, reference: str) -> dict[str, Any]:
        """What a secret holds, by the name under which the master is told of it."""
        [master, *_] = self.instances(MASTERS)
        arn = master.boot_data.references[reference]
        return json.loads(client("secretsmanager", self.account.region).get_secret_value(SecretId=arn)["SecretString"])


@contextlib.contextmanager
def place(case: str = "default") -> Iterator[Place]:
    cluster = golden(case)
    with open_emulated_account(cluster.region) as account:
        yield Place(account, cluster)


def said(instance: Instance) -> list[str]:
    """What the boot program said on an instance's console."""
    return [line.partition("cfngen: ")[2] for line in instance.console if "cfngen: " in line]


def failures(stack: Stack) -> dict[str, str]:
    """Why resources failed, by logical id."""
    return {event.logical_id: event.reason for event in stack.events if event.status == "CREATE_FAILED"}
