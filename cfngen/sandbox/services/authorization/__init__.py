"""Who may do what: the one evaluator of IAM's policies, for the emulator's services and for tests.

`decision` says what some policies say about a request; `authorize` decides on a request of a caller, by all policies
that apply to it. Each module names the pages of AWS's documentation that it follows.

Not modelled: requests from another account, policies of organizations and of VPC endpoints, access control lists,
grants of KMS, federated users of IAM, and the root user. Nothing that is not modelled is answered by a yes: where a
policy, a context or a caller has such a thing, the evaluator refuses to decide (`NotModelled`).
"""

from cfngen.sandbox.services.authorization.evaluation import Policies, authorize, decision
from cfngen.sandbox.services.authorization.patterns import Context
from cfngen.sandbox.services.authorization.principals import ANONYMOUS, Caller
from cfngen.sandbox.services.authorization.statements import Request

__all__ = ["ANONYMOUS", "Caller", "Context", "Policies", "Request", "authorize", "decision"]
