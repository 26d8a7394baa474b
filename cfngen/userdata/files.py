"""The configuration files of an instance: systemd units, containerd, CNI, kernel settings, registry credentials."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cfngen.cluster.iam.service_accounts import masters_publish_documents
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.userdata import audit, pod_network, proxy
from cfngen.userdata.lines import text_of

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

BIN_FOLDER = "/usr/local/bin"
UNITS_FOLDER = "/etc/systemd/system"
BOOT_SERVICE = "cfngen-boot.service"
CREDENTIAL_PROVIDERS_FILE = "/etc/kubernetes/credential-providers.json"
CLOUD_CONFIG_FILE = "/etc/kubernetes/cloud.config"
MASTER_MOUNT = "/mnt/master"


def common(cluster: Cluster, *, master: bool) -> dict[str, str]:
    """Return the files of every instance, by path."""
    return {
        "/etc/modules-load.d/cfngen.conf": "overlay\nbr_netfilter\n",
        # The kubelet sets vm.overcommit_memory and kernel.panic* itself.
        "/etc/sysctl.d/99-cfngen.conf": text_of(
            "net.ipv4.ip_forward = 1",
            "net.bridge.bridge-nf-call-iptables = 1",
            "fs.inotify.max_user_instances = 8192",
            "fs.inotify.max_user_watches = 524288",
        ),
        # On Debian cloud-init rewrites /etc/hosts at each boot, without the API's name. The kubelet, and pods with
        # hostNetwork, which get a copy of the file, would start before the boot program has added the name again.
        "/etc/cloud/cloud.cfg.d/99-cfngen-hosts.cfg": "manage_etc_hosts: false\n",
        CREDENTIAL_PROVIDERS_FILE: json.dumps(credential_providers()) + "\n",
        f"{UNITS_FOLDER}/containerd.service": CONTAINERD_UNIT,
        f"{UNITS_FOLDER}/kubelet.service": kubelet_unit(master=master),
        **pod_network.files(cluster),
    }


def of_master(cluster: Cluster) -> dict[str, str]:
    """Return the files that only masters have, by path."""
    route_table_lines = ["RouteTableID = ${routeTableId}"] if network_plugin(cluster).uses_vpc_routes else []
    return {
        # With the key KubernetesClusterTag the cloud controller manager tags its resources with KubernetesCluster,
        # which all IAM conditions of masters check. With KubernetesClusterID alone it would not (tags.go of the cloud
        # provider).
        CLOUD_CONFIG_FILE: text_of("[Global]", f"KubernetesClusterTag = {cluster.name}", *route_table_lines),
        # A token is valid for 24 h: three renewals may fail before the last token expires.
        **timer_units(
            "join", title="Renewal of the information that nodes join with", calendar="*-*-* 0/6:00", delay="10min"
        ),
        **audit.files(cluster),
        # The timer's task must not run while the boot program writes the certificate authorities, nor before the API
        # server is up.
        **timer_units(
            "certificates",
            title="Renewal of this master's certificates",
            calendar="daily",
            delay="4h",
            after_unit=BOOT_SERVICE,
        ),
        "/etc/profile.d/cfngen.sh": "export KUBECONFIG=/etc/kubernetes/admin.conf\n",
        # Nodes need it to join, so it does not wait for the rest of a master's boot.
        **timer_units("approve", title="Approval of the kubelets' certificates", calendar="minutely"),
        **timer_units("addons", title="Add-ons", calendar="hourly", delay="10min"),
        # A failed add-on is also reported in the instance's console output.
        f"{UNITS_FOLDER}/cfngen-addons.service.d/console.conf": text_of("[Service]", "StandardOutput=journal+console"),
        **_optional_timer_units(cluster),
    }


def _optional_timer_units(cluster: Cluster) -> dict[str, str]:
    """Return the timers of masters that not every cluster has, by path."""
    files_by_path: dict[str, str] = {}
    if cluster.etcd.backups.enabled:
        # The task runs every minute, so that a request of `cfngen etcd backup` is handled soon; the task itself decides
        # whether a snapshot is due. After a reboot it waits until the boot program has found etcd healthy, else the
        # console would report a failure.
        files_by_path.update(
            timer_units("backup", title="Snapshots of etcd", calendar="minutely", after_unit=BOOT_SERVICE)
        )
    if masters_publish_documents(cluster):
        # A document that somebody deleted comes back within the hour; the pods' credentials are valid for one.
        files_by_path.update(
            timer_units(
                "issuer",
                title="Documents of the issuer of service-account tokens",
                calendar="hourly",
                delay="10min",
                after_unit=BOOT_SERVICE,
            )
        )
    if cluster.addons.pod_identity_webhook.enabled:
        files_by_path.update(
            timer_units(
                "webhook",
                title="Certificate and registration of the pod identity webhook",
                calendar="*:0/10",
                delay="2min",
                after_unit=BOOT_SERVICE,
            )
        )
    return files_by_path


def of_node() -> dict[str, str]:
    """Return the files that only nodes have, by path."""
    return timer_units("addresses", title="Addresses of the masters in /etc/hosts", calendar="hourly", delay="30min")


def timer_units(task: str, title: str, calendar: str, delay: str = "10s", after_unit: str = "") -> dict[str, str]:
    """Return the units that run a task of the boot program, `cfngen-<task>.service` and `.timer`, by path.

    Args:
        task: the task's name in the configuration's `tasks`.
        calendar: when the task runs, as systemd's OnCalendar. A run that was missed, e.g. while the instance was
            stopped, is caught up on.
        delay: the maximum random delay, so that masters do not all start the task at once.
        after_unit: a unit; while it is starting, the task waits.
    """
    return {
        f"{UNITS_FOLDER}/cfngen-{task}.service": text_of(
            "[Unit]",
            f"Description={title}",
            "Wants=network-online.target",
            f"After=network-online.target {after_unit}".rstrip(),
            "",
            "[Service]",
            "Type=oneshot",
            "WorkingDirectory=/opt/cfngen",
            f"ExecStart=/usr/bin/python3 -m boot {task}",
        ),
        f"{UNITS_FOLDER}/cfngen-{task}.timer": text_of(
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


def credential_providers() -> JsonObject:
    """Return the kubelet's CredentialProviderConfig: it gets passwords for ECR registries by the instance's role."""
    # Host names of ECR's registries as in the provider's ecrPrivateHostPattern: with `dkr.` for IPv4, with `dkr-` for
    # dual-stack.
    domains_by_prefix = {
        "dkr.": ("amazonaws.com", "amazonaws.com.cn"),
        "dkr-": ("on.aws", "on.amazonwebservices.com.cn"),
    }
    image_patterns = [
        f"*.{prefix}{service}.*.{domain}"
        for prefix, domains in domains_by_prefix.items()
        for service in ("ecr", "ecr-fips")
        for domain in domains
    ]
    return {
        "apiVersion": "kubelet.config.k8s.io/v1",
        "kind": "CredentialProviderConfig",
        "providers": [
            {
                "name": "ecr-credential-provider",
                "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
                "matchImages": image_patterns,
                "defaultCacheDuration": "12h",
            }
        ],
    }


def kubelet_unit(*, master: bool) -> str:
    """Return the kubelet's systemd unit, which uses the files that kubeadm writes.

    A master's kubelet never runs without the data volume, as etcd would begin an empty cluster on the root disk.
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
        f"ExecStart={BIN_FOLDER}/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf "
        "--kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS",
        "Restart=always",
        "RestartSec=5",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    )


def boot_unit(cluster: Cluster) -> str:
    """Return the unit that runs the boot program at every boot.

    `Restart` repeats a failed boot, e.g. when a server was unavailable. The unit itself contains the variables of a
    proxy, since the first stage needs them and the files that `proxy.files` returns come with the second.
    """
    return text_of(
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
        *(f"Environment={variable}" for variable in proxy.variables(cluster)),
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
    f"ExecStart={BIN_FOLDER}/containerd",
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
