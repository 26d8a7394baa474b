"""Further volumes of nodes in the sandbox: every node has its own, and its boot mounts them."""

from __future__ import annotations

from typing import Any

from sandboxed import Place, place, said

from cfngen.cluster.load import parse
from cfngen.sandbox.cloudformation import client

FILE: dict[str, Any] = {
    "nodeGroups": [
        {
            "name": "build",
            "minSize": 1,
            "volumes": [
                {"size": 100, "iops": 6000, "throughput": 500, "mountPath": "/var/lib/containerd"},
                {"size": 500, "mountPath": "/cache", "fileSystem": "xfs"},
                {"size": 10, "device": "/dev/sdp"},
            ],
        },
        {"name": "plain", "minSize": 1},
    ]
}


def test_every_node_has_the_volumes_of_its_group() -> None:
    with place() as default:
        here = Place(default.account, parse(FILE))
        here.create()
        [builder] = here.instances("NodeGroupBuildAutoScalingGroup")
        [plain] = here.instances("NodeGroupPlainAutoScalingGroup")
        [line] = [line for line in said(builder) if "further volumes" in line]
        assert (
            "further volumes: /dev/sdf formatted and mounted at /var/lib/containerd, "
            "/dev/sdg formatted and mounted at /cache (" in line
        )
        assert not any("further volumes" in line for line in said(plain))
        volumes = client("ec2", "us-west-2").describe_volumes(
            Filters=[{"Name": "attachment.instance-id", "Values": [builder.id]}]
        )["Volumes"]
        found = {each["Attachments"][0]["Device"]: each for each in volumes}
        assert set(found) == {"/dev/sda1", "/dev/sdf", "/dev/sdg", "/dev/sdp"}
        assert (found["/dev/sdf"]["Iops"], found["/dev/sdf"]["Throughput"]) == (6000, 500)
        assert all({"Key": "Name", "Value": "kubernetes-nodes-build"} in each["Tags"] for each in volumes)
