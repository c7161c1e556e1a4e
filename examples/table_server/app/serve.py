"""Runs SQLite's statements, one a line as JSON, and answers each with its rows or its error."""

import json
import socketserver
import sqlite3

DATABASE = sqlite3.connect("/app/shop.db", isolation_level=None)


class Statements(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            try:
                answer = {"rows": DATABASE.execute(json.loads(line)).fetchall()}
            except (sqlite3.Error, sqlite3.Warning) as e:
                answer = {"error": str(e)}
            self.wfile.write(json.dumps(answer, default=str).encode() + b"\n")


DATABASE.execute("CREATE TABLE IF NOT EXISTS sale (day TEXT, price REAL)")
if not DATABASE.execute("SELECT * FROM sale").fetchone():
    DATABASE.execute("INSERT INTO sale VALUES ('Monday', 9.5), ('Monday', 2), ('Tuesday', 20)")
socketserver.TCPServer.allow_reuse_address = True
socketserver.TCPServer(("127.0.0.1", 8000), Statements).serve_forever()
