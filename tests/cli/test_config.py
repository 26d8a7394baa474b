"""`cfngen config` and `cfngen schema`."""

from __future__ import annotations

import json

FILE = """\
name: staging
nodeGroups:
  - name: general
    minSize: 2
    maxSize: 5
"""


def line(text, key):
    return next(line.split(maxsplit=2)[1:] for line in text.splitlines() if line.startswith(f"{key} "))


def test_every_value_is_shown_with_its_origin(cfngen, directory):
    (directory / "cluster.yaml").write_text(FILE)
    ran = cfngen("config", "--set", "api.port=6443", NODE_SIZE="m5.large")
    assert ran.code == 0
    assert ran.out.startswith("# cluster.yaml\n")
    assert line(ran.out, "name") == ["staging", "cluster.yaml:1"]
    assert line(ran.out, "nodeGroups[0].maxSize") == ["5", "cluster.yaml:5"]
    assert line(ran.out, "nodeGroups[0].instanceType") == ["m5.large", "environment NODE_SIZE"]
    assert line(ran.out, "api.port") == ["6443", "--set api.port=6443"]
    assert line(ran.out, "network.podCidr") == ["10.244.0.0/16", "default"]
    assert line(ran.out, "network.vpc.name") == ["staging-vpc", "derived: from name"]


def test_flag_beats_environment_beats_file(cfngen, directory):
    (directory / "cluster.yaml").write_text("nodeGroups:\n  - minSize: 2\n    maxSize: 2\n")
    group = ("config", "--output", "json")

    def maximum(*more, **environ):
        return json.loads(cfngen(*group, *more, **environ).out)["cluster"]["nodeGroups"][0]["maxSize"]

    assert maximum() == 2
    assert maximum(NUM_NODES="6") == 6
    assert maximum("--set", "nodeGroups[0].maxSize=9", NUM_NODES="6") == 9
    assert maximum("--no-env", NUM_NODES="6") == 2


def test_defaults_reads_neither_file_nor_environment(cfngen, directory):
    (directory / "cluster.yaml").write_text("name: staging\n")
    ran = cfngen("config", "--defaults", NUM_NODES="6")
    assert ran.out.startswith("# the built-in default cluster\n")
    assert line(ran.out, "name")[0] == "kubernetes"
    assert line(ran.out, "nodeGroups[0].maxSize")[0] == "4"


def test_without_a_file_it_says_so(cfngen):
    assert cfngen("config").out.startswith("# the built-in default cluster; there is no cluster.yaml here\n")


def test_defaults_and_a_file_exclude_each_other(cfngen, directory):
    (directory / "other.yaml").write_text(FILE)
    ran = cfngen("config", "--defaults", "-f", "other.yaml")
    assert ran.code == 64
    assert "--defaults and --cluster cannot be used together" in ran.err


def test_the_yaml_form_is_a_cluster_file_that_means_the_same(cfngen, directory):
    (directory / "cluster.yaml").write_text(
        FILE + "tags: {'on': 'yes', team: '007', colon: 'a: b'}\n"
        "kubernetes: {kubeletConfiguration: {maxPods: 30, evictionHard: {memory.available: 5%}}}\n"
    )
    (directory / "complete.yaml").write_text(cfngen("config", "--output", "yaml").out)
    first, second = (
        json.loads(cfngen("config", "-f", file, "--output", "json").out)["cluster"]
        for file in ("cluster.yaml", "complete.yaml")
    )
    assert first == second
    assert "maxSize: 5  # cluster.yaml:5" in (directory / "complete.yaml").read_text()


def test_the_json_form_has_origins_by_key(cfngen, directory):
    (directory / "cluster.yaml").write_text(FILE)
    answer = json.loads(cfngen("config", "--output", "json").out)
    assert answer["cluster"]["name"] == "staging"
    assert answer["origins"]["name"] == {"kind": "file", "where": "cluster.yaml:1"}
    assert answer["origins"]["network.podCidr"] == {"kind": "default", "where": ""}


def test_warnings_go_to_standard_error(cfngen):
    ran = cfngen("config", "--set", "nodeGroups[0].maxSize=60")
    assert ran.code == 0
    assert ran.err.startswith("warning: ")
    assert "route" in ran.err


def test_standard_input_is_a_file_too(process):
    out, err = process("config", "-f", "-", "--output", "json").communicate("name: piped\n")
    assert err == ""
    assert json.loads(out)["cluster"]["name"] == "piped"
    assert json.loads(out)["origins"]["name"] == {"kind": "file", "where": "<standard input>:1"}


def test_standard_input_is_called_what_it_is(process):
    assert process("config", "-f", "-").communicate("name: piped\n")[0].startswith("# <standard input>\n")
    _, err = process("config", "-f", "-").communicate("name: Not_A_Name\n")
    assert err.startswith("error: <standard input>:1: name: ")


def test_the_schema_is_json_and_knows_the_keys(cfngen):
    schema = json.loads(cfngen("schema").out)
    assert {"name", "region", "network", "nodeGroups"} <= set(schema["properties"])


