"""The Celery app, its tasks, and the fan-out that reads many calendars for one request."""
