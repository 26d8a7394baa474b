"""What a deployment would change: change sets, read and put into words."""
