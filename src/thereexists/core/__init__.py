"""What everything stands on: errors, verdicts, files, dtypes, and the registry of kinds."""
