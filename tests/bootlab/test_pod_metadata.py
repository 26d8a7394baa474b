"""What pods reach of the instance metadata: with the templates' hop limit no credentials, unless on the host's network.

The kernel of the node decides, which takes one hop off whatever it forwards to a pod. So this needs root, for
namespaces, and no instance.
"""

from __future__ import annotations

import contextlib
import ipaddress
import subprocess
from collections.abc import Iterator

import lab_metadata
import pytest
from lab_network import BRIDGE, METADATA, Network, command, network
from test_lab_parts import identity

from cfngen.cluster.load import parse
from cfngen.templates import generate

NODE, POD, GATEWAY = "172.20.0.10", "10.244.1.2", "10.244.1.1"
TOKEN = f"http://{METADATA}/latest/api/token"
ASK = (
    "import sys, urllib.request\n"
    f"request = urllib.request.Request({TOKEN!r}, method='PUT', headers={{{lab_metadata.TTL!r}: '60'}})\n"
    "try:\n"
    "    print(urllib.request.urlopen(request, timeout=3).status)\n"
    "except OSError as error:\n"
    "    print(error)\n"
)


def hop_limits() -> set[int]:
    """The limits of the default cluster's launch templates."""
    resources = [
        resource
        for template in generate(parse({}))
        for resource in template.body["Resources"].values()
        if resource["Type"] == "AWS::EC2::LaunchTemplate"
    ]
    return {
        resource["Properties"]["LaunchTemplateData"]["MetadataOptions"]["HttpPutResponseHopLimit"]
        for resource in resources
    }


@contextlib.contextmanager
def node_with_pod(vpc: Network) -> Iterator[tuple[str, str]]:
    """The namespaces of a node and of a pod on it, which reaches others through the node under the node's address."""
    with vpc.wire(1, NODE) as (path, _):
        node, pod = path.rpartition("/")[2], f"{vpc.name}-pod"
        command("ip", "netns", "add", pod)
        try:
            command("ip", "-n", node, "address", "add", f"{NODE}/24", "dev", "ens5")
            for device in ("lo", "ens5"):
                command("ip", "-n", node, "link", "set", device, "up")
            command("ip", "-n", node, "route", "add", "default", "via", "172.20.0.1")
            command("ip", "-n", node, "link", "add", "pod0", "type", "veth", "peer", "name", "eth0", "netns", pod)
            command("ip", "-n", node, "address", "add", f"{GATEWAY}/24", "dev", "pod0")
            command("ip", "-n", node, "link", "set", "pod0", "up")
            command("ip", "-n", pod, "address", "add", f"{POD}/24", "dev", "eth0")
            command("ip", "-n", pod, "link", "set", "eth0", "up")
            command("ip", "-n", pod, "route", "add", "default", "via", GATEWAY)
            command("ip", "netns", "exec", node, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
            # Pods' addresses are known in the VPC, as with routes.
            command("ip", "-n", vpc.name, "route", "add", f"{POD}/32", "via", NODE, "dev", BRIDGE)
            yield node, pod
        finally:
            command("ip", "netns", "del", pod)


def asked(namespace: str) -> str:
    """What a program in a namespace is answered when it asks for a token."""
    done = subprocess.run(
        ["ip", "netns", "exec", namespace, "python3", "-c", ASK], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(("hops", "pod_answer"), [(1, "timed out"), (2, "200")])
def test_a_token_does_not_reach_a_pod(hops: int, pod_answer: str) -> None:
    """With two hops it would, so that it is the limit that keeps it away."""
    assert hop_limits() == {1}
    with network((ipaddress.ip_network("172.20.0.0/24"),)) as vpc:
        service = lab_metadata.Metadata(vpc.listen(METADATA, 80))
        try:
            for address in (NODE, POD):
                service.identities[address] = lab_metadata.Identity(
                    **{**vars(identity("i-1", address)), "hop_limit": hops}
                )
            with node_with_pod(vpc) as (node, pod):
                assert asked(node) == "200"
                assert pod_answer in asked(pod)
        finally:
            service.server.close()
