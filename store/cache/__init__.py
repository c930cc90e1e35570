"""Redis caches: busy periods, calendar lists, and each process's versioned copy of database rows."""
