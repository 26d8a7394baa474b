"""What things are called: logical ids, names in AWS, keys of tags, zones."""
