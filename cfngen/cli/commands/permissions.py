"""`cfngen permissions`: the IAM policies that a cluster's operators, its service role and its instances need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from cfngen.cli.display.messages import show_message
from cfngen.cli.display.terminal import echo, examples_epilog
from cfngen.cli.display.typography import print_verbatim
from cfngen.cli.input import shell_completion
from cfngen.cli.input.deployment import role_option
from cfngen.cli.input.source import Source, source_options
from cfngen.cli.input.target import Target, check_account, output_option, stack_name_option
from cfngen.cli.usage import did_you_mean
from cfngen.text import pluralize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfngen.cluster.model import Cluster
    from cfngen.permissions.grants import Grant, Policy


_ISSUER_NOTE = "ISSUER stands for the stack's output ServiceAccountIssuer"


HELP = """Print the IAM policies that this cluster needs, narrowed to its region, its stacks and its name.

NAME is who needs the permissions; without NAME all policies are printed:

\b
  operator       who deploys, watches and deletes the cluster with cfngen
  execution      CloudFormation's service role (--role-arn), or an operator who deploys without one
  bucket         who makes the bucket for templates, in addition to operator
  pipeline       who deploys by the AWS CLI, the CDK or the console, with the service role and without cfngen
  boundary       a permissions boundary of the roles that are made (iam.permissionsBoundary)
  replace        who replaces instances, in addition to operator
  etcd           who takes and restores snapshots of etcd, in addition to operator
  pause          who pauses and resumes the cluster, in addition to operator
  master         the role of the masters' instances; also masters
  nodes-<group>  the role of a node group's instances; the group's name alone will do, or nodes for the role they share
  pod-<namespace>-<name>  the role of a service account's pods
  flow-log       the role that delivers flow logs to CloudWatch Logs

