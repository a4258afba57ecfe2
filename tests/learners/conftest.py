"""The laws' specs can be imported by the other tests of the core."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
