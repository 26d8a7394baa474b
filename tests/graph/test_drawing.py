"""What a picture of a cluster shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from drawn import CASES, EXAMPLES, arrows, box, outline, picture, templates, twenty_groups

from cfngen.cluster.load import load
from cfngen.graph.cluster_templates import read
from cfngen.graph.drawing import LEFT_OUT, VIEWS, draw, fold_node_groups
from cfngen.graph.picture import Picture
from cfngen.templates import generate

PRODUCTION = EXAMPLES / "production.yaml"
FULLY_PRIVATE = EXAMPLES / "fully-private.yaml"
EXISTING_VPC = EXAMPLES / "existing-vpc.yaml"
# One case for each kind of part that examples do not have.
SOME_CASES = (
    "api-dns-private", "api-dns-public", "bastion", "both-endpoints", "capacity-reservations", "existing-elastic-ip",
    "flow-logs-cloudwatch", "flow-logs-s3", "instance-requirements", "own-instance-profiles", "own-kms-key",
    "own-permissions", "own-roles", "own-security-groups", "pod-roles", "pod-roles-bucket", "pod-roles-url",
    "private-existing-mix", "references", "restricted-access", "spot-mixed", "transit-gateway",
    "vpc-ranges",
)  # fmt: skip
CLUSTER_FILES = (None, PRODUCTION, FULLY_PRIVATE, EXISTING_VPC, *(CASES / case / "cluster.yaml" for case in SOME_CASES))


def name_of(cluster_file: Path | None) -> str:
    return "default" if cluster_file is None else f"{cluster_file.parent.name}-{cluster_file.stem}"


def test_the_network_of_the_default_cluster() -> None:
    assert picture().title == "kubernetes in us-west-2"
    assert outline(picture()) == [
        "us-west-2",
        "  kubernetes-vpc: 172.20.0.0/16",
        "    internet gateway",
        "    us-west-2a",
        "      public subnet: 172.20.0.0/24",
        "        master a: t3.medium, 172.20.0.9, Elastic IP",
        "          etcd's volume: 20 GiB gp3",
        "        node group nodes: t3.medium, 4 nodes",
        "Internet",
        "ApiAllowedCidr: given at the deployment",
    ]
    assert arrows(picture()) == {
        "public subnet -> internet gateway: 0.0.0.0/0",
        "internet gateway -> Internet",
        "ApiAllowedCidr -> master a: TCP 443",
    }


@pytest.mark.parametrize(("days", "line"), [("1", "kept 1 day"), ("365", "kept 365 days")])
def test_how_long_records_of_a_flow_log_are_kept(days: str, line: str) -> None:
    watched = CASES / "flow-logs-cloudwatch" / "cluster.yaml"
    loaded = load(watched, environ={}, overrides=(f"network.flowLogs.retentionDays={days}",))
    drawn = draw(read(generate(loaded.cluster)), "network")
    assert [box.lines for box in drawn.boxes if box.title == "log group"] == [(line,)]


def test_who_may_talk_to_whom_in_the_default_cluster() -> None:
    assert outline(picture(view="access")) == [
        "us-west-2",
        "  kubernetes-vpc: 172.20.0.0/16",
        "    master security group: master a",
        "    node security group: node group nodes",
        "ApiAllowedCidr: given at the deployment",
        "any address: 0.0.0.0/0",
    ]
    assert arrows(picture(view="access")) == {
        "master security group -> any address: all traffic",
        "node security group -> any address: all traffic",
        "node security group -> node security group: all traffic",
        "master security group -> node security group: all traffic",
        "master security group -> master security group: all traffic",
        "node security group -> master security group: TCP 53, 443, 10250; UDP 53; ICMP type 3",
        "ApiAllowedCidr -> master security group: TCP 443",
    }


def test_what_roles_may_do_in_the_default_cluster() -> None:
    drawn = picture(view="iam")
    assert box(drawn, "MasterRole").lines == ("master a",)
    assert box(drawn, "NodeRole").lines == ("node group nodes",)
    ec2 = box(drawn, "MasterRole:ec2")
    assert (ec2.parent, ec2.logical_ids) == ("MasterRole", ("MasterRole", "AddonsPolicy"))
    assert ec2.lines[:3] == (
        *("read", "create, change what has the cluster's tag", "create, tag with the cluster's tag"),
    )
    assert {
        "secretsmanager -> CA secret: read, write what has the cluster's tag",
        "secretsmanager -> join secret: read what has the cluster's tag",
        "s3 -> backup bucket: read, write",
        "CA secret -> secrets key: encrypted with",
    } <= arrows(drawn)
    # Nodes reach what they need to join, and neither the authorities nor the snapshots.
    assert {arrow.target for arrow in drawn.arrows if arrow.source.startswith("NodeRole")} == {
        "JoinSecret",
        "SecretsKey",
    }


def test_roles_of_pods_and_where_aws_reads_the_keys_of_their_tokens() -> None:
    drawn = picture(CASES / "pod-roles" / "cluster.yaml", "iam")
    titles = [box.title for box in drawn.children("account")]
    assert {"kube-system/cluster-autoscaler", "cert-manager/cert-manager", "shop/web", "shop/orders.worker"} < set(
        titles
    )
    web = next(box for box in drawn.boxes if box.title == "shop/web")
    assert web.lines == ("role of pods", "within the boundary boundary")
    assert [child.title for child in drawn.children(web.id)] == ["AmazonSQSReadOnlyAccess"]
    assert box(drawn, "IssuerDistribution").logical_ids == ("IssuerDistribution", "IssuerOriginAccessControl")
    assert {
        "shop/web -> OIDC provider: trusts",
        "OIDC provider -> CloudFront distribution: AWS STS reads keys",
        "CloudFront distribution -> issuer bucket: reads by origin access control",
        "s3 -> issuer bucket: read, write",
    } <= arrows(drawn)
    assert not {"role of masters -> OIDC provider: trusts", "role of nodes -> OIDC provider: trusts"} & arrows(drawn)


def test_an_issuer_in_a_public_bucket_and_on_a_web_server() -> None:
    in_bucket = picture(CASES / "pod-roles-bucket" / "cluster.yaml", "iam")
    assert box(in_bucket, "IssuerBucket").lines == ("S3 bucket", "issuer's two documents, which anyone may read")
    assert "OIDC provider -> issuer bucket: AWS STS reads keys" in arrows(in_bucket)
    on_server = picture(CASES / "pod-roles-url" / "cluster.yaml", "iam")
    assert "issuer's web server: tokens.example.com/kubernetes/own-issuer" in outline(on_server)
    assert "OIDC provider -> issuer's web server: AWS STS reads keys" in arrows(on_server)


def test_limits_of_permissions_are_plain_words() -> None:
    drawn = picture(CASES / "pod-roles" / "cluster.yaml", "iam")
    assert box(drawn, "MasterRole:kms").lines == ("read, decrypt, encrypt, create grants through EC2",)
    assert box(drawn, "MasterRole:cloudformation").lines == ("read, change on its own stacks",)
    assert "kms -> secrets key: decrypt through Secrets Manager for the cluster's secrets" in arrows(drawn)
    lines = {line for drawn_box in drawn.boxes for line in drawn_box.lines}
    assert {
        "create service-linked roles of elasticloadbalancing",
        "change on hostedzone/Z0123456789ABCDEFGHIJ",
        "change TXT records on hostedzone/Z0123456789ABCDEFGHIJ, hostedzone/Z1123456789ABCDEFGHIJ",
        "create in the cluster's VPC",
        "tag, change what has the cluster's tag but not that tag",
        "read, write on example-orders/${aws:PrincipalTag/team} over TLS",
    } <= lines
    of_statements = {
        line
        for drawn_box in picture(CASES / "own-permissions" / "cluster.yaml", "iam").boxes
        for line in drawn_box.lines
    }
    assert {"never do everything on models/private", "read what has the tag public on models"} <= of_statements


@pytest.mark.parametrize("cluster_file", [None, *sorted(CASES.glob("*/cluster.yaml"))], ids=name_of)
def test_no_permission_is_without_words(cluster_file: Path | None) -> None:
    drawn = picture(cluster_file, "iam")
    sources = {arrow.source for arrow in drawn.arrows}
    for drawn_box in drawn.boxes:
        assert drawn_box.kind != "permission" or drawn_box.lines or drawn_box.id in sources, drawn_box.id
        assert not any("${StackName}" in line or "on condition of" in line for line in drawn_box.lines)


def test_three_zones_and_groups_of_several_subnets() -> None:
    lines = outline(picture(PRODUCTION))
    start = lines.index("    eu-central-1b")
    assert lines[start : start + 8] == [
        "    eu-central-1b",
        "      public subnet: 10.40.255.128/26",
        "        NAT gateway: Elastic IP",
        "      private subnet: 10.40.4.0/22",
        "        master b: m6i.large, 10.40.4.9",
        "          etcd's volume: 50 GiB gp3",
        "        node group general: m6i.xlarge, 1 to 4 of 3 to 12 nodes",
        "        node group batch: c6i.2xlarge, 0 to 10 of 0 to 20 nodes, spot instances",
    ]
    assert not [line for line in lines[: lines.index("    eu-central-1b")] if "batch" in line]
    assert {
        "private subnet -> NAT gateway: 0.0.0.0/0",
        "private subnet -> gateway endpoint of s3: s3",
        "load balancer -> master c: TCP 443",
    } <= arrows(picture(PRODUCTION))
    routes = {(arrow.source, arrow.target) for arrow in picture(PRODUCTION).arrows if arrow.kind == "route"}
    assert {("SubnetA", "NatGatewayA"), ("SubnetB", "NatGatewayB"), ("SubnetC", "NatGatewayC")} <= routes


def test_a_cluster_without_a_way_out() -> None:
    drawn = picture(FULLY_PRIVATE)
    assert not [box for box in drawn.boxes if box.kind == "gateway" or box.title == "Internet"]
    endpoints = box(drawn, "endpoints:interface")
    assert endpoints.lines[:3] == ("autoscaling", "cloudformation", "ec2")
    assert len(endpoints.logical_ids) == len(endpoints.lines) == 10
    assert "node security group -> endpoints security group: TCP 443" in arrows(picture(FULLY_PRIVATE, "access"))


def test_what_exists_is_called_existing() -> None:
    lines = outline(picture(EXISTING_VPC))
    assert lines[1] == "  existing VPC: vpc-0123456789abcdef0"
    assert "      existing subnet: subnet-0b123456789abcdef" in lines
    assert not any(box.logical_ids for box in picture(EXISTING_VPC).boxes if box.title.startswith("existing"))


def test_other_parts_that_exist() -> None:
    transit = arrows(picture(CASES / "transit-gateway" / "cluster.yaml"))
    assert "private subnet -> existing transit gateway: 0.0.0.0/0" in transit
    assert "private subnet -> existing virtual private gateway: pl-0123456789abcdef0" in transit
    groups = outline(picture(CASES / "own-security-groups" / "cluster.yaml", "access"))
    assert "    existing security group: sg-0123456789abcdef0, masters a, b, c" in groups
    roles = outline(picture(CASES / "own-roles" / "cluster.yaml", "iam"))
    assert "  existing role: batch, node group batch" in roles


def test_names_of_the_api() -> None:
    drawn = arrows(picture(CASES / "api-dns-public" / "cluster.yaml"))
    assert "public hosted zone -> load balancer: api.k8s.example.com" in drawn
    assert "private hosted zone -> internal load balancer: api.k8s.example.com" in drawn


@pytest.mark.parametrize("cluster_file", CLUSTER_FILES, ids=name_of)
def test_every_resource_is_drawn_or_left_out_for_a_reason(cluster_file: Path | None) -> None:
    drawn = picture(cluster_file, "all")
    shown = logical_ids(drawn)
    resources = templates(cluster_file).resources
    left_out = {name for name, resource in resources.items() if resource.type in LEFT_OUT}
    assert set(resources) - left_out == shown & set(resources)
    assert not shown & left_out
    assert shown <= set(drawn.snippets)


@pytest.mark.parametrize("cluster_file", CLUSTER_FILES, ids=name_of)
def test_every_rule_is_an_arrow(cluster_file: Path | None) -> None:
    of_arrows = {logical_id for arrow in picture(cluster_file, "access").arrows for logical_id in arrow.logical_ids}
    for resource in templates(cluster_file).of_type("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroup"):
        has_rules = resource.type != "AWS::EC2::SecurityGroup" or "SecurityGroupEgress" in resource.properties
        assert not has_rules or resource.logical_id in of_arrows


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("cluster_file", CLUSTER_FILES, ids=name_of)
def test_a_picture_is_well_formed(cluster_file: Path | None, view: str) -> None:
    drawn = picture(cluster_file, view)
    seen: set[str] = set()
    for drawn_box in drawn.boxes:
        assert drawn_box.id not in seen
        assert drawn_box.parent is None or drawn_box.parent in seen, "a parent comes before its children"
        assert drawn_box.title
        seen.add(drawn_box.id)
    for arrow in drawn.arrows:
        assert {arrow.source, arrow.target} <= seen


def test_long_texts_of_a_resource_are_cut_off() -> None:
    snippet = picture(view="all").snippets["MasterALaunchTemplate"]
    assert '"HttpTokens": "required"' in snippet
    assert "characters)" in snippet
    assert len(snippet) < 8000


def test_changes_are_those_of_what_is_drawn() -> None:
    drawn = draw(templates(), "network", {"MasterAVolume": "changed", "NodeRole": "added"})
    assert drawn.changes == {"MasterAVolume": "changed"}


def logical_ids(drawn: Picture) -> set[str]:
    parts = [*(box.logical_ids for box in drawn.boxes), *(arrow.logical_ids for arrow in drawn.arrows)]
    return {logical_id for ids in parts for logical_id in ids}


@pytest.mark.parametrize(
    ("cluster_file", "reaching"),
    [
        (PRODUCTION, {"203.0.113.0/24 -> load balancer: TCP 443", "198.51.100.17/32 -> load balancer: TCP 443"}),
        (
            FULLY_PRIVATE,
            {"10.50.0.0/16 -> internal load balancer: TCP 443", "10.8.0.0/16 -> internal load balancer: TCP 443"},
        ),
        # Whom existing security groups let in is not in the templates.
        (CASES / "own-security-groups" / "cluster.yaml", {"Internet -> load balancer: TCP 443"}),
    ],
)
def test_a_load_balancer_is_joined_to_those_who_reach_it(cluster_file: Path, reaching: set[str]) -> None:
    assert {arrow for arrow in arrows(picture(cluster_file)) if "load balancer: TCP" in arrow} == reaching


def test_the_only_nat_gateway_of_several_zones_is_remarked() -> None:
    single = outline(picture(CASES / "private-single-nat" / "cluster.yaml"))
    assert [line.strip() for line in single if "NAT" in line] == ["NAT gateway: Elastic IP, the only one, for 2 zones"]


def test_twenty_groups_are_a_box_for_each_type_and_subnet() -> None:
    drawn = fold_node_groups(draw(twenty_groups()))
    groups = [box for box in drawn.boxes if "node group" in box.title]
    assert {(box.title, box.lines[1]) for box in groups} == {
        ("7 node groups", "c6i.large"),
        ("13 node groups", "m6i.large"),
    }
    assert len(groups) == 6
    assert groups[0].lines[0] == "group00, group03, group06, group09, group12, group15, group18"
