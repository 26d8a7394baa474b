"""`cfngen permissions`: the IAM policies that a cluster's operators, its service role and its instances need."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from cfngen.cli.display.messages import show_message
from cfngen.cli.display.terminal import echo, examples_epilog
from cfngen.cli.display.typography import print_verbatim
from cfngen.cli.exit_codes import permissions_exit_code
from cfngen.cli.input import shell_completion
from cfngen.cli.input.deployment import role_option
from cfngen.cli.input.paths import PathArgument
from cfngen.cli.input.source import Source, source_options
from cfngen.cli.input.target import (
    Target,
    check_account,
    make_target,
    output_option,
    profile_option,
    sandbox_option,
    stack_name_option,
)
from cfngen.cli.usage import did_you_mean
from cfngen.text import join_and, pluralize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cfngen.cluster.model import Cluster
    from cfngen.permissions.grants import Grant, Policy
    from cfngen.permissions.statements import Statement


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
--diff FILE compares with the policies of another cluster file, --diff-deployed the roles of the templates with those of
the deployed stacks. They exit with 0 if the same is granted, 4 if less is, and 5 if more is. Only --diff-deployed calls
AWS.
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
        "cfngen permissions --diff prod.yaml",
        "cfngen permissions --diff-deployed --profile prod",
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
@click.option(
    "--diff",
    "other_path",
    metavar="FILE",
    type=PathArgument("give the cluster file to compare with"),
    help="Print what is granted more and less than by the policies of another cluster file.",
)
@click.option(
    "--diff-deployed",
    "compares_deployed",
    is_flag=True,
    help="Print what the roles of the templates are granted more and less than those of the deployed stacks.",
)
@profile_option
@sandbox_option
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
    other_path: Path | None,
    compares_deployed: bool,
    profile: str,
    sandbox: bool,
) -> None:
    """Print the policies of one grantee, of a node group or of all grantees, or a single policy; see HELP."""
    from cfngen.cluster.iam.existing_roles import account_of_existing_roles
    from cfngen.permissions.grants import boundary, scope_of
    from cfngen.permissions.operators import SERVICE_ROLE

    forms = {
        "--trust-policy": shows_trust_policy,
        "--explain": explains,
        "--diff": other_path is not None,
        "--diff-deployed": compares_deployed,
    }
    _check_forms([option for option, is_chosen in forms.items() if is_chosen], as_markdown, output, name)
    role_account, role = _account_and_role(role_arn) if role_arn else ("", SERVICE_ROLE)
    if account and role_account not in ("", account):
        raise click.UsageError(
            f"--role-arn is in account {role_account}, not in {account}; correct --role-arn or --account."
        )
    target = make_target(
        source=source,
        explicit_stack_name=explicit_stack_name,
        profile=profile,
        account_number=account,
        sandbox=sandbox,
        output=output,
    )
    if compares_deployed:
        _show_differences(*_role_statements(target), name, json=target.json)
        return
    account = account or role_account or account_of_existing_roles(target.cluster)
    all_grants = _grants(target, account, role)
    if explains:
        _explain(target.cluster, all_grants, name, json=target.json, as_markdown=as_markdown)
    elif other_path is not None:
        other = replace(target, source=replace(source, path=other_path, overrides=(), is_explicit=True))
        _compare(_grants(other, account, role), all_grants, name, json=target.json)
    elif shows_trust_policy:
        _print_all([_trust_policy(target.cluster, all_grants, name, account)], json=target.json)
    else:
        if name == "boundary":
            scope = scope_of(target.cluster, stack=target.stack_name, account=account or "*")
            all_grants = (boundary(target.cluster, scope),)
        _print_all(_select_policies(all_grants, name), json=target.json)
        if not account and not target.json:
            _print_note("these policies are for any account; use --account NUMBER to limit them to yours.")


def _grants(target: Target, account: str, service_role: str) -> tuple[Grant, ...]:
    """Return the grants of a target's cluster, in an account or, for an empty number, in any."""
    from cfngen.permissions.grants import grants, scope_of

    scope = scope_of(target.cluster, stack=target.stack_name, account=account or "*")
    return grants(target.cluster, scope, service_role=service_role)


