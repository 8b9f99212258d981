"""placeholder, being written."""
