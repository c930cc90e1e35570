"""Almanac for assistants: a Model Context Protocol server that finds free slots, and changes nothing."""
