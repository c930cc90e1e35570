"""The SQL database: tables, queries and migrations.

Imported by ``app`` and ``workers``.
"""
