"""Operations on users, organizations, connections and webhook endpoints, shared by the API and the
dashboard.

Imported by ``app.api``, ``app.availability``, ``app.cli``, ``app.dashboard``, ``app.events``.
"""
