"""A server that sends the answers of a script, one for each request, and records the requests.

An answer is (status, headers, body), or "drop": the connection is then closed without an answer.
With the header "x-hang-up", the connection is closed after the answer, without an announcement.
After the last answer of the script, `answer(path, body)` returns the answers.
"""

import http.server
import json
import threading


class ScriptedServer:
    def __init__(self, *answers, answer=None):
        self.requests = []  # (method, path, headers, body)
        self.connections = 0
        script = list(answers)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                outer.connections += 1

            def respond(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                outer.requests.append((self.command, self.path, dict(self.headers), body))
                said = script.pop(0) if script or not answer else answer(self.path, body)
                if said == "drop":
                    self.close_connection = True
                    return
                status, headers, value = said
                text = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                for name, header in headers.items():
                    self.send_header(name, header)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
                if "x-hang-up" in headers:
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = respond

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        serve = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        serve.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
