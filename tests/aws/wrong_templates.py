"""Templates with one fault each, made from those of the golden cases, tried in an account of the emulator.

The rows stand in `wrong/*.yaml`, whose format is described in wrong/README.md.
"""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from botocore import xform_name
from botocore.exceptions import ClientError
from clusters import ALLOWED, BUCKET, PREFIX, Account, golden, landlord, prepared
from small_stacks import refused_early

from cfngen.sandbox.cloudformation import ApiError, NotModelledError, ResourceError, Stack, client
from cfngen.sandbox.services.resource_tags import set_tags_in_metadata

FOLDER = Path(__file__).with_name("wrong")
REFERENCE = re.compile(r"\$\{(\w+(?:\.\w+)+)\}")
EXISTING = {"VpcId", "RouteTableId", "ApiElasticIp", "SubnetAId"}  # parameters for what someone else has made
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Refused:
    """How a row ended: by a call, or by a resource's failure.

    Attributes:
        words: the error's message, or the reasons of everything that failed.
        resources: logical ids of what failed; empty if the call was refused.
        modelled: whether it was refused as AWS does, and not because the emulator does not know of it.
    """

    words: str
    resources: tuple[str, ...] = ()
    modelled: bool = True


@functools.cache
def rows(name: str) -> list[Row]:
    """The rows of a file."""
    return list(yaml.load((FOLDER / f"{name}.yaml").read_text(), Loader=yaml.CSafeLoader))


def edited(body: Mapping[str, Any], edits: list[Mapping[str, Any]]) -> dict[str, Any]:
    """A template with some of its parts set or removed."""
    changed: dict[str, Any] = copy.deepcopy(dict(body))
    for edit in edits:
        *parents, last = (part.replace("~1", "/").replace("~0", "~") for part in edit["path"].split("/")[1:])
        holder: Any = changed
        for part in parents:
            holder = holder[int(part) if isinstance(holder, list) else part]
        key: Any = last
        if isinstance(holder, list):
            key = len(holder) if last == "-" else int(last)
        if edit.get("remove"):
            del holder[key]
        elif isinstance(holder, list) and key == len(holder):
            holder.append(repeated(edit["set"]))
        else:
            holder[key] = repeated(edit["set"])
    return changed


def repeated(value: Any) -> Any:
    """A value in which `{Fn::Repeat: count, value: …}` stands for so many items, numbered where it says `%d`."""
    if isinstance(value, Mapping):
        if "Fn::Repeat" in value:
            return [json.loads(json.dumps(value["value"]).replace("%d", str(n))) for n in range(value["Fn::Repeat"])]
        return {key: repeated(item) for key, item in value.items()}
    return [repeated(item) for item in value] if isinstance(value, list) else value


def filled(value: Any, made: Mapping[str, Any]) -> Any:
    """A value with what stands in `${Name.Member…}` filled in from what the account's calls answered."""

    def answer(match: re.Match[str]) -> str:
        name, *members = match[1].split(".")
        if name not in made:
            return match[0]
        found: Any = made[name]
        for member in members:
            found = found[int(member) if isinstance(found, list) else member]
        return str(found)

    if isinstance(value, str):
        return REFERENCE.sub(answer, value)
    if isinstance(value, Mapping):
        return {key: filled(item, made) for key, item in value.items()}
    return [filled(item, made) for item in value] if isinstance(value, list) else value


