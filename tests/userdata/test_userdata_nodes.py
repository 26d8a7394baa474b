"""What the cluster file says of instances, as their boot program gets it."""

from __future__ import annotations

import email
import json
import re
from typing import Any

import pytest
from troposphere import Ref

from cfngen import userdata
from cfngen.boot.master import csr_approval
from cfngen.boot.node import drain, membership, rebalancing
from cfngen.cluster.checks.kubernetes_configuration import CFNGEN_FILE_PATTERNS
from cfngen.cluster.model import Cluster
from cfngen.userdata import UserData, instances, roles, user_data_diff
from cfngen.userdata.kubeadm import join_configuration

UNITS = "files/etc/systemd/system/"


def cluster(**group: Any) -> Cluster:
    return Cluster.model_validate({"nodeGroups": [{"name": "n", **group}]})


def node(**group: Any) -> UserData:
    return roles(cluster(**group))[1]


def role(found: UserData) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(found.files["role.json"])
    return loaded


def steps(found: UserData) -> list[str]:
    return list(json.loads(found.files["config.json"])["steps"])


def registration(**group: Any) -> dict[str, Any]:
    found: dict[str, Any] = join_configuration(cluster(**group).node_groups[0])["nodeRegistration"]
    return found


def test_nodes_register_with_labels_and_taints() -> None:
    found = registration(
        labels={"example.com/team": "web", "tier": ""},
        taints=[{"key": "gpu", "effect": "NoSchedule"}, {"key": "spot", "value": "yes", "effect": "NoExecute"}],
    )
    flags = {each["name"]: each["value"] for each in found["kubeletExtraArgs"]}
    assert flags["node-labels"] == "example.com/team=web,tier="
    assert found["taints"] == [
        {"key": "gpu", "value": "", "effect": "NoSchedule"},
        {"key": "spot", "value": "yes", "effect": "NoExecute"},
    ]


def test_the_number_of_pods_lies_over_the_clusters() -> None:
    found = roles(
        Cluster.model_validate(
            {
                "kubernetes": {"kubeletConfiguration": {"maxPods": 50}},
                "nodeGroups": [{"name": "n", "maxPods": 60, "kubeletConfiguration": {"registryPullQPS": 9}}],
            }
        )
    )
    patches = [role(each)["kubeletPatch"] for each in found]
    assert [patch["maxPods"] for patch in patches] == [50, 60]
    assert patches[1]["registryPullQPS"] == 9


def test_nodes_without_labels_and_taints_say_nothing_of_them() -> None:
    found = registration()
    assert "node-labels" not in [each["name"] for each in found["kubeletExtraArgs"]]
    assert "taints" not in found


def test_kubelets_settings_are_the_groups_over_the_clusters() -> None:
    given = Cluster.model_validate(
        {
            "kubernetes": {"kubeletConfiguration": {"maxPods": 50, "evictionHard": {"memory.available": "1Gi"}}},
            "controlPlane": {"kubeletConfiguration": {"maxPods": 20}},
            "nodeGroups": [{"name": "n", "kubeletConfiguration": {"evictionHard": {"memory.available": "2Gi"}}}],
        }
    )
    master, group = (role(each) for each in roles(given))
    assert (master["kubeletPatch"]["maxPods"], group["kubeletPatch"]["maxPods"]) == (20, 50)
    assert group["kubeletPatch"]["evictionHard"]["memory.available"] == "2Gi"
    assert group["kubeletPatch"]["evictionHard"]["nodefs.available"] == "10%"
    # What every node gets from the cluster's ConfigMap is not the masters' own.
    assert master["kubelet"]["maxPods"] == 50


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("1m30s", 90), ("1h", 3600), ("0s", 0), ("1500ms", 2), ("2m0.5s", 121)]
)
def test_durations_are_read_as_kubernetes_writes_them(text: str, seconds: int) -> None:
    assert instances.duration_seconds(text) == seconds


