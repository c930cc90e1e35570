"""The audit log: filters, links to what an action changed, and the export.

Imported only by ``app.dashboard``.
"""
