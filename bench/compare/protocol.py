"""A small MCP client over Streamable HTTP, HTTP+SSE and pipes, for compare.py.

A connection has send(), which takes one JSON-RPC message, and receive(), which returns those that
have arrived.
"""

import json
import os
import secrets
import select
import socket
import subprocess
import time
import urllib.parse

REVISION = "2025-06-18"


class HttpConnection:
    """A keep-alive connection to a Streamable HTTP endpoint, one request at a time."""

    def __init__(self, url, headers):
        self.url = urllib.parse.urlsplit(url)
        self.headers = headers
        self.socket = None
        self.received = b""
        self.request_id = None
        self.session = None  # the session ID, if the last response had one

    def fileno(self):
        return self.socket.fileno()

    def send(self, message):
        if self.socket is None:
            self.socket = socket.create_connection((self.url.hostname, self.url.port), 10)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.request_id = message.get("id")
        self.socket.sendall(http_request("POST", self.url, self.headers, json.dumps(message).encode()))

    def receive(self):
        data = self.socket.recv(262144)
        self.received += data
        response = parse_http(self.received, closed=not data)
        if response is None:
            return []
        status, headers, body = response
        self.session = headers.get("mcp-session-id")
        if not data or headers.get("connection", "").lower() == "close":
            self.close()
        if status not in (200, 202):
            text = body[:200].decode(errors="replace") or "connection closed"
            return [{"id": self.request_id, "error": {"code": status, "message": text}}]
        if "text/event-stream" in headers.get("content-type", ""):
            return event_data(body)
        return [json.loads(body)] if body.strip() else []

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None


class SseConnection:
    """A connection to an HTTP+SSE endpoint: requests by POST, responses on one stream."""

    def __init__(self, url, headers, timeout=10):
        self.url = urllib.parse.urlsplit(url)
        self.headers = headers
        self.stream = socket.create_connection((self.url.hostname, self.url.port), timeout)
        # HTTP/1.0 asks for a stream without chunks.
        self.stream.sendall(http_request("GET", self.url, headers, b"", version="1.0"))
        self.received = b""
        while b"event: endpoint" not in self.received or not self.received.endswith(b"\n\n"):
            data = self.stream.recv(65536)
            if not data:
                raise ConnectionError("the event stream ended")
            self.received += data
        path = [line[5:].strip() for line in self.received.splitlines() if line.startswith(b"data:")][0]
        self.target = urllib.parse.urlsplit(urllib.parse.urljoin(url, path.decode()))
        self.received = b""
        self.posts = socket.create_connection((self.url.hostname, self.url.port), timeout)
        self.posts.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self):
        return self.stream.fileno()

    def send(self, message):
        while select.select([self.posts], [], [], 0)[0]:  # acknowledgements of earlier requests
            if not self.posts.recv(65536):
                self.posts = socket.create_connection((self.url.hostname, self.url.port), 10)
                break
        self.posts.sendall(http_request("POST", self.target, self.headers, json.dumps(message).encode()))

    def receive(self):
        data = self.stream.recv(262144)
        if not data:
            raise ConnectionError("the event stream ended")
        events, separator, rest = (self.received + data).rpartition(b"\n\n")
        self.received = rest
        return event_data(events) if separator else []

    def close(self):
        self.stream.close()
        self.posts.close()


