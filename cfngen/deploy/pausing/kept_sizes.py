"""The sizes that a paused Auto Scaling group had before, in a tag of the group.

All of them are in one tag, which Auto Scaling writes as a whole: an interruption leaves either no tag or all sizes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from cfngen.cluster.naming.tag_keys import PAUSED

# Values of tags have at most 256 characters: letters, digits, spaces and `+ - = . _ : / @` ("Tag naming and usage
# restrictions", Amazon EC2 Auto Scaling User Guide).
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_VALUE = re.compile(r"min=(?P<minimum>\d+) max=(?P<maximum>\d+) desired=(?P<desired>\d+) since=(?P<since>\S+)")


@dataclass(frozen=True)
class Sizes:
    """The sizes of an Auto Scaling group.

    Attributes:
        minimum: minimum size.
        maximum: maximum size.
        desired: desired capacity.
    """

    minimum: int
    maximum: int
    desired: int

    def __str__(self) -> str:
        return f"{self.desired} ({self.minimum} to {self.maximum})"


NO_INSTANCES = Sizes(minimum=0, maximum=0, desired=0)
ONE_INSTANCE = Sizes(minimum=1, maximum=1, desired=1)
"""The sizes of the group of a master, and of the bastion."""


@dataclass(frozen=True)
class KeptSizes:
    """The tag of a group that is paused, or was when a command was interrupted.

    Attributes:
        text: the tag's value.
        sizes: the sizes before the pause; None if somebody has damaged the tag.
        since: when the pause began; None if somebody has damaged the tag.
    """

    text: str
    sizes: Sizes | None = None
    since: datetime | None = None


def tag_value(sizes: Sizes, since: datetime) -> str:
    """Return the value of the tag that keeps the sizes of a group."""
    time = since.astimezone(UTC).strftime(_TIME_FORMAT)
    return f"min={sizes.minimum} max={sizes.maximum} desired={sizes.desired} since={time}"


def parse_tags(tags: dict[str, str]) -> KeptSizes | None:
    """Return the sizes that the tags of a group keep; None if the group is not paused.

    Args:
        tags: values by key.
    """
    text = tags.get(PAUSED)
    if text is None:
        return None
    match = _VALUE.fullmatch(text)
    if match is None:
        return KeptSizes(text)
    try:
        since = datetime.strptime(match["since"], _TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return KeptSizes(text)
    sizes = Sizes(minimum=int(match["minimum"]), maximum=int(match["maximum"]), desired=int(match["desired"]))
    if not sizes.minimum <= sizes.desired <= sizes.maximum:
        return KeptSizes(text)
    return KeptSizes(text, sizes, since)