def _check_forms(forms: Sequence[str], as_markdown: bool, output: str, name: str | None) -> None:
    """Check that the options do not ask for two forms of the same."""
    if len(forms) > 1:
        raise click.UsageError(f"{join_and(forms)} cannot be used together; choose one of them.")
    if as_markdown and (output == "json" or "--explain" not in forms):
        raise click.UsageError(
            "--markdown is the form of --explain as text; use it with --explain, without --output json."
        )


def _print_all(policies: Sequence[Policy], *, json: bool) -> None:
    """Print policies as text or as JSON."""
    if json:
        for policy in policies:
            show_message(policy, json=True)
    else:
        _print_policies(policies)


def _compare(former_grants: Sequence[Grant], present_grants: Sequence[Grant], name: str | None, *, json: bool) -> None:
    """Show what grantees are granted more and less than they were; both clusters together have the grantees."""
    names = {grant.name for grant in _selected_grants((*present_grants, *former_grants), name)}
    former, present = (
        {grant.name: grant.statements for grant in all_grants if grant.name in names}
        for all_grants in (former_grants, present_grants)
    )
    _show_differences(former, present, None, json=json)


def _role_statements(target: Target) -> tuple[Mapping[str, Sequence[Statement]], Mapping[str, Sequence[Statement]]]:
    """Return the statements of the roles of the deployed stacks and of the cluster file's templates, by logical id."""
    from cfngen.deploy.aws.errors import translate_aws_errors
    from cfngen.deploy.aws.stacks import StackTree, require_root_stack
    from cfngen.deploy.aws.templates import read_deployed, templates_in_form_of
    from cfngen.permissions.differences import statements_by_role
    from cfngen.templates import generate

    account = target.connect()
    with translate_aws_errors():
        deployed = read_deployed(StackTree(account, require_root_stack(account, target.stack_name)))
    bodies = [deployed.root_template, *(stack.template for stack in deployed.nested_stacks.values())]
    documents = templates_in_form_of(deployed.root_template, generate(target.cluster))
    return statements_by_role(bodies), statements_by_role(document.body for document in documents)


def _show_differences(
    former: Mapping[str, Sequence[Statement]],
    present: Mapping[str, Sequence[Statement]],
    name: str | None,
    *,
    json: bool,
) -> None:
    """Show what is granted more and less, of one grantee or of all, and end with the exit code that says so."""
    from cfngen.permissions.differences import permission_differences

    if name is not None and name not in (*former, *present):
        names = ", ".join(dict.fromkeys([*present, *former]))
        raise click.UsageError(f"there is no role {name!r} in the stacks or templates; the roles are {names}.")
    differences = [
        difference for difference in permission_differences(former, present) if name in (None, difference.grantee)
    ]
    for difference in differences:
        show_message(difference, json=json)
    if not differences and not json:
        echo("Nothing is granted more or less.")
    exit_code = permissions_exit_code(
        grants_more=any(difference.more for difference in differences),
        grants_less=any(difference.less for difference in differences),
    )
    click.get_current_context().exit(exit_code)


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


def _trust_policy(cluster: Cluster, all_grants: Sequence[Grant], name: str | None, account: str) -> Policy:
    """Return the trust policy of a role of instances or pods; a note says if its issuer is not known yet."""
    from cfngen.permissions.pod_trust import ISSUER_NOTE, pod_trust_policy, printed_trust_policy
    from cfngen.permissions.trust import trust_policy

    if name and (of_pods := pod_trust_policy(cluster, name, account)):
        if ISSUER_NOTE in of_pods.purpose:
            _print_note(f"{ISSUER_NOTE}; replace it in the policy.")
        return of_pods
    policies = _select_policies(all_grants, name)
    grantee = policies[0].grantee
    if name is None or not (grantee == "master" or grantee.startswith("nodes-")):
        names = "master, nodes-<group>, or pod-<namespace>-<name>"
        raise click.UsageError(f"--trust-policy needs the NAME of a role of instances or pods: {names}.")
    document = trust_policy(cluster.region)
    return printed_trust_policy(grantee, f"the trust policy: {policies[0].purpose}", document)


def _selected_grants(all_grants: Sequence[Grant], name: str | None) -> list[Grant]:
    """Return the grants that have a policy which a name selects."""
    grantees = {policy.grantee for policy in _select_policies(all_grants, name)}
    return [grant for grant in all_grants if grant.name in grantees]


def _select_policies(all_grants: Sequence[Grant], name: str | None) -> list[Policy]:
    """Return the policies to print.

    Args:
        name: name of a grantee, a node group or a single policy; None selects every policy.
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
