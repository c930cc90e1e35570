"""Search while typing: suggestions of form fields, and the command palette.

Imported by ``app.dashboard``.
"""
