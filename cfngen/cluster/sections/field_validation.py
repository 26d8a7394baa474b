"""How the texts of a cluster file are checked: functions and annotations for pydantic, with messages for the user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError
from urllib.parse import urlsplit

from pydantic_core import PydanticCustomError, core_schema

from cfngen.cluster.sections.references import (
    PARAMETER_PATTERN,
    STACK_PATTERN,
    parse_reference,
    refusal,
)
from cfngen.text_limits import TextLimit

# A name without a dot, an address, or a name below a domain that is never on the internet (RFC 6761, RFC 6762, RFC
# 8375, and `internal`, which ICANN reserved in 2024).
_PRIVATE_HOST = re.compile(
    r"[a-z0-9-]+|[0-9.]+|.*\.(example|home\.arpa|internal|invalid|local|localhost|test)", re.IGNORECASE
)


def _invalid_value(message: str) -> PydanticCustomError:
    # The message is passed as the value of a placeholder, since pydantic would replace braces in the template itself.
    return PydanticCustomError("cfngen", "{text}", {"text": message})


def parse_cidr(value: object) -> IPv4Network:
    """Return a CIDR, given as text or as a network already; its address must be the first of the network."""
    if isinstance(value, IPv4Network):
        return value
    if isinstance(value, str) and (
        reason := refusal(value, is_accepted=False, expected="a CIDR such as 172.20.0.0/16")
    ):
        raise _invalid_value(reason)
    if isinstance(value, str) and re.fullmatch(r"([0-9]{1,3}\.){3}[1-9][0-9]{0,2}", value):
        raise _invalid_value(f"{value!r} is an address, not an IPv4 CIDR; {value}/32 is this address alone")
    if not isinstance(value, str) or "/" not in value:
        raise _invalid_value(f"{value!r} is not an IPv4 CIDR such as 172.20.0.0/16")
    try:
        return IPv4Network(value)
    except (AddressValueError, NetmaskValueError):
        raise _invalid_value(f"{value!r} is not an IPv4 CIDR such as 172.20.0.0/16") from None
    except ValueError:
        aligned = IPv4Network(value, strict=False)
        raise _invalid_value(f"{value} is not aligned to its prefix; the network it lies in is {aligned}") from None


def parse_address(value: object) -> IPv4Address:
    """Return an IPv4 address that is given as text, or as an address already."""
    if isinstance(value, IPv4Address):
        return value
    try:
        if isinstance(value, str):
            return IPv4Address(value)
    except AddressValueError:
        pass
    raise _invalid_value(f"{value!r} is not an IPv4 address such as 172.20.0.9")


def refuse_unusable_proxy(value: object) -> object:
    """Return the URL of a proxy unchanged; refuse one with a password, which is not repeated, and one with TLS."""
    if isinstance(value, str) and "@" in value:
        raise _invalid_value(
            "a user name and password would be readable in the user data of every instance; remove them, and let the "
            "proxy admit the cluster by its addresses"
        )
    if isinstance(value, str) and value.startswith("https://"):
        # Python's urllib speaks no TLS to a proxy; "HTTPS proxy servers aren't supported" by Session Manager (AWS
        # Systems Manager User Guide, "Configuring SSM Agent to use a proxy on Linux nodes").
        raise _invalid_value(
            "instances speak plain HTTP to the proxy, through which they tunnel their own TLS; enter its http:// URL"
        )
    return value


def refuse_unreadable_issuer(value: object) -> object:
    """Return the URL of an issuer unchanged; refuse a document's URL, and a host that AWS STS cannot reach."""
    if not isinstance(value, str):
        return value
    issuer, separator, _ = value.partition("/.well-known")
    if separator:
        raise _invalid_value(f"{value!r} is where the issuer's document is; enter the issuer's URL, {issuer}")
    host = urlsplit(value).netloc
    if _PRIVATE_HOST.fullmatch(host):
        raise _invalid_value(
            f"AWS STS reads the issuer's documents from the internet, where {host} is no name; enter the URL of a web "
            "server that everybody can reach"
        )
    return value


def check_range(value: object) -> object:
    """Return a host, domain or range unchanged; refuse an invalid range."""
    if isinstance(value, str) and re.match(r"[0-9.]+/", value):
        parse_cidr(value)
    return value


@dataclass(frozen=True)
class TextPattern:
    """Annotation, for pydantic, of a text that must match a pattern.

    Attributes:
        pattern: regular expression, matched against the whole value.
        expected: what a valid value is, with an example; completes the sentence "… is not".
        json_type: the type or types in the JSON Schema; with `number`, a whole number is accepted and becomes text.
        limit: characters and length that the AWS service accepts; None if the pattern says all.
        takes_references: whether a reference to an output of a stack or to Parameter Store may stand for the text.
    """

    pattern: str
    expected: str
    json_type: str | tuple[str, ...] = "string"
    limit: TextLimit | None = None
    takes_references: bool = False

    def check(self, value: object) -> str:
        """Return the text; raise PydanticCustomError if it is not valid."""
        accepts_numbers = "number" in self.json_type
        # Not `isinstance`, which takes a boolean for an int.
        if accepts_numbers and type(value) is int:
            value = str(value)
        if not isinstance(value, str):
            raise _invalid_value(f"{value!r} is not {self.expected}; write it as text")
        if not re.fullmatch(self.pattern, value):
            if reason := refusal(value, is_accepted=self.takes_references, expected=self.expected):
                raise _invalid_value(reason)
            if self.takes_references and parse_reference(value):
                return value
        limit_problem = self.limit.fault(value) if self.limit else ""
        if limit_problem:
            raise _invalid_value(f"{value!r} is not {self.expected}: it {limit_problem}")
        if not re.fullmatch(self.pattern, value):
            raise _invalid_value(f"{value!r} is not {self.expected}")
        return value

    # Pydantic calls these two methods to find out how to validate the text, and for the JSON Schema.
    def __get_pydantic_core_schema__(self, source: object, handler: object) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: object, handler: object) -> dict[str, object]:
        references = (STACK_PATTERN, PARAMETER_PATTERN) if self.takes_references else ()
        types = self.json_type if isinstance(self.json_type, str) else list(self.json_type)
        return {"type": types, "pattern": f"^({'|'.join((self.pattern, *references))})$"}


class DestinationPattern(TextPattern):
    """Annotation of a route's destination: a CIDR, or the id of a prefix list."""

    def check(self, value: object) -> str:
        """Return the destination as text; raise PydanticCustomError if it is not valid."""
        return super().check(value) if isinstance(value, str) and value.startswith("pl-") else str(parse_cidr(value))