The policies of instances are for review, since the templates create these roles, and for existing roles that the
cluster file names: attach them yourself. --trust-policy prints the trust policy of such a role, and of the existing
role of a service account. One policy is printed
as the JSON that `aws iam create-policy` takes, several with a heading each. A managed policy of IAM has at most 6,144
characters; larger ones are split, e.g. into execution-1 and execution-2. Attach all parts; each can be printed
alone. --explain prints each statement with the component that needs it, the reason and the code that makes the call.
AWS is not called.
"""


@click.command(
    "permissions",
    help=HELP,
    short_help="Print the IAM policies that the cluster needs.",
    epilog=examples_epilog(
        "cfngen permissions",
        "cfngen permissions operator",
        "cfngen permissions operator-1 --account 123456789012 > operator-1.json",
        "aws iam create-policy --policy-name kubernetes-operator-1 --policy-document file://operator-1.json",
        "cfngen permissions master --trust-policy > trust.json",
        "cfngen permissions execution --role-arn arn:aws:iam::123456789012:role/deployer",
        "cfngen permissions master --explain",
        "cfngen permissions --explain --markdown > permissions.md",
        "cfngen permissions --output json | jq -c '[.name, .characters]'",
    ),
)
@click.argument("name", required=False, shell_complete=shell_completion.grantees)
@source_options
@stack_name_option
@click.option(
    "--account",
    metavar="NUMBER",
    default="",
    callback=check_account,
    help="The AWS account that the policies are for. Default: that of --role-arn, or of existing roles, else any.",
)
@click.option(
    "--trust-policy",
    "shows_trust_policy",
    is_flag=True,
    help="Print the trust policy of the role NAME of instances or pods instead: who may assume it.",
)
@click.option(
    "--explain",
    "explains",
    is_flag=True,
    help="Print each statement with the component that needs it, the reason and the code that makes the call.",
)
@click.option("--markdown", "as_markdown", is_flag=True, help="With --explain: print tables of Markdown.")
@role_option
@output_option
def command(
    name: str | None,
    source: Source,
    explicit_stack_name: str,
    account: str,
    role_arn: str,
    output: Literal["text", "json"],
    *,
    shows_trust_policy: bool,
    explains: bool,
    as_markdown: bool,
) -> None:
    """Print the policies of one grantee, of a node group or of all grantees, or a single policy; see HELP."""
    from cfngen.cluster.iam.existing_roles import account_of_existing_roles
    from cfngen.permissions.grants import boundary, grants, scope_of
    from cfngen.permissions.operators import SERVICE_ROLE

    if explains and shows_trust_policy:
        raise click.UsageError(
            "--explain explains what a role may do, not who may assume it; leave out --trust-policy."
        )
    if as_markdown and (output == "json" or not explains):
        raise click.UsageError(
            "--markdown is the form of --explain as text; use it with --explain, without --output json."
        )
    role_account, role = _account_and_role(role_arn) if role_arn else ("", SERVICE_ROLE)
    if account and role_account not in ("", account):
        raise click.UsageError(
            f"--role-arn is in account {role_account}, not in {account}; correct --role-arn or --account."
        )
    target = Target(source, explicit_stack_name)
    account = account or role_account or account_of_existing_roles(target.cluster)
    scope = scope_of(target.cluster, stack=target.stack_name, account=account or "*")
    all_grants = grants(target.cluster, scope, service_role=role)
    if name == "boundary" and not (explains or shows_trust_policy):
        all_grants = (boundary(target.cluster, scope),)
    if explains:
        _explain(target.cluster, all_grants, name, json=output == "json", as_markdown=as_markdown)
        return
    pod_trust = _pod_trust_policy(target.cluster, name, account) if shows_trust_policy and name else None
    if pod_trust:
        policies = [pod_trust]
    else:
        policies = _select_policies(all_grants, name)
        if shows_trust_policy:
            policies = [_trust_policy(target.cluster, policies, name)]
    if output == "json":
        for policy in policies:
            show_message(policy, json=True)
        return
    _print_policies(policies)
    if pod_trust and _ISSUER_NOTE in pod_trust.purpose:
        _print_note(f"{_ISSUER_NOTE}; replace it in the policy.")
    if not account and not shows_trust_policy:
        _print_note("these policies are for any account; use --account NUMBER to limit them to yours.")


def _explain(cluster: Cluster, all_grants: Sequence[Grant], name: str | None, *, json: bool, as_markdown: bool) -> None:
    """Print the statements of the grantees that a name selects, with their reasons."""
    from cfngen.permissions.explanations import explained_statements

    grantees = {policy.grantee for policy in _select_policies(all_grants, name)}
    explained = [(grant, tuple(explained_statements(cluster, grant))) for grant in all_grants if grant.name in grantees]
    if as_markdown:
        from cfngen.cli.render.permissions import explanation_page

        print_verbatim(explanation_page(explained).removesuffix("\n"))
        return
    for grant, statements in explained:
        if not json and len(explained) > 1:
            click.secho(f"==> {grant.name}: {grant.purpose} <==", bold=True)
        for statement in statements:
            show_message(statement, json=json)
            if not json:
                echo()


def _account_and_role(arn: str) -> tuple[str, str]:
    """Split the ARN of a role into the account number and the name of the role, which includes its path."""
    account, _, role = arn.split(":", 4)[4].partition(":role/")
    return account, role


def _trust_policy(cluster: Cluster, policies: Sequence[Policy], name: str | None) -> Policy:
    """Return the trust policy of the role that the selected policies are for.

    Raises:
        click.UsageError: they are not for one role of instances.
    """
    from cfngen.permissions.grants import Policy
    from cfngen.permissions.statements import policy_size
    from cfngen.permissions.trust import trust_policy

    grantee = policies[0].grantee
    if name is None or not (grantee == "master" or grantee.startswith("nodes-")):
        names = "master, nodes-<group>, or pod-<namespace>-<name>"
        raise click.UsageError(f"--trust-policy needs the NAME of a role of instances or pods: {names}.")
    document = trust_policy(cluster.region)
    return Policy(
        name=f"{grantee}-trust",
        grantee=grantee,
        purpose=f"the trust policy: {policies[0].purpose}",
        managed_policies=(),
        characters=policy_size(document),
        document=document,
    )


def _pod_trust_policy(cluster: Cluster, name: str, account: str) -> Policy | None:
    """Return the trust policy of a service account's role, also of an existing one; None if the name is another's.

    IAM's OIDC provider must be in the account of the role. Unless the cluster file has the issuer's URL, the issuer is
    known only after the deployment: the text ISSUER stands for it.
    """
    from cfngen.cluster.iam.service_accounts import ServiceAccount, addon_accounts
    from cfngen.cluster.naming.names import aws_partition
    from cfngen.permissions.grants import Policy
    from cfngen.permissions.service_accounts import grantee_name
    from cfngen.permissions.statements import policy_size
    from cfngen.permissions.trust import service_account_trust

    role_by_account = dict.fromkeys(addon_accounts(cluster), "")
    for entry in cluster.iam.service_accounts:
        role_by_account[ServiceAccount(entry.namespace, entry.name)] = entry.role or ""
    for service_account, role in role_by_account.items():
        grantee = grantee_name(cluster, service_account)
        if grantee != name:
            continue
        url = cluster.service_account_issuer.url if cluster.service_account_issuer else None
        issuer = (url or "https://ISSUER").removeprefix("https://")
        role_account = role.split(":")[4] if role else account or "ACCOUNT"
        provider = f"arn:{aws_partition(cluster.region)}:iam::{role_account}:oidc-provider/{issuer}"
        document = service_account_trust(service_account, provider=provider, issuer=issuer)
        note = "" if url else f"; {_ISSUER_NOTE}"
        pods = f"pods of the service account {service_account.name} in {service_account.namespace}"
        return Policy(
            name=f"{grantee}-trust",
            grantee=grantee,
            purpose=f"the trust policy of the role of {pods}{note}",
            managed_policies=(),
            characters=policy_size(document),
            document=document,
        )
    return None


def _select_policies(all_grants: Sequence[Grant], name: str | None) -> list[Policy]:
    """Return the policies to print.

    Args:
        name: name of a grantee, a node group or a single policy; None selects every policy.

    Raises:
        click.UsageError: there is no such name in this cluster.
    """
    all_policies = [policy for grant in all_grants for policy in grant.policies]
    if name is None:
        return all_policies
    selected = [policy for policy in all_policies if name in (policy.grantee, policy.name)]
    if not selected and name == "masters":
        selected = [policy for policy in all_policies if policy.grantee == "master"]
    if not selected:
        # The name of a node group selects the grantee nodes-NAME.
        selected = [policy for policy in all_policies if policy.grantee == f"nodes-{name}"]
    if not selected and name == "nodes":
        # The roles of all node groups have the same statements.
        first = next((grant.name for grant in all_grants if grant.name.startswith("nodes-")), "")
        selected = [policy for policy in all_policies if policy.grantee == first]
    if not selected:
        names = [*(grant.name for grant in all_grants), "boundary"]
        message = f"there are no policies for {name!r} in this cluster"
        suggestion = did_you_mean(name, names)
        if suggestion:
            raise click.UsageError(f"{message}; {suggestion} The names are {', '.join(names)}.")
        raise click.UsageError(f"{message}; the names are {', '.join(names)}.")
    return selected


def _print_policies(policies: Sequence[Policy]) -> None:
    """Print the policies, with headings if there are several; notes on each grantee go to standard error."""
    for policy in policies:
        if len(policies) > 1:
            click.secho(f"==> {policy.name}: {policy.purpose} <==", bold=True)
        show_message(policy, json=False)
        if len(policies) > 1:
            echo()
    policies_by_grantee: dict[str, list[Policy]] = {}
    for policy in policies:
        policies_by_grantee.setdefault(policy.grantee, []).append(policy)
    for grantee, grantee_policies in policies_by_grantee.items():
        if len(grantee_policies) > 1:
            count = pluralize(len(grantee_policies), "policy")
            names = ", ".join(policy.name for policy in grantee_policies)
            _print_note(f"{grantee} needs {count}, since IAM limits the size of a policy; attach all: {names}.")
        # Every policy of a grantee has the same managed policies.
        managed_policies = ", ".join(grantee_policies[0].managed_policies)
        if managed_policies and grantee == "boundary":
            _print_note(f"add what the policies allow that the cluster file attaches to roles: {managed_policies}.")
        elif managed_policies:
            _print_note(f"{grantee} also has the policies that the cluster file attaches: {managed_policies}.")


def _print_note(text: str) -> None:
    echo(click.style("note: ", bold=True) + text, err=True)
