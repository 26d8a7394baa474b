"""Programs that someone else calls: runc, CNI plug-ins, the credential provider. They only note that they were."""

import sys

from stand_ins import calls


def main(arguments):
    calls.record("silent", arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