def test_shutdown_is_delayed_for_as_long_as_pods_may_take() -> None:
    path = "files/etc/systemd/logind.conf.d/zz-cfngen.conf"
    assert node().files[path] == "[Login]\nInhibitDelayMaxSec=30\n"
    longer = node(kubeletConfiguration={"shutdownGracePeriod": "1m30s"})
    assert longer.files[path] == "[Login]\nInhibitDelayMaxSec=90\n"
    assert path not in node(kubeletConfiguration={"shutdownGracePeriod": "0s"}).files
    # The last name counts, and Debian's and Ubuntu's unattended-upgrades has this one.
    assert path.rpartition("/")[2] > "unattended-upgrades-logind-maxdelay.conf"


def test_nodes_are_drained_by_a_service_that_starts_before_anything_can_fail() -> None:
    found = node(drainTimeout=7)
    assert role(found)["drain"] == 7
    assert role(found)["tasks"]["drain"] == {"drain": "node.drain.watch"}
    unit = found.files[UNITS + "cfngen-drain.service"]
    assert "ExecStart=/usr/bin/python3 -m boot drain\n" in unit
    assert "boot/node/drain.py" in found.files
    order = steps(found)
    assert order.index("draining") < min(order.index(each) for each in ("downloads", "services", "join"))


def test_what_is_not_drained_has_no_such_service() -> None:
    for found in (node(drainTimeout=0), roles(cluster())[0]):
        assert "draining" not in steps(found)
        assert UNITS + "cfngen-drain.service" not in found.files
        assert "boot/node/drain.py" not in found.files


@pytest.mark.parametrize("action", ["cordon", "drain"])
def test_recommendations_are_acted_on_by_a_service_that_starts_when_the_node_works(action: str) -> None:
    found = node(spotPrice="0.05", rebalanceRecommendation=action)
    assert role(found)["rebalance"] == action
    assert role(found)["tasks"]["rebalance"] == {"rebalance": "node.rebalancing.watch"}
    assert "ExecStart=/usr/bin/python3 -m boot rebalance\n" in found.files[UNITS + rebalancing.REBALANCE_UNIT]
    order = steps(found)
    assert order.index("first pod") < order.index("rebalancing")


def test_a_group_that_ignores_recommendations_boots_as_before() -> None:
    found = node(spotPrice="0.05")
    assert found.files == node(spotPrice="0.05", rebalanceRecommendation="ignore").files
    assert "rebalancing" not in steps(found)
    assert UNITS + rebalancing.REBALANCE_UNIT not in found.files
    assert "boot/node/rebalancing.py" not in found.files
    assert "rebalance" not in role(found)


def test_units_that_the_program_starts_are_there() -> None:
    master, group = roles(cluster())
    assert {UNITS + csr_approval.TIMER, UNITS + csr_approval.SERVICE} <= set(master.files)
    assert UNITS + membership.ADDRESSES_TIMER in group.files
    assert UNITS + drain.DRAIN_UNIT in group.files
    for found in (master, group):
        started = {path.rpartition("/")[2] for path in found.files if path.endswith((".timer", "cfngen-drain.service"))}
        tasks = {f"cfngen-{task}.{'service' if task == 'drain' else 'timer'}" for task in role(found)["tasks"]}
        assert started == tasks


def test_own_disks_are_used_before_anything_writes_where_they_will_be() -> None:
    for found in roles(cluster()):
        order = steps(found)
        assert order.index("instance storage") < order.index("downloads")
    assert "instance storage" not in steps(node(instanceStorage="none"))


FILE = {"path": "/etc/agent.conf", "content": "address = ${address}\n"}
UNIT = {"name": "agent.service", "content": "[Service]\nExecStart=/bin/true\n"}


