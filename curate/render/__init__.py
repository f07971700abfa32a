"""From numbers to something a person likes to read. Renderers decide nothing and compute no number."""
