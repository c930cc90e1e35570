"""Subscribed calendars: feeds of iCalendar text at an address (ICS). They cannot be changed."""
