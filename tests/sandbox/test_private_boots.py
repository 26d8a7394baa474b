"""Clusters in private subnets boot if their network leads where masters and nodes have to go, and say why if not."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from private_network import DEFAULT_ROUTE, ISOLATED, REGION, SERVICES, PrivateNetwork
from sandboxed import MASTERS, NODES, Place, failures, golden, said

from cfngen.releases import release
from cfngen.sandbox.cloudformation import Stack, client
from cfngen.sandbox.emulated_account import EmulatedAccount, open_emulated_account
from cfngen.sandbox.instances.instance import Instance
from cfngen.sandbox.instances.reachability import PUBLIC_SERVERS, Connections
from cfngen.sandbox.instances.user_data import BootData

pytestmark = pytest.mark.drill

NO_SIGNAL = "Failed to receive 1 resource signal(s) within the specified duration"


@pytest.fixture
def account() -> Iterator[EmulatedAccount]:
    with open_emulated_account(REGION) as opened:
        yield opened


@pytest.fixture
def network(account: EmulatedAccount) -> PrivateNetwork:
    return PrivateNetwork.create()


def last_words(place: Place, group: str) -> list[str]:
    """The last three lines of the boot program on the console of a group's first instance."""
    return said(place.instances(group)[0])[-3:]


def isolated(account: EmulatedAccount, network: PrivateNetwork, *missing: str) -> tuple[Place, Stack]:
    """Create a cluster without a way to the internet, in a network with all endpoints but the missing ones."""
    if "s3" not in missing:
        network.add_s3_endpoint()
    for service in SERVICES:
        if service not in missing:
            network.add_endpoint(service)
    place = Place(account, network.cluster(*ISOLATED))
    return place, place.create()


def test_a_private_cluster_boots_through_a_nat_gateway(account: EmulatedAccount, network: PrivateNetwork) -> None:
    network.route_out(NatGatewayId=network.add_nat_gateway())
    place = Place(account, network.cluster())
    assert place.create().status == "CREATE_COMPLETE"
    assert [each.public_address for each in place.instances(NODES)] == [""] * 4


def test_without_the_route_to_the_nat_gateway_nothing_is_installed_or_signalled(
    account: EmulatedAccount, network: PrivateNetwork
) -> None:
    network.add_nat_gateway()
    place = Place(account, network.cluster())
    stack = place.create()
    assert stack.status == "ROLLBACK_COMPLETE"
    assert failures(stack)["MasterAWaitCondition"] == NO_SIGNAL
    for group in (MASTERS, NODES):
        waiting, failed, signal = last_words(place, group)
        assert waiting.startswith("waiting for packages python3-boto3 (1020 s): `apt-get ")
        assert failed.endswith(
            "E: Unable to locate package python3-boto3. "
            "What to do: check that the instance can reach its package mirror"
        )
        assert signal == "CloudFormation was not signalled: No module named 'botocore'"


def test_a_boot_goes_on_as_soon_as_there_is_a_way_out(account: EmulatedAccount, network: PrivateNetwork) -> None:
    gateway_id = network.add_nat_gateway()
    account.cloud.clock.schedule(600, lambda: network.route_out(NatGatewayId=gateway_id))
    assert Place(account, network.cluster()).create().status == "CREATE_COMPLETE"


def test_a_file_that_cannot_be_downloaded_is_named(account: EmulatedAccount, network: PrivateNetwork) -> None:
    """The repositories of Amazon Linux are in S3, Kubernetes is on the internet."""
    network.add_s3_endpoint()
    for service in SERVICES:
        network.add_endpoint(service)
    place = Place(account, network.cluster("image.distribution=amazon-linux-2023"))
    stack = place.create()
    assert stack.status == "ROLLBACK_COMPLETE"
    _, failed, signal = last_words(place, MASTERS)
    assert "downloads FAILED after" in failed
    assert "for download: <urlopen error timed out>. What to do: check that the instance can reach " in failed
    assert failed.partition("can reach ")[2].startswith("https://dl.k8s.io/release/")
    assert signal == "signalled FAILURE"


def test_images_need_a_way_to_their_registry(account: EmulatedAccount, network: PrivateNetwork) -> None:
    network.add_s3_endpoint()
    for service in SERVICES:
        network.add_endpoint(service)
    place = Place(account, network.cluster(*ISOLATED[:2]))
    assert place.create().status == "ROLLBACK_COMPLETE"
    goal = "waiting for kubeadm's preflight (60 s): "
    [line] = [line for line in said(place.instances(MASTERS)[0]) if line.startswith(goal)]
    assert "[ERROR ImagePull]: failed to pull image registry.k8s.io/kube-apiserver:v" in line


def test_commands_before_the_boot_may_lead_to_other_repositories(
    account: EmulatedAccount, network: PrivateNetwork
) -> None:
    network.add_s3_endpoint()
    for service in SERVICES:
        network.add_endpoint(service)
    commands = (f"{group}.preBootCommands=[install-sources]" for group in ("controlPlane", "nodeGroups[0]"))
    place = Place(account, network.cluster(*ISOLATED[1:], *commands))
    assert place.create().status == "CREATE_COMPLETE"


