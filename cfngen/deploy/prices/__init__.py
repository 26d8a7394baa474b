"""What a cluster costs in a month, from the prices in a file of the operator."""
