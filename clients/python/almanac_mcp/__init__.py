"""Almanac for assistants: a server of the Model Context Protocol that finds free slots and may book them."""
