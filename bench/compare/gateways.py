"""The gateways that compare.py measures: how each is installed, configured, started and stopped."""

import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from protocol import Client, find

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INSTALLED = ROOT / ".tools" / "gateways"
SERVER = str(HERE / "server.py")
LAUNCHER = str(HERE / "launcher.py")


class Gateway:
    """One gateway with its own folder, configured for a list of servers."""

    name = version = ""
    transport = "http"

    def __init__(self, folder, servers):
        self.folder = folder
        self.servers = servers
        self.processes = []
        self.port = 0
        self.ready_to_start = False

    @classmethod
    def install(cls):
        """Installs the pinned version, unless it is there."""

    def set_up(self):
        """Writes the configuration."""

    def commands(self):
        """The command lines that make up the running gateway."""
        raise NotImplementedError

    def environment(self):
        return dict(os.environ, HOME=str(self.folder), XDG_STATE_HOME=str(self.folder / "state"))

    def addresses(self):
        """URLs for clients: one under the empty key if it serves all tools, else one for each server."""
        return {"": f"http://127.0.0.1:{self.port}/mcp"}

    def headers(self):
        return {}

    def write_config(self):
        """A file with `mcpServers`, the format that most gateways read."""
        entries = {
            server["name"]: {"command": server["argv"][0], "args": server["argv"][1:]} for server in self.servers
        }
        path = self.folder / "mcp.json"
        path.write_text(json.dumps({"mcpServers": entries}, indent=2))
        return str(path)

    def start(self):
        """Starts its processes and returns the moment before."""
        if not self.ready_to_start:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.set_up()
            self.ready_to_start = True
        self.port = free_port()
        begin = time.monotonic()
        with open(self.folder / "gateway.log", "ab") as log:
            for argv in self.commands():
                process = subprocess.Popen(
                    argv,
                    cwd=self.folder,
                    env=self.environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
                self.processes.append(process)
        return begin

    def complete(self, tools):
        """Whether a list has the tools of all servers."""
        return all(find(tools, server["name"], "echo") for server in self.servers)

    def wait(self, timeout=75):
        """Connects a client and lists tools until the list is complete. Returns the client and the list."""
        deadline = time.monotonic() + timeout
        problem, client = "no answer", None
        while time.monotonic() < deadline:
            left = max(0.1, deadline - time.monotonic())
            try:
                client = client or Client(self, left)
                tools = client.tools(left)
                if self.complete(tools):
                    return client, tools
                problem = f"only {len(tools)} tools listed"
            except (OSError, ValueError, KeyError) as error:
                problem = str(error)
                client = None
            time.sleep(0.005)
        raise TimeoutError(f"not ready within {timeout} s: {problem}")

    def own_processes(self):
        """The gateway's processes, without the servers and what they start."""
        children = {}
        for entry in glob.glob("/proc/[0-9]*/stat"):
            fields = stat_fields(entry)
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry.split("/")[2]))
        found, queue = [], [process.pid for process in self.processes]
        while queue:
            pid = queue.pop()
            argv = command_line(pid)
            if not argv or (len(argv) > 1 and argv[1] in (SERVER, LAUNCHER)):
                continue
            found.append(pid)
            queue += children.get(pid, [])
        return found

    def memory(self):
        """Resident memory of its own processes in MiB (RSS, and PSS, which counts a shared page once)."""
        total = {"Rss": 0, "Pss": 0, "processes": 0}
        for pid in self.own_processes():
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                name = line.partition(":")[0]
                if name in ("Rss", "Pss"):
                    total[name] += int(line.split()[1]) / 1024
            total["processes"] += 1
        return total

    def cpu_seconds(self):
        ticks = 0
        for pid in self.own_processes():
            fields = stat_fields(f"/proc/{pid}/stat")
            if fields:
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def server_pids(self, name=None):
        """The processes of servers that are alive, from the files in which they note their IDs."""
        pids = []
        for server in self.servers:
            path = Path(server["pids"])
            if (name is None or server["name"] == name) and path.exists():
                pids += [int(line) for line in path.read_text().split()]
        return [pid for pid in pids if is_server(pid)]

    def kill(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.processes = []

    def stop(self):
        """Stops the gateway as a service manager would, then ends servers that are left."""
        for process in self.processes:
            process.terminate()
        deadline = time.monotonic() + 12
        for process in self.processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
        self.kill()
        for pid in self.server_pids():
            os.kill(pid, signal.SIGKILL)
        for server in self.servers:
            Path(server["pids"]).unlink(missing_ok=True)


class Switchboard(Gateway):
    """Switchboard: the servers are added with `switchboard add`."""

    name = "switchboard"
    program = ROOT / "target" / "release" / "switchboard"

    @classmethod
    def install(cls):
        if not cls.program.exists():
            sys.exit(f"cannot find {cls.program}: build it with `cargo build --release` or give --switchboard FILE")
        cls.version = subprocess.check_output([cls.program, "--version"], text=True).split()[1]

    def set_up(self):
        for server in self.servers:
            self.run("add", server["name"], "--", *server["argv"])

    def run(self, *arguments):
        argv = [str(self.program), "--home", str(self.folder / "home"), *arguments]
        subprocess.run(argv, check=True, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True)

    def commands(self):
        listen = f"127.0.0.1:{self.port}"
        return [[str(self.program), "--home", str(self.folder / "home"), "serve", "--listen", listen]]

    def headers(self):
        token = (self.folder / "home" / "run" / "token").read_text().strip()
        return {"Authorization": f"Bearer {token}"}

    def complete(self, tools):
        """Also complete is the menu that replaces a long list."""
        return super().complete(tools) or any(tool["name"].endswith("retrieve_tools") for _, tool in tools)


class ContextForge(Gateway):
    """ContextForge as its quick start says: the gateway with SQLite, one `translate` bridge for each stdio server.

    Two settings differ from its defaults, since nothing could be measured otherwise: it blocks
    servers on loopback, and it limits clients to 100 requests a minute.
    """

    name = "contextforge"
    version = "1.1.0"

    @classmethod
    def install(cls):
        install_python("contextforge", f"mcp-contextforge-gateway=={cls.version}", newest_python())

    def python(self):
        return str(INSTALLED / "contextforge" / "bin" / "python")

    def environment(self):
        values = {
            "PLATFORM_ADMIN_EMAIL": "admin@example.com",
            "SSRF_ALLOW_LOCALHOST": "true",
            "RATE_LIMITING_ENABLED": "false",
        }
        for line in (self.folder / ".env.secrets").read_text().splitlines():
            if "=" in line and not line.startswith("#"):
                name, _, value = line.partition("=")
                values[name] = value.strip("'\"")
        return super().environment() | values

    def set_up(self):
        subprocess.run(
            [self.python(), "-m", "mcpgateway.scripts.init_secrets"],
            cwd=self.folder, env=super().environment(), check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        environment = self.environment()
        argv = [self.python(), "-m", "mcpgateway.utils.create_jwt_token", "--username", "admin@example.com"]
        argv += ["--exp", "10080", "--secret", environment["JWT_SECRET_KEY"]]
        output = subprocess.check_output(argv, cwd=self.folder, env=environment, text=True, stderr=subprocess.DEVNULL)
        self.token = output.split()[-1]
        self.bridges = [free_port() for _ in self.servers]
        self.ready_to_start = True
        self.start()
        for server, port in zip(self.servers, self.bridges):
            self.register(server["name"], f"http://127.0.0.1:{port}/sse")
        self.stop()

    def register(self, name, url, timeout=75):
        body = json.dumps({"name": name, "url": url}).encode()
        headers = self.headers() | {"Content-Type": "application/json"}
        deadline = time.monotonic() + timeout
        while True:
            try:
                request = urllib.request.Request(f"http://127.0.0.1:{self.port}/gateways", body, headers)
                urllib.request.urlopen(request, timeout=30).read()
                return
            except OSError as error:
                if getattr(error, "code", None) == 409:  # an attempt that timed out has registered it
                    return
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def commands(self):
        program = str(INSTALLED / "contextforge" / "bin" / "mcpgateway")
        argvs = [[program, "--host", "127.0.0.1", "--port", str(self.port)]]
        for server, port in zip(self.servers, self.bridges):
            bridge = [self.python(), "-m", "mcpgateway.translate", "--stdio", " ".join(server["argv"])]
            argvs.append([*bridge, "--expose-sse", "--host", "127.0.0.1", "--port", str(port)])
        return argvs

    def addresses(self):
        return {"": f"http://127.0.0.1:{self.port}/mcp/"}

    def headers(self):
        return {"Authorization": f"Bearer {self.token}"}


class FastMcp(Gateway):
    """The proxy of fastmcp over a configuration file, with Streamable HTTP."""

    name = "fastmcp"
    version = "4.1.2"

    @classmethod
    def install(cls):
        install_python("fastmcp", f"fastmcp=={cls.version}", sys.executable)

    def set_up(self):
        self.config = self.write_config()

    def commands(self):
        program = str(INSTALLED / "fastmcp" / "bin" / "fastmcp")
        return [[program, "run", self.config, "--transport", "http", "--port", str(self.port)]]


class FastMcpMounted(FastMcp):
    """fastmcp with one proxy mounted for each server, in a file of Python. Measured only if asked for."""

    name = "fastmcp-mounted"

    def set_up(self):
        self.config = str(self.folder / "gateway.py")
        lines = ["from fastmcp import FastMCP", "from fastmcp.server import create_proxy", "mcp = FastMCP('gateway')"]
        for server in self.servers:
            entry = {"command": server["argv"][0], "args": server["argv"][1:]}
            config = {"mcpServers": {server["name"]: entry}}
            lines.append(f"mcp.mount(create_proxy({config!r}), namespace={server['name']!r})")
        Path(self.config).write_text("\n".join(lines) + "\n")


class McpHub(Gateway):
    """mcp-hub with a configuration file. Its endpoint for clients is HTTP+SSE."""

    name = "mcp-hub"
    version = "4.2.1"
    transport = "sse"

    @classmethod
    def install(cls):
        install_node("mcp-hub", f"mcp-hub@{cls.version}")

    def set_up(self):
        self.config = self.write_config()

    def commands(self):
        program = str(INSTALLED / "mcp-hub" / "node_modules" / "mcp-hub" / "dist" / "cli.js")
        return [[shutil.which("node"), program, "--port", str(self.port), "--config", self.config]]


class McpProxy(Gateway):
    """mcp-proxy (Python) with named servers. Each has its own endpoint, so a client connects to all of them."""

    name = "mcp-proxy"
    version = "0.13.0"

    @classmethod
    def install(cls):
        install_python("mcp-proxy", f"mcp-proxy=={cls.version}", sys.executable)

    def set_up(self):
        self.config = self.write_config()

    def commands(self):
        program = str(INSTALLED / "mcp-proxy" / "bin" / "mcp-proxy")
        return [[program, "--port", str(self.port), "--named-server-config", self.config]]

    def addresses(self):
        base = f"http://127.0.0.1:{self.port}/servers"
        return {server["name"]: f"{base}/{server['name']}/mcp/" for server in self.servers}


GATEWAYS = [Switchboard, ContextForge, FastMcp, McpHub, McpProxy]
EXTRA = [FastMcpMounted]


def install_python(folder, requirement, python):
    if installed(folder, requirement):
        return
    subprocess.run([python, "-m", "venv", "--clear", INSTALLED / folder], check=True)
    pip = [INSTALLED / folder / "bin" / "python", "-m", "pip", "install", "--quiet", requirement]
    subprocess.run(pip, check=True)
    (INSTALLED / folder / "requirement").write_text(requirement)


def install_node(folder, requirement):
    if installed(folder, requirement):
        return
    npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    subprocess.run([*npm, "--prefix", INSTALLED / folder, requirement], check=True)
    (INSTALLED / folder / "requirement").write_text(requirement)


def installed(folder, requirement):
    """Whether a gateway is installed in this version."""
    note = INSTALLED / folder / "requirement"
    if note.exists() and note.read_text() == requirement:
        return True
    print(f"installing {requirement}", file=sys.stderr)
    (INSTALLED / folder).mkdir(parents=True, exist_ok=True)
    return False


def newest_python():
    """A Python of at least 3.12."""
    if sys.version_info >= (3, 12):
        return sys.executable
    for name in ("python3.12", "python3.13"):
        found = shutil.which(name)
        if found and subprocess.run([found, "--version"], capture_output=True).returncode == 0:
            return found
    found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[23]*/bin/python")))
    if not found:
        sys.exit("cannot install ContextForge: it needs Python 3.12 or newer")
    return found[0]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def stat_fields(path):
    """The fields of a stat file in /proc after the command, or None if the process is gone or a zombie."""
    try:
        fields = Path(path).read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def is_server(pid):
    """Whether a process is alive and one of those that the servers of this script consist of."""
    argv = command_line(pid)
    alive = stat_fields(f"/proc/{pid}/stat") is not None
    return alive and (argv[:2] == ["sleep", "600"] or (len(argv) > 1 and argv[1] in (SERVER, LAUNCHER)))
