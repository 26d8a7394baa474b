"""The instances of the sandbox: they boot as the boot program would, and stop, drain and are interrupted."""
