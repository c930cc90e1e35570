"""Calendars of CalDAV servers (RFC 4791), such as iCloud, Fastmail, Nextcloud and Radicale."""
