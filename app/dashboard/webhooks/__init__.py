"""Webhook endpoints: their settings, their secrets and what was sent to them.

Imported only by ``app.dashboard``.
"""
