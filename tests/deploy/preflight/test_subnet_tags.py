"""Tags of existing subnets, with `network.tagExisting`: which are added, and which go with the cluster."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from answers import Answers
from botocore.exceptions import ClientError
from cloud import Cloud
from deleting import Operator as Remover
from deployments import ALLOWED, Operator
from existing_network import REGION, ExistingNetwork
from recorded import RefusedError

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.tag_keys import INTERNAL_SUBNET_ROLE, PUBLIC_SUBNET_ROLE
from cfngen.deploy.aws.account import Account, connect
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.tags import tag_map
from cfngen.deploy.messages.message import Message, Notice, Step
from cfngen.deploy.operations.deletion import removal
from cfngen.deploy.operations.deployment import execution
from cfngen.deploy.plan.deletion import remaining_resources
from cfngen.deploy.preflight.findings import Severity
from cfngen.deploy.preflight.network import subnet_tags
from cfngen.deploy.preflight.network.situation import parameter_values
from cfngen.deploy.preflight.network.subnet_tags import SubnetTag, SubnetTagsError

OWN = "kubernetes.io/cluster/kubernetes"
OTHER = "kubernetes.io/cluster/other"
NOTE = "cfngen:added-tags/kubernetes"


@pytest.fixture
def account(cloud: Cloud) -> Account:
    return connect(cloud.session, REGION, clock=cloud.clock, attempts=1)


class Subnets:
    """A network in which subnets lack tags, and a cluster that is to use it.

    Attributes:
        network: the network.
        said: what was reported.
    """

    def __init__(self, account: Account, topology: str = "public") -> None:
        self.network = ExistingNetwork(account, topology)
        self.network.network["tagExisting"] = True
        self.said: list[Message] = []
        for subnet in self.network.subnets:
            self.untag(subnet)

    def untag(self, subnet: str) -> None:
        self.network.ec2.delete_tags(Resources=[subnet], Tags=[{"Key": key} for key in self.tags(subnet)])

    @property
    def cluster(self) -> Cluster:
        return parse({**self.network.file, "network": self.network.network})

    def missing(self) -> list[SubnetTag]:
        return list(subnet_tags.find_missing(self.network.account, self.cluster, parameter_values(self.cluster)))

    def add(self) -> None:
        values = parameter_values(self.cluster)
        with translate_aws_errors():
            execution.add_missing(self.network.account, self.cluster, values, self.said.append)

    def tags(self, subnet: str) -> dict[str, str]:
        [found] = self.network.ec2.describe_subnets(SubnetIds=[subnet])["Subnets"]
        return tag_map(found.get("Tags"))

    def remove(self) -> list[str]:
        """Remove what a deletion removes; return what it keeps."""
        account = self.network.account
        added = remaining_resources.find_added_subnet_tags(account, "kubernetes")
        removable = remaining_resources.select_removable_subnet_tags(added, "kubernetes")
        removal.remove_subnet_tags(account, "kubernetes", removable, self.said.append)
        return [resource.id for resource in remaining_resources.describe_remaining_subnet_tags(account, added)]


@pytest.fixture
def public(account: Account) -> Subnets:
    return Subnets(account)


@pytest.fixture
def private(account: Account) -> Subnets:
    return Subnets(account, "private")


def test_without_the_key_no_subnet_is_tagged(public: Subnets) -> None:
    del public.network.network["tagExisting"]
    public.add()
    assert public.missing() == []
    assert [public.tags(subnet) for subnet in public.network.subnets] == [{}, {}]


def test_public_subnets_get_the_role_of_public_ones(public: Subnets) -> None:
    first, second = public.network.subnets
    assert public.missing() == [SubnetTag(subnet, PUBLIC_SUBNET_ROLE, "1") for subnet in (first, second)]
    public.add()
    assert public.tags(first) == {PUBLIC_SUBNET_ROLE: "1", NOTE: PUBLIC_SUBNET_ROLE}
    assert public.said == [Step("adding 2 tags to 2 existing subnets")]


def test_private_subnets_get_the_role_of_internal_ones_and_their_public_ones_the_other(private: Subnets) -> None:
    network = private.network
    private.untag(network.public_subnet)
    network.network["subnets"][0]["public"] = {"id": network.public_subnet}
    private.add()
    assert private.tags(network.subnets[0])[INTERNAL_SUBNET_ROLE] == "1"
    assert private.tags(network.public_subnet)[PUBLIC_SUBNET_ROLE] == "1"


def test_what_the_check_promises_is_what_a_deployment_adds(cloud: Cloud, private: Subnets) -> None:
    """Without a public load balancer no template has a parameter for the public subnets."""
    network = private.network
    private.untag(network.public_subnet)
    network.network["subnets"][0]["public"] = {"id": network.public_subnet}
    network.file["api"] = {"public": False}
    promised = [finding.text for finding in network.check().findings if "the deployment will give" in finding.text]
    plan = Operator(cloud).plan({**network.file, "network": network.network}, flags=ALLOWED, skip_network_check=True)
    named = {
        (subnet, text.partition(" missing ")[2]) for text in promised for subnet in re.findall(r"subnet-\w+", text)
    }
    assert named == {(tag.subnet, f"{tag.key} = {tag.value}") for tag in plan.subnet_tags}
    assert SubnetTag(network.public_subnet, PUBLIC_SUBNET_ROLE, "1") in plan.subnet_tags


def test_subnets_behind_a_nat_gateway_are_private_whatever_the_topology(private: Subnets) -> None:
    private.network.network["topology"] = "public"
    private.network.file["nodeGroups"] = [{"name": "nodes", "publicIp": False}]
    assert {tag.key for tag in private.missing()} == {INTERNAL_SUBNET_ROLE}


def test_a_subnet_of_another_cluster_is_shared_with_this_one(public: Subnets) -> None:
    [first, second] = public.network.subnets
    public.network.tag(first, OTHER, "owned")
    public.add()
    assert public.tags(first)[OWN] == "shared"
    assert public.tags(first)[OTHER] == "owned"
    assert OWN not in public.tags(second)


def test_repeating_it_adds_nothing(public: Subnets) -> None:
    public.add()
    before = [public.tags(subnet) for subnet in public.network.subnets]
    public.said.clear()
    public.add()
    assert public.said == []
    assert [public.tags(subnet) for subnet in public.network.subnets] == before


def test_a_deployment_that_was_interrupted_adds_the_rest(public: Subnets) -> None:
    first, second = public.network.subnets
    public.add()
    public.untag(second)
    public.network.tag(first, OTHER, "shared")
    public.add()
    assert public.tags(second)[PUBLIC_SUBNET_ROLE] == "1"
    assert public.tags(first)[NOTE] == f"{PUBLIC_SUBNET_ROLE} {OWN}"


@pytest.mark.parametrize(("key", "value", "wanted"), [(PUBLIC_SUBNET_ROLE, "0", "1"), (OWN, "owned", "shared")])
def test_a_tag_with_another_value_is_never_overwritten(public: Subnets, key: str, value: str, wanted: str) -> None:
    subnet = public.network.subnets[1]
    public.network.tag(subnet, OTHER, "shared")
    public.network.tag(subnet, key, value)
    with pytest.raises(SubnetTagsError) as refused:
        public.add()
    assert str(refused.value) == (
        f"network.subnets[1].id: {subnet} has the tag {key} with the value {value} and not {wanted}, and cfngen "
        "overwrites no tag of a subnet"
    )
    assert public.tags(subnet)[key] == value
    assert public.tags(public.network.subnets[0]) == {}


def test_an_empty_role_is_a_role(public: Subnets) -> None:
    for subnet in public.network.subnets:
        public.network.tag(subnet, PUBLIC_SUBNET_ROLE, "")
    assert public.missing() == []


@pytest.mark.parametrize(("tags", "is_refused"), [(48, False), (49, True), (50, True)])
def test_a_subnet_without_room_for_tags_is_refused_before_anything(
    public: Subnets, tags: int, is_refused: bool
) -> None:
    full = public.network.subnets[1]
    new_tags = [{"Key": f"tag-{number}", "Value": ""} for number in range(tags)]
    public.network.ec2.create_tags(Resources=[full], Tags=new_tags)
    if not is_refused:
        public.add()
        assert len(public.tags(full)) == 50
        return
    with pytest.raises(SubnetTagsError, match=f"{full} has room for {50 - tags} tag"):
        public.add()
    assert public.tags(public.network.subnets[0]) == {}


def test_the_emulator_gives_no_resource_more_than_fifty_tags(public: Subnets) -> None:
    subnet = public.network.subnets[0]
    new_tags = [{"Key": f"tag-{number}", "Value": ""} for number in range(51)]
    with pytest.raises(ClientError, match="TagLimitExceeded"):
        public.network.ec2.create_tags(Resources=[subnet], Tags=new_tags)


def test_a_deletion_removes_the_clusters_own_tag_and_names_the_roles(public: Subnets) -> None:
    first, second = public.network.subnets
    public.network.tag(first, OTHER, "shared")
    public.add()
    assert public.remove() == [f"{subnet} {PUBLIC_SUBNET_ROLE}" for subnet in (first, second)]
    assert public.tags(first) == {PUBLIC_SUBNET_ROLE: "1", OTHER: "shared"}
    assert public.tags(second) == {PUBLIC_SUBNET_ROLE: "1"}
    assert public.remove() == []


def test_a_tag_that_somebody_else_has_made_or_changed_stays(public: Subnets) -> None:
    first, second = public.network.subnets
    for subnet in (first, second):
        public.network.tag(subnet, OTHER, "shared")
    public.network.tag(first, OWN, "shared")
    public.add()
    public.network.tag(second, OWN, "owned")
    public.remove()
    assert public.tags(first)[OWN] == "shared"
    assert public.tags(second)[OWN] == "owned"
    assert NOTE not in public.tags(second)


def test_the_check_of_a_network_says_what_a_deployment_will_add(public: Subnets) -> None:
    check = public.network.check()
    assert not check.problems
    assert not check.warnings
    findings = [finding for finding in check.findings if finding.check == "tags"]
    first, second = public.network.subnets
    [finding] = findings
    assert (finding.severity, finding.key) == (Severity.OK, "network.subnets")
    assert finding.text == f"the deployment will give {first} and {second} the missing {PUBLIC_SUBNET_ROLE} = 1"
    assert finding.commands == (
        f"aws ec2 create-tags --region {REGION} --resources {first} {second} --tags Key={PUBLIC_SUBNET_ROLE},Value=1",
    )


def test_the_check_of_a_network_finds_what_keeps_a_deployment_from_it(public: Subnets) -> None:
    subnet = public.network.subnets[0]
    public.network.tag(subnet, PUBLIC_SUBNET_ROLE, "no")
    [problem] = public.network.check().problems
    assert (problem.key, problem.check) == ("network.subnets[0].id", "tags")
    assert "with the value no and not 1" in problem.text


@pytest.fixture
def deployed(cloud: Cloud, public: Subnets) -> Callable[[], tuple[Operator, dict[str, object]]]:
    """Deploy a small cluster into the subnets; return who did, and the cluster file."""

    def deploy() -> tuple[Operator, dict[str, object]]:
        file: dict[str, object] = {"network": public.network.network, "nodeGroups": [{"name": "nodes", "minSize": 1}]}
        operator = Operator(cloud)
        assert operator.deploy(file, flags=ALLOWED).succeeded
        return operator, file

    return deploy


@pytest.mark.drill
def test_a_cluster_tags_its_subnets_and_leaves_only_their_roles(
    public: Subnets, account: Account, deployed: Callable[[], tuple[Operator, dict[str, object]]]
) -> None:
    first, second = public.network.subnets
    public.network.tag(first, OTHER, "shared")
    operator, file = deployed()
    assert public.tags(first)[OWN] == "shared"
    assert operator.plan(file).is_empty
    # The stack stays as it is when only tags are missing.
    public.untag(second)
    plan = operator.plan(file)
    assert (plan.subnet_tags, plan.leaves_stack) == ((SubnetTag(second, PUBLIC_SUBNET_ROLE, "1"),), True)
    assert operator.deploy(file).action == "tag"
    assert public.tags(second)[PUBLIC_SUBNET_ROLE] == "1"
    remover = Remover(account)
    deleted = remover.deletes(vpc_id=public.network.vpc)
    assert deleted.succeeded
    assert SubnetTag(first, OWN, "shared") in deleted.subnet_tags
    kept = [resource.id for resource in deleted.retained if resource.kind == "subnet tag"]
    assert kept == [f"{subnet} {PUBLIC_SUBNET_ROLE}" for subnet in (first, second)]
    assert public.tags(first) == {PUBLIC_SUBNET_ROLE: "1", OTHER: "shared"}
    again = remover.deletes(vpc_id=public.network.vpc)
    assert (again.succeeded, again.subnet_tags) == (True, ())


@pytest.mark.drill
def test_a_plan_adds_no_tag(public: Subnets, cloud: Cloud) -> None:
    plan = Operator(cloud).plan({"network": public.network.network}, flags=ALLOWED)
    assert [tag.subnet for tag in plan.subnet_tags] == public.network.subnets
    assert public.tags(public.network.subnets[0]) == {}


@pytest.mark.parametrize(
    ("code", "is_reported"), [("InvalidID", False), ("InvalidSubnetID.NotFound", False), ("x", True)]
)
def test_a_subnet_that_is_gone_needs_no_tags_removed(code: str, is_reported: bool) -> None:
    """Codes of DeleteTags ("Error codes for the Amazon EC2 API")."""
    said: list[Message] = []
    aws = Answers({"ec2:DeleteTags": RefusedError(code)})
    tag = SubnetTag("subnet-1", PUBLIC_SUBNET_ROLE, "1")
    assert removal.remove_subnet_tags(aws.account, "kubernetes", [tag], said.append) == ()
    assert [type(message) for message in said] == [Step, *([Notice] if is_reported else [])]
