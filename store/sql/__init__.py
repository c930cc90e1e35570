"""The SQL database: tables, queries, migrations and session events."""
