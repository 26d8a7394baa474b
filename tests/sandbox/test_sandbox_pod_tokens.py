"""Clusters with roles of service accounts, from the template to STS: tokens of their API server for credentials."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from sandboxed import CASES, Place
from test_sandbox_kubernetes import Reached
from web_identities import AUDIENCE, CAPABILITIES, assume

from cfngen.cluster.load import load
from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.emulated_account import open_emulated_account
from cfngen.sandbox.services import checking_rules

EVERYTHING = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'


@contextlib.contextmanager
def cluster_with(discovery: str, folder: Path) -> Iterator[Reached]:
    """The cluster of the golden case `pod-roles`, in an account with the policies that it names."""
    overrides = (f"serviceAccountIssuer.discovery={discovery}",)
    cluster = load(CASES / "pod-roles" / "cluster.yaml", environ={}, overrides=overrides).cluster
    with open_emulated_account(cluster.region) as account, checking_rules():
        for name in ("boundary", "orders"):
            client("iam", cluster.region).create_policy(PolicyName=name, PolicyDocument=EVERYTHING)
        where = Place(account, cluster)
        stack = where.create(cluster.name, capabilities=CAPABILITIES)
        assert stack.status == "CREATE_COMPLETE", [event.reason for event in stack.events if "FAILED" in event.status]
        made = account.cluster(cluster.name)
        yield Reached(where, made, account.address(made), folder)


@pytest.mark.drill
@pytest.mark.parametrize(
    ("discovery", "account"), [("cloudFront", "web"), ("cloudFront", "orders.worker"), ("bucket", "web")]
)
def test_a_service_account_gets_its_role_and_no_other_does(tmp_path: Path, discovery: str, account: str) -> None:
    with cluster_with(discovery, tmp_path) as reached:
        with reached.core() as core:
            core.create_namespace({"metadata": {"name": "shop"}})
            for name in (account, "other"):
                core.create_namespaced_service_account("shop", {"metadata": {"name": name}})
            request = {"spec": {"audiences": [AUDIENCE]}}
            own, other = (
                core.create_namespaced_service_account_token(name, "shop", request).status.token
                for name in (account, "other")
            )
        taken = []
        for role in client("iam", reached.cluster.region).list_roles()["Roles"]:
            with contextlib.suppress(ClientError):
                assume(own, role["Arn"])
                taken.append(role["RoleName"])
            with pytest.raises(ClientError, match="Not authorized"):
                assume(other, role["Arn"])
        assert len(taken) == 1, taken
