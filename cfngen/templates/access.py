"""Shell commands that reach the cluster; the master stack shows them as outputs."""

from __future__ import annotations

from typing import NamedTuple

from cfngen.cluster.model import Cluster
from cfngen.templates.images import has_agent, login


class Command(NamedTuple):
    """A shell command for a person.

    Attributes:
        output: name of the output that shows it.
        text: the command; `${Host}` stands for the API's address, `${Master}` for that of the first master.
        description: what it does.
    """

    output: str
    text: str
    description: str


def endpoint(cluster: Cluster) -> str:
    """Return the URL of the Kubernetes API; `${Host}` stands for its address."""
    return "https://${Host}" if cluster.api.port == 443 else f"https://${{Host}}:{cluster.api.port}"


def commands(cluster: Cluster) -> list[Command]:
    """Return the commands that open a shell on the first master and fetch a kubeconfig from it.

    They use SSH if there is a key and a range may reach port 22, otherwise Session Manager; none if neither is open.
    """
    set_server = f"sed 's#server: .*#server: {endpoint(cluster)}#' > kubeconfig"
    read_kubeconfig = "sudo cat /etc/kubernetes/admin.conf"
    if (cluster.ssh.key_name or cluster.ssh.public_key) and cluster.ssh.is_open:
        shell = f"ssh {login(cluster.control_plane.image)}@${{Master}}"
        kubeconfig = f"{shell} {read_kubeconfig} | {set_server}"
    elif cluster.ssh.session_manager and has_agent(cluster.control_plane.image):
        shell = (
            f"aws ssm start-session --region {cluster.region} --target $(aws ec2 describe-instances "
            f"--region {cluster.region} --query 'Reservations[0].Instances[0].InstanceId' --output text --filters "
            f"Name=tag:Name,Values={cluster.name}-master-a Name=instance-state-name,Values=running)"
        )
        kubeconfig = (
            f"{shell} --document-name AWS-StartInteractiveCommand --parameters 'command=\"{read_kubeconfig}\"' "
            # The session's own lines surround the file, and its terminal ends lines with carriage returns.
            f"| tr -d '\\r' | sed -n '/^apiVersion:/,/^$/p' | {set_server}"
        )
    else:
        return []
    return [
        Command("ShellCommand", shell, "Opens a shell on the first master"),
        Command(
            "KubeconfigCommand",
            f"(umask 077; {kubeconfig})",
            "Writes the administrator's kubeconfig to the file kubeconfig",
        ),
    ]
