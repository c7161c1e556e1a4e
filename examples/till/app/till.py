"""Adds up the numbers that it is sent, one a line, and answers each with the sum."""

import socketserver


class Till(socketserver.StreamRequestHandler):
    total = 0

    def handle(self):
        for line in self.rfile:
            Till.total += int(line)
            self.wfile.write(b"%d\n" % Till.total)


socketserver.ThreadingTCPServer(("127.0.0.1", 8000), Till).serve_forever()
