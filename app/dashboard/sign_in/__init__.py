"""How administrators sign in: passwords, sessions, cookies and the limit of attempts."""
