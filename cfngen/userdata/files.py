"""The configuration files of an instance: systemd units, containerd, CNI, kernel settings, registry credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.userdata import audit, pod_network
from cfngen.userdata.lines import text_of

BIN = "/usr/local/bin"
UNITS = "/etc/systemd/system"
BOOT = "cfngen-boot.service"
CREDENTIAL_PROVIDERS = "/etc/kubernetes/credential-providers.json"
CLOUD_CONFIG = "/etc/kubernetes/cloud.config"
MASTER_MOUNT = "/mnt/master"


def common(cluster: Cluster, *, master: bool) -> dict[str, str]:
    """Return the files of every instance, by path; `master` adds the kubelet's dependence on the data volume."""
    return {
        "/etc/modules-load.d/cfngen.conf": "overlay\nbr_netfilter\n",
        # The kubelet sets vm.overcommit_memory and kernel.panic* itself.
        "/etc/sysctl.d/99-cfngen.conf": text_of(
            "net.ipv4.ip_forward = 1",
            "net.bridge.bridge-nf-call-iptables = 1",
            "fs.inotify.max_user_instances = 8192",
            "fs.inotify.max_user_watches = 524288",
        ),
        # Debian's images let cloud-init write /etc/hosts anew at each boot, without the API's name: the kubelet, and
        # pods with the host's network, which get a copy, would start before the boot program has put it back.
        "/etc/cloud/cloud.cfg.d/99-cfngen-hosts.cfg": "manage_etc_hosts: false\n",
        CREDENTIAL_PROVIDERS: json.dumps(credential_providers()) + "\n",
        f"{UNITS}/containerd.service": CONTAINERD_UNIT,
        f"{UNITS}/kubelet.service": kubelet_unit(master=master),
        **pod_network.files(cluster),
    }


def of_master(cluster: Cluster) -> dict[str, str]:
    """Return the files that only masters have, by path."""
    route_table = ["RouteTableID = ${routeTableId}"] if network_plugin(cluster).routes else []
    return {
        # The controller tags what it makes with KubernetesCluster, on which every IAM condition of the masters rests,
        # only when it knows the cluster by that tag; KubernetesClusterID alone would switch it off (its tags.go).
        CLOUD_CONFIG: text_of("[Global]", f"KubernetesClusterTag = {cluster.name}", *route_table),
        # A token lives for 24 h: three renewals may fail before the last token ends.
        **timer("join", "Renewal of the information that nodes join with", "*-*-* 0/6:00", "10min"),
        **audit.files(cluster),
        # Not while the boot program puts authorities in place, or before the API server is back.
        **timer("certificates", "Renewal of this master's certificates", "daily", "4h", BOOT),
        "/etc/profile.d/cfngen.sh": "export KUBECONFIG=/etc/kubernetes/admin.conf\n",
        **timer("approve", "Approval of the kubelets' serving certificates", "minutely", after=BOOT),
        **timer("addons", "Add-ons", "hourly", "10min"),
        # What could not be installed is to be seen from outside.
        f"{UNITS}/cfngen-addons.service.d/console.conf": text_of("[Service]", "StandardOutput=journal+console"),
        # Each minute: what `cfngen etcd backup` asks for is done soon, and whether a snapshot is due the task decides.
        # After a reboot not before the boot program has seen etcd at work, or the console would tell of a failure.
        **(timer("backup", "Snapshots of etcd", "minutely", after=BOOT) if cluster.etcd.backups.enabled else {}),
    }


def of_node() -> dict[str, str]:
    """Return the files that only nodes have, by path."""
    return timer("addresses", "Addresses of the masters in /etc/hosts", "hourly", "30min")


def timer(task: str, title: str, calendar: str, delay: str = "10s", after: str = "") -> dict[str, str]:
    """Return the units that run a task of the boot program, `cfngen-<task>.service` and `.timer`, by path.

    Args:
        task: its name in the configuration's `tasks`.
        title: what it is, for people.
        calendar: when, as systemd's OnCalendar takes it; what was missed is made up for.
        delay: up to how much later, at random, so that masters do not all come at once.
        after: a unit that must not be starting meanwhile.
    """
    return {
        f"{UNITS}/cfngen-{task}.service": text_of(
            "[Unit]",
            f"Description={title}",
            "Wants=network-online.target",
            f"After=network-online.target {after}".rstrip(),
            "",
            "[Service]",
            "Type=oneshot",
            "WorkingDirectory=/opt/cfngen",
            f"ExecStart=/usr/bin/python3 -m boot {task}",
        ),
        f"{UNITS}/cfngen-{task}.timer": text_of(
            "[Unit]",
            f"Description={title}",
            "",
            "[Timer]",
            f"OnCalendar={calendar}",
            "AccuracySec=1s",
            f"RandomizedDelaySec={delay}",
            "Persistent=true",
            "",
            "[Install]",
            "WantedBy=timers.target",
        ),
    }


def credential_providers() -> Mapping[str, Any]:
    """Return the kubelet's CredentialProviderConfig: passwords of ECR registries come from the instance's role."""
    # Registries' names, and those that know IPv6 too, as the provider's ecrPrivateHostPattern has them.
    domains = {"dkr.": ("amazonaws.com", "amazonaws.com.cn"), "dkr-": ("on.aws", "on.amazonwebservices.com.cn")}
    services = [(kind + service, ends) for kind, ends in domains.items() for service in ("ecr", "ecr-fips")]
    return {
        "apiVersion": "kubelet.config.k8s.io/v1",
        "kind": "CredentialProviderConfig",
        "providers": [
            {
                "name": "ecr-credential-provider",
                "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
                "matchImages": [f"*.{service}.*.{end}" for service, ends in services for end in ends],
                "defaultCacheDuration": "12h",
            }
        ],
    }


def kubelet_unit(*, master: bool) -> str:
    """Return the kubelet's unit, with the files that kubeadm writes.

    A master's kubelet never runs without the data volume: etcd would begin an empty cluster on the root disk.
    """
    return text_of(
        "[Unit]",
        "Description=Kubernetes node agent",
        "Wants=network-online.target",
        "After=network-online.target containerd.service",
        *([f"RequiresMountsFor={MASTER_MOUNT}", f"AssertPathIsMountPoint={MASTER_MOUNT}"] if master else []),
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env",
        f"ExecStart={BIN}/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf "
        "--kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS",
        "Restart=always",
        "RestartSec=5",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    )


# Runs at every boot. Restart: what a failed attempt could not do (a server that was away) the next one may.
BOOT_UNIT = text_of(
    "[Unit]",
    "Description=cfngen boot program",
    "Wants=network-online.target",
    "After=network-online.target",
    "",
    "[Service]",
    "Type=oneshot",
    "RemainAfterExit=yes",
    "WorkingDirectory=/opt/cfngen",
    "ExecStart=/usr/bin/python3 -m boot",
    "Restart=on-failure",
    "RestartSec=60",
    "UMask=0022",
    "StandardOutput=journal+console",
    "StandardError=journal+console",
    "",
    "[Install]",
    "WantedBy=multi-user.target",
)
CONTAINERD_UNIT = text_of(
    "[Unit]",
    "Description=containerd container runtime",
    "After=network.target local-fs.target",
    "",
    "[Service]",
    "Type=notify",
    f"ExecStart={BIN}/containerd",
    "Delegate=yes",
    "KillMode=process",
    "Restart=always",
    "RestartSec=5",
    "LimitNOFILE=1048576",
    "TasksMax=infinity",
    "OOMScoreAdjust=-999",
    "",
    "[Install]",
    "WantedBy=multi-user.target",
)
