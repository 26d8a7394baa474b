"""What the instance's programs take: an option that they do not have, or a command that no test scripts, ends the test.

`kubectl get --ignore-notfound` exits with an error on an instance, and should not pass here because a test's pattern
looks at the beginning of the command alone. So here every command line stands whole, with the exit codes that are no
failure and how long it may take.
"""

from __future__ import annotations

import functools
import re

# Those that the boot program may use, from the programs' references:
# https://kubernetes.io/docs/reference/kubectl/generated/, https://kubernetes.io/docs/reference/setup-tools/kubeadm/,
# https://helm.sh/docs/helm/, https://etcd.io/docs/v3.6/op-guide/, ctr(8), blkid(8), journalctl(1), openssl-x509(1),
# openssl-pkey(1).
OPTIONS = {
    "kubectl": {
        *("--kubeconfig", "--request-timeout", "--server", "--namespace", "-n", "--all-namespaces", "-l", "-o", "-f"),
        *("--raw", "--field-selector", "--ignore-not-found", "--wait", "-p"),
        *("--server-side", "--force-conflicts", "--field-manager"),
    },
    "kubeadm": {"--config", "--skip-token-print", "-o"},
    "helm": {
        *("--kubeconfig", "--namespace", "--install", "--create-namespace", "--values", "--skip-crds", "--timeout"),
        *("--force-conflicts", "--history-max", "--hide-notes", "--ignore-not-found"),
    },
    "etcdctl": {
        *("--endpoints", "--cacert", "--cert", "--key", "--dial-timeout", "--command-timeout", "--write-out"),
        *("--learner", "--peer-urls"),
    },
    "etcdutl": {
        *("--write-out", "--data-dir", "--name", "--initial-cluster", "--initial-cluster-token"),
        *("--initial-advertise-peer-urls", "--bump-revision", "--mark-compacted"),
    },
    "ctr": {"-n", "-q", "-d", "--hosts-dir", "--snapshotter"},
    "blkid": {"-p", "-o", "-c", "-L"},
    "journalctl": {"-u", "-o", "--no-pager", "-n"},
    "openssl": {"-noout", "-in", "-pubkey", "-ext", "-checkend", "-pubout", "-passin"},
}

