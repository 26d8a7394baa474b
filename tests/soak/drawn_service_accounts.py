"""The issuer of tokens and the roles of service accounts in a drawn cluster file: keys that hang on each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

if TYPE_CHECKING:
    from drawn_files import File

_NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)


def issuer(partition: str) -> SearchStrategy[File]:
    """The issuer, with documents in each place where AWS could read them."""
    signs = {"signTokens": st.booleans()}
    served = ("cloudFront", "bucket") if partition == "aws" else ("bucket",)
    web_server = {
        "discovery": st.just("url"),
        "url": st.sampled_from(("https://tokens.example.com", "https://tokens.example.com/clusters/blue")),
    }
    return st.one_of(
        st.fixed_dictionaries({}, optional={"discovery": st.sampled_from(served), **signs}),
        st.fixed_dictionaries(web_server, optional={"bucket": st.just("example-tokens"), **signs}),
    )


def roles(
    partition: str, policies: SearchStrategy[str], statements: SearchStrategy[list[File]]
) -> SearchStrategy[list[File]]:
    """Service accounts, each with a role that is made or with an existing one."""
    account = {"namespace": _NAMES.filter(lambda name: name != "kube-system"), "name": _NAMES}
    made = {
        "additionalPolicies": st.lists(policies, max_size=2, unique=True),
        "policyStatements": statements,
        "permissionsBoundary": policies,
        "tags": st.dictionaries(st.sampled_from(("project", "team")), st.sampled_from(("shop", "ml")), max_size=2),
    }
    existing = {"role": st.just(f"arn:{partition}:iam::123456789012:role/team/pods")}
    # Most have a role that is made, as that has most keys.
    account_with_role = st.one_of(
        st.fixed_dictionaries(account | made),
        st.fixed_dictionaries(account, optional=made),
        st.fixed_dictionaries(account | existing),
    )
    return st.lists(
        account_with_role, min_size=1, max_size=3, unique_by=lambda drawn: (drawn["namespace"], drawn["name"])
    )


def settle(file: File, get: Callable[..., Any], drop: Callable[[File, str], None]) -> None:
    """Drop what needs an issuer that the file has not, or one that signs tokens."""
    section = get(file, "serviceAccountIssuer")
    signs = section is not None and section.get("signTokens", True)
    if section is None:
        drop(file, "iam.serviceAccounts")
    if not signs:
        drop(file, "iam.addonRoles")
        drop(file, "addons.podIdentityWebhook")
    without_documents = signs and "url" in section and "bucket" not in section
    has_roles = signs and get(file, "iam.addonRoles", not without_documents)
    if not has_roles or not get(file, "addons.certManager.enabled"):
        drop(file, "addons.certManager.zones")
