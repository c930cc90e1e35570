"""Users, organizations, connections and webhook endpoints: what the API and the dashboard both do with
them.

Imported by ``app.api``, ``app.dashboard`` and the command line.
"""
