"""Stores on SQL databases: one mechanism, in statements that SQLite and PostgreSQL both read, and two dialects of it."""
