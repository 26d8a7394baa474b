"""What all tests share."""

from __future__ import annotations

import functools

import botocore.session

# Tests make hundreds of sessions, and each would read megabytes of service models anew.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)
