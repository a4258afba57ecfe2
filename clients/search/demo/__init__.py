"""`feedrank search demo`: the standard library's own documentation, searched, clicked and learned from."""
