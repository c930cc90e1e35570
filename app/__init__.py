"""The web tier and the command line. ``app.web`` makes the application; nothing is imported here."""