class PipeConnection:
    """A server reached directly, over its standard input and output."""

    def __init__(self, server):
        self.process = subprocess.Popen(server["argv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.received = b""

    def fileno(self):
        return self.process.stdout.fileno()

    def send(self, message):
        os.write(self.process.stdin.fileno(), json.dumps(message).encode() + b"\n")

    def receive(self):
        lines, _, self.received = (self.received + os.read(self.fileno(), 262144)).rpartition(b"\n")
        return [json.loads(line) for line in lines.splitlines()]

    def close(self):
        self.process.kill()
        self.process.wait()


def http_request(method, url, headers, body, version="1.1"):
    lines = [
        f"{method} {url.path}{'?' + url.query if url.query else ''} HTTP/{version}",
        f"Host: {url.netloc}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream" if method == "POST" else "Accept: text/event-stream",
        f"Content-Length: {len(body)}",
    ]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def parse_http(data, closed):
    """Status, headers and body of a response, or None while a part of it is missing."""
    head, separator, rest = data.partition(b"\r\n\r\n")
    if not separator:
        return (0, {}, b"") if closed else None
    status_line, *lines = head.decode("latin-1").split("\r\n")
    status = int(status_line.split()[1])
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "content-length" in headers:
        length = int(headers["content-length"])
        return (status, headers, rest[:length]) if closed or len(rest) >= length else None
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while True:
            size, separator, rest = rest.partition(b"\r\n")
            if separator and int(size, 16) == 0:
                return status, headers, body
            if not separator or len(rest) < int(size, 16) + 2:
                return (status, headers, body) if closed else None
            body += rest[: int(size, 16)]
            rest = rest[int(size, 16) + 2 :]
    return (status, headers, rest) if closed or status in (202, 204) else None


def event_data(body):
    """The JSON messages in a stream of server-sent events, one per data line."""
    lines = (line[5:].strip() for line in body.splitlines() if line.startswith(b"data:"))
    return [json.loads(line) for line in lines if line]


class Session:
    """An initialized MCP session at one endpoint."""

    def __init__(self, transport, address, headers, timeout):
        """Opens the session. The address is a URL, or for a pipe a server."""
        self.transport, self.address = transport, address
        self.headers = dict(headers)
        self.next_id = 0
        self.shared = None  # the one connection of transports that have only one
        if transport == "sse":
            self.shared = SseConnection(address, headers, timeout)
        elif transport == "pipe":
            self.shared = PipeConnection(address)
        client = {"name": "compare", "version": "1.0.0"}
        hello = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client}
        connection = self.connection()
        message = self.exchange(connection, "initialize", hello, timeout)
        if "result" not in message:
            raise ConnectionError(f"initialize failed: {message}")
        if transport == "http":
            self.headers["MCP-Protocol-Version"] = message["result"]["protocolVersion"]
            if connection.session:
                self.headers["Mcp-Session-Id"] = connection.session
            connection.close()
        connection = self.connection()
        connection.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        if transport == "http":
            if select.select([connection], [], [], 5)[0]:
                connection.receive()
            connection.close()

    def connection(self):
        return self.shared or HttpConnection(self.address, self.headers)

    def exchange(self, connection, method, params, timeout):
        """Sends a request and returns its response. Raises TimeoutError."""
        self.next_id += 1
        request_id = self.next_id
        connection.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([connection], [], [], left)[0]:
                raise TimeoutError(f"no response to {method} within {timeout:.0f} s")
            for message in connection.receive():
                if message.get("id") == request_id and "method" not in message:
                    return message

    def request(self, method, params, timeout):
        connection = self.connection()
        try:
            return self.exchange(connection, method, params, timeout)
        finally:
            if connection is not self.shared:
                connection.close()

    def tools(self, timeout):
        """Every page of the tools/list."""
        tools, params = [], {}
        while True:
            message = self.request("tools/list", params, timeout)
            if "result" not in message:
                raise ConnectionError(f"tools/list failed: {message}")
            tools += message["result"]["tools"]
            if not message["result"].get("nextCursor"):
                return tools
            params = {"cursor": message["result"]["nextCursor"]}

    def close(self):
        if self.shared:
            self.shared.close()


class Client:
    """A client of a gateway: one session, or one for each server if there is no merged endpoint."""

    def __init__(self, gateway, timeout):
        self.sessions = {}
        for server, address in gateway.addresses().items():
            self.sessions[server] = Session(gateway.transport, address, gateway.headers(), timeout)

    def tools(self, timeout):
        """Lists all tools: pairs of the session's key and the definition."""
        return [(key, tool) for key, session in self.sessions.items() for tool in session.tools(timeout)]

    def call(self, where, text, timeout=60):
        """Calls a tool. Returns the seconds it took and whether it succeeded, with the error if not."""
        session, name = self.sessions[where[0]], where[1]
        start = time.monotonic()
        try:
            message = session.request("tools/call", {"name": name, "arguments": {"text": text}}, timeout)
        except TimeoutError:
            return time.monotonic() - start, False, "no answer"
        except OSError as error:
            return time.monotonic() - start, False, f"connection: {error}"
        seconds = time.monotonic() - start
        return seconds, *outcome(message, text)

    def close(self):
        for session in self.sessions.values():
            session.close()


def outcome(message, text):
    """Whether a response to echo is right, and the error if not."""
    if "error" in message:
        return False, f"error {message['error'].get('code')}: {message['error'].get('message')}"
    result = message["result"]
    content = [part.get("text") for part in result.get("content", [])]
    if result.get("isError"):
        return False, f"tool error: {content}"
    return (True, "") if content == [text] else (False, f"wrong answer: {content}")


def find(tools, server, name):
    """The session key and the full name of a server's tool in a merged list, or None."""
    for key, tool in tools:
        if (key == server and tool["name"] == name) or (
            not key and tool["name"].startswith(server) and tool["name"].endswith(name)
        ):
            return key, tool["name"]
    return None


def load(session, name, calls, in_flight, limit):
    """Calls echo with a fixed number of calls in flight, for up to a limit in seconds."""
    lanes = [session.connection() for _ in range(in_flight)]
    pending, latencies, failures, issued = {}, [], [], 0
    begin = time.monotonic()

    def issue(connection):
        nonlocal issued
        issued += 1
        request_id, text = 1_000_000 + issued, f"call {issued} {secrets.token_hex(8)}"
        params = {"name": name, "arguments": {"text": text}}
        pending[request_id] = (time.monotonic(), text)
        connection.send({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params})

    for connection in lanes:
        issue(connection)
    while pending and time.monotonic() - begin < limit + 10:
        for connection in select.select(list(set(lanes)), [], [], 10)[0]:
            for message in connection.receive():
                if message.get("id") not in pending:
                    continue
                start, text = pending.pop(message["id"])
                latencies.append(time.monotonic() - start)
                right, error = outcome(message, text)
                if not right:
                    failures.append(error)
                if issued < calls and time.monotonic() - begin < limit:
                    issue(connection)
        lanes = [connection for connection in lanes if not isinstance(connection, HttpConnection) or connection.socket]
    seconds = time.monotonic() - begin
    for connection in lanes:
        if connection is not session.shared:
            connection.close()
    latencies.sort()
    return {
        "calls": len(latencies),
        "unanswered": len(pending),
        "failed": len(failures),
        "failure": failures[0] if failures else None,
        "p50_ms": 1000 * latencies[len(latencies) // 2],
        "p99_ms": 1000 * latencies[len(latencies) * 99 // 100],
        "calls_per_s": len(latencies) / seconds,
    }
