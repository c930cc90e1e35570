"""The routes of ``/v1``, one file for each part of the specification."""
