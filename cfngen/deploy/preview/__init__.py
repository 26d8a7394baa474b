"""What a deployment would change: change sets made, read to the end, and put into words of the cluster."""
