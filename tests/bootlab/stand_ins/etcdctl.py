"""etcdctl: the real one; its calls are noted."""

import os
import sys

from stand_ins import calls


def main(arguments):
    calls.record("etcdctl", arguments)
    os.execv("/usr/lib/bootlab/bin/etcdctl", ["etcdctl", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
