"""The routes: thin handlers that pass plain JSON between the HTTP edge and the host."""
