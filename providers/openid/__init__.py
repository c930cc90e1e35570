"""The identity provider of the people who sign in to the dashboard, by OpenID Connect."""
