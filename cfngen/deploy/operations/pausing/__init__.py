"""Pausing a cluster: all its Auto Scaling groups have no instances for a while, and get their sizes back afterwards."""
