"""The explorer: the availability of people as a picture, and why a moment is or is not offered."""
