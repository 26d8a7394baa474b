"""The request of an action: its parameters, and the pagination of its answer."""

from __future__ import annotations

import base64
import binascii
import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cfngen.sandbox.cloudformation import CloudFormation, ValidationError
from cfngen.sandbox.cloudformation.admission import Submission
from cfngen.sandbox.untyped import JsonDict, JsonObject

Item = TypeVar("Item")  # of a list that is returned page by page
Result = JsonObject  # the result of an action, or a part of it, in the form of the API


@dataclass(frozen=True)
class ActionRequest:
    """A call of CloudFormation's API.

    Attributes:
        emulator: CloudFormation in the region of the call.
        params: parameters by their names in the API.
        page_size: how many items a page of a list has.
        stale_at: a stale read shows the state at this past time; None for the current state.
    """

    emulator: CloudFormation
    params: JsonObject
    page_size: int = 100
    stale_at: datetime.datetime | None = None

    def text(self, name: str) -> str:
        """Return a string parameter; empty if it is missing."""
        return str(self.params.get(name) or "")

    def flag(self, name: str) -> bool:
        """Return a boolean parameter; false if it is missing."""
        return str(self.params.get(name, "")).lower() == "true"

    def values(self, name: str) -> tuple[str, ...]:
        """Return a list parameter; empty if it is missing."""
        return tuple(self.params.get(name) or ())

    def token(self) -> str:
        """Return the client request token."""
        return self.text("ClientRequestToken") or self.text("ClientToken")

    def submission(self) -> Submission:
        """Return the template of the call and its settings; what is missing in an update keeps its current value.

        Raises:
            ValidationError: the call names no source of its template, or several
        """
        sources = [self.text("TemplateBody"), self.text("TemplateURL"), self.flag("UsePreviousTemplate")]
        if not any(sources):
            raise ValidationError("Either Template URL or Template Body must be specified.")
        if sum(map(bool, sources)) > 1:
            raise ValidationError("Exactly one of Template URL, Template Body and Use Previous Template is allowed.")
        values, with_previous_value = self._parameters()
        tags = {tag["Key"]: tag["Value"] for tag in self.params["Tags"]} if "Tags" in self.params else None
        return Submission(
            body=self.text("TemplateBody"),
            url=self.text("TemplateURL"),
            previous_template=self.flag("UsePreviousTemplate"),
            parameters=values,
            previous_parameters=with_previous_value,
            tags=tags,
            capabilities=self.values("Capabilities"),
            notification_arns=self.values("NotificationARNs") if "NotificationARNs" in self.params else None,
            role_arn=self.text("RoleARN"),
        )

    def _parameters(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the template parameters' values, and the names of those with `UsePreviousValue`."""
        template_parameters = self.params.get("Parameters") or ()
        with_previous_value = tuple(
            parameter["ParameterKey"]
            for parameter in template_parameters
            if str(parameter.get("UsePreviousValue", "")).lower() == "true"
        )
        values = {
            parameter["ParameterKey"]: parameter.get("ParameterValue", "")
            for parameter in template_parameters
            if parameter["ParameterKey"] not in with_previous_value
        }
        return values, with_previous_value

    def has_happened(self, time: datetime.datetime) -> bool:
        """Return whether an event at this time is visible: a stale read does not show what happened later."""
        return self.stale_at is None or time <= self.stale_at

    def page(
        self, name: str, items: Sequence[Item], key_of: Callable[[Item], str], describe: Callable[[Item], object]
    ) -> JsonDict:
        """Return one page of a list, and the `NextToken` if there are more.

        A token names the first item of the next page, so events that are added meanwhile do not shift the pages.

        Args:
            key_of: returns the unique key of an item.
        """
        start = 0
        if token := self.text("NextToken"):
            try:
                first_key = base64.urlsafe_b64decode(token).decode()
                start = [key_of(item) for item in items].index(first_key)
            except (ValueError, binascii.Error):
                raise ValidationError("Invalid NextToken") from None
        end = start + self.page_size
        answer: JsonDict = {name: [describe(item) for item in items[start:end]]}
        if end < len(items):
            answer["NextToken"] = base64.urlsafe_b64encode(key_of(items[end]).encode()).decode()
        return answer
