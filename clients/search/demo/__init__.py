"""`feedrank search demo`: search the documentation of Python's standard library, and learn from clicks."""
