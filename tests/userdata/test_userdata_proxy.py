"""The proxy on instances: the boot program's unit, drop-ins, shells, apt, and the add-ons that call AWS."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.cluster.network.proxy import environment
from cfngen.userdata import UserData, cloud_controller, roles
from cfngen.userdata.pack import MAX_USER_DATA_BYTES

PROXY = {
    "httpsProxy": "http://proxy.example.com:3128",
    "httpProxy": "http://packages.example.com:8080",
    "noProxy": [".corp.example.com", "registry.example.com", "10.200.0.0/16"],
}
ZONE = "Z0123456789ABCDEFGHIJ"
ON = {"enabled": True}
ADD_ONS = {
    "clusterAutoscaler": ON,
    "awsLoadBalancerController": ON,
    "externalDns": {"enabled": True, "zones": [ZONE]},
    "certManager": ON,
}
DROP_INS = "files/etc/systemd/system/"
ENVIRONMENT_FILE = "files/etc/default/cfngen-proxy"


def file(proxy: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    network = {**more.pop("network", {}), **({"proxy": proxy} if proxy else {})}
    return {"network": network, "addons": ADD_ONS, **more}


def of_roles(proxy: dict[str, Any] | None, **more: Any) -> tuple[UserData, ...]:
    return roles(parse(file(proxy, **more)))


def drop_ins(role: UserData) -> set[str]:
    suffix = ".d/cfngen-proxy.conf"
    return {path[len(DROP_INS) : -len(suffix)] for path in role.files if path.endswith(suffix)}


def config(role: UserData) -> dict[str, Any]:
    return {**json.loads(role.files["config.json"]), **json.loads(role.files["role.json"])}


def values(release: str, **more: Any) -> dict[str, Any]:
    [found] = [each for each in config(of_roles(PROXY, **more)[0])["addons"] if each["name"] == release]
    chart_values: dict[str, Any] = json.loads(found["values"])
    return chart_values


EXPECTED = environment(parse(file(PROXY)))


def test_without_a_proxy_nothing_names_one() -> None:
    for role in of_roles(None):
        assert "proxy.example.com" not in "".join(role.files.values())
        assert not [path for path in role.files if path.endswith("cfngen-proxy.conf") or path == ENVIRONMENT_FILE]
        assert "Environment=" not in role.files["cfngen-boot.service"]
        assert "proxy" not in config(role)["steps"]
        assert "_PROXY" not in role.files["role.json"]


def test_boot_program_has_the_proxy_before_it_fetches_anything() -> None:
    for role in of_roles(PROXY):
        lines = role.files["cfngen-boot.service"].splitlines()
        for name, value in EXPECTED.items():
            assert f"Environment={name}={value}" in lines
            assert f"Environment={name.lower()}={value}" in lines


def test_user_data_of_both_stages_stay_within_the_limit() -> None:
    hosts = [f"{number}.{'subdomain.' * 8}example.com" for number in range(50)]
    for role in of_roles({**PROXY, "noProxy": hosts}):
        assert role.size <= MAX_USER_DATA_BYTES


def test_units_that_leave_the_instance_read_the_variables() -> None:
    for role in of_roles(PROXY):
        assert drop_ins(role) == {
            "cfngen-.service",
            "containerd.service",
            "kubelet.service",
            "snapd.service",
            "snap.amazon-ssm-agent.amazon-ssm-agent.service",
        }
        text = role.files[f"{DROP_INS}containerd.service.d/cfngen-proxy.conf"]
        assert text == "[Service]\nEnvironmentFile=/etc/default/cfngen-proxy\n"


@pytest.mark.parametrize(
    ("distribution", "session_manager", "services"),
    [
        ("ubuntu-24.04", True, ["snapd.service", "snap.amazon-ssm-agent.amazon-ssm-agent.service"]),
        ("ubuntu-22.04", False, ["snapd.service"]),
        ("debian-13", True, ["amazon-ssm-agent.service"]),
        ("debian-12", False, []),
        ("amazon-linux-2023", True, ["amazon-ssm-agent.service"]),
        ("amazon-linux-2023", False, []),
    ],
)
def test_services_of_the_image_are_restarted_with_the_proxy(
    distribution: str, session_manager: bool, services: list[str]
) -> None:
    more = {"image": {"distribution": distribution}, "ssh": {"sessionManager": session_manager}}
    for role in of_roles(PROXY, **more):
        assert config(role).get("proxyServices", []) == services
        assert ("proxy" in config(role)["steps"]) == bool(services)
        assert set(services) <= drop_ins(role)
        assert ("files/etc/apt/apt.conf.d/95cfngen-proxy" in role.files) == ("amazon" not in distribution)


def test_services_are_restarted_after_their_files_were_written() -> None:
    for role in of_roles(PROXY):
        titles = list(config(role)["steps"])
        assert titles[titles.index("settings") + 1] == "proxy"


def test_shell_and_systemd_read_the_same_variables(tmp_path: Path) -> None:
    files = of_roles(PROXY)[0].files
    assert files[ENVIRONMENT_FILE].splitlines() == [
        *(f"{name}={value}" for name, value in EXPECTED.items()),
        *(f"{name.lower()}={value}" for name, value in EXPECTED.items()),
    ]
    (tmp_path / "variables").write_text(files[ENVIRONMENT_FILE])
    script = files["files/etc/profile.d/cfngen-proxy.sh"].replace("/etc/default/cfngen-proxy", f"{tmp_path}/variables")
    (tmp_path / "profile.sh").write_text(script)
    shell = subprocess.run(
        ["sh", "-c", f". {tmp_path}/profile.sh; env"], capture_output=True, text=True, env={}, check=True
    )
    assert set(files[ENVIRONMENT_FILE].splitlines()) <= set(shell.stdout.splitlines())


def test_apt_has_the_proxy_and_the_hosts_that_it_can_exempt() -> None:
    text = of_roles(PROXY)[0].files["files/etc/apt/apt.conf.d/95cfngen-proxy"]
    assert text.splitlines() == [
        'Acquire::http::Proxy "http://packages.example.com:8080";',
        'Acquire::https::Proxy "http://proxy.example.com:3128";',
        'Acquire::http::Proxy::registry.example.com "DIRECT";',
        'Acquire::https::Proxy::registry.example.com "DIRECT";',
    ]


def test_cloud_controller_manager_has_the_proxy() -> None:
    [daemon_set] = [each for each in cloud_controller.manifests(parse(file(PROXY))) if each["kind"] == "DaemonSet"]
    [container] = daemon_set["spec"]["template"]["spec"]["containers"]
    found = {each["name"]: each["value"] for each in container["env"]}
    assert found == {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "443", **EXPECTED}


def test_charts_have_the_proxy_where_each_has_a_place_for_it() -> None:
    assert values("aws-ebs-csi-driver")["proxy"] == {
        "http_proxy": EXPECTED["HTTPS_PROXY"],
        "no_proxy": EXPECTED["NO_PROXY"],
    }
    assert values("cluster-autoscaler")["extraEnv"] == EXPECTED
    assert values("aws-load-balancer-controller")["env"] == EXPECTED
    assert {each["name"]: each["value"] for each in values("external-dns")["env"]} == {
        "AWS_DEFAULT_REGION": "us-west-2",
        **EXPECTED,
    }
    cert_manager = values("cert-manager")
    assert {name: cert_manager[name.lower()] for name in EXPECTED} == EXPECTED
    in_vpc = {"network": {"plugin": "amazon-vpc"}}
    assert values("aws-vpc-cni", **in_vpc)["env"]["HTTPS_PROXY"] == EXPECTED["HTTPS_PROXY"]


def test_users_values_win_over_the_proxy() -> None:
    own = {**ADD_ONS, "clusterAutoscaler": {"enabled": True, "values": {"extraEnv": {"HTTPS_PROXY": "http://own:1"}}}}
    assert values("cluster-autoscaler", addons=own)["extraEnv"] == {**EXPECTED, "HTTPS_PROXY": "http://own:1"}
