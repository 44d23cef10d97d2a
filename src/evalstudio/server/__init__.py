"""The server: the REST API, live events, the web UI as static files, and what keeps all of it safe."""
