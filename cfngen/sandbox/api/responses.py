"""CloudFormation's API: moto parses requests and serialises responses, the emulator executes the actions.

moto's own CloudFormation is never imported: it would import the models of thirty services.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping

from moto.core.common_types import TYPE_RESPONSE
from moto.core.request import Request
from moto.core.responses import ActionContext, ActionResult, BaseResponse
from moto.core.serialize import DefaultAttributePicker
from moto.core.utils import get_service_model

from cfngen.sandbox.api.actions import ACTIONS, ACTIONS_WITH_TOKEN, ActionRequest, Result
from cfngen.sandbox.api.requests import Answer, Call, CallControl, Refusal, render
from cfngen.sandbox.cloudformation import ApiError, CloudFormation
from cfngen.sandbox.untyped import JsonObject

NAME_PATTERN = re.compile(r"[a-zA-Z][-a-zA-Z0-9]*|arn:[-a-zA-Z0-9:/._+]*")  # of stacks and change sets


class Service:
    """CloudFormation's API in every region of an account.

    Args:
        clouds: the emulated CloudFormation by region; that of another region is created at the first call to it.
        control: determines the page size, and which past state a stale read shows.
    """

    def __init__(self, clouds: Mapping[str, CloudFormation], control: CallControl) -> None:
        self.clouds = dict(clouds)
        self.control = control
        # The emulator is not thread-safe, and moto's server has a thread for each request.
        self.lock = threading.RLock()
        # By region and client request token: the action and its result, for a client that repeats its request.
        self._results_by_token: dict[str, dict[str, tuple[str, Result]]] = {}

    def cloud(self, region: str) -> CloudFormation:
        """Return the emulator of a region."""
        if region not in self.clouds:
            self.clouds[region] = CloudFormation(region)
        return self.clouds[region]

    def answer(self, action: str, region: str, params: JsonObject) -> Result:
        """Execute an action and return its result.

        Raises:
            Refusal: the action fails
        """
        _check_names(params)
        results = self._results_by_token.setdefault(region, {})
        token = ""
        if action in ACTIONS_WITH_TOKEN:
            token = str(params.get("ClientRequestToken") or params.get("ClientToken") or "")
        with self.lock:
            if token in results:
                return _repeated_result(action, token, results)
            request = ActionRequest(self.cloud(region), params, self.control.page_size, self.control.stale_at(action))
            try:
                result = ACTIONS[action](request)
            except ApiError as error:
                raise Refusal(error.code, str(error), _status(error.code)) from error
            if token:
                results[token] = (action, result)
            return result

    def respond(self, request: Request) -> Answer:
        """Return the HTTP answer to a request."""
        response = _Response(self)
        response.setup_class(request)
        return response.answer()


def _check_names(params: JsonObject) -> None:
    for name in ("StackName", "ChangeSetName"):
        value = str(params.get(name, ""))
        if name in params and not NAME_PATTERN.fullmatch(value):
            member_name = name[0].lower() + name[1:]
            raise Refusal(
                "ValidationError",
                f"1 validation error detected: Value '{value}' at '{member_name}' failed to satisfy constraint: Member "
                f"must satisfy regular expression pattern: {NAME_PATTERN.pattern}",
            )


def _repeated_result(action: str, token: str, results: Mapping[str, tuple[str, Result]]) -> Result:
    """Return the first call's result for a repeated client request token; refuse the token for another action."""
    previous_action, result = results[token]
    if previous_action != action:
        raise Refusal("TokenAlreadyExistsException", f"Client request token {token} already exists")
    return result


def _status(code: str) -> int:
    for shape in get_service_model("cloudformation").error_shapes:
        if shape.error_code == code:
            return int(shape.metadata["error"]["httpStatusCode"])
    return 400


class _ResultWithExactKeys(ActionResult):
    """A result whose keys are exactly the API's, so that moto need not search for attributes with similar names."""

    def execute_result(self, context: ActionContext) -> TYPE_RESPONSE:
        """Serialise the result without moto's search for attributes."""
        serializer = context.serializer_class(context.operation_model, value_picker=DefaultAttributePicker())
        response = serializer.serialize(self.result)
        return response["status_code"], dict(response["headers"]), response["body"]


class _Response(BaseResponse):
    """One call, parsed and answered by moto with botocore's model of the API."""

    def __init__(self, service: Service) -> None:
        super().__init__(service_name="cloudformation")
        self.automated_parameter_parsing = True
        self._service = service

    def answer(self) -> Answer:
        """Execute the action, and return its result or its error as an HTTP answer."""
        action = self._get_action()
        if action not in ACTIONS:
            raise NotImplementedError(f"cloudformation:{action}")
        try:
            result = self._service.answer(action, self.region, self.params)
        except Refusal as refusal:
            return render(Call("cloudformation", action), refusal)
        status, headers, body = self.serialized(_ResultWithExactKeys(result))
        return status, {name: str(value) for name, value in headers.items()}, str(body)
