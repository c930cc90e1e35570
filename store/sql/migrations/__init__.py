"""Alembic migrations, run by ``Database.upgrade``."""
