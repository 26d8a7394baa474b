"""What is wrong with a value from `--parameter` is said of the parameter, and not of the key that it overrides."""

from __future__ import annotations

from typing import Any

import pytest
from cloud import Cloud
from deployments import ALLOWED, Operator
from existing_network import ExistingNetwork

from cfngen.cluster.load import parse
from cfngen.deploy.preflight.existing.objects import ForeignObjectsError
from cfngen.deploy.preflight.findings import NetworkProblemsError
from cfngen.deploy.preflight.offered_instance_types import InstanceTypesNotOfferedError
from cfngen.deploy.preflight.overridden_keys import parameters_by_key
from cfngen.templates import generate


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def test_an_instance_type_that_is_not_offered(operator: Operator) -> None:
    flags = {**ALLOWED, "MasterInstanceType": "t3.unknown"}
    with pytest.raises(
        InstanceTypesNotOfferedError, match=r"^--parameter MasterInstanceType: t3\.unknown is not offered"
    ):
        operator.plan({"name": "one"}, flags=flags)


def test_a_part_of_an_existing_network(operator: Operator) -> None:
    network = ExistingNetwork(operator.account)
    file: dict[str, Any] = {"name": "one", "network": network.network}
    flags = {**ALLOWED, "SubnetAId": "subnet-0123456789abcdef0"}
    with pytest.raises(NetworkProblemsError, match=r"\(--parameter SubnetAId\)$"):
        operator.plan(file, flags=flags)
    with pytest.raises(ForeignObjectsError, match=r"^--parameter SubnetAId: there is no subnet subnet-0123456789abc"):
        operator.plan(file, flags=flags, skip_network_check=True)
    network.network["subnets"][0]["id"] = "subnet-0123456789abcdef0"
    with pytest.raises(ForeignObjectsError, match=r"^network\.subnets\[0\]\.id: there is no subnet"):
        operator.plan(file, skip_network_check=True)


def test_each_parameter_is_one_of_the_templates(operator: Operator) -> None:
    network = ExistingNetwork(operator.account)
    for section in (network.network, {}):
        cluster = parse({"network": section})
        root = {document.name: document for document in generate(cluster)}["cluster"].body
        overriding = set(parameters_by_key(cluster).values())
        named = {name for name in root["Parameters"] if name.endswith(("Id", "Cidr", "InstanceType", "ZoneA", "ZoneB"))}
        assert named - {"ApiAllowedCidr"} <= overriding