WORD, PATH, INSTANCE, ADDRESS = r"[\w@*.][\w@*.:=+-]*", r"/[\w/.*+@-]+", r"i-[\w+]+", r"[\d.]+"
DISK = r"/dev/(md/|[ms]d|nvme|xvd)\w+"
IMAGE = r"[\w.:/@-]+"
URLS = rf"https://{ADDRESS}:2379(,https://{ADDRESS}:2379)*"
AS_PROBE = " ".join(
    f"--{option}=/etc/kubernetes/pki/etcd/{file}"
    for option, file in (("cacert", "ca.crt"), ("cert", "healthcheck-client.crt"), ("key", "healthcheck-client.key"))
)
HEALTH = "--dial-timeout=5s endpoint health --command-timeout=5s --write-out=json"
ADMIN, KUBELET, SUPER = (
    rf"kubectl --kubeconfig /etc/kubernetes/{name}\.conf --request-timeout=30s"
    for name in ("admin", "kubelet", "super-admin")
)
HELM = r"--kubeconfig /etc/kubernetes/admin\.conf"
# Seconds: the limits of commands that do not have the usual one.
USUAL = 900
LIMITS = (
    ("e2fsck", 6 * 3600),
    (r"/bin/sh -c exec", 3600),
    (r"/bin/sh -c umask", 120),
    ("helm", 270),
    (rf"{KUBELET} (create|patch|get (--raw|pods))", 45),
)
# The commands that say nothing when they succeed: an answer need not be scripted. Whole ones, since one with a
# misspelt or a missing option is another command.
QUIET = (
    "systemctl daemon-reload",
    rf"systemctl (start|start --no-block|restart|try-restart|mask|enable|enable --now)( {WORD})+",
    "systemctl stop kubelet",
    rf"mkdir -p (-m 700 /var/lib/cfngen/etcd|{PATH})",
    rf"(cp -a|mv) {PATH} {PATH}",
    rf"chmod [0-7]{{3,4}} {PATH}",
    rf"mount (-o noatime (LABEL=cfngen-storage|{DISK})|--bind {PATH}) {PATH}",
    rf"umount ({DISK}|/opt/dlami/nvme)",
    r"/bin/bash /opt/cfngen/commands/(pre|post)BootCommands-\d",
    "udevadm (settle|control --reload-rules)",
    "swapoff -a",
    rf"dd if={DISK} of=/dev/null bs=1M count=1",
    rf"resize2fs {DISK}",
    rf"mkfs\.ext4 -q (-F -m 0 -E nodiscard -L cfngen-storage|-m 0 -L cfngen-master) {DISK}",
    rf"mkfs\.(ext4 -q -m 0 -E nodiscard|xfs -q -K) {DISK}",
    rf"wipefs -a -q( {DISK})+",
    rf"tar -xzf {PATH} -C {PATH} --no-same-owner( --strip-components=1 --wildcards( {WORD})+)?",
    # lvm(8): what the Deep Learning AMI's service has made of the instance store disks.
    r"vgremove -f -y vg\.01",
    rf"pvremove -y( {DISK})+",
    "systemctl disable --now docker.service docker.socket",
    "iptables -w -P FORWARD ACCEPT",
    "dpkg --configure -a",
    (
        r"apt-get -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5 --no-install-recommends"
        r" (update|install( [a-z0-9.+-]+)+)"
    ),
    r"dnf -y install( [a-z0-9.+-]+)+",
)
# Likewise, and the exit codes that are an answer beside 0: what the programs' manuals say of them.
QUIET_UNLESS = {
    # systemctl(1): 5, there is no such unit; an instance without these units, or without a pod so far, needs no stop.
    "systemctl stop (kubelet containerd|kubepods.slice)": (5,),
    r"systemctl --no-block try-restart [\w.-]+\.service": (5,),
    # 1: a job failed or was cancelled.
    r"systemctl stop policy-routes@\*\.service refresh-policy-routes@\*\.(timer|service) refresh-\S+": (1, 5),
    # 1: there is no such unit.
    "systemctl disable --now dlami-nvme.service": (1,),
    # modprobe(8), sysctl(8): 1, a module is built in, or the kernel lacks a parameter; kubeadm checks what matters.
    "modprobe -a overlay br_netfilter": (1,),
    "sysctl -e -p /etc/sysctl.d/99-cfngen.conf": (1,),
    # e2fsck(8): a sum of eight flags.
    rf"e2fsck -p {DISK}": tuple(range(1, 16)),
    # mdadm(8): 1, it did not work; 2, there is no such array. What is missing is made next.
    "mdadm (--assemble --scan|--stop /dev/md/cfngen)": (1, 2),
}
# Those whose answer matters, which a test must script.
SPOKEN = (
    (
        rf"{ADMIN} -n [\w-]+ get secrets -l owner=helm,name=[\w-]+,status in"
        r" \(pending-install,pending-rollback,pending-upgrade,uninstalling\) -o json"
    ),
    rf"{ADMIN} -n [\w-]+ delete secret sh\.helm\.release\.v1\.[\w.-]+ --ignore-not-found",
    rf"{ADMIN} -n kube-system get (configmap|lease) cfngen-addons -o json --ignore-not-found",
    rf"{ADMIN} apply --server-side --force-conflicts( --field-manager=(cfngen(-[a-e]|-addons)?|helm))? -f -",
    rf"{ADMIN} certificate approve [\w-]+",
    rf"{ADMIN} get --server=https://{ADDRESS}:443 --raw /openid/v1/jwks",
    rf"{ADMIN} create -f -",
    rf"{ADMIN} delete node {INSTANCE} --ignore-not-found --wait=false",
    rf"{ADMIN} delete clusterrolebinding kubeadm:node-autoapprove-bootstrap --ignore-not-found",
    rf"{ADMIN} get certificatesigningrequests -o json",
    (
        rf"{ADMIN} get node {INSTANCE}"
        r" (-o json|--ignore-not-found -o (json|jsonpath={\.metadata\.creationTimestamp}))"
    ),
    rf"({ADMIN}|{KUBELET}) get nodes -l node-role\.kubernetes\.io/control-plane -o json",
    rf"{SUPER} get configmap kubeadm-config --namespace=kube-system --ignore-not-found -o json",
    rf"{KUBELET} create --raw /api/v1/namespaces/[\w-]+/pods/[\w-]+/eviction -f -",
    rf"{KUBELET} get --raw /api/v1/nodes\?fieldSelector=spec\.unschedulable%3Dfalse&limit=20",
    rf"{KUBELET} get pods --all-namespaces --field-selector=spec\.nodeName={INSTANCE} -o json",
    rf'{KUBELET} patch node {INSTANCE} -p {{"spec": {{"unschedulable": true}}}}',
    (
        rf'{KUBELET} patch node {INSTANCE} -p {{"metadata": {{"labels": {{"node\.kubernetes\.io/'
        r'exclude-from-external-load-balancers": "true"}}, "spec": {"unschedulable": true}}'
    ),
    (
        r"kubeadm init phase (preflight|certs (all|etcd-healthcheck-client)|kubeconfig (all|admin)|etcd local"
        r"|control-plane all|kubelet-start|upload-config (all|kubeadm)|mark-control-plane"
        r"|bootstrap-token --skip-token-print|kubelet-finalize all|addon all) --config /opt/cfngen/kubeadm\.yaml"
    ),
    r"kubeadm init phase etcd local --config /opt/cfngen/kubeadm-join\.yaml",
    r"kubeadm certs (check-expiration -o json|renew all) --config /opt/cfngen/kubeadm\.yaml",
    r"kubeadm join --config /opt/cfngen/join\.yaml",
    rf"helm show crds {PATH} {HELM}",
    (
        rf"helm upgrade --install [\w-]+ {PATH} --namespace [\w-]+ --create-namespace --values {PATH} --skip-crds"
        rf" --force-conflicts --history-max 5 --hide-notes --timeout 240s {HELM}"
    ),
    rf"helm uninstall [\w-]+ --namespace [\w-]+ --ignore-not-found --timeout 240s {HELM}",
    (
        rf"etcdctl --endpoints={URLS} {AS_PROBE} --dial-timeout=5s member"
        rf" (list --write-out=json|(promote|remove) [0-9a-f]+|add {INSTANCE} --learner --peer-urls=https://{ADDRESS}:2380)"
    ),
    # No time limit: a snapshot may be large.
    (
        rf"etcdctl --endpoints=https://127\.0\.0\.1:2379 {AS_PROBE}"
        r" (endpoint status --write-out=json|snapshot save /var/lib/cfngen/etcd/snapshot\.db)"
    ),
    rf"etcdutl snapshot status {PATH} --write-out=json",
    (
        rf"etcdutl snapshot restore /mnt/master/snapshot\.db --data-dir=/mnt/master/etcd\.new --name=[a-e]"
        rf" --initial-cluster=[a-e]=https://{ADDRESS}:2380(,[a-e]=https://{ADDRESS}:2380)*"
        rf" --initial-cluster-token=[\w-]+"
        rf" --initial-advertise-peer-urls=https://{ADDRESS}:2380 --bump-revision=1000000000 --mark-compacted"
    ),
    "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader",
    rf"ctr -n k8s\.io images ls -q name=={IMAGE}",
    (
        r'/bin/sh -c exec "\$@" > /dev/null sh ctr -n k8s\.io images pull'
        rf" --hosts-dir (/etc/containerd/certs\.d|/run/cfngen-images) --snapshotter \w+ {IMAGE}"
    ),
    r'/bin/sh -c umask 077; exec /usr/local/bin/ecr-credential-provider > "/run/cfngen-images/answer\.json"',
    rf"/usr/bin/python3 -m boot\.host\.nvme {DISK}",
    r"blkid -c /dev/null -L cfngen-storage",
    r"mv -T /mnt/master/etcd(\.new /mnt/master/etcd| /mnt/master/etcd\.(before|removed|unfinished)[\w+-]*)",
    r"stat -c %s /var/lib/cfngen/etcd/snapshot\.db",
    rf"mdadm --create /dev/md/cfngen --run --level=0 --name=cfngen --homehost=any --raid-devices=\d( {DISK}){{2,}}",
)
SPOKEN_UNLESS = {
    # systemctl(1): 3, it is not active; 4, there is no such unit.
    "systemctl is-active docker.service docker.socket": (3, 4),
    # pvs(8), lvm's exit codes: 5, it failed, e.g. without a device.
    "pvs --noheadings -o pv_name,vg_name": (5,),
    # kubectl: 1 is any failure; a lease that someone else changed, a Node or an API server that is not there yet.
    rf"{ADMIN} (create|replace) -f -": (1,),
    rf"{ADMIN} get (--server=https://{ADDRESS}:443 --raw /readyz|node {INSTANCE})": (1,),
    rf"{KUBELET} get node {INSTANCE} -o json": (1,),
    # etcdctl: 1, a member is not healthy; the answer says which.
    rf"etcdctl --endpoints={URLS} {AS_PROBE} --dial-timeout=5s endpoint health --command-timeout=5s --write-out=json": (
        1,
    ),
    # etcdctl: 1 and 128, this member is not the leader (etcdctl/ctlv3/command/move_leader_command.go).
    rf"etcdctl --endpoints=https://127\.0\.0\.1:2379 {AS_PROBE} --dial-timeout=5s move-leader [0-9a-f]+": (1, 128),
    # blkid(8): 2, nothing was found.
    r"blkid -c /dev/null -L cfngen-storage": (2,),
    rf"blkid -p -o export {DISK}": (2,),
    # pgrep(1): 1, no such process.
    "pgrep -x etcd": (1,),
    # ctr: 1, containerd does not answer.
    "ctr plugins ls( -d type==[\\w.]+,id==[a-z]+)?": (1,),
    r'ctr -n k8s\.io (tasks ls|containers ls -q labels\."io\.kubernetes\.pod\.name"~="\^cfngen-first-pod-",'
    r'labels\."io\.kubernetes\.pod\.namespace"==kube-system,labels\."io\.cri-containerd\.kind"==container)': (1,),
    r"journalctl -u kubelet -o cat --no-pager -n 500": (1,),
    # openssl-x509(1), openssl-pkey(1): 1, it is none, or it ends before that.
    r"openssl x509 -noout -in \S+ca\.crt (-pubkey|-ext basicConstraints|-checkend 2592000)": (1,),
    r"openssl pkey -pubout -passin stdin -in \S+ca\.key": (1,),
    # A console that is not there, or not to be written, ends no backup.
    "sh -c cat > /dev/console": (1, 2),
}


