"""What a text of the cluster file may look like: the furthest that is accepted, and its refused neighbours.

The forms are those of the services that take the texts, which say them in their API references (`pattern`, length) or
user guides; November 2026.
"""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.cluster.problems import ClusterFileError

ACCOUNT = "123456789012"
LONG_ID = "0123456789abcdef0"
POLICY = "nodeGroups[0].additionalPolicies[0]"
LABEL = "nodeGroups[0].labels"


def of_resource(prefix: str) -> tuple[list[str], list[str]]:
    """Ids of EC2: eight hexadecimal digits of old, seventeen since ("Resource IDs", EC2 User Guide)."""
    good = [f"{prefix}-01234567", f"{prefix}-{LONG_ID}"]
    bad = [
        f"{prefix}-0123456",
        f"{prefix}-{LONG_ID}1",
        f"{prefix}-0123456g",
        f"{prefix}-0123456F",
        f"{prefix}x-01234567",
    ]
    return good, [*bad, f"x{prefix}-01234567", f"{prefix}01234567", "01234567", f"{prefix}-01234567 ", ""]


# Key: what is accepted, what is not.
FORMS: dict[str, tuple[list[Any], list[Any]]] = {
    "name": (["a", "a1", "a-b", "a--b"], ["", "1a", "-a", "a-", "A", "a_b", "a.b", "ä"]),
    "nodeGroups[0].name": (["a", "a1", "a-b"], ["", "1a", "-a", "a-", "A", "a_b", "a.b"]),
    # "Regions and Zones", EC2 User Guide: us-gov-west-1 has a part more, Local Zones have a place.
    "region": (
        ["us-west-2", "us-gov-west-1", "ap-southeast-7", "us-iso-east-1"],
        [
            "west-2",
            "usa-west-2",
            "u-west-2",
            "us-2",
            "us-west",
            "us-west-22",
            "us-west-2a",
            "US-west-2",
            "us-we5t-2",
            "us--2",
        ],
    ),
    "network.subnets[0].zone": (
        ["us-west-2a", "us-gov-west-1b", "us-west-2-lax-1a", "ap-southeast-2-per-1a"],
        [
            "us-west-2",
            "us-west-2ab",
            "us-west-2A",
            "us-west-2-1a",
            "us-west-2-la-1a",
            "us-west-2-laxx-1a",
            "us-west-2-lax-a",
            "us-west-2-lax-1",
            "us-west-2-lax-12a",
            "us-west-22a",
            "us-2a",
            "usa-west-2a",
            "us-west-2-LAX-1a",
            "west-2a",
        ],
    ),
    # https://kubernetes.io/releases/version-skew-policy/: major, minor, patch.
    "kubernetesVersion": (
        ["1.36", "v1.36", "1.36.3", "1.34.10", "v1.34.10"],
        ["1", "v1", "2.36", "1.x", "1.36.", "1.36.x", "V1.36", "1.36.3.1", "1.36-rc.1", "136", " 1.36", True],
    ),
    # "Instance type naming conventions", EC2 Instance Types: a family, a full stop, a size.
    "controlPlane.instanceType": (
        ["t3.medium", "c7gn.large", "u-6tb1.112xlarge", "m5.metal-24xl"],
        ["t3", "t3.", ".medium", "T3.medium", "t3.Medium", "t3_medium", "t3.medium.x", "t3 .medium", ""],
    ),
    # `AllowedInstanceType`, EC2 Auto Scaling API Reference: 1 to 30 characters.
    "nodeGroups[0].instanceRequirements.allowedTypes[0]": (
        ["m7i.large", "m7*", "*.metal*", "*3*", "u-6tb1.*", "c" * 30],
        ["", "M7*", "m7 ", "m7_i", "c" * 31, "m7?"],
    ),
    "nodeGroups[0].capacityReservation.id": (
        ["cr-01234567", "cr-0123456789abcdef0"],
        ["cr-", "cr-0123456", "cr-0123456789ABCDEF0", "crg-01234567", "cr-0123456789abcdef01"],
    ),
    "nodeGroups[0].capacityReservation.resourceGroup": (
        [
            "arn:aws:resource-groups:us-west-2:123456789012:group/nodes",
            "arn:aws:resource-groups:us-west-2:123456789012:group/a.b_c-1",
        ],
        [
            "nodes",
            "arn:aws:resource-groups:us-west-2:123456789012:group/",
            "arn:aws:ec2:us-west-2:123456789012:group/nodes",
        ],
    ),
    "nodeGroups[0].spotPrice": (
        ["0.05", "9999", "9999.123456", "1", "0.123456", 1],
        ["10000", "0.1234567", "0.", ".05", "0,05", "-1", "1e3", "", "0.05 ", True],
    ),
    # The kinds that EC2 imports: "Create a key pair for your EC2 instance", EC2 User Guide.
    "ssh.publicKey": (
        ["ssh-rsa AAAAB3Nza+/==", "ssh-ed25519 AAAAC3Nz", "ssh-ed25519 AAAAC3Nz me@example.com laptop", "ssh-rsa A b"],
        [
            "ssh-dss AAAAB3",
            "ecdsa-sha2-nistp256 AAAA",
            "ssh-rsa",
            "ssh-rsa ",
            "AAAAB3",
            "ssh-rsa AAA$A",
            "ssh-rsaAAAA",
            "ssh-rsa AAAA\nssh-rsa BBBB",
            "x ssh-rsa AAAA",
        ],
    ),
    # `KeyName`, CreateKeyPair, EC2 API Reference: up to 255 ASCII characters, no spaces at the ends.
    "ssh.keyName": (
        ["a", "my laptop", "k" * 255, "!~", "a" + " " * 253 + "b"],
        ["", " a", "a ", "k" * 256, "schlüssel", "a\tb"],
    ),
    "assets.mirror": (
        ["http://a", "https://mirror.example.com", "https://mirror.example.com:8443/k8s/?a=b#c", "https://a/"],
        [
            "s3://bucket/k8s",
            "httpss://a",
            "https:/a",
            "https://",
            "https:///k8s",
            "mirror.example.com",
            "https://a b",
            "https://a/b c",
            "HTTPS://a",
            "xhttps://a",
            "https://a\n",
        ],
    ),
    # RFC 1123, section 2.1: labels of up to 63 letters, digits and hyphens, none at the ends.
    "api.additionalNames[0]": (
        ["a", "A9.Example.COM", "10.1.2.3", "a-b.c--d", "l" * 63, f"{'l' * 63}.{'m' * 63}"],
        [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "-a",
            "a-",
            "a.-b",
            "a.b-",
            "l" * 64,
            f"a.{'m' * 64}",
            "a_b",
            "a:443",
            "ä.example",
        ],
    ),
    "network.dnsDomain": (["cluster.local", "k8s"], ["cluster.local.", "cluster_local", "-a", ""]),
    "image.rootDevice": (
        ["/dev/xvda", "/dev/sda1"],
        ["xvda", "/dev/", "/dev/XVDA", "/dev/a/b", "/dev/sda-1", "dev/xvda"],
    ),
    # `Name`, PutParameter, AWS Systems Manager API Reference: letters, digits, .-_, and / between the levels.
    "image.ssmParameter": (["/a", "/aws/service/x_Y-1.2/ami-id"], ["a", "/", "", "/a b", "/a:1", "/ä", "aws/service"]),
    "network.vpc.id": of_resource("vpc"),
    "network.subnets[0].id": of_resource("subnet"),
    "network.routeTable": of_resource("rtb"),
    "network.internetGateway": of_resource("igw"),
    "network.dhcpOptions": (
        [*of_resource("dopt")[0], "default"],
        [*of_resource("dopt")[1], "Default", "defaults", "xdefault", "dopt-default"],
    ),
    "nodeGroups[0].additionalSecurityGroups[0]": of_resource("sg"),
    "api.allowedPrefixLists[0].id": of_resource("pl"),
    "nodeGroups[0].ingress[0].securityGroups[0]": of_resource("sg"),
    "nodeGroups[0].ingress[0].ports": (
        [0, 80, "80", "80-80", "0-65535"],
        ["", "http", "80,443", "80:90", "80 - 90", "-1", "1-", "000080", "80-90-95", 1.5, True],
    ),
    # `IpRange`, EC2 API Reference: "a-z, A-Z, 0-9, spaces, and ._-:/()#,@[]+=&;{}!$*", 255 characters.
    "nodeGroups[0].ingress[0].description": (
        ["a", "Node ports (._-:/#,@[]+=&;{}!$*)", "a" * 255],
        ["", "a" * 256, "it's", "ä", "a\nb", 'a"b', "a<b"],
    ),
    "image.id": of_resource("ami"),
    "api.elasticIp.allocationId": of_resource("eipalloc"),
    # "IAM identifiers", IAM User Guide: no region, an account or aws; paths; letters, digits and +=,.@_-.
    POLICY: (
        [
            f"arn:aws:iam::{ACCOUNT}:policy/team",
            "arn:aws-us-gov:iam::aws:policy/a/b/Az09+=,.@_-",
            "arn:aws:iam::aws:policy/x",
        ],
        [
            f"arn:aws:iam::{ACCOUNT}:role/team",
            f"arn:aws:iam::{ACCOUNT[1:]}:policy/team",
            f"arn:aws:iam::{ACCOUNT}0:policy/t",
            "arn:aws:iam:::policy/team",
            "arn:aws:iam::aws:policy/",
            "arn:aws:iam::AWS:policy/x",
            "arn:aws1:iam::aws:policy/x",
            "arn:aws:iam:us-west-2:aws:policy/x",
            "arn:aws:iam::aws:policy/ä",
            "arn:aws:iam::aws:policy/a b",
            "team",
            "",
            f"aws:iam::{ACCOUNT}:policy/team",
            "arn:AWS:iam::aws:policy/x",
            "arn:aws:iam::awsx:policy/x",
        ],
    ),
    # `${AWS::AccountId}` is CloudFormation's name for the stack's account.
    "iam.permissionsBoundary": (
        [f"arn:aws:iam::{account}:policy/b" for account in (ACCOUNT, "${AWS::AccountId}")],
        [f"arn:aws:iam::{ACCOUNT}:role/b", "b", *(f"arn:aws:iam::{name}:policy/b" for name in ("${Account}", "", "$"))],
    ),
    "iam.masters.role": (
        [f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("a", "a/b/Az09+=,.@_-", "x" * 64)],
        [
            *(f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("", "a/", "/a", "x" * 65, "ä", "a b", "${A}/a")),
            f"arn:aws:iam::{ACCOUNT}:instance-profile/a",
            "arn:aws:iam::aws:role/a",
            "a",
        ],
    ),
    "iam.masters.instanceProfile": (
        [f"arn:aws:iam::{ACCOUNT}:instance-profile/{name}" for name in ("a", "a/b", "x" * 128)],
        [f"arn:aws:iam::{ACCOUNT}:{name}" for name in ("role/a", "instance-profile/", f"instance-profile/{'x' * 129}")],
    ),
    # "Key identifiers (KeyId)", AWS KMS Developer Guide; ids of multi-Region keys begin with mrk-.
    "controlPlane.volume.kmsKey": (
        [
            f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab",
            f"arn:aws-cn:kms:cn-north-1:{ACCOUNT}:key/0",
            f"arn:aws:kms:us-west-2:{ACCOUNT}:key/mrk-1234abcd12ab34cd56ef1234567890ab",
            "arn:aws:kms:us-west-2:${AWS::AccountId}:key/1234abcd-12ab-34cd-56ef-1234567890ab",
        ],
        [
            f"arn:aws:kms:us-west-2:{ACCOUNT}:alias/a",
            f"arn:aws:kms:us-west-2:{ACCOUNT}:key/",
            f"arn:aws:kms::{ACCOUNT}:key/0",
            f"arn:aws:kms:us-west-2:{ACCOUNT[1:]}:key/0",
            f"arn:aws:kms:us-west-2:{ACCOUNT}0:key/0",
            "1234abcd",
            "alias/a",
            f"arn:aws:kms:us-west-2:{ACCOUNT}:key/xyz",
            f"arn:aws:kms:US:{ACCOUNT}:key/0",
            f"arn:aws1:kms:us-west-2:{ACCOUNT}:key/0",
            f"arn:aws:s3:us-west-2:{ACCOUNT}:key/0",
            f"arn:aws:kms:us-west-2:{ACCOUNT}:key/0A",
            f"arn:aws:kms:${{AWS::Region}}:{ACCOUNT}:key/0",
            "arn:aws:kms:us-west-2:AWS::AccountId:key/0",
        ],
    ),
    # "What's in a secret", AWS Secrets Manager User Guide: letters, digits and /_+=.@-.
    "certificateAuthority.secret": (
        [
            f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:ca-AbCdEf",
            f"arn:aws-cn:secretsmanager:cn-north-1:{ACCOUNT}:secret:a/b_c+d=e.f@g-AbCdEf",
        ],
        [
            f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:",
            f"arn:aws:secretsmanager::{ACCOUNT}:secret:ca-AbCdEf",
            "ca",
            f"arn:aws:secretsmanager:us-west-2:{ACCOUNT[1:]}:secret:ca",
            f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}0:secret:ca",
            f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:c a",
            f"arn:aws:ssm:us-west-2:{ACCOUNT}:secret:ca",
            f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:ca:x",
            f"arn:aws:secretsmanager:US:{ACCOUNT}:secret:ca",
        ],
    ),
    # "General purpose bucket naming rules", Amazon S3 User Guide: 3 to 63 characters.
    "etcd.backups.bucket": (
        ["abc", "a.b-c", "b" * 63, "1-a"],
        ["ab", "b" * 64, "-abc", "abc-", "ABC", "a_b", "a..b", "192.168.5.4", "xn--abc", "abc-s3alias", ""],
    ),
    # `Id`, HostedZone, Route 53 API Reference: up to 32 characters.
    "addons.externalDns.zones[0]": (
        ["Z0", f"Z{'9' * 31}", "Z0123456789ABCDEFGHIJ"],
        ["Z", f"Z{'9' * 32}", "z0123", "A0123", "Z01a", "/hostedzone/Z0123", "example.com", ""],
    ),
    "addons.charts[0].sha256": (
        ["0123456789abcdef" * 4],
        ["0" * 63, "0" * 65, "G" * 64, "A" * 64, "sha256:" + "0" * 64, ""],
    ),
    # Helm's `ValidateReleaseName` (pkg/chart/common/util, Helm 4): up to 53 characters, of which a release makes names.
    "addons.charts[0].name": (
        ["a", "0", "a-0", "r" * 53],
        ["", "r" * 54, "-a", "a-", "A", "a_b", "a.b"],
    ),
    "addons.charts[0].namespace": (["kube-system", "n" * 53], ["n" * 54, "Kube", "-n", "n-", ""]),
    "controlPlane.files[0].path": (
        ["/etc/motd", "/a", "/opt/x_y.Z@1+2,3:4-5"],
        ["etc/motd", "/", "/etc/", "//etc", "/etc//motd", "/etc/a b", "/etc/ä", "/etc/a'", ""],
    ),
    "controlPlane.files[0].mode": (
        ["0644", "755", "0000", "0777"],
        ["644 ", "0844", "1644", "64", "00644", "06444", "u+x", 644, ""],
    ),
    # systemd.unit(5), "Description": a name, a type.
    "controlPlane.units[0].name": (
        [f"agent.{kind}" for kind in ("service", "timer", "socket", "mount", "path", "target", "slice")]
        + ["a@1.service", "A_b:c-d.e.timer"],
        [
            "agent",
            ".service",
            "agent.",
            "agent.swap",
            "agent.services",
            "xagent.xservice",
            "a b.service",
            "a/b.service",
            "ä.service",
            "agent.Service",
            "agentservice",
        ],
    ),
    "controlPlane.preBootCommands[0]": (["x", " x ", "a\nb", "\nx"], ["", " ", "\n\t "]),
    "nodeGroups[0].postBootCommands[0]": (["x"], [""]),
    "nodeGroups[0].taints[0].key": (["dedicated", "example.com/team"], ["", "a b", "-a", "example.com/"]),
    "nodeGroups[0].taints[0].value": (["", "v", "v" * 63], ["v" * 64, "-v", "a b"]),
}
# "Labels and Selectors", Kubernetes' documentation: a prefix of up to 253 characters, a name of up to 63.
LABEL_KEYS = (
    ["a", "A.b_c-9", "n" * 63, "example.com/team", f"{'p' * 253}/team", "a/b", "0/0"],
    [
        "",
        "n" * 64,
        f"{'p' * 254}/team",
        "/team",
        "team/",
        "-a",
        "a-",
        ".a",
        "_a",
        "a b",
        "a/b/c",
        "Example.com/team",
        "-example/team",
        "example-/team",
        "exa_mple/team",
        "ä",
    ],
)
LABEL_VALUES = (
    ["", "a", "A.b_c-9", "v" * 63],
    ["v" * 64, "-a", "a-", ".a", "a_", "a b", "a/b", "ä"],
)
MIRRORS = (
    ["docker.io", "registry.example.com", "10.1.2.3"],
    ["docker.io/library", "docker_io", "docker.io:5000", "-a"],
)


