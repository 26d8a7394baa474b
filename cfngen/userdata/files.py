"""The configuration files of an instance: systemd units, containerd, CNI, kernel settings, registry credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cfngen.cluster.model import Cluster
from cfngen.releases import PAUSE

BIN = "/usr/local/bin"
UNITS = "/etc/systemd/system"
CREDENTIAL_PROVIDERS = "/etc/kubernetes/credential-providers.json"
CLOUD_CONFIG = "/etc/kubernetes/cloud.config"
MASTER_MOUNT = "/mnt/master"


def common(cluster: Cluster, *, master: bool) -> dict[str, str]:
    """Return the files of every instance, by path; `master` adds the kubelet's dependence on the data volume."""
    return {
        "/etc/modules-load.d/cfngen.conf": "overlay\nbr_netfilter\n",
        # The kubelet sets vm.overcommit_memory and kernel.panic* itself.
        "/etc/sysctl.d/99-cfngen.conf": _lines(
            "net.ipv4.ip_forward = 1",
            "net.bridge.bridge-nf-call-iptables = 1",
            "fs.inotify.max_user_instances = 8192",
            "fs.inotify.max_user_watches = 524288",
        ),
        "/etc/containerd/config.toml": containerd(),
        "/etc/containerd/cni.template": json.dumps(cni(), indent=1) + "\n",
        CREDENTIAL_PROVIDERS: json.dumps(credential_providers()) + "\n",
        f"{UNITS}/containerd.service": CONTAINERD_UNIT,
        f"{UNITS}/kubelet.service": kubelet_unit(master=master),
        f"{UNITS}/cfngen-masquerade.service": masquerade_unit(cluster),
    }


def of_master(cluster: Cluster) -> dict[str, str]:
    """Return the files that only masters have, by path."""
    return {
        # The controller tags what it makes with KubernetesCluster, on which every IAM condition of the masters rests,
        # only when it knows the cluster by that tag; KubernetesClusterID alone would switch it off (its tags.go).
        CLOUD_CONFIG: _lines("[Global]", f"KubernetesClusterTag = {cluster.name}", "RouteTableID = ${routeTableId}"),
        f"{UNITS}/cfngen-join.service": JOIN_UNIT,
        f"{UNITS}/cfngen-join.timer": JOIN_TIMER,
        "/etc/profile.d/cfngen.sh": "export KUBECONFIG=/etc/kubernetes/admin.conf\n",
    }


def containerd() -> str:
    """Return containerd's configuration, of version 4 (containerd 2.3 and newer)."""
    images, runtime = "[plugins.'io.containerd.cri.v1.images'", "[plugins.'io.containerd.cri.v1.runtime'"
    return _lines(
        "version = 4",
        "",
        images + ".pinned_images]",
        f'sandbox = "{PAUSE}"',
        "",
        images + ".registry]",
        'config_path = "/etc/containerd/certs.d"',
        "",
        runtime + ".containerd.runtimes.runc]",
        'runtime_type = "io.containerd.runc.v2"',
        "",
        runtime + ".containerd.runtimes.runc.options]",
        "SystemdCgroup = true",
        "",
        # The kubelet tells containerd the node's pod range; containerd fills it into the template.
        runtime + ".cni]",
        'conf_dir = "/etc/cni/net.d"',
        'conf_template = "/etc/containerd/cni.template"',
    )


def cni() -> dict[str, Any]:
    """Return the template of the CNI configuration: a veth pair for each pod, an address of the node's range.

    The packets of other nodes' pods come and go by the VPC's routes, so nothing more is needed.
    """
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": "{{.PodCIDR}}"}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    return {
        "cniVersion": "1.0.0",
        "name": "kubernetes",
        "plugins": [{"type": "ptp", "ipam": ipam}, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }


def credential_providers() -> Mapping[str, Any]:
    """Return the kubelet's CredentialProviderConfig: passwords of ECR registries come from the instance's role."""
    domains = ("amazonaws.com", "amazonaws.com.cn")
    return {
        "apiVersion": "kubelet.config.k8s.io/v1",
        "kind": "CredentialProviderConfig",
        "providers": [
            {
                "name": "ecr-credential-provider",
                "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
                "matchImages": [f"*.dkr.{service}.*.{each}" for service in ("ecr", "ecr-fips") for each in domains],
                "defaultCacheDuration": "12h",
            }
        ],
    }


def kubelet_unit(*, master: bool) -> str:
    """Return the kubelet's unit, with the files that kubeadm writes.

    A master's kubelet never runs without the data volume: etcd would begin an empty cluster on the root disk.
    """
    return _lines(
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


def masquerade_unit(cluster: Cluster) -> str:
    """Return the unit that lets pods reach the world with their node's address.

    What pods send to `network.nonMasqueradeCidr`, to other pods and to the node itself keeps the pod's address.
    """
    pods, vpc = cluster.network.pod_cidr, cluster.network.vpc.cidr
    kept = [cluster.network.non_masquerade_cidr]
    if not pods.subnet_of(kept[0]):
        kept.append(pods)
    # Amazon's resolver, the VPC's second address, answers the VPC's own addresses only, which pods' are not.
    resolver = [vpc[2]] if vpc.overlaps(kept[0]) else []
    chain, rule = "CFNGEN-MASQUERADE", f"POSTROUTING -s {pods} -m addrtype ! --dst-type LOCAL"
    commands = [
        f"-iptables -w -t nat -N {chain}",
        f"iptables -w -t nat -F {chain}",
        *(f"iptables -w -t nat -A {chain} -d {each} -j MASQUERADE" for each in resolver),
        *(f"iptables -w -t nat -A {chain} -d {each} -j RETURN" for each in kept),
        f"iptables -w -t nat -A {chain} -j MASQUERADE",
        f"-iptables -w -t nat -D {rule} -j {chain}",
        f"iptables -w -t nat -A {rule} -j {chain}",
    ]
    return _lines(
        "[Unit]",
        "Description=Masquerading of pods' traffic to other networks",
        "After=network.target",
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        *(f"ExecStart={command}" for command in commands),
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    )


def _lines(*lines: str) -> str:
    return "\n".join(lines) + "\n"


# Runs at every boot. Restart: what a failed attempt could not do (a server that was away) the next one may.
BOOT_UNIT = _lines(
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
JOIN_UNIT = _lines(
    "[Unit]",
    "Description=Renewal of the information that nodes join with",
    "",
    "[Service]",
    "Type=oneshot",
    "WorkingDirectory=/opt/cfngen",
    "ExecStart=/usr/bin/python3 -m boot join",
)
# A token lives for 24 h: three renewals may fail before the last token ends.
JOIN_TIMER = _lines(
    "[Unit]",
    "Description=Renewal of the information that nodes join with",
    "",
    "[Timer]",
    "OnCalendar=*-*-* 0/6:00",
    "RandomizedDelaySec=10min",
    "Persistent=true",
    "",
    "[Install]",
    "WantedBy=timers.target",
)
CONTAINERD_UNIT = _lines(
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
