"""`python -m cfngen`: the same as the console script `cfngen`."""

from cfngen.cli import main

if __name__ == "__main__":
    main()
