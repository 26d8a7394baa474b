"""Builds the user data of masters and nodes: the boot program and its configuration, within EC2's limit of 16 KiB."""

from cfngen.userdata.configuration import master, node, roles
from cfngen.userdata.pack import UserData, UserDataTooLargeError
from cfngen.userdata.references import address_reference

__all__ = ["UserData", "UserDataTooLargeError", "address_reference", "master", "node", "roles"]
