"""Operations on users, organizations, connections and webhook endpoints, for the API and the dashboard."""
