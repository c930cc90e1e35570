"""The command line ``almanac``: one module for each group of commands.

Imported by no other folder.
"""
