"""Where tasks run. No check ever sees an engine."""
