"""What the keys about the network lead to: subnets, routes, endpoints, plug-in, proxy, existing parts."""
