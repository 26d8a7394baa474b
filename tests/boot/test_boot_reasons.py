"""Of what failed programs really say, the line that says why is chosen.

apt, mkfs, mount, e2fsck, resize2fs, tar and dpkg were run to get these outputs; those of the other programs are from
their projects' issues and sources, with names and addresses changed.
"""
# ruff: noqa: E501 - lines are as long as the programs make them

from __future__ import annotations

import pytest

from cfngen.boot.reasons import reason

KUBEADM_CRI = """\
error execution phase preflight: [preflight] Some fatal errors occurred:
	[ERROR CRI]: could not connect to the container runtime: failed to create new CRI runtime service: validate CRI v1 \
runtime API for endpoint "unix:///run/containerd/containerd.sock": rpc error: code = Unimplemented desc = unknown service \
runtime.v1.RuntimeService
[preflight] If you know what you are doing, you can make a check non-fatal with `--ignore-preflight-errors=...`
To see the stack trace of this error execute with --v=5 or higher
"""
KUBEADM_TWO = """\
	[WARNING Hostname]: hostname "ip-172-20-0-9" could not be reached
error execution phase preflight: [preflight] Some fatal errors occurred:
	[ERROR Port-10250]: Port 10250 is in use
	[ERROR DirAvailable--mnt-master-etcd]: /mnt/master/etcd is not empty
[preflight] If you know what you are doing, you can make a check non-fatal with `--ignore-preflight-errors=...`
To see the stack trace of this error execute with --v=5 or higher
"""
KUBEADM_JOIN = """\
error execution phase preflight: couldn't validate the identity of the API Server: failed to request the cluster-info \
ConfigMap: Get "https://api.k8s.internal:443/api/v1/namespaces/kube-public/configmaps/cluster-info?timeout=10s": dial tcp \
172.20.0.9:443: i/o timeout
To see the stack trace of this error execute with --v=5 or higher
"""
KUBELET = """\
Unfortunately, an error has occurred, likely caused by:
	- The kubelet is not running
	- The kubelet is unhealthy due to a misconfiguration of the node in some way (required cgroups disabled)

error execution phase kubelet-start: failed while waiting for the kubelet to start: The HTTP call equal to 'curl -sSL \
http://127.0.0.1:10248/healthz' returned error: Get "http://127.0.0.1:10248/healthz": context deadline exceeded

To see the stack trace of this error execute with --v=5 or higher
"""
ETCDCTL = """\
{"level":"warn","ts":"2026-09-01T12:00:00.778Z","logger":"etcd-client","caller":"v3@v3.6.14/retry_interceptor.go:65","msg":\
"retrying of unary invoker failed","target":"etcd-endpoints://0xc0003a2000/127.0.0.1:2379","attempt":0,"error":"rpc error: \
code = DeadlineExceeded desc = latest balancer error: last connection error: connection error: desc = \"transport: Error \
while dialing: dial tcp 127.0.0.1:2379: connect: connection refused\""}
Error: context deadline exceeded
"""
KUBECTL = """\
E0901 12:00:00.100000    1234 memcache.go:265] "Unhandled Error" err="couldn't get current server API group list: Get \
\"https://api.k8s.internal:443/api?timeout=30s\": dial tcp 172.20.0.9:443: i/o timeout"
E0901 12:00:30.100000    1234 memcache.go:265] "Unhandled Error" err="couldn't get current server API group list: Get \
\"https://api.k8s.internal:443/api?timeout=30s\": dial tcp 172.20.0.9:443: i/o timeout"
Unable to connect to the server: dial tcp 172.20.0.9:443: i/o timeout
"""
HELM = """\
WARNING: Kubernetes configuration file is group-readable. This is insecure. Location: /etc/kubernetes/admin.conf
Error: UPGRADE FAILED: values don't meet the specifications of the schema(s) in the following chart(s):
cilium:
- at '/envoy/xdsMode': value must be one of '', 'split', 'ads', 'strict-ads'
"""
DNF = """\
Errors during downloading metadata for repository 'amazonlinux':
  - Curl error (28): Timeout was reached for https://cdn.amazonlinux.com/al2023/core/mirrors/2023.5.20241001/x86_64/\
mirror.list [Failed to connect to cdn.amazonlinux.com port 443 after 30001 ms: Timeout was reached]
Error: Failed to download metadata for repo 'amazonlinux': Cannot prepare internal mirrorlist: Curl error (28): Timeout \
was reached for https://cdn.amazonlinux.com/al2023/core/mirrors/2023.5.20241001/x86_64/mirror.list
"""
DPKG = """\
W: Some index files failed to download. They have been ignored, or old ones used instead.
dpkg: error processing package iptables (--configure):
 installed iptables package post-installation script subprocess returned error exit status 1
E: Sub-process /usr/bin/dpkg returned an error code (1)
"""
FETCH = """\
E: Failed to fetch http://deb.debian.org/debian/pool/main/p/python-boto3/python3-boto3_1.26.27_all.deb  Could not connect \
to deb.debian.org:80 (151.101.2.132), connection timed out
E: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?
"""
APT_UPDATE = """\
Err:1 http://127.0.0.1:9/debian stable InRelease
  Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)
Reading package lists...
"""
MKFS = """\
mke2fs 1.47.0 (5-Feb-2023)
The file /dev/nope does not exist and no size was specified.
"""
MKFS_NULL = """\
mkfs.ext4: Device size reported to be zero.  Invalid partition specified, or
	partition table wasn't reread after running fdisk, due to
	a modified partition being busy and in use.  You may need to reboot
	to re-read your partition table.
"""
MOUNT = """\
mount: /mnt/master: wrong fs type, bad option, bad superblock on /dev/nvme1n1, missing codepage or helper program, or \
other error.
       dmesg(1) may have more information after failed mount system call.
"""
CLEANING = """\
mount: /mnt/master: mount(2) system call failed: Structure needs cleaning.
       dmesg(1) may have more information after failed mount system call.
"""
SYSTEMCTL = """\
Job for containerd.service failed because the control process exited with error code.
See "systemctl status containerd.service" and "journalctl -xeu containerd.service" for details.
"""
RESIZE = """\
resize2fs 1.47.0 (5-Feb-2023)
resize2fs: Bad magic number in super-block while trying to open /dev/nvme1n1
"""
TAR = """\

gzip: stdin: not in gzip format
tar: Child returned status 1
tar: Error is not recoverable: exiting now
"""
E2FSCK = """\
cfngen-master contains a file system with errors, check forced.
cfngen-master: Root inode is not a directory.

cfngen-master: UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY.
	(i.e., without -a or -p options)
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (KUBEADM_CRI, "unknown service runtime.v1.RuntimeService"),
        (KUBEADM_TWO, "[ERROR Port-10250]: Port 10250 is in use / [ERROR DirAvailable--mnt-master-etcd]"),
        (KUBEADM_JOIN, "dial tcp 172.20.0.9:443: i/o timeout"),
        (KUBELET, "failed while waiting for the kubelet to start"),
        (ETCDCTL, "dial tcp 127.0.0.1:2379: connect: connection refused"),
        ("Error: snapshot file integrity check failed\n", "snapshot file integrity check failed"),
        (KUBECTL, "dial tcp 172.20.0.9:443: i/o timeout"),
        ("Warning: x is deprecated\nError from server (Forbidden): nodes is forbidden\n", "(Forbidden)"),
        (HELM, "at '/envoy/xdsMode': value must be one of"),
        (DNF, "Failed to connect to cdn.amazonlinux.com port 443"),
        ("Error: Unable to find a match: iptables-nft\n", "Unable to find a match: iptables-nft"),
        ("E: Unable to locate package python3-boto3\n", "E: Unable to locate package python3-boto3"),
        (DPKG, "installed iptables package post-installation script subprocess returned error"),
        (FETCH, "Could not connect to deb.debian.org:80"),
        (APT_UPDATE, "Could not connect to 127.0.0.1:9 (127.0.0.1)"),
        ("dpkg: error: archive '/dev/null' is not a regular file\n", "is not a regular file"),
        (MKFS, "The file /dev/nope does not exist"),
        (MKFS_NULL, "Device size reported to be zero"),
        (MOUNT, "wrong fs type, bad option, bad superblock on /dev/nvme1n1"),
        (CLEANING, "Structure needs cleaning"),
        (SYSTEMCTL, "Job for containerd.service failed because the control process exited"),
        ("Failed to start x.service: Unit x.service not found.\n", "Unit x.service not found"),
        (RESIZE, "Bad magic number in super-block"),
        (TAR, "gzip: stdin: not in gzip format"),
        (E2FSCK, "Root inode is not a directory"),
    ],
)
def test_line_that_says_why_is_chosen(text: str, why: str) -> None:
    found = reason(text, "")
    assert why in found
    # Advice that comes with every failure, and what only opens or closes the cause.
    for noise in (
        "stack trace",
        "ignore-preflight",
        "Some fatal errors",
        "dmesg(1)",
        "See ",
        "Sub-process",
        "fix-missing",
    ):
        assert noise not in found
    assert found.count(" / ") <= 2


def test_log_line_is_shown_without_what_surrounds_its_cause() -> None:
    assert "caller" not in reason(ETCDCTL)
    assert "memcache.go" not in reason(KUBECTL)
    assert reason('E1122 10:00:00.000000     811 memcache.go:265] "no such host"') == 'error: "no such host"'
    zap = '{"level":"warn","caller":"retry_interceptor.go:63","error":"context deadline exceeded"}'
    assert reason(zap) == 'error: "context deadline exceeded"}'


def test_standard_output_counts_where_the_error_output_is_advice_alone() -> None:
    errors = "W: Some index files failed to download. They have been ignored, or old ones used instead.\n"
    assert "Could not connect to 127.0.0.1:9" in reason(errors, APT_UPDATE)


def test_last_of_what_a_script_said_counts() -> None:
    assert reason("one\ntwo\n\nthree\nfour\n") == "two / three / four"


def test_program_that_said_nothing() -> None:
    assert reason("", "\n") == "no output"


def test_reason_fits_a_line_of_the_console() -> None:
    assert len(reason("Error: " + "x" * 100_000)) == 900