def written(path: str, value: Any) -> dict[str, Any]:
    """A cluster file with one key."""
    content: Any = value
    for part in reversed(path.split(".")):
        name, _, index = part.partition("[")
        content = {name: [content] if index else content}
    return dict(content)


def refused(data: dict[str, Any], path: str, value: Any) -> bool:
    """Whether a text is refused for its form at a key; much else may be wrong with so short a file."""
    try:
        parse(data)
    except ClusterFileError as error:
        return any(str(problem).startswith(f"{path}: {value!r} is not ") for problem in error.problems)
    return False


@pytest.mark.parametrize("path", FORMS)
def test_a_text_of_the_right_form_is_accepted_and_of_another_refused_at_its_key(path: str) -> None:
    good, bad = FORMS[path]
    assert [value for value in good if refused(written(path, value), path, value)] == []
    assert [value for value in bad if not refused(written(path, value), path, value)] == []


@pytest.mark.parametrize(
    ("path", "forms"),
    [("nodeGroups[0].labels", LABEL_KEYS), ("controlPlane.containerd.registryMirrors", MIRRORS)],
)
def test_a_key_of_ones_own_has_a_form_too(path: str, forms: tuple[list[str], list[str]]) -> None:
    value: Any = "v" if path.endswith("labels") else ["https://mirror.example.com"]
    good, bad = forms
    assert [key for key in good if refused(written(path, {key: value}), path, key)] == []
    assert [key for key in bad if not refused(written(path, {key: value}), path, key)] == []


