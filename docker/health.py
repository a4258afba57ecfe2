"""Exit 0 when the service is ready, 1 when it is not; needs nothing but Python."""

import os
import sys
import urllib.error
import urllib.request

host = os.environ.get("FEEDRANK_HOST", "127.0.0.1")
address = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104  (any address includes loopback)
url = f"http://{address}:{os.environ.get('FEEDRANK_PORT', '8000')}/readyz"
try:
    with urllib.request.urlopen(url, timeout=2) as reply:
        sys.exit(0 if reply.status == 200 else 1)
except (OSError, urllib.error.URLError) as error:
    print(f"{url}: {error}", file=sys.stderr)
    sys.exit(1)
