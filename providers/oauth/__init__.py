"""The OAuth servers of both providers: consent, tokens, identity and revocation.

Imported by ``workers``; the web tier imports ``consent`` alone.
"""
