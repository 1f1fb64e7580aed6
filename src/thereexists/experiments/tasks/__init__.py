"""One file per task; each names its class ``TASK``."""
