"""Records how CloudFormation describes change sets, with property values and without them, as it answers.

The answers are recorded as boto3 receives them, so that a rehearsal calls AWS no more often than a deployment does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cfngen.deploy.aws.change_sets import Unshown, shown_value
from cfngen.deploy.aws.types import AwsArguments, AwsObject, Client, Session
from cfngen.rehearse.masking import Masks
from cfngen.rehearse.operations import DescribedChangeSet, NameNormalizer

_MAX_TEXT = 256  # longer texts are boot programs, policies and the like
_OPERATION = "cloudformation.DescribeChangeSet"
_WITH_VALUES = "cfngen_with_values"  # in botocore's context of a request: whether it asks for property values


class RecordingSession:
    """A boto3 session whose clients record what DescribeChangeSet answers about complete change sets."""

    def __init__(self, session: Session) -> None:
        self.get_available_regions = session.get_available_regions
        self.get_available_partitions = session.get_available_partitions
        self._session = session
        # Changes by logical id, by a change set's ARN and whether values were asked for; parents before their children.
        self._changes: dict[tuple[str, bool], dict[str, AwsObject]] = {}

    def client(self, service: str, *, region_name: str, config: Any) -> Client:
        """Return a client of a service."""
        client = self._session.client(service, region_name=region_name, config=config)
        if service == "cloudformation":
            client.meta.events.register(f"before-parameter-build.{_OPERATION}", self._note_request)
            client.meta.events.register(f"after-call.{_OPERATION}", self._record)
        return client

    def take(self, names: NameNormalizer, masks: Masks) -> tuple[DescribedChangeSet, ...]:
        """Return what was recorded since the last call, masked; the root's before those of the nested stacks."""
        recorded, self._changes = self._changes, {}
        masked: dict[str, dict[bool, Any]] = {}
        stacks: dict[str | None, str] = {}  # logical ids by ARN of the change set
        for (id_, with_values), changes in recorded.items():
            stacks |= {change.get("ChangeSetId"): names(logical_id) for logical_id, change in changes.items()}
            named = {names(logical_id): _mask(change, names, masks) for logical_id, change in changes.items()}
            masked.setdefault(id_, {})[with_values] = named
        return tuple(
            DescribedChangeSet(stacks.get(id_, ""), described.get(True, {}), described.get(False, {}))
            for id_, described in masked.items()
        )

    def _note_request(self, params: AwsArguments, context: AwsArguments, **_: object) -> None:
        context[_WITH_VALUES] = bool(params.get("IncludePropertyValues"))

    def _record(self, parsed: AwsArguments, context: AwsArguments, **_: object) -> None:
        if parsed.get("Status") == "CREATE_COMPLETE":
            changes = [change.get("ResourceChange", {}) for change in parsed.get("Changes", ())]
            recorded = self._changes.setdefault((parsed.get("ChangeSetId", ""), context[_WITH_VALUES]), {})
            recorded |= {change["LogicalResourceId"]: change for change in changes if "LogicalResourceId" in change}


def _mask(value: Any, names: NameNormalizer, masks: Masks, key: str = "") -> Any:
    """Return a part of an answer, masked; of a long text, and of a property with a long value, only the length."""
    if isinstance(value, Mapping):
        return {name: _mask(item, names, masks, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_mask(item, names, masks) for item in value]
    if not isinstance(value, str):
        return value
    if key in ("BeforeContext", "AfterContext"):  # the definition of a resource, as JSON unless AWS cut it off
        with suppress(ValueError, AttributeError):
            definition = json.loads(value)
            properties = {name: _text_if_long(item) for name, item in definition.get("Properties", {}).items()}
            return _mask({**definition, "Properties": properties}, names, masks)
    if key in ("LogicalResourceId", "CausingEntity"):
        logical_id, dot, attribute = value.partition(".")
        return f"{names(logical_id)}{dot}{attribute}"
    is_whole = shown_value(value) is not Unshown.TRUNCATED
    return f"({len(value)} characters)" if is_whole and len(value) > _MAX_TEXT else masks(value)


def _text_if_long(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) > _MAX_TEXT else value
