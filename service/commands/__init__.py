"""Commands of `feedrank` that run or inspect the service."""
