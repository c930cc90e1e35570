"""Google Calendar, Microsoft Graph and their OAuth servers over HTTP on one port, in memory.

For the demo, the tests and the benchmarks. ``server.serve`` runs it, ``client.Sandbox`` controls it.
"""
