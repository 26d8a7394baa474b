"""What was called, with what files, in what order: a line of JSON for each call."""

import fcntl
import json
import os
import sys
import time

# Of the file that was fetched, or of the image that a static pod names.
VERSION = os.environ.get("BOOTLAB_VERSION", "")
LOG = "/var/log/bootlab-calls.jsonl"


def record(program, arguments, **more):
    """Note a call; of files named as configuration their content, of certificates and keys nothing."""
    files = {}
    for index, word in enumerate(arguments):
        name = word.partition("=")[2] if word.startswith("--config=") else arguments[index + 1 : index + 2]
        name = name[0] if isinstance(name, list) and name and word in ("--config", "-f", "--values") else name
        if isinstance(name, str) and os.path.isfile(name):
            with open(name) as file:
                files[name] = file.read()
    entry = {"time": time.time(), "program": program, "arguments": arguments, "files": files, **more}
    with open(LOG, "a") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        log.write(json.dumps(entry) + "\n")


def refuse(text, code=1):
    """End as a program does that cannot go on."""
    sys.stderr.write(text + "\n")
    sys.exit(code)
