"""Which files of an instance the boot program writes and removes, and who may read them.

A file under another name would not be found by who reads it: systemd, kubeadm, another version of the boot program that
takes over the volume. A key that others than root may read is none any more.
"""

from __future__ import annotations

import functools
import re

SECRET, SCRIPT, PROGRAM, PUBLIC = 0o600, 0o700, 0o755, 0o644
HOME, KUBERNETES, VOLUME = "/opt/cfngen/", "/etc/kubernetes/", "/mnt/master/"
# By whole path, the first that fits.
MODES = {
    # Certificate authorities, keys, tokens; what may hold them.
    rf"{KUBERNETES}pki/((front-proxy-|etcd/)?ca\.(crt|key)|sa\.(key|pub))": SECRET,
    rf"{KUBERNETES}(encryption\.json|manifests/cfngen-first-pod\.yaml)": SECRET,
    rf"{HOME}(join|kubeadm|kubeadm-join)\.yaml": SECRET,
    rf"{HOME}charts/[\w-]+\.values\.json": SECRET,
    # A password for ECR.
    r"/run/cfngen-images/[\w.-]+/hosts\.toml": SECRET,
    # The program itself, and the commands of the cluster file.
    rf"{HOME}(role\.json|boot/(\w+/)?\w+\.py|files/.+)": SECRET,
    rf"{HOME}commands/(pre|post)BootCommands-\d\.done": SECRET,
    rf"{HOME}commands/(pre|post)BootCommands-\d": SCRIPT,
    # A snapshot of etcd holds every Secret.
    rf"{VOLUME}snapshot\.db": SECRET,
    # Notes on the volume, for this version of the program and others.
    rf"{VOLUME}(etcd-member|joining|kubernetes-version|restored)": PUBLIC,
    # Notes on the instance.
    rf"{HOME}(approval\.json|certificates|established|first-pod|signalled|unpacked|update-pause)": PUBLIC,
    # How a task failed last, and why the webhook is not registered.
    rf"{HOME}(cfngen(-[a-z]+)?|webhook-not-registered)": PUBLIC,
    r"/var/lib/cfngen/backup\.json": PUBLIC,
    rf"{HOME}downloads/[\w.-]+\.unpacked": PUBLIC,
    # What is downloaded: archives and programs.
    rf"{HOME}(downloads/[\w.-]+|charts/[\w-]+\.tgz)|/usr/local/bin/[\w-]+": PROGRAM,
    # What others read: kubeadm (`patches.directory`: target, patch type), systemd, udev, needrestart, mount, resolvers.
    rf"{HOME}patches/(etcd|kube-(apiserver|controller-manager|scheduler)|kubeletconfiguration)\+merge\.json": PUBLIC,
    r"/etc/systemd/system/(containerd|kubelet)\.service\.d/cfngen-(storage|volumes)\.conf": PUBLIC,
    r"/etc/systemd/network/75-cfngen-pods\.network": PUBLIC,
    # udev(7): an empty file of the same name in /etc takes the place of the one in /usr/lib.
    r"/etc/udev/rules\.d/99-vpc-policy-routes\.rules": PUBLIC,
    r"/etc/needrestart/conf\.d/cfngen\.conf": PUBLIC,
    "/etc/(fstab|hosts)": PUBLIC,
    # What tests add by the cluster file.
    r"/etc/agent/run\.sh": PROGRAM,
    r"/etc/systemd/system/(agent|spare)\.service": PUBLIC,
}
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-metadata.html
METADATA = re.compile(
    r"meta-data/(autoscaling/target-lifecycle-state|spot/instance-action|events/recommendations/rebalance"
    r"|mac|instance-type"
    r"|block-device-mapping/(ephemeral\d+)?)"
)
# What other versions of the program read, or systemd's and kubeadm's rules for it.
CONTENTS = {
    f"{VOLUME}joining": "adding|promoting",
    f"{VOLUME}etcd-member": "[0-9a-f]+",
    f"{VOLUME}kubernetes-version": r"v\d+\.\d+\.\d+",
    f"{HOME}signalled": "i-[0-9a-f]+ (SUCCESS|FAILURE)",
}
# Shell patterns, as the boot program removes them.
REMOVED = {
    *(f"{KUBERNETES}pki/{name}" for name in ("", "ca.crt", "ca.key")),
    *(f"{KUBERNETES}{name}" for name in ("*.conf", "manifests/*", "manifests/etcd.yaml")),
    f"{KUBERNETES}manifests/cfngen-first-pod.yaml",
    *("/var/lib/kubelet/pki/*", "/etc/cni/net.d/*", "/var/lib/cfngen/etcd/*"),
    *(f"{HOME}{name}" for name in ("established", "certificates", "join.yaml", "files/")),
    *(f"{VOLUME}{name}" for name in ("etcd", "etcd.new", "etcd-member", "joining", "snapshot.db")),
    "/run/cfngen-images",
    *(f"/mnt/instance-storage/{name}.partial" for name in ("containerd", "kubelet", "pods")),
    "/run/systemd/network/*/ec2net_alias.conf",
}


@functools.lru_cache(maxsize=1 << 12)
def problem(path: str, mode: int, text: str) -> str:
    """Return what is wrong with writing a file, or nothing."""
    right = next((known for pattern, known in MODES.items() if re.fullmatch(pattern, path)), None)
    if right is None:
        return f"nobody knows what this file is: {path}"
    if path in CONTENTS and not re.fullmatch(CONTENTS[path], text):
        return f"nobody knows what {text!r} in {path} means"
    return "" if mode == right else f"{path} is written with mode {mode:o}, not {right:o}"