class Attempt:
    """An account in which a row is tried.

    Args:
        row: the row.
    """

    def __init__(self, row: Row) -> None:
        self.row = row
        case, form = row["base"].split("/")
        self.account = prepared(golden(case))
        self.account.cloud.parameter_store.pop(
            "/platform/images/node", None
        )  # which a row names as one that is not there
        set_tags_in_metadata(self.account.cloud.region, row.get("account", {}).get("metadata_tags", False))
        self.made: dict[str, Any] = {}
        self.call(row.get("before", []))
        self.right = edited(self.account.templates[form], self.filled(row.get("first", [])))

    def filled(self, value: Any) -> Any:
        """A value of the row with what the account answered filled in."""
        return filled(value, self.made)

    def call(self, calls: list[Mapping[str, Any]]) -> None:
        """Do what someone else did; the last call of a list may find a quota used up already."""
        for number, call in enumerate(calls, 1):
            arguments = self.filled(call.get("arguments", {}))
            if call["operation"] == "SetStackPolicy":
                self.account.cloud.set_stack_policy(arguments["StackName"], arguments["StackPolicyBody"])
                continue
            if call["operation"] == "CreateStack":
                stack = self.account.cloud.create_stack(arguments["StackName"], body=arguments["TemplateBody"])
                assert self.account.cloud.wait(stack).status == "CREATE_COMPLETE"
                continue
            operation = getattr(client(call["service"], self.account.cluster.region), xform_name(call["operation"]))
            try:
                answer = operation(**arguments)
            except ClientError as error:
                if number < len(calls) or "LimitExceeded" not in error.response["Error"]["Code"]:
                    raise
            else:
                self.made[call.get("as", "")] = answer

    def parameters(self, body: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, str]:
        """Values for a template's parameters: those of the row, and usual ones for what differs by account."""
        values = {"ApiAllowedCidr": ALLOWED, "TemplateBucket": BUCKET, "TemplatePrefix": PREFIX}
        if EXISTING & set(body.get("Parameters", {})):
            values |= landlord(self.account)
        values = {name: value for name, value in values.items() if name in body.get("Parameters", {})}
        return {name: value for name, value in {**values, **self.filled(chosen)}.items() if value is not None}

    def run(self) -> Refused | None:
        """Create the stack, or update it from the right template; None if that was accepted."""
        cloud, arguments = self.account.cloud, self.row.get("arguments", {})
        name = arguments.get("StackName", "k8s")
        capabilities = arguments.get("Capabilities", CAPABILITIES)
        update, begun, seen = "first" in self.row, None, 0
        if update:
            values = self.parameters(self.right, self.row.get("first_parameters", {}))
            begun = cloud.create_stack(name, url=self.url(self.right), parameters=values, capabilities=CAPABILITIES)
            assert cloud.wait(begun).status == "CREATE_COMPLETE", failures(begun)
            seen = len(begun.events)
            physical = {key: each.physical_id for key, each in begun.resources.items()}
            self.made["Stack"] = {"StackName": begun.name, **physical}
            self.call(self.row.get("between", []))
        wrong = edited(self.right, self.filled(self.row["change"]))
        values = self.parameters(wrong, self.row.get("parameters", {}))
        try:
            send = cloud.update_stack if update else cloud.create_stack
            stack = cloud.wait(send(name, url=self.url(wrong), parameters=values, capabilities=capabilities))
        except (ApiError, ClientError, ResourceError) as error:
            return Refused(str(error))
        except NotModelledError as error:
            return Refused(str(error), modelled=False)
        if stack.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            return None
        failed = [*refused_early(cloud).items(), *failures(stack, seen)]
        words = "\n".join(reason for _, reason in failed)
        return Refused(words, tuple(key for key, _ in failed), modelled="(NotModelled)" not in words)

    def url(self, body: Mapping[str, Any]) -> str:
        """Where a template is, once it is uploaded."""
        return upload(self.account, body)


def attempt(row: Row) -> Refused | None:
    """Try a row in the account that is open; None if all of it was accepted."""
    return Attempt(row).run()


def upload(account: Account, body: Mapping[str, Any], name: str = "wrong") -> str:
    """Put a template where those of the account's cluster are, and return its address."""
    s3 = client("s3", account.cluster.region)
    s3.put_object(Bucket=BUCKET, Key=f"{PREFIX}{name}.json", Body=json.dumps(body).encode())
    return account.url(name)


def failures(stack: Stack, since: int = 0) -> list[tuple[str, str]]:
    """What failed in a stack and its nested ones, and why; without what was cancelled in consequence."""
    found = [
        (event.logical_id, event.reason)
        for event in stack.events[since:]
        if event.status.endswith(("_FAILED", "ROLLBACK_IN_PROGRESS")) and "cancelled" not in event.reason
    ]
    for child in stack.children.values():
        found += failures(child)
    return found
