"""What Kubernetes made and CloudFormation does not know of: found by tags, removed in order, nobody else's touched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import made_by_kubernetes as made
import pytest
from in_moto import Calls, in_moto
from made_by_kubernetes import Place

from cfngen.deploy.aws import kubernetes_made, pod_routes
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.inventory import Inventory, read_inventory
from cfngen.deploy.aws.stacks import ResourceView, StackResource
from cfngen.deploy.messages.message import Message, Step
from cfngen.deploy.operations.deletion import removal
from cfngen.deploy.operations.deletion.removal import OrphanRemoved
from cfngen.deploy.preflight.stack_checks import SameNameClusterError
from cfngen.sandbox.moto_patches.dependencies import refuse_dependency_violations as dependencies

Where = tuple[Account, Calls]


@pytest.fixture
def where() -> Iterator[Where]:
    with in_moto() as opened, dependencies():
        yield opened


@pytest.fixture
def place(where: Where) -> Place:
    return made.new_place(where[0], "one")


def scope_of(place: Place) -> Inventory:
    """The cluster `one`, whose stack has made the security group of the nodes."""
    view = ResourceView("NodeSecurityGroup", place.node_group, "AWS::EC2::SecurityGroup", "CREATE_COMPLETE")
    scope = read_inventory(place.account, None, cluster="one", vpc_id=place.vpc_id)
    return replace(scope, security_groups=(place.node_group,), resources=(StackResource("arn", (), view),))


def swept(place: Place, scope: Inventory | None = None) -> tuple[removal.RemovalResult, list[Message]]:
    told: list[Message] = []
    return removal.remove_orphans(place.account, scope or scope_of(place), told.append), told


def test_nothing_is_found_where_kubernetes_made_nothing(place: Place) -> None:
    assert kubernetes_made.find_orphans(place.account, scope_of(place)) == ()


def test_of_everything_it_is_known_in_which_network_it_lies(place: Place) -> None:
    """A living cluster of the same name in another network is told apart by that alone."""
    made.classic(place, "one")
    made.network(place, "one")
    made.by_controller(place, "one")
    made.interface(place, "aws-K8S-i-0123456789abcdef0", place.node_group, **{"kubernetes.io/cluster/one": "owned"})
    orphans = kubernetes_made.find_orphans(place.account, scope_of(place))
    kinds = {each.kind for each in orphans}
    assert kinds >= {"load balancer", "target group", "security group"}
    assert {(each.kind, each.vpc_id) for each in orphans} == {(kind, place.vpc_id) for kind in kinds}


def test_a_classic_load_balancer_goes_with_its_group_and_the_rule_that_names_it(place: Place) -> None:
    balancer = made.classic(place, "one")
    orphans = kubernetes_made.find_orphans(place.account, scope_of(place))
    assert [(each.kind, each.name) for each in orphans] == [
        ("load balancer", balancer.name),
        ("security group", f"k8s-elb-{balancer.name}"),
    ]
    assert orphans[0].purpose == "default/web"
    assert made.rules_naming(place.account, balancer.group) == [place.node_group]
    result, told = swept(place)
    assert result.remaining == ()
    assert {message.orphan.id for message in told if isinstance(message, OrphanRemoved)} == {
        balancer.id,
        balancer.group,
    }
    assert made.balancer_names(place.account) == set()
    assert balancer.group not in made.group_ids(place.account)
    assert made.rules_naming(place.account, balancer.group) == []
    assert place.node_group in made.group_ids(place.account)


def test_a_network_load_balancer_goes_with_its_target_group_though_it_is_protected(place: Place) -> None:
    balancer = made.network(place, "one", protected=True)
    [found, target] = kubernetes_made.find_orphans(place.account, scope_of(place))
    assert (found.protected, target.kind) == (True, "target group")
    assert swept(place)[0].remaining == ()
    assert made.balancer_names(place.account) == set()
    assert place.account.client("elbv2").describe_target_groups()["TargetGroups"] == []
    assert balancer.name


def test_the_load_balancer_controllers_own_tags_are_known(place: Place) -> None:
    balancer = made.by_controller(place, "one")
    orphans = kubernetes_made.find_orphans(place.account, scope_of(place))
    assert {each.id for each in orphans} == {balancer.id, balancer.group}
    assert next(each.purpose for each in orphans if each.kind == "load balancer") == "shop/front"
    assert swept(place)[0].remaining == ()


def test_two_clusters_in_one_vpc_are_kept_apart(place: Place) -> None:
    mine, theirs = made.classic(place, "one"), made.classic(place, "two", "default/other")
    their_network, their_own = made.network(place, "two"), made.by_controller(place, "two")
    swept(place)
    assert made.balancer_names(place.account) == {theirs.name, their_network.name, their_own.name}
    assert {theirs.group, their_own.group} <= made.group_ids(place.account)
    assert made.rules_naming(place.account, theirs.group) == [place.node_group]
    assert mine.name not in made.balancer_names(place.account)
    assert len(place.account.client("elbv2").describe_target_groups()["TargetGroups"]) == 1


def test_what_is_shared_is_never_deleted(place: Place) -> None:
    balancer = made.classic(place, "one", lifecycle="shared")
    both = {"kubernetes.io/cluster/one": "owned", "kubernetes.io/cluster/two": "owned"}
    group = made.security_group(place, "for-both", both)
    assert kubernetes_made.find_orphans(place.account, scope_of(place)) == ()
    swept(place)
    assert balancer.name in made.balancer_names(place.account)
    assert {balancer.group, group} <= made.group_ids(place.account)


def test_what_a_stack_made_is_left_to_the_stack(place: Place) -> None:
    tags = {"kubernetes.io/cluster/one": "owned", "cfngen:cluster": "one"}
    group = made.security_group(place, "masters", tags)
    assert kubernetes_made.find_orphans(place.account, scope_of(place)) == ()
    assert group in made.group_ids(place.account)


def test_another_vpc_is_another_matter(place: Place) -> None:
    elsewhere = made.new_place(place.account, "one", "10.1.0.0/16")
    balancer = made.classic(elsewhere, "one")
    assert kubernetes_made.find_orphans(place.account, scope_of(place)) == ()
    assert balancer.name in made.balancer_names(place.account)


def test_a_rule_of_somebody_else_is_not_touched_and_the_group_is_reported(place: Place) -> None:
    balancer = made.classic(place, "one")
    database = made.security_group(place, "database", {})
    made.admit(place.account, database, balancer.group)
    result, _ = swept(place)
    assert [each.id for each in result.remaining] == [balancer.group]
    assert made.rules_naming(place.account, balancer.group) == [database]


def test_the_interfaces_of_a_load_balancer_are_waited_for(where: Where, place: Place) -> None:
    account, _ = where
    balancer = made.classic(place, "one")
    interface = made.interface(place, f"ELB {balancer.name}", balancer.group)
    clock, start = account.clock, account.clock.now()

    class Releasing:
        """AWS, which lets go of the interface after a minute."""

        released = False

        def now(self) -> datetime:
            return clock.now()

        def sleep(self, seconds: float) -> None:
            clock.sleep(seconds)
            if not self.released and (clock.now() - start).total_seconds() >= 60:
                self.released = True
                account.client("ec2").delete_network_interface(NetworkInterfaceId=interface)

    patient = replace(place, account=replace(account, clock=Releasing()))
    result, told = swept(patient)
    assert result.remaining == ()
    assert balancer.group not in made.group_ids(account)
    waited = [each.text for each in told if isinstance(each, Step)]
    assert any("waiting for AWS to release" in text and interface in text for text in waited)
    assert interface not in {each.id for each in result.removed}
    assert 60 <= (clock.now() - start).total_seconds() < 120


def test_what_aws_does_not_let_go_of_is_reported_after_all_patience(place: Place) -> None:
    balancer = made.classic(place, "one")
    interface = made.interface(place, f"ELB {balancer.name}", balancer.group)
    start = place.account.clock.now()
    result, _ = swept(place)
    assert [each.id for each in result.remaining] == [interface, balancer.group]
    assert [each.id for each in result.removed] == [balancer.id]
    assert (place.account.clock.now() - start).total_seconds() >= removal.REMOVAL_TIMEOUT_SECONDS


def test_interfaces_of_pods_go_if_they_are_the_clusters(place: Place) -> None:
    mine = made.interface(place, "aws-K8S-i-0123456789abcdef0")
    named = made.interface(place, "aws-K8S-i-1", "sg-anything", **{"cluster.k8s.amazonaws.com/name": "one"})
    other = made.security_group(place, "nodes-of-two", {"kubernetes.io/cluster/two": "owned"})
    theirs = made.interface(place, "aws-K8S-i-0123456789abcdef1", other)
    plain = made.interface(place, "a bastion's")
    swept(place)
    left = {
        network_interface["NetworkInterfaceId"]
        for network_interface in place.ec2.describe_network_interfaces()["NetworkInterfaces"]
    }
    assert left == {theirs, plain}
    assert {mine, named}.isdisjoint(left)


def test_a_sweep_that_was_interrupted_goes_on(place: Place) -> None:
    balancer = made.classic(place, "one")
    place.account.client("elb").delete_load_balancer(LoadBalancerName=balancer.name)
    result, _ = swept(place)
    assert [each.id for each in result.removed] == [balancer.group]
    assert swept(place)[0] == removal.RemovalResult()


def test_nothing_is_waited_for_without_patience(place: Place) -> None:
    balancer = made.classic(place, "one")
    made.interface(place, f"ELB {balancer.name}", balancer.group)
    start = place.account.clock.now()
    result = removal.remove_orphans(place.account, scope_of(place), lambda message: None, timeout=0)
    assert [each.id for each in result.removed] == [balancer.id]
    assert place.account.clock.now() == start


def launch(place: Place, cluster: str) -> str:
    image = place.ec2.register_image(Name=f"image-{cluster}")["ImageId"]
    tags = made.pairs({f"kubernetes.io/cluster/{cluster}": "owned"})
    answer = place.ec2.run_instances(
        ImageId=image,
        MinCount=1,
        MaxCount=1,
        SubnetId=place.subnet_id,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )
    return str(answer["Instances"][0]["InstanceId"])


def test_without_a_vpc_a_living_namesake_forbids_everything(place: Place) -> None:
    balancer = made.classic(place, "one")
    instance = launch(place, "one")
    unknown = Inventory("one")
    with pytest.raises(SameNameClusterError, match=instance):
        removal.remove_orphans(place.account, unknown, lambda message: None)
    assert balancer.name in made.balancer_names(place.account)


def test_without_a_vpc_leftovers_are_found_by_their_tags(place: Place) -> None:
    balancer = made.classic(place, "one")
    theirs = made.classic(place, "two", "default/other")
    place.ec2.create_tags(
        Resources=[place.node_group],
        Tags=made.pairs({"kubernetes.io/cluster/one": "owned", "cfngen:cluster": "one"}),
    )
    result = removal.remove_orphans(place.account, Inventory("one"), lambda message: None)
    assert {each.id for each in result.removed} == {balancer.id, balancer.group}
    assert made.balancer_names(place.account) == {theirs.name}


def test_routes_of_pods_leave_a_table_that_was_lent(place: Place) -> None:
    table = place.ec2.create_route_table(VpcId=place.vpc_id)["RouteTable"]["RouteTableId"]
    mine, theirs = launch(place, "one"), launch(place, "two")
    for cidr, instance in (("10.244.0.0/24", mine), ("10.244.1.0/24", theirs), ("10.99.0.0/24", mine)):
        place.ec2.create_route(RouteTableId=table, DestinationCidrBlock=cidr, InstanceId=instance)
    lent = {"pod_cidr": "10.244.0.0/16", "route_tables": (table,), "instances": {mine: "running"}}
    scope = replace(scope_of(place), **lent)
    found = pod_routes.find_orphaned_routes(place.account, scope)
    assert [each.id for each in found] == ["10.244.0.0/24"]
    assert removal.remove_pod_routes(place.account, scope, lambda message: None).remaining == ()
    [described] = place.ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]
    left = {route["DestinationCidrBlock"] for route in described["Routes"]} - {"10.0.0.0/16"}
    assert left == {"10.244.1.0/24", "10.99.0.0/24"}


def test_many_load_balancers_are_read_in_pages(place: Place) -> None:
    elbv2 = place.account.client("elbv2")
    tags = made.pairs({"kubernetes.io/cluster/one": "owned", "kubernetes.io/service-name": "a/b"})
    for number in range(25):
        elbv2.create_load_balancer(Name=f"n{number}", Type="network", Subnets=[place.subnet_id], Tags=tags)
    assert len(kubernetes_made.find_orphans(place.account, scope_of(place))) == 25


def lent_group(place: Place) -> Inventory:
    """The cluster `one`, whose nodes use a security group of somebody else's."""
    scope = read_inventory(place.account, None, cluster="one", vpc_id=place.vpc_id)
    return replace(scope, existing_security_groups=frozenset({place.node_group}))


def test_rules_of_load_balancers_leave_the_group_that_nodes_were_lent(place: Place) -> None:
    balancer = made.classic(place, "one")
    place.ec2.create_tags(Resources=[place.node_group], Tags=made.pairs({"kubernetes.io/cluster/one": "shared"}))
    made.admit(place.account, place.node_group, place.node_group)
    result, _ = swept(place, lent_group(place))
    assert result.remaining == ()
    assert made.rules_naming(place.account, balancer.group) == []
    assert made.rules_naming(place.account, place.node_group) == [place.node_group]


def test_a_group_that_nodes_were_lent_is_never_deleted_whatever_its_tags_say(place: Place) -> None:
    place.ec2.create_tags(Resources=[place.node_group], Tags=made.pairs({"kubernetes.io/cluster/one": "owned"}))
    assert kubernetes_made.find_orphans(place.account, lent_group(place)) == ()
