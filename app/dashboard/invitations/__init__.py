"""Invitations of users: the pages that make and list them, and the public page that a link opens.

Imported by ``app.dashboard``.
"""
