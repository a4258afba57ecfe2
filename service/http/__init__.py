"""The HTTP edge: server, bodies, streams, problems and routes over the runtime."""
