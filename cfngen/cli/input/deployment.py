"""The options that `plan` and `deploy` share, and the `DeploymentRequest` that their values make up."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from cfngen.cli.input.options import Option, OptionGroup, parse_key_values
from cfngen.cli.input.paths import PathArgument
from cfngen.cli.input.target import Target
from cfngen.cli.pipeline import GeneratedTemplates, fail_on_findings, generate_and_lint, lint_documents, no_cache_option
from cfngen.errors import CfngenError
from cfngen.hints import SuggestedOption
from cfngen.text_limits import STACK_TAG_VALUE, TAG_KEY, same_but_for_case

if TYPE_CHECKING:
    from cfngen.cli.input.source import Source
    from cfngen.cluster.model import Cluster
    from cfngen.deploy.operations.deployment.preparation import DeploymentRequest, OnFailure
    from cfngen.templates.document import Document


_ROLE_ARN_PATTERN = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/\S+")
_TOPIC_ARN_PATTERN = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:\S+")


class TagError(CfngenError):
    """A tag of --tag differs from a tag of the cluster file only in case, which IAM does not distinguish."""

    code = "tag-case-conflict"

    def __init__(self, cluster_file_key: str, option_key: str) -> None:
        super().__init__(
            f"the tag {option_key} differs from {cluster_file_key} in the cluster file only in upper and lower case, "
            "and IAM treats them as the same key",
            hint=f"use --tag {cluster_file_key}=…, or remove the tag.",
        )


@dataclass(frozen=True)
class DeploymentOptions:
    """The values of the options that `plan` and `deploy` share, whose help says what they mean.

    An empty text, and None for a file, means that the option is not given.
    """

    parameters: Mapping[str, str]
    parameter_file: Path | None
    kept_parameters: tuple[str, ...]
    tags: Mapping[str, str]
    bucket: str
    kms_key: str
    role_arn: str
    notification_arns: tuple[str, ...]
    on_failure: OnFailure
    express: bool
    ignore_quotas: bool
    skip_network_check: bool
    parallel_groups: int
    prices: Path | None
    use_lint_cache: bool
    full: bool

    def request(self, target: Target, *, protect: bool = True) -> DeploymentRequest:
        """Generate and lint the templates, and return the request to deploy them.

        Raises:
            CfngenError: the cluster file, a template or a parameter file is wrong.
        """
        generated, findings = generate_and_lint(target.source, use_cache=self.use_lint_cache, check=self._check_tags)
        fail_on_findings(findings)

        from cfngen.deploy.operations.deployment.preparation import DeploymentRequest
        from cfngen.deploy.plan.costs.bill import read_price_list
        from cfngen.deploy.preflight.parameters.parameter_file import read_file

        return DeploymentRequest(
            cluster=generated.cluster,
            documents=generated.documents,
            stack_name=target.stack_name,
            token=uuid.uuid4().hex[:12],
            bucket=self.bucket,
            kms_key=self.kms_key,
            flags=self.parameters,
            parameter_file=read_file(self.parameter_file) if self.parameter_file else None,
            kept_parameters=self.kept_parameters,
            tags=self.tags,
            role_arn=self.role_arn,
            notification_arns=self.notification_arns or None,
            on_failure=self.on_failure,
            protect=protect,
            express=self.express,
            ignore_quotas=self.ignore_quotas,
            skip_network_check=self.skip_network_check,
            parallel_groups=self.parallel_groups,
            prices=read_price_list(self.prices, generated.cluster.region) if self.prices else None,
            generate=partial(_generate_linted, target.source, use_lint_cache=self.use_lint_cache),
            find_url_override=target.kubernetes_override,
        )

    def _check_tags(self, generated: GeneratedTemplates) -> None:
        case_conflicts = same_but_for_case([*generated.cluster.tags, *self.tags])
        if case_conflicts:
            cluster_file_key, option_key = case_conflicts[0]
            raise TagError(cluster_file_key, option_key)


def _generate_linted(source: Source, cluster: Cluster, *, use_lint_cache: bool) -> Sequence[Document]:
    """Return the linted templates of a state on the way to the source's cluster, which keep the source's file."""
    from cfngen.templates import generate as generate_templates
    from cfngen.templates.kept_file import with_cluster_file

    documents = with_cluster_file(generate_templates(cluster), source.load().kept_file.content)
    fail_on_findings(lint_documents(documents, region=cluster.region, use_cache=use_lint_cache))
    return documents


def _check_role_arn(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if value and not _ROLE_ARN_PATTERN.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not the ARN of a role, such as arn:aws:iam::123456789012:role/NAME.")
    return value


bucket_option = Option(
    "--bucket", metavar="NAME", default="", help="S3 bucket for the templates. Default: cfngen's own bucket."
)
role_option = Option(
    "--role-arn",
    metavar="ARN",
    default="",
    callback=_check_role_arn,
    help="IAM service role that CloudFormation assumes.",
)


def _parse_tags(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Mapping[str, str]:
    """Parse the values of --tag, and reject tags that AWS, cfngen or IAM does not allow; a click callback.

    Tags that AWS or cfngen sets are rejected, and keys that differ from another one only in upper and lower case.
    """
    from cfngen.deploy.aws.stacks import CLUSTER_TAG

    tags = parse_key_values(context, parameter, values)
    for other_key, key in same_but_for_case([CLUSTER_TAG, "Name", *tags]):
        message = f"{key!r} differs from {other_key} only in upper and lower case, and IAM treats them as the same key."
        raise click.BadParameter(message)
    for key, value in tags.items():
        if problem := STACK_TAG_VALUE.fault(value):
            raise click.BadParameter(f"{key!r}: the value {problem}.")
        # "aws:" is reserved in any upper or lower case.
        if key.lower().startswith("aws:"):
            raise click.BadParameter(f"{key!r}: AWS reserves tags that start with aws:; choose another key.")
        if key == CLUSTER_TAG:
            raise click.BadParameter(f"{key!r} is set by cfngen: it names the cluster that the stack belongs to.")
        if problem := TAG_KEY.fault(key):
            raise click.BadParameter(f"{key!r}: the key {problem}.")
    return tags


def _check_topic_arns(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not _TOPIC_ARN_PATTERN.fullmatch(value):
            example = "arn:aws:sns:us-west-2:123456789012:NAME"
            raise click.BadParameter(f"{value!r} is not the ARN of a topic, such as {example}.")
    return values


deployment_options = OptionGroup(
    "deployment",
    DeploymentOptions,
    Option(
        "--parameter",
        "-p",
        "parameters",
        metavar="KEY=VALUE",
        multiple=True,
        callback=parse_key_values,
        help="Value of a parameter of the root template, e.g. ApiAllowedCidr=203.0.113.7/32. Repeatable.",
    ),
    Option(
        "--parameter-file",
        metavar="FILE",
        type=PathArgument("give a file name"),
        help="JSON or YAML file with parameter values; the AWS CLI's formats are accepted.",
    ),
    Option(
        "--keep",
        "kept_parameters",
        metavar="KEY",
        multiple=True,
        help="Keep the stack's current value of this parameter, whatever the cluster file says. Repeatable.",
    ),
    Option(
        "--tag",
        "tags",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_parse_tags,
        help="Tag to add to the stack and to every resource in it. Repeatable.",
    ),
    bucket_option,
    Option(
        "--kms-key", metavar="ARN", default="", help="KMS key that encrypts cfngen's own bucket. Default: S3's own key."
    ),
    role_option,
    Option(
        "--notify",
        "notification_arns",
        metavar="ARN",
        multiple=True,
        callback=_check_topic_arns,
        help="SNS topic that receives the stack events. Repeatable.",
    ),
    Option(
        "--on-failure",
        type=click.Choice(("rollback", "delete", "keep")),
        default="rollback",
        show_default=True,
        help="After a failure: roll back, delete a stack that is being created, or keep everything to inspect it.",
    ),
    Option(
        "--express",
        is_flag=True,
        help="Use CloudFormation's express mode: do not wait until resources are stable; replacements are rejected.",
    ),
    Option(
        "--ignore-quotas", is_flag=True, help="Continue even if the account's quotas are too low; AWS then decides."
    ),
    Option(
        "--skip-network-check",
        is_flag=True,
        help="Leave out the checks of `cfngen check network`: of an existing VPC before a creation, of existing "
        "security groups also before an update.",
    ),
    Option(
        "--parallel-groups",
        metavar="NUMBER",
        type=click.IntRange(min=1),
        default=1,
        help="How many node groups whose nodes are replaced are updated at the same time; if one fails, those updated "
        "with it are rolled back, too. Default: 1, so that each group fails by itself.",
    ),
    Option(
        "--prices",
        metavar="FILE",
        type=PathArgument("give a file name"),
        help="YAML or JSON file with AWS's prices in the cluster's region: the plan then shows what the cluster costs "
        "in a month, and what a change adds. cfngen itself knows no prices.",
    ),
    Option(
        "--full",
        is_flag=True,
        help="Show long values completely in the plan, such as policy statements and user data, and boot programs.",
    ),
    no_cache_option,
)
"""The options of `plan` and `deploy` besides `target_options`; a command receives them as the argument `deployment`."""
# Options that only say what is shown, or how fast.
_OPTIONS_OF_DISPLAY = ("full", "prices", "use_lint_cache")


def given_options(context: click.Context) -> Iterator[SuggestedOption]:
    """Yield the options of the command line that decide what is deployed, to suggest another command with them."""
    names = {option.name for option in deployment_options.options()}.difference(_OPTIONS_OF_DISPLAY)
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in names or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        flag = next(flag for flag in parameter.opts if flag.startswith("--"))
        value = context.params[name]
        if value is True:
            yield (flag,)
        elif isinstance(value, Mapping):
            yield from ((flag, f"{key}={text}") for key, text in value.items())
        else:
            yield from ((flag, str(text)) for text in (value if isinstance(value, tuple) else (value,)))
