"""What holds for all tests."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # whoever runs us in the background (nohup, a script's `&`) has us ignore Ctrl-C, and all that we start would, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
