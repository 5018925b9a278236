"""Bundled graphs."""
