"""Reports of one sweep: text for people, SARIF for code scanning, JSON for programs, comparison with a baseline."""