def test_a_labels_value_has_a_form() -> None:
    path, (good, bad) = "nodeGroups[0].labels", LABEL_VALUES
    assert [value for value in good if refused(written(path, {"team": value}), f"{path}.team", value)] == []
    assert [value for value in bad if not refused(written(path, {"team": value}), f"{path}.team", value)] == []


# "Subnet CIDR blocks", Amazon VPC User Guide; RFC 4632: an address of four numbers, a prefix of 0 to 32.
RANGES = (
    ["0.0.0.0/0", "10.1.2.3/32", "203.0.113.0/24"],
    ["10.0.0.0", "10.0.0/8", "10.0.0.0/33", "10.0.0.0/-1", "2001:db8::/32"],
)
ADDRESSES = (["172.20.0.9"], ["172.20.0", "172.20.0.256", "172.20.0.9/32", "2001:db8::1", "host", 9])


def test_ranges_and_addresses_are_those_of_ipv4() -> None:
    assert [
        value for value in RANGES[0] if refused({"api": {"allowedCidrs": [value]}}, "api.allowedCidrs[0]", value)
    ] == []
    assert [
        value
        for value in [*RANGES[1], 10, "", None]
        if value is not None and not refused({"api": {"allowedCidrs": [value]}}, "api.allowedCidrs[0]", value)
    ] == []
    path = "controlPlane.addresses[0]"
    assert [value for value in ADDRESSES[0] if refused(written(path, value), path, value)] == []
    assert [value for value in ADDRESSES[1] if not refused(written(path, value), path, value)] == []
