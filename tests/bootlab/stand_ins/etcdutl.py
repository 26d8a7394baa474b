"""etcdutl: the real one of etcd 3.5, which does not know two options of 3.6; what they are for is not seen here."""

import os
import sys

from stand_ins import calls

NEWER = ("--bump-revision=", "--mark-compacted")


def main(arguments):
    calls.record("etcdutl", arguments)
    kept = [each for each in arguments if not each.startswith(NEWER)]
    os.execv("/usr/lib/bootlab/bin/etcdutl", ["etcdutl", *kept])


if __name__ == "__main__":
    main(sys.argv[1:])
