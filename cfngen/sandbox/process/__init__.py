"""The sandbox as a process on the loopback address: its server, its start and end, and the record of it."""
