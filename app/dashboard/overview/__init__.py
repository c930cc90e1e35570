"""The first page of the dashboard: what needs attention, the last day, and the state of each part."""
