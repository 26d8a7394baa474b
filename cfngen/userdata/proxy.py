"""The files that make the programs of an instance use the proxy, and the values that make add-ons use it.

systemd units have a drop-in that names one file of variables. They are the boot program's units, containerd's, which
pulls images, the kubelet's, whose credential provider calls ECR, and those of the image's own services that call AWS or
snapcraft.io. The kubelet and kubeadm, which gives the control plane's pods the same variables, reach the API directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.proxy import environment
from cfngen.cluster.sections.instances import Instances
from cfngen.userdata.lines import text_of

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

ENVIRONMENT_FILE = "/etc/default/cfngen-proxy"
# A drop-in for `cfngen-` applies to all units whose names begin with that (systemd.unit(5)).
_OWN_UNITS = ("cfngen-.service", "containerd.service", "kubelet.service")
# The units of the SSM agent ("Configuring SSM Agent to use a proxy on Linux nodes", AWS Systems Manager User Guide);
# Debian's images do not contain it, but the user may have installed it.
_SSM_AGENT_SNAP = "snap.amazon-ssm-agent.amazon-ssm-agent.service"
_SSM_AGENT = "amazon-ssm-agent.service"
_SNAPD = "snapd.service"


def variables(cluster: Cluster) -> tuple[str, ...]:
    """Return the variables as `NAME=value`, in upper and lower case; none if there is no proxy.

    curl, and with it dnf, knows `http_proxy` in lower case only (curl(1)), and so does apt (apt-transport-http(1)).
    """
    upper_case = environment(cluster)
    names = [*upper_case, *map(str.lower, upper_case)]
    return tuple(f"{name}={upper_case[name.upper()]}" for name in names)


def image_services(cluster: Cluster, instances: Instances) -> tuple[str, ...]:
    """Return the units of a group's image that use the proxy; they may run before the boot program does."""
    if not cluster.network.proxy:
        return ()
    is_ubuntu = instances.image.distribution.startswith("ubuntu-")
    services = [_SNAPD] if is_ubuntu else []
    if cluster.ssh.session_manager:
        services.append(_SSM_AGENT_SNAP if is_ubuntu else _SSM_AGENT)
    return tuple(services)


def files(cluster: Cluster, instances: Instances) -> dict[str, str]:
    """Return the files of a group's instances, by path; none if there is no proxy."""
    if not cluster.network.proxy:
        return {}
    drop_in = text_of("[Service]", f"EnvironmentFile={ENVIRONMENT_FILE}")
    files_by_path = {
        ENVIRONMENT_FILE: text_of(*variables(cluster)),
        # For login shells. The file of variables has no spaces or quotes, so a shell reads it as systemd does.
        "/etc/profile.d/cfngen-proxy.sh": text_of("set -a", f". {ENVIRONMENT_FILE}", "set +a"),
        **{
            f"/etc/systemd/system/{unit}.d/cfngen-proxy.conf": drop_in
            for unit in (*_OWN_UNITS, *image_services(cluster, instances))
        },
    }
    if not instances.image.distribution.startswith("amazon-linux-"):
        files_by_path["/etc/apt/apt.conf.d/95cfngen-proxy"] = _apt_configuration(cluster)
    return files_by_path


def _apt_configuration(cluster: Cluster) -> str:
    """Return apt's configuration, for its own timers and for `sudo apt`, which do not get a shell's variables.

    The user's hosts are exceptions one by one: apt has no exceptions for domains and ranges (apt-transport-http(1)).
    """
    urls = environment(cluster)
    user_hosts = cluster.network.proxy.no_proxy if cluster.network.proxy else ()
    lines = [f'Acquire::http::Proxy "{urls["HTTP_PROXY"]}";', f'Acquire::https::Proxy "{urls["HTTPS_PROXY"]}";']
    for host in user_hosts:
        if not host.startswith(".") and "/" not in host:
            lines += [f'Acquire::{scheme}::Proxy::{host} "DIRECT";' for scheme in ("http", "https")]
    return text_of(*lines)


def as_list(cluster: Cluster) -> list[JsonObject]:
    """Return the variables as the `env` of a container; empty if there is no proxy."""
    return [{"name": name, "value": value} for name, value in environment(cluster).items()]


def as_map(cluster: Cluster, key: str) -> JsonObject:
    """Return a chart's value `key` with the variables by name, or no value if there is no proxy."""
    variables = environment(cluster)
    return {key: variables} if variables else {}