def test_further_files_units_and_commands_reach_the_instance_as_they_are() -> None:
    found = node(files=[FILE], units=[UNIT], preBootCommands=["a ${zone}"], postBootCommands=["b"])
    given = role(found)["hooks"]
    assert given["files"] == [{**FILE, "mode": "0644"}]
    assert given["units"] == [{**UNIT, "enable": True}]
    assert given["after"] == ["b"]
    # Before packages are installed only the first stage is there.
    assert json.loads(found.files["config.json"])["before"] == ["a ${zone}"]
    assert "before" not in role(found)
    assert "boot/host/hooks.py" in found.files["user-data.py"]
    order = steps(found)
    assert order[0] == "pre-boot commands"
    assert order.index("further files") < order.index("services") < order.index("further units") < order.index("join")
    assert order[-1] == "post-boot commands"


def test_masters_run_their_commands_last_too() -> None:
    given = Cluster.model_validate({"controlPlane": {"postBootCommands": ["b"], "files": [FILE]}})
    order = steps(roles(given)[0])
    assert order[-1] == "post-boot commands"
    assert "further files" in order


def test_instances_without_anything_further_have_no_such_steps() -> None:
    assert not [each for each in steps(node()) if "further" in each or "commands" in each]


def rendered(**group: Any) -> str:
    given = cluster(**group)
    references = {"resource": "Nodes", "stack": Ref("Stack"), "joinSecretArn": Ref("Join")}
    value = userdata.node(given, given.node_groups[0], references).value.to_dict()
    pieces = value["Fn::Base64"]["Fn::Join"][1]
    return "".join(piece if isinstance(piece, str) else "text" for piece in pieces)


CLOUD_CONFIG = {
    "packages": ["jq"],
    "timezone": "Europe/Berlin",
    "write_files": [{"path": "/x", "content": "ü\n--cfngen\n"}],
}


def test_cloud_config_is_a_part_of_its_own_beside_the_loader() -> None:
    message = email.message_from_string(rendered(cloudConfig=CLOUD_CONFIG))
    assert message.is_multipart()
    script, config = message.get_payload()
    assert script.get_content_type() == "text/x-shellscript"
    assert script.get_payload().rstrip("\n") == rendered().rstrip("\n")
    assert config.get_content_type() == "text/cloud-config"
    text = config.get_payload()
    assert text.startswith("#cloud-config\n")
    assert json.loads(text.partition("\n")[2]) == CLOUD_CONFIG
    assert text.isascii()


def test_user_data_is_the_loader_alone_without_a_cloud_config() -> None:
    assert rendered().startswith("#!/usr/bin/python3\n")


def test_cloud_config_is_shown_and_counts_as_user_data() -> None:
    found = node(cloudConfig=CLOUD_CONFIG)
    assert json.loads(found.files["cloud-config.yaml"].partition("\n")[2]) == CLOUD_CONFIG
    assert found.size > node().size + len(json.dumps(CLOUD_CONFIG))


def test_difference_of_a_cloud_config_is_told() -> None:
    before, after = (rendered(cloudConfig={"packages": [each]}) for each in ("jq", "htop"))
    assert user_data_diff.difference(before, after) == "the cloud-config changes"


CLUSTERS: list[dict[str, Any]] = [
    {},
    {"controlPlane": {"count": 3}},
    *({"network": {"plugin": each}} for each in ("cilium", "calico", "flannel", "amazon-vpc", "none")),
]


@pytest.mark.parametrize("data", CLUSTERS, ids=str)
def test_paths_that_are_cfngens_are_known_to_the_check_of_further_files(data: dict[str, Any]) -> None:
    for found in roles(Cluster.model_validate(data)):
        placed = [path.removeprefix("files") for path in found.files if path.startswith("files/")]
        placed += [each["file"] for each in role(found)["assets"] if "file" in each]
        placed += ["/opt/cfngen/config.json", "/etc/systemd/system/containerd.service.d/cfngen-storage.conf"]
        unknown = [path for path in placed if not any(re.fullmatch(pattern, path) for pattern in CFNGEN_FILE_PATTERNS)]
        assert unknown == []
