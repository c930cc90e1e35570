"""The command line ``almanac``: one module for each group of commands."""
