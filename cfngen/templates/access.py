"""Shell commands that reach the cluster; the master stack shows them as outputs."""

from __future__ import annotations

from typing import NamedTuple

from cfngen.cluster.model import Cluster
from cfngen.templates.images import has_ssm_agent, login_name


class Command(NamedTuple):
    """A shell command that the user can copy from the stack's outputs.

    Attributes:
        output: name of the stack output that shows the command.
        text: the command. `${Host}` is replaced by the API's address, `${Master}` by the first master's address.
        description: what the command does.
    """

    output: str
    text: str
    description: str


def endpoint(cluster: Cluster) -> str:
    """Return the URL of the Kubernetes API, with `${Host}` in place of its address."""
    return "https://${Host}" if cluster.api.port == 443 else f"https://${{Host}}:{cluster.api.port}"


def commands(cluster: Cluster) -> list[Command]:
    """Return the commands that open a shell on the first master and fetch a kubeconfig from it.

    The commands use SSH if the instances have a key and some source may reach port 22, otherwise Session Manager. If
    neither is available, there are no commands.
    """
    set_server = f"sed 's#server: .*#server: {endpoint(cluster)}#' > kubeconfig"
    read_kubeconfig = "sudo cat /etc/kubernetes/admin.conf"
    if (cluster.ssh.key_name or cluster.ssh.public_key) and cluster.ssh.is_open:
        shell = f"ssh {login_name(cluster.control_plane.image)}@${{Master}}"
        kubeconfig = f"{shell} {read_kubeconfig} | {set_server}"
    elif cluster.ssh.session_manager and has_ssm_agent(cluster.control_plane.image):
        shell = (
            f"aws ssm start-session --region {cluster.region} --target $(aws ec2 describe-instances "
            f"--region {cluster.region} --query 'Reservations[0].Instances[0].InstanceId' --output text --filters "
            f"Name=tag:Name,Values={cluster.name}-master-a Name=instance-state-name,Values=running)"
        )
        kubeconfig = (
            f"{shell} --document-name AWS-StartInteractiveCommand --parameters 'command=\"{read_kubeconfig}\"' "
            # Session Manager prints lines before and after the file, and its terminal ends lines with "\r\n".
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
