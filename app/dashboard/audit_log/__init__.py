"""The audit log: filters, links to what an action changed, and the export.

Imported by ``app.dashboard`` alone.
"""
