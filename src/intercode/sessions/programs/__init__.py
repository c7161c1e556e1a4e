"""Sessions for languages of the table: live interpreters (REPL) and compiled or run programs."""
