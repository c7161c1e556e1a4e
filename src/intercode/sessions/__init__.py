"""Sessions: live interpreters in a sandbox (Bash, Python, and programs in other languages)."""
