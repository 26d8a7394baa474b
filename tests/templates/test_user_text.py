"""Text of the cluster file comes out byte for byte, whatever it looks like to CloudFormation.

Which keys take such a text is found out from the model, so that a new key cannot be forgotten.
"""

from __future__ import annotations

import base64
import json
import lzma
import re
from collections.abc import Iterator
from contextlib import suppress
from email import message_from_string
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic_core import PydanticCustomError

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.problems import ClusterFileError
from cfngen.cluster.sections.base import Model
from cfngen.templates import generate

TEXT = "${AWS::Region}$${X}${!Y}{${Vpc.CidrBlock}${{{resolve:ssm:z}}"
# CloudFormation cannot be kept from filling in the last of them where it is text in a template.
PLAIN = TEXT.replace("{{resolve:ssm:z}}", "")
FORMS = ("{}", "https://example.com/{}", "ssh-ed25519 AAAA {}", "arn:aws:s3:::{}")


def free_texts(annotation: Any, checks: tuple[Any, ...] = (), path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The keys of the model that take the text, and the form in which they do."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from free_texts(arguments[0], (*checks, *arguments[1:]), path)
    elif isinstance(annotation, type) and issubclass(annotation, Model):
        for name, field in annotation.model_fields.items():
            yield from free_texts(field.annotation, tuple(field.metadata), (*path, field.alias or name))
    elif origin is Literal:
        return
    elif arguments:
        inherited = checks if origin is Union or not isinstance(origin, type) else ()
        values = arguments[1:] if origin is dict else arguments
        for value in values:
            yield from free_texts(value, inherited, path)
    elif annotation in (str, Any):
        form = next((form for form in FORMS if takes(checks, form.format(PLAIN))), None)
        if form:
            yield ".".join(path), form


def takes(checks: tuple[Any, ...], text: str) -> bool:
    try:
        for check in checks:
            if hasattr(check, "check"):
                check.check(text)
    except PydanticCustomError:
        return False
    return True


FREE = dict(free_texts(Cluster))
# Tags hold no dollar signs and braces: most services refuse them. The VPC's name is one.
REFUSED = {"tags", "iam.serviceAccounts.tags", "network.vpc.name"}
FILLED_IN = (
    *("ssh.keyName", "ssh.publicKey"),
    *(f"{section}.ingress.description" for section in ("bastion", "controlPlane", "nodeGroups")),
    *("iam.serviceAccounts.policyStatements.conditions", "iam.serviceAccounts.policyStatements.resources"),
    *("controlPlane.policyStatements.conditions", "controlPlane.policyStatements.resources"),
    *("nodeGroups.policyStatements.conditions", "nodeGroups.policyStatements.resources"),
)
BESIDE = {
    "files": {"path": "/etc/given"},
    "units": {"name": "given.service"},
    "charts": {
        "name": "given", "chart": "given", "version": "1.0.0", "namespace": "given",
        "url": "https://example.com/given.tgz", "repository": "https://example.com", "sha256": "0" * 64,
    },
    "externalDns": {"zones": ["Z0123456789ABCDEFGHIJ"]},
    "nodeGroups": {"name": "nodes"},
    "ingress": {"ports": "80", "cidrs": ["203.0.113.0/24"]},
    "bastion": {"allowedCidrs": ["203.0.113.0/24"]},
    "serviceAccounts": {"namespace": "shop", "name": "web"},
    "policyStatements": {"actions": ["s3:GetObject"], "resources": ["*"]},
}  # fmt: skip
# What a key of free contents may hold, where not every content is taken.
INSIDE = {
    "kubeletConfiguration": lambda text: {"kubeReservedCgroup": text},
    "clusterConfiguration": lambda text: {"controllerManager": {"extraArgs": [{"name": "x", "value": text}]}},
    "conditions": lambda text: {"StringEquals": {"aws:PrincipalTag/given": text}},
    "policy": lambda text: {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [{"level": "None", "users": [text]}],
    },
}


def configuration(path: str, text: str) -> dict[str, Any]:
    """A cluster file that has the text at a key, and what that key needs beside it."""
    *above, last = path.split(".")
    lists = {"ingress", "files", "units", "charts", "nodeGroups", "policyStatements", "serviceAccounts"}
    value: Any = text
    if last in ("preBootCommands", "postBootCommands"):
        value = [text]
    elif last == "resources":
        value = ["*", text]
    elif last == "registryMirrors":
        value = {"docker.io": [text]}
    elif last in INSIDE:
        value = INSIDE[last](text)
    elif last == "values":
        value = {"given": text, "config": {"outputs": text}}  # fluentBit asks for the latter
    elif last in ("tags", "pluginValues", "configuration", "cloudConfig"):
        value = {"given": text}
    found: Any = {last: value}
    for part in reversed(above):
        found = {**{key: each for key, each in BESIDE.get(part, {}).items() if key in fields(part)}, **found}
        if part not in lists and "addons" in above and part != "addons":
            found["enabled"] = True
        found = {part: [found] if part in lists else found}
    base: dict[str, Any] = {"api": {"allowedCidrs": ["203.0.113.0/24"]}}
    if "bastion" in above:
        base["ssh"] = {"keyName": "k"}
    if "serviceAccounts" in above:
        base["serviceAccountIssuer"] = {}
    if last == "pluginValues":
        found["network"]["plugin"] = "cilium"
    return {**base, **found}


def fields(part: str) -> set[str]:
    """The keys of the models that stand for a part of a path."""
    found: set[str] = set()

    def walk(annotation: Any, name: str) -> None:
        if isinstance(annotation, type) and issubclass(annotation, Model):
            if name == part:
                found.update(field.alias or key for key, field in annotation.model_fields.items())
            for key, field in annotation.model_fields.items():
                walk(field.annotation, field.alias or key)
        for argument in get_args(annotation):
            walk(argument, name)

    walk(Cluster, "")
    return found


def resolved(value: Any) -> Any:
    """Properties with what CloudFormation makes of Fn::Join and Fn::Base64; every other function is some text."""
    if isinstance(value, list):
        return [resolved(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Fn::Join"}:
        return str(value["Fn::Join"][0]).join(map(str, resolved(value["Fn::Join"][1])))
    if set(value) == {"Fn::Base64"}:
        return base64.b64encode(str(resolved(value["Fn::Base64"])).encode()).decode()
    if len(value) == 1 and next(iter(value)) in ("Ref", "Fn::GetAtt", "Fn::Sub"):
        return "filled-in"
    return {key: resolved(item) for key, item in value.items()}


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, str):
        yield value
        if value.startswith("{"):
            with suppress(ValueError):
                yield from strings(json.loads(value))


def unpacked(program: str) -> Iterator[str]:
    """All texts of a packed program: its files, and what is inside of those that are JSON."""
    text = lzma.decompress(base64.b85decode(program)).decode()
    for item in text.split("\0"):
        yield from strings(item)


def arriving(body: dict[str, Any]) -> Iterator[str]:
    """Every text that reaches AWS or an instance by a template."""
    for resource in body["Resources"].values():
        packed = resource.get("Metadata", {}).get("cfngen", {}).get("program")
        if packed:
            yield from unpacked(packed)
        properties = resolved(resource.get("Properties", {}))
        yield from strings(properties)
        data = properties.get("LaunchTemplateData", {}).get("UserData")
        if data:
            text = base64.b64decode(data).decode()
            assert "{{" not in re.sub(r'PROGRAM = ".*"', "", text)
            yield from unpacked(re.findall(r'^PROGRAM = "(.*)"$', text, re.MULTILINE)[0])
            for part in message_from_string(text).walk():
                if part.get_content_type() == "text/cloud-config":
                    yield from strings(json.loads(str(part.get_payload()).partition("\n")[2]))
    for parameter in body["Parameters"].values():
        yield from strings(parameter.get("Default"))


def substituted(value: Any) -> Iterator[str]:
    """Every text that Fn::Sub is applied to."""
    if isinstance(value, list):
        for item in value:
            yield from substituted(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Fn::Sub":
                yield item if isinstance(item, str) else item[0]
            yield from substituted(item)


@pytest.mark.parametrize("path", sorted(FREE))
def test_text_comes_out_byte_for_byte(path: str) -> None:
    text = FREE[path].format(PLAIN if path in FILLED_IN else TEXT)
    if path in REFUSED:
        with pytest.raises(ClusterFileError, match="may hold"):
            parse(configuration(path, text))
        return
    bodies = {each.name: each.body for each in generate(parse(configuration(path, text)))}
    assert any(text in each for each in arriving(bodies["standalone"])), "it has not arrived"
    nested = [body for name, body in bodies.items() if name not in ("standalone", "cluster")]
    assert any(text in each for body in nested for each in arriving({"Parameters": {}, **body})), "nor nested"
    for body in bodies.values():
        assert "{{resolve:" not in json.dumps(body)
        assert not any("${X}" in each or "${!Y}" in each for each in substituted(body))
        # Whatever is outside of Fn::Sub looks like text, to cfn-lint (E1029) as to people.
        shown = [resource.get("Properties") for resource in body["Resources"].values()]
        assert not any("${X}" in text for text in strings(shown))


@pytest.mark.parametrize("path", FILLED_IN)
def test_what_cloudformation_would_fill_in_for_good_is_refused(path: str) -> None:
    text = FREE[path].format("{{resolve:secretsmanager:x}}")
    with pytest.raises(ClusterFileError, match="CloudFormation replaces"):
        parse(configuration(path, text))
