"""Grants of organizations: the forms to enter them, and the import of members who are read by them."""
