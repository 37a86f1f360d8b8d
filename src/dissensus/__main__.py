import sys

from dissensus.cli import main

sys.exit(main())
