"""Records how CloudFormation describes change sets, with property values and without them, as it answers.

The answers are recorded as boto3 receives them, so that a rehearsal calls AWS no more often than a deployment does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cfngen.deploy.aws.types import AwsArguments, AwsObject, Client, Session
from cfngen.rehearse.masking import Masks
from cfngen.rehearse.operations import DescribedChangeSet, NameNormalizer

MAX_TEXT = 256
"""Length above which a report has only the length of a text: such texts are boot programs, policies and the like."""
# Keys in botocore's request context: whether values were asked for, and whether it is the first page of an answer.
_WITH_VALUES, _IS_FIRST = "cfngen_with_values", "cfngen_first_page"
_CONTEXTS = ("BeforeContext", "AfterContext")  # definitions of a resource, as JSON in a text


class RecordingSession:
    """A boto3 session whose clients record what DescribeChangeSet answers about complete change sets."""

    def __init__(self, session: Session) -> None:
        self.get_available_regions = session.get_available_regions
        self.get_available_partitions = session.get_available_partitions
        self._session = session
        # The pages of each answer, by the change set's ARN and whether it has values; parents before their children.
        self._pages: dict[tuple[str, bool], list[AwsObject]] = {}

    def client(self, service: str, *, region_name: str, config: Any) -> Client:
        """Return a client of a service."""
        client = self._session.client(service, region_name=region_name, config=config)
        if service == "cloudformation":
            operation = "cloudformation.DescribeChangeSet"
            client.meta.events.register(f"before-parameter-build.{operation}", self._note_request)
            client.meta.events.register(f"after-call.{operation}", self._record_page)
        return client

    def _note_request(self, params: AwsArguments, context: AwsArguments, **_: object) -> None:
        context[_WITH_VALUES] = bool(params.get("IncludePropertyValues"))
        context[_IS_FIRST] = "NextToken" not in params

    def _record_page(self, parsed: AwsArguments, context: AwsArguments, **_: object) -> None:
        if parsed.get("Status") != "CREATE_COMPLETE":
            return
        key = (parsed["ChangeSetId"], context[_WITH_VALUES])
        if context[_IS_FIRST]:
            self._pages[key] = []
        self._pages[key].append(parsed)

    def take(self, names: NameNormalizer, masks: Masks) -> tuple[DescribedChangeSet, ...]:
        """Return what was recorded since the last call, masked; the root's before those of the nested stacks."""
        recorded, self._pages = self._pages, {}
        paths: dict[str, tuple[str, ...]] = {}
        for (id_, _), pages in recorded.items():
            for change in _changes(pages):
                if child := change.get("ChangeSetId"):
                    paths[child] = (*paths.get(id_, ()), change["LogicalResourceId"])

        masked = {
            key: tuple(_masked(change, names, masks) for change in _changes(pages)) for key, pages in recorded.items()
        }
        return tuple(
            DescribedChangeSet(
                names.path(paths.get(id_, ())), masked.get((id_, True), ()), masked.get((id_, False), ())
            )
            for id_ in dict.fromkeys(id_ for id_, _ in recorded)
        )


def _changes(pages: list[AwsObject]) -> list[AwsObject]:
    return [
        change["ResourceChange"] for page in pages for change in page.get("Changes", ()) if "ResourceChange" in change
    ]


def _masked(value: Any, names: NameNormalizer, masks: Masks, key: str = "") -> Any:
    """Return a part of an answer, masked and without long texts; definitions of resources as objects."""
    if isinstance(value, Mapping):
        return {name: _masked(item, names, masks, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, names, masks) for item in value]
    if not isinstance(value, str):
        return value
    if key in _CONTEXTS and value.startswith("{"):
        return _masked(json.loads(value), names, masks)
    if key in ("LogicalResourceId", "CausingEntity"):
        logical_id, dot, attribute = value.partition(".")
        return f"{names(logical_id)}{dot}{attribute}"
    return masks(value) if len(value) <= MAX_TEXT else f"({len(value)} characters)"
