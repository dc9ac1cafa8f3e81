#!/usr/bin/env python3
"""Starts a program as its child and waits for it, as npx and uvx do, for compare.py.

Usage: launcher.py PIDFILE PROGRAM [ARGUMENT]...
"""

import os
import subprocess
import sys

with open(sys.argv[1], "a", encoding="utf-8") as file:
    file.write(f"{os.getpid()}\n")
sys.exit(subprocess.call(sys.argv[2:]))