def test_addresses_are_a_table_by_zone_and_tier(cfngen, directory):
    (directory / "cluster.yaml").write_text("network: {topology: private}\n")
    ran = cfngen("config", "--addresses")
    assert ran.code == 0
    header, *rows = [line.split() for line in ran.out.splitlines()]
    assert header == ["range", "tier", "zone", "usable", "for"]
    assert ["172.20.255.192/26", "public", "subnet", "us-west-2a", "59", "NAT", "gateway,", "load", "balancers"] in rows
    document = json.loads(cfngen("config", "--addresses", "--output", "json").out)
    assert [item["range"] for item in document["addresses"]] == [row[0] for row in rows]


def test_egress_is_a_table_of_hosts_and_services(cfngen):
    ran = cfngen("config", "--egress", "--defaults")
    assert ran.code == 0
    header, *rows = ran.out.splitlines()
    assert header.split() == ["host", "port", "from", "VPC", "endpoint", "for"]
    assert any(row.startswith("dl.k8s.io ") and "443/tcp" in row and "kubelet" in row for row in rows)
    document = json.loads(cfngen("config", "--egress", "--defaults", "-o", "json").out)
    assert [item["host"] for item in document["egress"]] == [row.split()[0] for row in rows]
    [ec2] = [item for item in document["egress"] if item["host"] == "ec2.us-west-2.amazonaws.com"]
    assert (ec2["endpoint"], ec2["sources"]) == ("com.amazonaws.us-west-2.ec2", ["masters"])
    assert cfngen("config", "--egress", "--defaults", "-o", "yaml").out.startswith("egress:\n- host: ")


def test_addresses_and_egress_are_two_tables(cfngen):
    ran = cfngen("config", "--egress", "--addresses", "--defaults")
    assert ran.code == 64
    assert "choose one" in ran.err


def test_rules_of_existing_security_groups_are_a_table_with_commands(cfngen, directory):
    (directory / "cluster.yaml").write_text(
        "network:\n"
        "  vpc: {id: vpc-0123456789abcdef0, cidr: 10.20.0.0/16}\n"
        "  subnets: [{zone: us-west-2a, id: subnet-0123456789abcdef0, cidr: 10.20.0.0/24}]\n"
        "  serviceCidr: 10.250.0.0/16\n"
        "  securityGroups: {nodes: sg-0123456789abcdef0}\n"
    )
    ran = cfngen("config", "--security-group-rules")
    assert ran.code == 0
    header, *rows = ran.out.splitlines()
    assert header.split() == ["group", "direction", "traffic", "source", "or", "destination", "for"]
    assert rows[0].split()[:6] == ["nodes", "sg-0123456789abcdef0", "ingress", "all", "traffic", "sg-0123456789abcdef0"]
    document = json.loads(cfngen("config", "--security-group-rules", "-o", "json").out)
    rules = document["securityGroupRules"]
    assert len(rules) == len(rows)
    assert rules[0]["command"].startswith("aws ec2 authorize-security-group-ingress --region us-west-2 --group-id sg-")

    assert [rule["isInNewGroups"] for rule in rules if rule["direction"] == "egress"] == [True]
    terraform = cfngen("config", "--security-group-rules", "-o", "terraform").out
    assert terraform.count("\nresource ") + 1 == sum(len(rule["peers"]) for rule in rules)
    assert [peer for rule in rules[:2] for peer in rule["peers"]] == [
        {"securityGroupId": "sg-0123456789abcdef0"},
        {"cidr": "10.20.0.0/24"},
        {"cidr": "10.244.0.0/16"},
    ]
    assert terraform.startswith(
        'resource "aws_vpc_security_group_ingress_rule" "nodes_all_nodes" {\n'
        '  security_group_id            = "sg-0123456789abcdef0"\n'
        '  referenced_security_group_id = "sg-0123456789abcdef0"\n'
        '  ip_protocol                  = "-1"\n'
        '  description                  = "Nodes and pods to nodes and pods"\n'
        "}\n"
    )
    assert cfngen("config", "-o", "terraform").code == 64


def test_rules_with_references_have_variables_in_their_commands(cfngen, directory):
    (directory / "cluster.yaml").write_text(
        "network:\n"
        "  vpc: {id: vpc-0123456789abcdef0, cidr: 10.20.0.0/16}\n"
        "  subnets: [{zone: us-west-2a, id: subnet-0123456789abcdef0, cidr: 10.20.0.0/24}]\n"
        "  serviceCidr: 10.250.0.0/16\n"
        "  securityGroups: {masters: 'stack:network.MastersGroup', nodes: sg-0123456789abcdef0}\n"
    )
    ran = cfngen("config", "--security-group-rules")
    assert ran.out.splitlines()[-1].startswith(
        "The cluster file has references in place of ids: `cfngen check network`"
    )
    document = json.loads(cfngen("config", "--security-group-rules", "-o", "json").out)
    commands = {rule["command"] for rule in document["securityGroupRules"]}
    assert any("$MASTERS_GROUP" in command for command in commands)
    assert not any("stack:" in command for command in commands)


def test_without_existing_security_groups_there_are_no_rules_to_add(cfngen):
    ran = cfngen("config", "--security-group-rules", "--defaults")
    assert (ran.code, "cfngen creates all security groups" in ran.out) == (0, True)
    document = json.loads(cfngen("config", "--security-group-rules", "--defaults", "-o", "json").out)
    assert document == {"securityGroupRules": []}
