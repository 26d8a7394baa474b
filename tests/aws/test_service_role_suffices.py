"""The execution policies of a cluster suffice for all calls of handlers, from the creation to the deletion."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import authorized_requests
import pytest
from authorized_requests import ACCOUNT
from clusters import ALLOWED, golden, landlord, prepared, templates_of, upload

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.permissions.grants import grants, scope_of
from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.services.authorization import Request, decision

pytestmark = pytest.mark.drill

HANDLERS = "cfngen.sandbox.cloudformation.handlers"
BOUNDARY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
ON = {"enabled": True}
CASES = (
    *("default-standalone", "default-cluster", "amazon-vpc-cluster", "bastion-cluster", "existing-vpc-cluster"),
    *("existing-vpc-new-subnets-cluster", "flow-logs-cloudwatch-cluster", "imported-key-cluster", "own-roles-cluster"),
    *("own-masters-security-group-cluster", "private-existing-mix-cluster", "private-single-nat-cluster"),
    *("several-groups-standalone", "vpc-ranges-cluster"),
)


class Decided:
    """Decides on each changing call of a handler by the policies of a cluster's service role.

    Attributes:
        refused: what the policies do not allow.
        actions: what they were asked for.
    """

    def __init__(self, cluster: Cluster, stack: str) -> None:
        scope = scope_of(cluster, stack=stack, account=ACCOUNT)
        # The account's parts have other ids than those of the cluster file.
        parts = tuple(dict.fromkeys(f"{part.partition('/')[0]}/*" for part in scope.existing_parts))
        [execution] = [
            grant
            for grant in grants(cluster, replace(scope, existing_parts=parts, vpc_id="*"))
            if grant.name == "execution"
        ]
        self._policies = [dict(policy.document) for policy in execution.policies]
        self.refused: list[Request] = []
        self.actions: set[str] = set()

    def decide(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_event: Any) -> None:
        if _is_of_handler() and not model.name.startswith(("Describe", "Get", "List")):
            service, region = model.service_model.service_name, context["client_region"]
            for request in authorized_requests.requests(service, model.name, params, region):
                self.actions.add(request.action)
                if decision(self._policies, request.action, request.resource, request.context) != "allowed":
                    self.refused.append(request)


def _is_of_handler() -> bool:
    """Whether the call that is being made is a handler's, and not one of the emulator's services."""
    frame: Any = sys._getframe(2)
    while frame.f_globals["__name__"].startswith(("botocore", "boto3")):
        frame = frame.f_back
    return str(frame.f_globals["__name__"]).startswith(HANDLERS)


@pytest.fixture
def decided(request: pytest.FixtureRequest) -> Iterator[Any]:
    opened: list[tuple[Any, Decided]] = []

    def open_for(cluster: Cluster, stack: str) -> Decided:
        made = Decided(cluster, stack)
        for service, region in (("ec2", cluster.region), ("iam", cluster.region), ("secretsmanager", cluster.region)):
            events = client(service, region).meta.events
            events.register("before-parameter-build", made.decide)
            opened.append((events, made))
        return made

    yield open_for
    for events, made in opened:
        events.unregister("before-parameter-build", made.decide)


def come_and_go(cluster: Cluster, decided: Any, form: str, stack: str = "k8s") -> Decided:
    where = prepared(cluster, seed=1)
    others = landlord(where)
    made: Decided = decided(cluster, stack)
    wanted = where.templates[form]["Parameters"]
    created = where.create(form, name=stack, **{key: value for key, value in others.items() if key in wanted})
    assert created.status == "CREATE_COMPLETE", [event for event in created.events if event.reason]
    where.delete(created)
    assert created.status == "DELETE_COMPLETE", [event for event in created.events if event.status == "DELETE_FAILED"]
    return made


@pytest.mark.parametrize("case", CASES)
def test_nothing_that_handlers_call_is_refused(case: str, decided: Any) -> None:
    name, _, form = case.rpartition("-")
    made = come_and_go(golden(name), decided, form)
    assert made.refused == []
    assert {
        "ec2:CreateNetworkInterface",
        "ec2:CreateTags",
        "ec2:DeleteVolume",
        "secretsmanager:CreateSecret",
    } <= made.actions


def test_with_a_boundary_and_a_long_name_nothing_is_refused(decided: Any) -> None:
    boundary = client("iam", "us-west-2").create_policy(
        PolicyName="roles-of-clusters", PolicyDocument=str(BOUNDARY).replace("'", '"')
    )["Policy"]["Arn"]
    cluster = parse({"name": "shop", "iam": {"permissionsBoundary": boundary}})
    made = come_and_go(cluster, decided, "cluster", stack="a-stack-whose-name-aws-cuts-in-names-of-roles")
    assert made.refused == []
    assert {"iam:CreateRole", "iam:PutRolePolicy", "iam:PassRole"} <= made.actions


def test_another_clusters_policies_do_not_suffice(decided: Any) -> None:
    cluster = golden("default")
    where = prepared(cluster, seed=1)
    made = decided(cluster.model_copy(update={"name": "others"}), "k8s-eu")
    assert where.create("cluster").status == "CREATE_COMPLETE"
    refused = {request.action for request in made.refused}
    assert {"ec2:CreateSubnet", "ec2:CreateTags", "ec2:ModifyVpcAttribute", "iam:CreateRole", "iam:PassRole"} <= refused


def test_roles_that_were_made_without_a_boundary_get_it_before_anything_else_of_them_changes(decided: Any) -> None:
    document = json.dumps(BOUNDARY)
    iam = client("iam", "us-west-2")
    boundary = iam.create_policy(PolicyName="roles-of-clusters", PolicyDocument=document)["Policy"]["Arn"]
    statements = [{"actions": ["s3:GetObject"], "resources": ["arn:aws:s3:::models/*"]}]
    former, bounded = {"name": "shop"}, {"name": "shop", "iam": {"permissionsBoundary": boundary}}
    changed = {**bounded, "nodeGroups": [{"policyStatements": statements}], "addons": {"clusterAutoscaler": ON}}
    where = prepared(parse(former), seed=1)
    stack = where.create("standalone", name="shop")
    made: Decided = decided(parse(bounded), "shop")

    def updated(configuration: dict[str, Any]) -> None:
        upload({each.name: each.body for each in templates_of(parse(configuration))})
        parameters = {"ApiAllowedCidr": ALLOWED}
        where.cloud.update_stack(
            "shop", url=where.url("standalone"), parameters=parameters, capabilities=["CAPABILITY_IAM"]
        )
        where.cloud.wait(stack)
        assert stack.status == "UPDATE_COMPLETE", [event for event in stack.events if event.reason]

    updated(bounded)
    assert made.refused == []
    assert "iam:PutRolePermissionsBoundary" in made.actions
    roles = [role for role in iam.list_roles()["Roles"] if role["RoleName"].startswith("shop-")]
    bounds = [iam.get_role(RoleName=role["RoleName"])["Role"].get("PermissionsBoundary") for role in roles]
    assert [bound["PermissionsBoundaryArn"] for bound in bounds if bound] == [boundary] * len(roles) != []
    updated(changed)
    assert made.refused == []
    assert "iam:PutRolePolicy" in made.actions


def test_a_role_without_the_boundary_is_not_changed_otherwise(decided: Any) -> None:
    cluster = parse({"iam": {"permissionsBoundary": "arn:aws:iam::123456789012:policy/roles-of-clusters"}})
    where = prepared(parse({}), seed=1)
    made: Decided = decided(cluster, "k8s")
    assert where.create("standalone").status == "CREATE_COMPLETE"
    refused = {request.action for request in made.refused}
    assert {"iam:CreateRole", "iam:PutRolePolicy"} <= refused


def test_under_a_path_of_its_own_nothing_is_refused(decided: Any) -> None:
    addons = {"awsLoadBalancerController": ON, "clusterAutoscaler": ON}
    cluster = parse({"iam": {"path": "/kubernetes/"}, "addons": addons})
    made = come_and_go(cluster, decided, "standalone")
    assert made.refused == []
    assert {"iam:CreatePolicy", "iam:CreateRole", "iam:CreateInstanceProfile", "iam:DeletePolicy"} <= made.actions


def test_nothing_of_iam_is_made_under_another_path(decided: Any) -> None:
    made = decided(parse({"iam": {"path": "/kubernetes/"}}), "k8s")
    assert prepared(parse({}), seed=1).create("standalone").status == "CREATE_COMPLETE"
    assert {"iam:CreateRole", "iam:CreateInstanceProfile"} <= {request.action for request in made.refused}