def test_a_cluster_without_a_way_to_the_internet_boots_with_endpoints_and_mirrors(
    account: EmulatedAccount, network: PrivateNetwork
) -> None:
    _, stack = isolated(account, network)
    assert stack.status == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    ("service", "step", "operation"),
    [
        ("ec2", "[8/17] volume", "describe_volumes"),
        ("secretsmanager", "[10/17] authorities", "get_secret_value"),
    ],
)
def test_a_missing_endpoint_fails_the_step_that_calls_the_service(
    account: EmulatedAccount, network: PrivateNetwork, service: str, step: str, operation: str
) -> None:
    place, stack = isolated(account, network, service)
    assert stack.status == "ROLLBACK_COMPLETE"
    assert (
        f"{step} FAILED after 60.0 s: waited 60 s for {operation}: Connect timeout on endpoint URL: "
        f'"https://{service}.us-west-2.amazonaws.com/". What to do: check that the instance can reach AWS and that its '
        "role allows the call"
    ) in said(place.instances(MASTERS)[0])


def test_without_cloudformation_there_is_neither_a_program_nor_a_signal(
    account: EmulatedAccount, network: PrivateNetwork
) -> None:
    place, stack = isolated(account, network, "cloudformation")
    assert failures(stack)["MasterAWaitCondition"] == NO_SIGNAL
    _, failed, signal = last_words(place, NODES)
    timeout = 'Connect timeout on endpoint URL: "https://cloudformation.us-west-2.amazonaws.com/"'
    assert failed.startswith("[3/14] program FAILED after ")
    assert f"waited 60 s for describe_stack_resource: {timeout}. What to do: check that the instance can" in failed
    assert signal == f"CloudFormation was not signalled: waited 60 s for signal_resource: {timeout}"


def test_packages_of_amazon_linux_come_through_the_endpoint_of_s3(
    account: EmulatedAccount, network: PrivateNetwork
) -> None:
    place, stack = isolated(account, network, "s3")
    assert stack.status == "ROLLBACK_COMPLETE"
    assert "Timeout was reached for https://al2023-repos-us-west-2-" in last_words(place, MASTERS)[1]


def test_an_endpoint_that_does_not_admit_nodes_is_as_good_as_none(
    account: EmulatedAccount, network: PrivateNetwork
) -> None:
    network.route_out(NatGatewayId=network.add_nat_gateway())
    network.add_endpoint("secretsmanager", admitted="10.99.0.0/16")
    assert Place(account, network.cluster()).create().status == "ROLLBACK_COMPLETE"


def test_nodes_without_public_addresses_do_not_boot_in_a_public_subnet(
    account: EmulatedAccount, network: PrivateNetwork
) -> None:
    network.route_out(GatewayId=network.gateway_id)
    assert Place(account, network.cluster()).create().status == "ROLLBACK_COMPLETE"


def test_a_public_cluster_does_not_boot_without_its_route(account: EmulatedAccount) -> None:
    place = Place(account, golden("default"))
    ec2 = client("ec2", REGION)

    def remove_routes() -> None:
        for table in ec2.describe_route_tables()["RouteTables"]:
            if any(route.get("GatewayId", "").startswith("igw-") for route in table["Routes"]):
                ec2.delete_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock=DEFAULT_ROUTE)

    account.cloud.clock.schedule(1, remove_routes)
    assert place.create().status == "ROLLBACK_COMPLETE"


def test_the_servers_of_the_catalogue_are_known_to_be_on_the_internet() -> None:
    assets = release(golden("default").kubernetes_version, "amd64").assets
    assert {urlsplit(asset.url).hostname for asset in assets} <= PUBLIC_SERVERS


@pytest.mark.parametrize(
    ("proxy", "reaches"), [("", False), ("http://10.20.9.9:3128", True), ("http://8.8.8.8", False)]
)
def test_a_proxy_in_the_vpc_is_a_way_out_but_for_direct_hosts(
    network: PrivateNetwork, proxy: str, reaches: bool
) -> None:
    ec2 = client("ec2", REGION)
    image_id = ec2.register_image(Name="image")["ImageId"]
    [launched] = ec2.run_instances(ImageId=image_id, SubnetId=network.subnet_id, MinCount=1, MaxCount=1)["Instances"]
    boot_data = BootData({}, {}, proxy=proxy, direct_hosts=(".local", "ec2.us-west-2.amazonaws.com"))
    instance = Instance(launched["InstanceId"], "us-west-2a", "t3.medium", "", "", "Ubuntu", boot_data, "", 0, 0.0)
    connections = Connections(REGION, instance)
    assert (not connections.why_no_packages(["python3-boto3"])) == reaches
    assert (not connections.why_no_service("secretsmanager")) == reaches
    assert (not connections.why_no_download("https://dl.k8s.io/kubeadm")) == reaches
    assert connections.reaches_registry("registry.k8s.io") == reaches
    assert connections.why_no_service("ec2")
