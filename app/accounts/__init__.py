"""Users, organizations, connections and webhook endpoints: what the API and the dashboard both do with
them.

Imported by ``app.api``, ``app.availability``, ``app.cli``, ``app.dashboard``, ``app.events``, ``app.http``.
"""
