"""How the web tier is served, and how ``almanac up`` starts and watches the processes of an installation."""
