"""The HTTP layer: server, request bodies, streams, problem documents and routes."""
