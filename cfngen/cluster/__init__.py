"""The cluster file: what the user asked for, as frozen, validated data. Knows no AWS call and no template."""
