"""The handler of AWS::IAM::OIDCProvider."""

from __future__ import annotations

from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers.handler import CreatedResource, Handler, HandlerCall, Tag
from cfngen.sandbox.json_types import Properties


class OidcProvider(Handler):
    """An identity provider: another URL replaces it, the rest is updated in place.

    Ref and GetAtt of `Arn` are its ARN.
    """

    supported_properties = frozenset({"ClientIdList", "Tags", "ThumbprintList", "Url"})
    updatable_properties = supported_properties - {"Url"}

    def create(self, call: HandlerCall) -> CreatedResource:
        if "Url" not in call.properties:
            raise ResourceError(
                "1 validation error detected: Value null at 'url' failed to satisfy constraint: Member must not be null"
            )
        renamed = {"ClientIDList": call.properties.get("ClientIdList", [])}
        arn = call.iam.create_open_id_connect_provider(**call.pick("Tags", "ThumbprintList", "Url"), **renamed)[
            "OpenIDConnectProviderArn"
        ]
        return CreatedResource(arn, {"Arn": arn})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> Properties:
        """Update the provider; CloudFormation sends the thumbprints in every update, and fails if there are none.

        So a provider without thumbprints can be created, but not updated, not even its tags (seen:
        aws-cloudformation/cloudformation-coverage-roadmap#2092, March 2025; assumed: that this goes for all updates).
        """
        if not call.properties.get("ThumbprintList"):
            raise ResourceError(
                "1 validation error detected: Value null at 'thumbprintList' failed to satisfy constraint: Member must "
                "not be null"
            )
        iam, arn = call.iam, call.physical_id
        iam.update_open_id_connect_provider_thumbprint(
            OpenIDConnectProviderArn=arn, ThumbprintList=call["ThumbprintList"]
        )
        old_ids, new_ids = set(old_properties.get("ClientIdList", [])), set(call.properties.get("ClientIdList", []))
        for client_id in sorted(new_ids - old_ids):
            iam.add_client_id_to_open_id_connect_provider(OpenIDConnectProviderArn=arn, ClientID=client_id)
        for client_id in sorted(old_ids - new_ids):
            iam.remove_client_id_from_open_id_connect_provider(OpenIDConnectProviderArn=arn, ClientID=client_id)
        return {}

    def add_tags(self, call: HandlerCall, tags: list[Tag]) -> None:
        call.iam.tag_open_id_connect_provider(OpenIDConnectProviderArn=call.physical_id, Tags=tags)

    def remove_tags(self, call: HandlerCall, keys: list[str]) -> None:
        call.iam.untag_open_id_connect_provider(OpenIDConnectProviderArn=call.physical_id, TagKeys=keys)

    def read_actual(self, call: HandlerCall) -> Properties | None:
        arns = [item["Arn"] for item in call.iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]]
        if call.physical_id not in arns:
            return None
        actual = call.iam.get_open_id_connect_provider(OpenIDConnectProviderArn=call.physical_id)
        return {"ClientIdList": actual["ClientIDList"], **({"Tags": actual["Tags"]} if actual["Tags"] else {})}

    def delete(self, call: HandlerCall) -> None:
        """Delete the provider; IAM lets roles keep their trust in it (API: DeleteOpenIDConnectProvider)."""
        call.iam.delete_open_id_connect_provider(OpenIDConnectProviderArn=call.physical_id)
