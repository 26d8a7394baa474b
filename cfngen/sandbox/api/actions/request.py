"""What an action is asked, and how it answers a part of a long list."""

from __future__ import annotations

import base64
import binascii
import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from cfngen.sandbox.cloudformation import CloudFormation, ValidationError

Item = TypeVar("Item")
Result = Mapping[str, Any]


@dataclass(frozen=True)
class ActionRequest:
    """A call of CloudFormation's API.

    Attributes:
        cloud: the engine.
        given: parameters by the names of the API.
        page_size: items on a page.
        as_of: a read answers as of then; None for now.
    """

    cloud: CloudFormation
    given: Mapping[str, Any]
    page_size: int = 100
    as_of: datetime.datetime | None = None

    def text(self, name: str) -> str:
        """Return a parameter that is a text; empty if it is not given."""
        return str(self.given.get(name) or "")

    def flag(self, name: str) -> bool:
        """Return a parameter that is true or false; false if it is not given."""
        return str(self.given.get(name, "")).lower() == "true"

    def values(self, name: str) -> tuple[str, ...]:
        """Return a parameter that is a list of texts."""
        return tuple(self.given.get(name) or ())

    def token(self) -> str:
        """Return the client request token."""
        return self.text("ClientRequestToken") or self.text("ClientToken")

    def topics(self) -> tuple[str, ...] | None:
        """Return the topics given; None if none are, as an update then keeps those there are."""
        return self.values("NotificationARNs") if "NotificationARNs" in self.given else None

    def tags(self) -> dict[str, str] | None:
        """Return the tags given; None if none are, as an update then keeps those there are."""
        if "Tags" not in self.given:
            return None
        return {tag["Key"]: tag["Value"] for tag in self.given["Tags"]}

    def parameters(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the values given, and the names of parameters that keep their value."""
        given = self.given.get("Parameters") or ()
        kept = tuple(each["ParameterKey"] for each in given if str(each.get("UsePreviousValue", "")).lower() == "true")
        return {
            each["ParameterKey"]: each.get("ParameterValue", "") for each in given if each["ParameterKey"] not in kept
        }, kept

    def check_template(self) -> None:
        """See that the call says where its template is.

        Raises:
            ValidationError: it does not, or twice
        """
        given = [self.text("TemplateBody"), self.text("TemplateURL"), self.flag("UsePreviousTemplate")]
        if not any(given):
            raise ValidationError("Either Template URL or Template Body must be specified.")
        if sum(map(bool, given)) > 1:
            raise ValidationError("Exactly one of Template URL, Template Body and Use Previous Template is allowed.")

    def now(self, time: datetime.datetime) -> bool:
        """Return whether what happened then is known to this read."""
        return self.as_of is None or time <= self.as_of

    def page(
        self, name: str, items: Sequence[Item], key: Callable[[Item], str], show: Callable[[Item], Any]
    ) -> dict[str, Any]:
        """Return one page and where the next begins.

        A token names the first item of the next page, so that events which arrive meanwhile shift nothing.

        Args:
            name: of the list in the answer.
            items: all of them.
            key: what tells one from the others.
            show: an item as the API shows it.
        """
        start = 0
        if token := self.text("NextToken"):
            try:
                wanted = base64.urlsafe_b64decode(token).decode()
                start = [key(each) for each in items].index(wanted)
            except (ValueError, binascii.Error):
                raise ValidationError("Invalid NextToken") from None
        end = start + self.page_size
        answer: dict[str, Any] = {name: [show(each) for each in items[start:end]]}
        if end < len(items):
            answer["NextToken"] = base64.urlsafe_b64encode(key(items[end]).encode()).decode()
        return answer