@functools.lru_cache(maxsize=1 << 14)
def is_quiet(text: str) -> bool:
    """Return whether a command says nothing when it succeeds."""
    return any(re.fullmatch(form, text) for form in (*QUIET, *QUIET_UNLESS))


@functools.lru_cache(maxsize=1 << 14)
def problem(text: str, expect: tuple[int, ...], timeout: int) -> str:
    """Return what is wrong with how a command is run, or nothing.

    Args:
        text: the command.
        expect: the exit codes that are no failure.
        timeout: its limit in seconds.
    """
    allowed = [(0,) for form in (*QUIET, *SPOKEN) if re.fullmatch(form, text)]
    allowed += [(0, *codes) for form, codes in (QUIET_UNLESS | SPOKEN_UNLESS).items() if re.fullmatch(form, text)]
    limit = next((seconds for form, seconds in LIMITS if re.match(form, text)), USUAL)
    if not allowed:
        return f"nobody knows what this command does: {text}"
    if tuple(expect) not in allowed:
        return f"its exit codes {expect} are no answer, only {allowed}: {text}"
    return "" if timeout == limit else f"it may take {limit} s, not {timeout}: {text}"


@functools.lru_cache(maxsize=1 << 14)
def unknown_options(command: tuple[str, ...]) -> set[str]:
    """Return the options of a command that its program does not have."""
    known = OPTIONS.get(command[0])
    if known is None:
        return set()
    # A lone dash is standard input, and what follows -p of `kubectl patch` is no option.
    options = {word.partition("=")[0] for word in command[1:] if re.match(r"-{1,2}[a-z]", word)}
    return options - known
