"""Shell commands for users to reach the cluster; the master stack has them as outputs."""

from __future__ import annotations

from typing import NamedTuple

from troposphere import Sub

from cfngen.cluster.model import Cluster
from cfngen.templates.images import has_ssm_agent, login_name
from cfngen.templates.stack import PropertyValue


class ShellCommand(NamedTuple):
    """A shell command that the user can copy from the stack's outputs.

    Attributes:
        output: name of the stack output that shows the command.
        text: the command. CloudFormation replaces `${Host}` by the API's address, `${Master}` by the first master's.
    """

    output: str
    text: str
    description: str


def api_url(cluster: Cluster) -> str:
    """Return the URL of the Kubernetes API, with the placeholder `${Host}` for its address, for use in Fn::Sub."""
    return "https://${Host}" if cluster.api.port == 443 else f"https://${{Host}}:{cluster.api.port}"


def fill(text: str, **values: PropertyValue) -> PropertyValue:
    """Return a text with values for its placeholders: a plain text if all of them are known, otherwise an Fn::Sub.

    Fn::Sub may have only variables that its text uses; cfn-lint reports others.
    """
    variables: dict[str, PropertyValue] = {}
    for name, value in values.items():
        placeholder = f"${{{name}}}"
        if isinstance(value, str):
            text = text.replace(placeholder, value)
        elif placeholder in text:
            variables[name] = value
    return Sub(text, **variables) if variables else text


def shell_commands(cluster: Cluster) -> list[ShellCommand]:
    """Return the commands that open a shell on the first master and fetch a kubeconfig from it.

    The commands use SSH if the instances have a key and some source may reach port 22, otherwise Session Manager. If
    neither is available, the result is empty.
    """
    set_server_and_save = f"sed 's#server: .*#server: {api_url(cluster)}#' > kubeconfig"
    print_kubeconfig = "sudo cat /etc/kubernetes/admin.conf"
    if (cluster.ssh.key_name or cluster.ssh.public_key) and cluster.ssh.is_open:
        open_shell = f"ssh {login_name(cluster.control_plane.image)}@${{Master}}"
        fetch_kubeconfig = f"{open_shell} {print_kubeconfig} | {set_server_and_save}"
    elif cluster.ssh.session_manager and has_ssm_agent(cluster.control_plane.image):
        open_shell = (
            f"aws ssm start-session --region {cluster.region} --target $(aws ec2 describe-instances "
            f"--region {cluster.region} --query 'Reservations[0].Instances[0].InstanceId' --output text --filters "
            f"Name=tag:Name,Values={cluster.name}-master-a Name=instance-state-name,Values=running)"
        )
        fetch_kubeconfig = (
            f"{open_shell} --document-name AWS-StartInteractiveCommand --parameters 'command=\"{print_kubeconfig}\"' "
            # Session Manager prints lines before and after the file, and its terminal ends lines with "\r\n".
            f"| tr -d '\\r' | sed -n '/^apiVersion:/,/^$/p' | {set_server_and_save}"
        )
    else:
        return []
    return [
        ShellCommand(output="ShellCommand", text=open_shell, description="Opens a shell on the first master"),
        ShellCommand(
            output="KubeconfigCommand",
            text=f"(umask 077; {fetch_kubeconfig})",
            description="Writes the administrator's kubeconfig to the file kubeconfig",
        ),
    ]
