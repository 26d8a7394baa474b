"""The rules that existing security groups need, as resources of Terraform's AWS provider."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from cfngen.cluster.security_groups.needed_rules import NeededRule, Peer


def terraform_rules(rules: Iterable[NeededRule]) -> str:
    """Return the configuration with a resource for each rule and peer.

    In place of a group that the cluster file names by a reference stands a variable, such as `var.masters_group`.
    """
    rules = tuple(rules)
    placeholders = {rule.placeholder: None for rule in rules if rule.placeholder}
    placeholders |= {peer.placeholder: None for rule in rules for peer in rule.typed_peers if peer.placeholder}
    variables = [f'variable "{name.lower()}" {{\n  type = string\n}}\n' for name in placeholders]
    resources = ["\n".join(_resource(rule, peer)) + "\n" for rule in rules for peer in rule.typed_peers]
    return "\n".join([*variables, *resources])


def _resource(rule: NeededRule, peer: Peer) -> Iterator[str]:
    """Yield the lines of a resource, whose name stays as long as EC2 takes the rule for the same one."""
    group = rule.key.rpartition(".")[2]
    ports = [] if rule.first_port is None else [str(rule.first_port), str(rule.last_port)]
    protocol = "all" if rule.protocol == "-1" else rule.protocol
    name = re.sub(r"[^A-Za-z0-9]+", "_", "_".join([group, protocol, *dict.fromkeys(ports), peer.name]))
    yield f'resource "aws_vpc_security_group_{rule.direction}_rule" "{name}" {{'
    yield f"  security_group_id            = {_value(rule.group, rule.placeholder)}"
    argument = {
        "securityGroupId": "referenced_security_group_id",
        "prefixListId": "prefix_list_id",
        "cidr": "cidr_ipv4",
    }[peer.kind]
    yield f"  {argument:<28} = {_value(peer.value, peer.placeholder)}"
    yield f"  ip_protocol                  = {json.dumps(rule.protocol)}"
    if ports:
        yield f"  from_port                    = {rule.first_port}"
        yield f"  to_port                      = {rule.last_port}"
    yield f"  description                  = {json.dumps(rule.description)}"
    yield "}"


def _value(value: str, placeholder: str) -> str:
    return f"var.{placeholder.lower()}" if placeholder else json.dumps(value)
