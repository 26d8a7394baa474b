"""`cfngen config`: every value in effect, and where it came from."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from cfngen.cli.display.terminal import echo, examples_epilog
from cfngen.cli.display.typography import print_verbatim
from cfngen.cli.exit_codes import PLAN_HAS_CHANGES, SUCCESS
from cfngen.cli.input.recorded_cluster import LostFileError
from cfngen.cli.input.source import DEFAULT_FILE, Source, source_options
from cfngen.cli.input.target import (
    account_option,
    make_target,
    profile_option,
    remember_output,
    sandbox_option,
    stack_name_option,
)
from cfngen.cli.render.layout import table
from cfngen.cli.several_clusters.command import SeveralClustersCommand
from cfngen.cluster.paths import dotted, leaves
from cfngen.hints import CommandText, suggest

if TYPE_CHECKING:
    from cfngen.cluster.file.validation import Origin
    from cfngen.cluster.model import Cluster
    from cfngen.cluster.paths import Path


@click.command(
    "config",
    cls=SeveralClustersCommand,
    short_help="Show every value in effect and where it came from.",
    epilog=examples_epilog(
        "cfngen config",
        "cfngen config | grep -v ' default$'        only what you set, and what is derived from it",
        "NUM_NODES=6 cfngen config -f prod.yaml",
        "cfngen config --output yaml > complete.yaml",
        "cfngen config --addresses                  ranges of VPC, subnets, pods and services",
        "cfngen config --egress                     hosts that a firewall has to let instances reach",
        "cfngen config --instance-types             types among which AWS may choose, by node group",
        "cfngen config --security-group-rules       rules that existing security groups need",
        "cfngen config --security-group-rules -o json | jq -r '.securityGroupRules[].command'",
        "cfngen config --security-group-rules -o terraform > rules.tf",
        "cfngen config --egress -o json | jq -r '.egress[] | select(.endpoint == \"\") | .host'",
        "cfngen config --deployed --stack-name staging > deployed.yaml",
        "cfngen config --diff                       what differs from the deployed file",
    ),
)
@source_options
@click.option(
    "--output",
    "-o",
    "output_format",
    type=click.Choice(("text", "yaml", "json", "terraform")),
    default="text",
    show_default=True,
    is_eager=True,  # so that errors in other options are shown in this format, too
    callback=remember_output,
    help="text: one line for each value. yaml: a complete cluster file. json: for programs. "
    "terraform: with --security-group-rules, resources of Terraform's AWS provider.",
)
@click.option(
    "--addresses", is_flag=True, help="Show the address ranges by zone and tier, and what is free in the VPC."
)
@click.option(
    "--egress", is_flag=True, help="Show what instances and add-ons must reach: hosts and services of AWS, and why."
)
@click.option(
    "--security-group-rules",
    is_flag=True,
    help="Show the rules that the existing security groups of network.securityGroups need.",
)
@click.option(
    "--instance-types",
    "shows_instance_types",
    is_flag=True,
    help="Show the instance types of masters and node groups: those that match instanceRequirements, as far as known.",
)
@click.option(
    "--deployed",
    "shows_deployed",
    is_flag=True,
    help="Print the cluster file that the deployed stack keeps, comments included; no cluster file is needed.",
)
@click.option(
    "--diff",
    "compares_deployed",
    is_flag=True,
    help="Show what differs between the deployed cluster file and this one. Exits with 4 if anything does.",
)
@stack_name_option
@profile_option
@account_option
@sandbox_option
def command(
    source: Source,
    output_format: str,
    *,
    addresses: bool,
    egress: bool,
    security_group_rules: bool,
    shows_instance_types: bool,
    shows_deployed: bool,
    compares_deployed: bool,
    **stack_options: Any,
) -> None:
    """Show the complete configuration: every value in effect, and where each came from.

    A value is kube-up's default, is derived from another value, or is set in the cluster file, by an environment
    variable or by --set; each of these overrides those named before it. The YAML output is itself a cluster file, with
    the origins as comments.

    Only --deployed and --diff call AWS. A stack keeps the cluster file of its last deployment byte for byte; what
    variables and --set have changed is in it, and a comment says so.
    """
    tables = {
        _show_addresses: addresses,
        _show_egress: egress,
        _show_instance_types: shows_instance_types,
        _show_security_group_rules: security_group_rules,
    }
    chosen = [show_table for show_table, is_chosen in tables.items() if is_chosen]
    if len(chosen) + shows_deployed + compares_deployed > 1:
        raise click.UsageError(
            "--addresses, --egress, --instance-types, --security-group-rules, --deployed and --diff differ; choose one"
        )
    if output_format == "terraform" and not security_group_rules:
        raise click.UsageError("--output terraform is for --security-group-rules")
    if shows_deployed or compares_deployed:
        _show_deployed(source, compares=compares_deployed, output=output_format, **stack_options)
    elif chosen:
        chosen[0](source.load().cluster, output_format)
    else:
        _show_values(source, output_format)


def _show_values(source: Source, output_format: str) -> None:
    """Print every value, and where it came from: as lines, as a cluster file, or as JSON."""
    loaded = source.load()
    cluster_values = loaded.cluster.model_dump(mode="json", by_alias=True)
    if output_format == "json":
        origins = {key: {"kind": origin.kind, "where": origin.where} for key, origin in loaded.origins.items()}
        document = {"cluster": cluster_values, "origins": origins, "warnings": loaded.warnings}
        print_verbatim(json.dumps(document, indent=2, ensure_ascii=False))
        return
    origin_texts = {key: _origin_text(origin) for key, origin in loaded.origins.items()}
    if output_format == "yaml":
        print_verbatim("\n".join([f"# {source.description}", *_yaml_lines(cluster_values, origin_texts, ())]))
    else:
        echo(f"# {source.description}")
        rows = [
            (dotted(path), _yaml_on_one_line(value), origin_texts[dotted(path)])
            for path, value in leaves(cluster_values)
        ]
        echo("\n".join(table((), rows, indent="")))


def _show_deployed(source: Source, *, compares: bool, **target_values: Any) -> None:
    """Print the cluster file that the stack keeps, or how the cluster file differs from it."""
    from cfngen.deploy.aws.kept_file import compare, read_deployed_file
    from cfngen.deploy.aws.stacks import require_root_stack

    if compares and source.path is None:
        hint = CommandText(suggest("config", "--deployed"), " prints the deployed one; -f names another file.")
        raise LostFileError(f"there is no {DEFAULT_FILE} here to compare with the deployed one", hint=hint)
    path = source.path
    if not compares and not source.is_explicit and path and path.is_file() and not path.stat().st_size:
        # A shell has emptied the file already, into which it writes what is printed.
        source = dataclasses.replace(source, path=None)
    target = make_target(source=source, is_deployed=True, **target_values)
    account = target.connect()
    deployed = read_deployed_file(account, require_root_stack(account, target.stack_name))
    if compares:
        difference = compare(deployed, source.load().kept_file.content, source.description)
        target.show(difference)
        click.get_current_context().exit(PLAN_HAS_CHANGES if difference.diff else SUCCESS)
    elif target.json:
        target.show(deployed)
    else:
        click.echo(deployed.content.encode(), nl=False)


def _show_addresses(cluster: Cluster, output_format: str) -> None:
    from cfngen.cluster.network.address_plan import address_plan

    ranges = address_plan(cluster)
    if output_format == "text":
        rows = [
            (
                str(item),
                f"{item.tier} (existing)" if item.is_existing else item.tier,
                item.zone,
                f"{item.usable:,}",
                item.purpose,
            )
            for item in ranges
        ]
        echo("\n".join(table(("range", "tier", "zone", "usable", "for"), rows, indent="")))
        return
    document = {
        "addresses": [
            {"range": str(item), **dataclasses.asdict(item), "first": str(item.first), "last": str(item.last)}
            for item in ranges
        ]
    }
    _print_document(document, output_format)


def _show_egress(cluster: Cluster, output_format: str) -> None:
    from cfngen.userdata.egress import egress

    destinations = egress(cluster)
    if output_format == "text":
        rows = [
            (
                item.host,
                f"{item.port}/{item.protocol}",
                ", ".join(item.sources),
                item.endpoint or ("link-local" if item.is_link_local else ""),
                "; ".join(item.reasons),
            )
            for item in destinations
        ]
        echo("\n".join(table(("host", "port", "from", "VPC endpoint", "for"), rows, indent="")))
        return
    _print_document({"egress": [dataclasses.asdict(item) for item in destinations]}, output_format)


def _show_instance_types(cluster: Cluster, output_format: str) -> None:
    from cfngen.cluster.instances.group_types import types_of
    from cfngen.cluster.instances.instance_types import InstanceTypeFacts, facts_of

    types_by_owner: dict[str, tuple[str, ...]] = {"masters": (cluster.control_plane.instance_type,)}
    types_by_owner |= {f"group {group.name}": types_of(cluster, group) for group in cluster.node_groups}
    if output_format != "text":
        items = [
            {"group": owner, "type": name, **(dataclasses.asdict(facts) if (facts := facts_of(name)) else {})}
            for owner, types in types_by_owner.items()
            for name in types
        ]
        _print_document({"instanceTypes": items}, output_format)
        return

    def row(owner: str, name: str, facts: InstanceTypeFacts | None) -> tuple[str, ...]:
        if facts is None:
            return (owner, name, "", "", "", "")
        gpus = f"{facts.gpu_count} {facts.gpu}" if facts.gpu_count else ""
        disks = f"{facts.local_disk_gb} GB" if facts.local_disk_gb else ""
        return (owner, name, str(facts.vcpus), f"{facts.memory_mib / 1024:g} GiB", disks, gpus)

    rows = [row(owner, name, facts_of(name)) for owner, types in types_by_owner.items() for name in types]
    header = ("for", "type", "vCPUs", "memory", "local disks", "GPUs")
    echo("\n".join(table(header, rows, indent="")))
    if any(group.instance_requirements for group in cluster.node_groups):
        echo("\nOf the types that match instanceRequirements AWS decides; it knows prices, and types of the future.")


def _show_security_group_rules(cluster: Cluster, output_format: str) -> None:
    from cfngen.cluster.security_groups.needed_rules import needed_rules, terraform_rules

    rules = needed_rules(cluster)
    if output_format == "terraform":
        print_verbatim(terraform_rules(rules).rstrip())
        return
    if output_format == "text":
        if not rules:
            echo("cfngen creates all security groups with their rules: network.securityGroups names none.")
            return
        rows = [
            (
                f"{rule.key.rpartition('.')[2]} {rule.group}",
                rule.direction,
                rule.traffic,
                ", ".join(rule.peers),
                rule.description,
            )
            for rule in rules
        ]
        header = ("group", "direction", "traffic", "source or destination", "for")
        echo("\n".join(table(header, rows, indent="")))
        if any(rule.placeholder for rule in rules):
            echo(
                "\nThe cluster file has references in place of ids: "
                "`cfngen check network` prints the rules that are missing, and their commands, with ids."
            )
        return
    items = [
        {
            "key": rule.key,
            "group": rule.group,
            "direction": rule.direction,
            "protocol": rule.protocol,
            "firstPort": rule.first_port,
            "lastPort": rule.last_port,
            "peers": [{peer.kind: peer.value} for peer in rule.typed_peers],
            "description": rule.description,
            "isInNewGroups": rule.is_in_new_groups,
            "command": rule.command(cluster.region),
        }
        for rule in rules
    ]
    _print_document({"securityGroupRules": items}, output_format)


def _print_document(document: Mapping[str, object], output_format: str) -> None:
    if output_format == "json":
        print_verbatim(json.dumps(document, indent=2))
    else:
        import yaml

        # YAML has no tuples.
        print_verbatim(yaml.safe_dump(json.loads(json.dumps(document)), sort_keys=False).rstrip())


def _origin_text(origin: Origin) -> str:
    """Return the origin of a value in words.

    It is `default`, `derived: …`, `cluster.yaml:12`, `environment NUM_NODES` or `--set …`.
    """
    if origin.kind == "derived":
        return f"derived: {origin.where}"
    if origin.kind == "environment":
        return f"environment {origin.where}"
    return origin.where or origin.kind


def _yaml_on_one_line(value: object) -> str:
    """Return a scalar, or an empty list or mapping, as YAML on one line."""
    import yaml

    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=1_000_000)
    # After a scalar, YAML's end of a document follows.
    return text.removesuffix("...\n").strip()


def _yaml_lines(
    values: Mapping[str, object] | list[object], origin_texts: Mapping[str, str], path: Path
) -> Iterator[str]:
    """Yield lines of YAML in block style; a comment behind each value says where the value came from.

    Args:
        origin_texts: the origin of each value in words, by its dotted path.
        path: the keys and list indexes that lead to `values` in the configuration.
    """
    indent = "  " * len(path)
    is_list = isinstance(values, list)
    for key, value in enumerate(values) if isinstance(values, list) else values.items():
        value_path = (*path, key)
        line_start = indent + ("-" if is_list else f"{_yaml_on_one_line(key)}:")
        # An empty list or mapping has no lines of its own.
        if isinstance(value, (dict, list)) and value:
            yield line_start
            yield from _yaml_lines(value, origin_texts, value_path)
        else:
            yield f"{line_start} {_yaml_on_one_line(value)}  # {origin_texts[dotted(value_path)]}"
