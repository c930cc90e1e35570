"""Settings from the environment, each declared once in ``declaration``, and the embedded Redis."""
