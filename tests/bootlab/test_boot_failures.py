"""Boots that cannot succeed: what the operator hears, and how soon."""

from __future__ import annotations

from cfngen.releases import exact_version

MASTER = "Master"


def test_a_corrupt_file_fails_the_stack_at_once(empty):
    path = empty.mirror.path(f"/v{exact_version(empty.cluster.kubernetes_version)}/bin/linux/amd64/kubelet")
    empty.mirror.files[path] = empty.mirror.files[path] + b"# and something else\n"
    stack = empty.create()
    empty.until("the failure", lambda: "FAILURE" in " ".join(empty.signals(stack)))
    [master] = [each for name, each in empty.instances.items() if MASTER in empty.groups[name]]
    [line] = [each for each in master.lines if "FAILED" in each]
    assert "downloads FAILED" in line
    assert "has SHA-256" in line
    assert empty.settled(stack) == "ROLLBACK_COMPLETE"


def test_a_volume_of_somebody_else_is_left_alone_and_fails_the_stack_at_once(empty):
    empty.foreign_volumes = True
    stack = empty.create()
    empty.until("the failure", lambda: "FAILURE" in " ".join(empty.signals(stack)))
    [master] = [each for name, each in empty.instances.items() if MASTER in empty.groups[name]]
    [line] = [each for each in master.lines if "FAILED" in each]
    assert "volume FAILED" in line
    assert "contains swap, not ext4; it was not changed" in line
    assert "FAILED" in empty.account.call("ec2", "get_console_output", InstanceId=master.id)["Output"]
