"""What the reference pages tell a reader of a key, a name and a variable: one row of each kind."""

from __future__ import annotations

import re

import pytest

from cfngen.cluster import kube_up, reference

CONFIGURATION, KUBE_UP = (reference.reference_pages()[name] for name in ("configuration.md", "kube-up.md"))


def section(page: str, title: str) -> str:
    """The text under a heading, up to the next one."""
    [text] = re.findall(rf"^## {re.escape(title)}\n\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return str(text)


# A section, and a row of it: the key, what it may be, its default.
ROWS = [
    ("Top level", "| `name` | a cluster name | `kubernetes` | Name of the cluster"),
    ("Top level", '| `kubernetesVersion` | a Kubernetes version such as "1.36" or "1.36.3" | `1.36` | '),
    ("Top level", "| `network` | section |  | VPC, subnets, pods and services. |"),
    ("Top level", "| `nodeGroups` | list of sections |  | The groups of nodes"),
    ("Top level", "| `tags` | keys with values | `{}` | "),
    (
        "`network`",
        "| `plugin` | `vpc-routes` or `cilium` or `calico` or `flannel` or `amazon-vpc` or `none` | `vpc-routes` | ",
    ),
    ("`network`", "| `podCidr` | an IPv4 CIDR | `10.244.0.0/16` | "),
    ("`network`", "| `dnsServiceIp` | an IPv4 address | `10.0.0.10` | "),
    ("`network`", "| `nonMasqueradeCidr` | an IPv4 CIDR | none | "),
    ("`network`", "| `subnets` | list of sections |  | "),
    ("`network.vpc`", "| `id` | a VPC id such as vpc-0123456789abcdef0 | none | "),
    ("`network.vpc`", "| `name` | text | `kubernetes-vpc` | "),
    ("`network.subnets[]`", "| `zone` | an Availability Zone such as us-west-2a | `us-west-2a` | "),
    ("`network.quotas`", "| `securityGroupsPerInterface` | a whole number, 1 to 16 | `5` | "),
    ("`api`", "| `port` | a whole number, 1 to 65535 | `443` | "),
    ("`api`", "| `public` | `true` or `false` | `true` | "),
    ("`api`", "| `allowedCidrs` | list; each item an IPv4 CIDR | `[]` | "),
    (
        "`api.elasticIp`, `bastion.elasticIp`",
        "| `allocationId` | an Elastic IP allocation id such as eipalloc-0123456789abcdef0 | required | ",
    ),
    (
        "`api.allowedPrefixLists[]`, `ssh.allowedPrefixLists[]`, `bastion.allowedPrefixLists[]`",
        "| `maxEntries` | a whole number, 1 to 1000 | required | ",
    ),
    ("`controlPlane`", "| `count` | `1` or `3` or `5` | `1` | "),
    ("`controlPlane`", '| `addresses` | list; each item an IPv4 address | `["172.20.0.9"]` | '),
    ("`nodeGroups[]`", '| `zones` | list; each item an Availability Zone such as us-west-2a | `["us-west-2a"]` | '),
    ("`nodeGroups[]`", "| `desiredSize` | a whole number, 0 to 5000 | none | "),
    ("`nodeGroups[].taints[]`", "| `effect` | `NoSchedule` or `PreferNoSchedule` or `NoExecute` | required | "),
    (
        "`controlPlane.rootVolume`, `controlPlane.volume`, `nodeGroups[].rootVolume`, `bastion.rootVolume`",
        "| `iops` | a whole number, 100 to 256000 | none | Provisioned IOPS (gp3, io1, io2). |",
    ),
    ("`addons`", "| `awsEbsCsiDriver` | section |  | "),
    ("`addons.charts[]`", "| `url` | an http(s) URL such as https://mirror.example.com/k8s | required | "),
]


@pytest.mark.parametrize(("title", "row"), ROWS, ids=[f"{title} {row[:22]}" for title, row in ROWS])
def test_a_row_of_a_section(title: str, row: str) -> None:
    lines = section(CONFIGURATION, title).splitlines()
    assert lines[2:4] == ["| Key | Value | Default | Meaning |", "|---|---|---|---|"]
    assert lines[0].endswith(".")
    assert [line for line in lines if line.startswith(row)] != []
    assert all(line.count(" | ") == 3 and line.endswith(". |") for line in lines[4:] if line)


def test_how_long_names_may_be() -> None:
    text = section(CONFIGURATION, "How long names may be")
    docs = "https://docs.aws.amazon.com/"
    for made, most in (
        ("`NAME-api`", 32),
        ("`NAME-SecurityGroupsStack-…`", 128),
        ("`kubernetes.io/cluster/NAME`", 128),
        ("`NAME-vpc`", 256),
        ("`NAME-NodeGroupGroupStack-…`", 128),
        ("`NAME-nodes-GROUP`", 256),
    ):
        assert f" | {made} | {most} | <{docs}" in text


def test_pages_say_that_they_are_made() -> None:
    for page in (CONFIGURATION, KUBE_UP):
        assert page.startswith("<!-- Made by `python -m cfngen.cluster.reference docs`")
        assert page.endswith("|\n")
        assert "\n\n\n" not in page


# Each fate, with keys, values, an old name, a sentence that begins with a proper name.
VARIABLES = [
    "| `KUBERNETES_PROVIDER` | accepted | Accepted: `aws`. Cfngen builds clusters on AWS only, so unset it. |",
    "| `KUBE_AWS_ZONE` | honoured | Sets `network.subnets[0].zone`, `region`. The region is the zone's. |",
    "| `KUBE_AWS_INSTANCE_PREFIX` | honoured | Sets `name`. |",
    "| `KUBE_ENABLE_NODE_PUBLIC_IP`, `KUBE_ENABLE_MINION_PUBLIC_IP` | honoured | Sets `nodeGroups[].publicIp`. |",
    "| `MULTIZONE` | accepted | It had no effect on AWS; give several `network.subnets`, one for each zone. |",
]


@pytest.mark.parametrize("row", VARIABLES, ids=[row.split("`")[1] for row in VARIABLES])
def test_a_row_of_a_variable(row: str) -> None:
    assert row in KUBE_UP.splitlines()


def test_every_variable_stands_under_its_heading_with_its_fate() -> None:
    for heading, variables in kube_up.SECTIONS.items():
        lines = section(KUBE_UP, heading).splitlines()
        assert lines[:2] == ["| Variable | Fate | Here |", "|---|---|---|"]
        rows = [line for line in lines[2:] if line]
        assert len(rows) == len(variables)
        for row, variable in zip(rows, variables, strict=True):
            assert row.startswith(f"| `{variable.name}`")
            fate, here = row.strip("| ").split(" | ", 2)[1:]
            assert fate == variable.handling
            assert here.endswith("."), row
            assert here[0].isupper() or here.startswith(("`", "etcd", "kubeadm", "kubelet")), row
