"""Webhook endpoints: their settings, their secrets and what was sent to them.

Imported by ``app.dashboard`` alone.
"""
