"""Actions on many rows: adding and removing members, deleting users, and exports.

Imported by ``app.dashboard``.
"""
