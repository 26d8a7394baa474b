"""Ways in, ARNs, policies and what appears twice: what is said, at which key, and where it ends."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.checks import warnings
from cfngen.cluster.load import parse
from cfngen.cluster.problems import ClusterFileError

ACCOUNT = "123456789012"
KEY = f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234abcd"
SSH_KEY = {"keyName": "mine"}
OFFICE = {"allowedCidrs": ["203.0.113.0/24"]}
LISTS = {"allowedPrefixLists": [{"id": "pl-01234567", "maxEntries": 10}]}


def refusals(configuration: dict[str, Any]) -> list[str]:
    try:
        parse(configuration)
    except ClusterFileError as error:
        return str(error).splitlines()
    return []


def warned(configuration: dict[str, Any]) -> list[str]:
    return [str(warning) for warning in warnings(parse(configuration))]


def policies(count: int) -> list[str]:
    return [f"arn:aws:iam::{ACCOUNT}:policy/p{number}" for number in range(count)]


def at(path: str, value: Any) -> dict[str, Any]:
    """A cluster file with one key; of a list the second item, after one that is as it should be."""
    content = value
    for part in reversed(path.split(".")):
        name, _, index = part.partition("[")
        content = {name: [{"name": "first"}, {"name": "second", **content}] if index else content}
    return dict(content)


# "IAM and AWS STS quotas", IAM User Guide: ten managed policies of a role, twenty where it was raised.
@pytest.mark.parametrize(
    ("path", "own", "kept"),
    [
        ("controlPlane", 2, ", 2 of them reserved for add-ons and the network plug-in"),
        ("nodeGroups[1]", 0, ""),
    ],
)
def test_how_many_policies_a_role_has(path: str, own: int, kept: str) -> None:
    def of(count: int) -> dict[str, Any]:
        return at(f"{path}.additionalPolicies", policies(count - own))

    quota = 'unless its quota "Managed policies per role" was raised: combine some of them, or request an increase'
    key = f"{path}.additionalPolicies"
    assert warned(of(10)) == []
    assert warned(of(11)) == [f"{key}: the role has 11 managed policies{kept}; an account allows 10 {quota}"]
    assert [text.partition(";")[0] for text in warned(of(20))] == [f"{key}: the role has 20 managed policies{kept}"]
    assert refusals(of(21)) == [f"{key}: the role has 21 managed policies{kept}; IAM allows 20: combine some of them"]


@pytest.mark.parametrize(
    ("settings", "user"),
    [
        (at("etcd.backups.bucket", "snapshots"), "the key of etcd's snapshots"),
        (at("etcd.backups.kmsKey", "arn:aws:kms:us-west-2:123456789012:key/a1"), "the key of etcd's snapshots"),
        (at("etcd.backups.objectLock", {"mode": "governance", "days": 7}), "the lock of etcd's snapshots"),
        (at("registry.only", True), "registry.only"),
    ],
)
def test_the_policies_of_masters_that_settings_need_count(settings: dict[str, Any], user: str) -> None:
    file = {**at("controlPlane.additionalPolicies", policies(8)), **settings}
    kept = f"3 of them reserved for add-ons, the network plug-in and {user}"
    assert [kept in text for text in warned(file)] == [True]


PREFIX_LIST = {"id": "pl-01234567", "maxEntries": 1}


@pytest.mark.parametrize(
    ("path", "item", "shown"),
    [
        ("api.allowedCidrs", "203.0.113.0/24", "203.0.113.0/24"),
        ("api.allowedPrefixLists", PREFIX_LIST, "pl-01234567"),
        ("api.additionalNames", "api.example.com", "api.example.com"),
        ("ssh.allowedCidrs", "203.0.113.0/24", "203.0.113.0/24"),
        ("ssh.allowedPrefixLists", PREFIX_LIST, "pl-01234567"),
        ("controlPlane.additionalSecurityGroups", "sg-01234567", "sg-01234567"),
        ("controlPlane.additionalPolicies", *policies(1) * 2),
        ("nodeGroups[1].additionalSecurityGroups", "sg-01234567", "sg-01234567"),
        ("nodeGroups[1].additionalPolicies", *policies(1) * 2),
    ],
)
def test_what_stands_twice_in_a_list(path: str, item: Any, shown: str) -> None:
    others = {"sg-01234567": "sg-76543210", "203.0.113.0/24": "198.51.100.0/24", "api.example.com": "b.example.com"}
    other = {**item, "id": "pl-76543210"} if isinstance(item, dict) else others.get(item, *policies(2)[1:])
    said = [text for text in refusals(at(path, [item, other, item])) if "twice" in text]
    assert said == [f"{path}[2]: {shown} appears twice; remove one"]
    assert "twice" not in str(refusals(at(path, [item, other])))


ARNS = {
    "iam.permissionsBoundary": ("arn:{}:iam::aws:policy/a", False),
    "controlPlane.additionalPolicies": ("arn:{}:iam::aws:policy/a", True),
    "controlPlane.rootVolume.kmsKey": (f"arn:{{}}:kms:us-west-2:{ACCOUNT}:key/0", False),
    "controlPlane.volume.kmsKey": (f"arn:{{}}:kms:us-west-2:{ACCOUNT}:key/0", False),
    "nodeGroups[1].additionalPolicies": ("arn:{}:iam::aws:policy/a", True),
    "nodeGroups[1].rootVolume.kmsKey": (f"arn:{{}}:kms:us-west-2:{ACCOUNT}:key/0", False),
}


@pytest.mark.parametrize("path", ARNS)
def test_an_arn_of_another_partition(path: str) -> None:
    form, listed = ARNS[path]
    strange = form.format("aws-cn")
    key = f"{path}[1]" if listed else path
    assert refusals(at(path, [*policies(1), strange] if listed else strange)) == [
        f"{key}: the ARN is in the partition aws-cn, but us-west-2 is in aws; use an ARN of aws"
    ]
    assert refusals(at(path, [form.format("aws")] if listed else form.format("aws"))) == []


@pytest.mark.parametrize("path", [path for path in ARNS if path.endswith("kmsKey")])
def test_a_key_of_another_region(path: str) -> None:
    for key in (KEY, KEY.replace(ACCOUNT, "${AWS::AccountId}")):
        assert refusals(at(path, key.replace("us-west-2", "eu-west-1"))) == [
            f"{path}: the key is in eu-west-1, but the volumes are in us-west-2; use a key in us-west-2"
        ]
        assert refusals(at(path, key)) == []


# "Amazon Resource Names (ARNs)", AWS General Reference: the partitions and their regions.
@pytest.mark.parametrize(
    ("region", "partition"),
    [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov"), ("eu-west-1", "aws"), ("us-east-1", "aws")],
)
def test_the_partition_of_a_region(region: str, partition: str) -> None:
    def of(arn_partition: str) -> list[str]:
        arn = f"arn:{arn_partition}:iam::aws:policy/a"
        return refusals({"region": region, "iam": {"permissionsBoundary": arn}})

    assert of(partition) == []
    other = "aws-cn" if partition != "aws-cn" else "aws"
    assert of(other) == [
        (
            f"iam.permissionsBoundary: the ARN is in the partition {other}, but {region} is in {partition}; "
            f"use an ARN of {partition}"
        )
    ]


@pytest.mark.parametrize("region", ["us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1", "eusc-de-east-1"])
def test_partitions_of_which_nobody_here_knows_the_names(region: str) -> None:
    arn = "arn:aws-iso:iam::aws:policy/a"
    assert "partition" not in str(refusals({"region": region, "iam": {"permissionsBoundary": arn}}))


NOBODY = "ssh.sessionManager: Session Manager and SSH are both disabled: nobody can open a shell on an instance"
NO_KEY = "port 22 is open, but nobody can log in without a key; add ssh.keyName or ssh.publicKey"
NO_AGENT = (
    "Debian's images do not contain the Session Manager agent, and SSH is closed; to open a shell on instances, add "
    "ssh.publicKey and ssh.allowedCidrs"
)
PUBLIC_KEY = {"publicKey": "ssh-ed25519 AAAA"}


@pytest.mark.parametrize(
    ("ssh", "expected"),
    [
        ({}, []),
        ({**SSH_KEY, **OFFICE}, []),
        ({**PUBLIC_KEY, **LISTS}, []),
        (OFFICE, [f"ssh.allowedCidrs: {NO_KEY}"]),
        (LISTS, [f"ssh.allowedPrefixLists: {NO_KEY}"]),
        ({**OFFICE, **LISTS}, [f"ssh.allowedCidrs: {NO_KEY}"]),
        ({"sessionManager": False}, [NOBODY]),
        ({"sessionManager": False, **SSH_KEY}, [NOBODY]),
        ({"sessionManager": False, **OFFICE}, [f"ssh.allowedCidrs: {NO_KEY}", NOBODY]),
        ({"sessionManager": False, **SSH_KEY, **OFFICE}, []),
        ({"sessionManager": False, **PUBLIC_KEY, **OFFICE}, []),
    ],
)
def test_whether_anybody_can_enter_an_instance(ssh: dict[str, Any], expected: list[str]) -> None:
    assert warned({"ssh": ssh}) == expected


@pytest.mark.parametrize(
    ("ssh", "image", "expected"),
    [
        ({}, {"distribution": "debian-12"}, True),
        ({}, {"distribution": "debian-13"}, True),
        (SSH_KEY, {"distribution": "debian-13"}, True),
        ({**SSH_KEY, **OFFICE}, {"distribution": "debian-13"}, False),
        ({**PUBLIC_KEY, **OFFICE}, {"distribution": "debian-13"}, False),
        ({}, {"distribution": "debian-13", "id": "ami-01234567"}, False),
        ({}, {"distribution": "ubuntu-22.04"}, False),
        ({}, {"distribution": "amazon-linux-2023"}, False),
    ],
)
def test_debian_has_no_agent_of_session_manager(ssh: dict[str, Any], image: dict[str, Any], expected: bool) -> None:
    both = warned({"ssh": ssh, "image": image})
    assert both == ([f"controlPlane.image.distribution: {NO_AGENT}"] if expected else [])
    group = warned({"ssh": ssh, "nodeGroups": [{"name": "first"}, {"name": "second", "image": image}]})
    assert group == ([f"nodeGroups[1].image.distribution: {NO_AGENT}"] if expected else [])


def test_debian_with_ssh_open_and_no_key_has_no_agent_either() -> None:
    said = warned({"ssh": OFFICE, "image": {"distribution": "debian-13"}})
    assert said == [f"ssh.allowedCidrs: {NO_KEY}", f"controlPlane.image.distribution: {NO_AGENT}"]


def test_ranges_that_let_everybody_in() -> None:
    def of(cidr: str) -> list[str]:
        allowed = {"allowedCidrs": ["203.0.113.0/24", cidr]}
        return warned({"api": allowed, "ssh": {**SSH_KEY, **allowed}})

    assert of("198.51.100.0/24") == []
    assert of("0.0.0.0/1") == []
    assert of("0.0.0.0/0") == [
        "api.allowedCidrs[1]: 0.0.0.0/0 lets the whole internet reach the Kubernetes API; use your own ranges",
        "ssh.allowedCidrs[1]: 0.0.0.0/0 lets the whole internet reach port 22 of every instance; use your own ranges",
    ]


def test_a_text_that_cloudformation_would_fill_in() -> None:
    """ "Dynamic references", CloudFormation User Guide."""
    reason = "CloudFormation replaces {{resolve:…}} in every text; remove it"
    assert refusals({"ssh": {"keyName": "a{{resolve:ssm:b}}"}}) == [f"ssh.keyName: {reason}"]
    assert refusals({"ssh": {"publicKey": "ssh-rsa AAAA {{resolve:ssm:b}}"}}) == [f"ssh.publicKey: {reason}"]
    assert refusals({"ssh": {"keyName": "{{resolve}}"}}) == []
    statement = {
        "actions": ["s3:GetObject"],
        "resources": ["*", "arn:aws:s3:::{{resolve:ssm:b}}/*"],
        "conditions": {
            "StringEquals": {
                "aws:PrincipalTag/{{resolve:ssm:b}}": "a",
                "aws:PrincipalTag/b": ["a", "{{resolve:ssm:b}}"],
            }
        },
    }
    statements = "nodeGroups[0].policyStatements[0]"
    assert refusals({"nodeGroups": [{"name": "nodes", "policyStatements": [statement]}]}) == [
        f"{statements}.resources[1]: {reason}",
        f"{statements}.conditions.StringEquals.aws:PrincipalTag/{{{{resolve:ssm:b}}}}: {reason}",
        f"{statements}.conditions.StringEquals.aws:PrincipalTag/b[1]: {reason}",
    ]
