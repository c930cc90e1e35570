"""Microsoft Graph v1.0 calendars and the identity platform, emulated below ``/microsoft``."""
