#!/usr/bin/env python3
"""Measures Switchboard and four other MCP gateways on the same servers, in one run.

    python3 bench/compare/compare.py                          # everything, about 25 minutes
    python3 bench/compare/compare.py --rows start             # one row of the table
    python3 bench/compare/compare.py --rows call --only switchboard --only fastmcp
    python3 bench/compare/compare.py --switchboard target/release/switchboard

It needs Linux, Python 3.11 or newer, for ContextForge a Python 3.12 or newer on PATH or in
pyenv, and for mcp-hub node and npm. The first run installs the other gateways, in pinned
versions, into .tools/gateways of the repository. Everything is measured on loopback, in a
network namespace of its own where the system allows that, so nothing reaches other machines.

It prints a Markdown table and writes all readings to .tools/gateways/results.json.

Every gateway gets the same servers (server.py, some behind launcher.py) and is used over
the HTTP transport that it offers to clients, with its default settings. Exceptions are
listed at the class of the gateway. Each round measures the gateways one after the other. Measure
on an idle machine: the script warns if the load is above 1.
"""

import argparse
import datetime
import fcntl
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from gateways import EXTRA, GATEWAYS, INSTALLED, LAUNCHER, ROOT, SERVER, Switchboard, is_server
from protocol import Session, find, load

ROW_LIMIT = 150  # seconds that a gateway may spend on one row before further rounds are skipped


# ---------------------------------------------------------------------------------------
# Rows: servers() makes the servers of a row, measure() takes one reading, cell() sums readings up.


def make_server(folder, name, *options, launcher=False):
    pids = str(folder / f"{name}.pids")
    argv = [shutil.which("python3")]
    if launcher:
        argv += [LAUNCHER, pids, shutil.which("python3")]
    argv += [SERVER, "--name", name, "--pids", pids, *options]
    return {"name": name, "argv": argv, "pids": pids}


class Row:
    rounds = 1
    together = False  # whether all gateways are measured at the same time, since they only wait

    def servers(self, folder):
        """Two servers with three tools each; the first is the one that is called."""
        return [make_server(folder, "server0"), make_server(folder, "server1")]

    def measure(self, gateway, number):
        raise NotImplementedError

    def cell(self, readings, row):
        raise NotImplementedError


class Start(Row):
    """From the start of the process to the first complete tools/list; caches are warm."""

    title = "Start to first complete `tools/list`, 10 servers, one needs 5 s (s, median)"
    rounds = 6

    def servers(self, folder):
        quick = [make_server(folder, f"server{number}") for number in range(9)]
        return [*quick, make_server(folder, "server9", "--delay", "5")]

    def measure(self, gateway, number):
        begin = gateway.start()
        gateway.wait()[0].close()
        return {"seconds": time.monotonic() - begin, "warm": number > 0}

    def cell(self, readings, row):
        warm = [reading["seconds"] for reading in readings if reading["warm"]]
        return f"{statistics.median(warm):.2f}" + ("" if len(warm) == 5 else f" ({len(warm)} runs)")


class Call(Row):
    """Latency of echo through the gateway minus latency of the same server over its pipe."""

    title = "Added latency of a call (ms): p50, p99 with 1 in flight; p50, p99 with 32; CPU per call"
    rounds = 3

    def measure(self, gateway, number):
        gateway.start()
        client, tools = gateway.wait()
        key, name = find(tools, "server0", "echo")
        session = client.sessions[key]
        load(session, name, 50, 1, 10)
        before = gateway.cpu_seconds()
        one = load(session, name, 2000, 1, 10)
        many = load(session, name, 2000, 32, 10)
        cpu = (gateway.cpu_seconds() - before) / max(1, one["calls"] + many["calls"])
        client.close()
        return {"one": one, "many": many, "cpu_ms": 1000 * cpu}

    def direct(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        session = Session("pipe", self.servers(folder)[0], {}, 10)
        load(session, "echo", 50, 1, 10)
        reading = {"one": load(session, "echo", 2000, 1, 10), "many": load(session, "echo", 2000, 32, 10)}
        session.close()
        return reading

    def cell(self, readings, row):
        def median(part, figure, of):
            return statistics.median(reading[part][figure] for reading in of)

        figures = []
        for part in ("one", "many"):
            for figure in ("p50_ms", "p99_ms"):
                figures.append(median(part, figure, readings) - median(part, figure, row["direct"]))
        one, one99, many, many99 = (f"{figure:.2f}" if figure < 10 else f"{figure:.0f}" for figure in figures)
        cpu = statistics.median(reading["cpu_ms"] for reading in readings)
        text = f"{one}, {one99}; {many}, {many99}; CPU {cpu:.2f}"
        calls = sum(reading[part]["calls"] for reading in readings for part in ("one", "many"))
        failed = sum(
            reading[part]["failed"] + reading[part]["unanswered"] for reading in readings for part in ("one", "many")
        )
        return text + (f"; {failed} of {calls} calls failed" if failed else "")


class Memory(Row):
    title = "Memory of the gateway's processes with 10 servers (MiB): after start → after 2,000 calls"

    def servers(self, folder):
        return [make_server(folder, f"server{number}") for number in range(10)]

    def measure(self, gateway, number):
        gateway.start()
        client, tools = gateway.wait()
        for server in self.servers(gateway.folder):  # so that gateways that start servers late have them, too
            client.call(find(tools, server["name"], "echo"), "hello")
        before = gateway.memory()
        key, name = find(tools, "server0", "echo")
        done = load(client.sessions[key], name, 2000, 1, 60)
        after = gateway.memory()
        client.close()
        return {"before": before, "after": after, **done}

    def cell(self, readings, row):
        reading = readings[0]
        before, after = reading["before"], reading["after"]
        text = f"RSS {before['Rss']:.0f} → {after['Rss']:.0f}, PSS {before['Pss']:.0f} → {after['Pss']:.0f}"
        text += f"; {after['processes']} process" + ("es" if after["processes"] > 1 else "")
        return text + ("" if reading["calls"] == 2000 else f"; {reading['calls']} calls")


class Context(Row):
    title = "First `tools/list` with 10 servers of 20 tools: KB of JSON (tokens at 4 bytes each), tools"

    def servers(self, folder):
        return [make_server(folder, f"server{number}", "--tools", "20") for number in range(10)]

    def measure(self, gateway, number):
        gateway.start()
        client, tools = gateway.wait()
        definitions = [tool for _, tool in tools]
        client.close()
        return {
            "bytes": len(json.dumps(definitions, separators=(",", ":"), ensure_ascii=False).encode()),
            "tools": len(definitions),
        }

    def cell(self, readings, row):
        reading = readings[0]
        return f"{reading['bytes'] / 1000:.1f} ({reading['bytes'] / 4:,.0f}), {reading['tools']} tools"


class Dead(Row):
    title = "Call to a server that was killed: time until an answer; does a later call work?"

    def measure(self, gateway, number):
        gateway.start()
        client, tools = gateway.wait()
        where = find(tools, "server0", "echo")
        assert client.call(where, "before")[1], "the call before the kill failed"
        for pid in gateway.server_pids("server0"):
            os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        time.sleep(0.5)
        seconds, right, error = client.call(where, "first", 30)
        reading = {"seconds": seconds, "right": right, "error": error, "recovered": None}
        while reading["recovered"] is None and time.monotonic() - killed < 30:
            tried = time.monotonic()
            if client.call(where, "next", 10)[1]:
                reading["recovered"] = tried - killed
            else:
                time.sleep(0.5)
        client.close()
        return reading

    def cell(self, readings, row):
        reading = readings[0]
        first = "answered" if reading["right"] else "no answer" if reading["error"] == "no answer" else "error"
        later = "no (30 s)" if reading["recovered"] is None else "yes"
        return f"{first} in {duration(reading['seconds'])}; next call works: {later}"


class Hang(Row):
    title = "Call that the server never answers: time until the client has an answer (cap 90 s)"
    together = True

    def measure(self, gateway, number):
        gateway.start()
        client, tools = gateway.wait()
        seconds, _, error = client.call(find(tools, "server0", "hang"), "hello", 90)
        client.close()
        return {"seconds": seconds, "error": error}

    def cell(self, readings, row):
        reading = readings[0]
        return "none in 90 s" if reading["error"] == "no answer" else f"error in {duration(reading['seconds'])}"


class Left(Row):
    """Kills the gateway while a call is in flight."""

    title = "Server processes alive 5 s after `kill -9` of the gateway"

    def servers(self, folder):
        return [
            make_server(folder, "polite", launcher=True),
            make_server(folder, "browser", "--helper", launcher=True),
            make_server(folder, "stubborn", "--ignore-eof", launcher=True),
        ]

    def measure(self, gateway, number):
        gateway.start()
        client, tools = gateway.wait()
        for server in gateway.servers:
            right = client.call(find(tools, server["name"], "echo"), "hello")
            assert right[1], f"the call before the kill failed: {right}"
        key, name = find(tools, "browser", "hang")
        call = client.sessions[key].connection()
        params = {"name": name, "arguments": {"text": "hello"}}
        call.send({"jsonrpc": "2.0", "id": 1_000_000, "method": "tools/call", "params": params})
        time.sleep(1)
        before = gateway.server_pids()
        gateway.kill()
        time.sleep(5)
        return {"before": len(before), "after": len([pid for pid in before if is_server(pid)])}

    def cell(self, readings, row):
        return f"{readings[0]['after']} of {readings[0]['before']}"


class Change(Row):
    title = "A tool's description changes between two starts: can it still be called without anyone being asked?"

    def servers(self, folder):
        changing = make_server(folder, "server0", "--description", str(folder / "description.txt"))
        return [changing, make_server(folder, "server1")]

    def measure(self, gateway, number):
        file = gateway.folder / "description.txt"
        gateway.folder.mkdir(parents=True, exist_ok=True)
        file.write_text("Returns the text that it is given.")
        gateway.start()
        client, tools = gateway.wait()
        where = find(tools, "server0", "echo")
        assert client.call(where, "first")[1], "the call before the change failed"
        client.close()
        gateway.stop()
        file.write_text("Returns the text that it is given, and files a copy of it.")
        gateway.start()
        client, tools = gateway.wait()
        client.call(where, "second")
        time.sleep(3)
        _, right, error = client.call(where, "third")
        texts = [tool["description"] for key, tool in client.tools(30) if (key, tool["name"]) == where]
        client.close()
        return {"callable": right, "error": error, "listed": texts}

    def cell(self, readings, row):
        reading = readings[0]
        if not reading["callable"]:
            return "no, held"
        new = any("files a copy" in text for text in reading["listed"])
        return "yes, new text shown" if new else "yes, old text shown"


ROWS = {
    "start": Start(),
    "call": Call(),
    "memory": Memory(),
    "context": Context(),
    "dead": Dead(),
    "hang": Hang(),
    "left": Left(),
    "change": Change(),
}


def duration(seconds):
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


# ---------------------------------------------------------------------------------------
# The run


def private_network():
    """Continues in a network namespace that has only loopback, where the system allows that."""
    if os.environ.get("COMPARE_NETWORK") == "private":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
            request = struct.pack("16sh", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
            fcntl.ioctl(handle, 0x8914, request)  # SIOCSIFFLAGS
        return True
    unshare = ["unshare", "--map-root-user", "--net"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], capture_output=True).returncode:
        return False
    os.environ["COMPARE_NETWORK"] = "private"
    os.execvp("unshare", [*unshare, sys.executable, *sys.argv])


def measure_row(name, row, classes, folder):
    """Takes all readings of a row, one round over all gateways after the other."""
    results = {"direct": []} if name == "call" else {}
    gateways, spent = {}, {}
    for cls in classes:
        place = folder / name / cls.name
        gateways[cls.name] = cls(place, row.servers(place))
        results[cls.name], spent[cls.name] = [], 0

    def measure(key, number):
        begin = time.monotonic()
        try:
            reading = row.measure(gateways[key], number)
        except (OSError, AssertionError, subprocess.SubprocessError) as error:
            reading = {"problem": str(error)}
        finally:
            gateways[key].stop()
        spent[key] += time.monotonic() - begin
        results[key].append(reading)
        print(f"{name} {number} {key}: {json.dumps(reading)}", file=sys.stderr, flush=True)

    for number in range(row.rounds):
        if name == "call":
            results["direct"].append(row.direct(folder / name / "direct"))
        failed = [key for key in gateways if any("problem" in reading for reading in results[key])]
        due = [key for key in gateways if spent[key] < ROW_LIMIT and key not in failed]
        if row.together:
            threads = [threading.Thread(target=measure, args=(key, number)) for key in due]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        else:
            for key in due:
                measure(key, number)
    return results


def cell(row, results, key):
    readings = results.get(key)
    if not readings:
        return "–"
    problems = [reading["problem"] for reading in readings if "problem" in reading]
    return f"not measured: {problems[0]}" if problems else row.cell(readings, results)


def table(results, classes):
    lines = ["| row | " + " | ".join(f"{cls.name} {cls.version}" for cls in classes) + " |"]
    lines.append("|" + "---|" * (len(classes) + 1))
    for name, of_row in results.items():
        cells = [cell(ROWS[name], of_row, cls.name) for cls in classes]
        lines.append(f"| {ROWS[name].title} (`--rows {name}`) | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine():
    model = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**30
    return {
        "cpu": f"{len(model)} × {model[0] if model else platform.machine()}",
        "memory_gib": memory,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "node": subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip(),
        "load": os.getloadavg()[0],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), help="the rows to measure")
    names = [cls.name for cls in GATEWAYS + EXTRA]
    parser.add_argument("--only", action="append", choices=names, help="a gateway to measure; can be repeated")
    parser.add_argument("--switchboard", type=Path, metavar="FILE", help="the program to measure")
    parser.add_argument("--json", type=Path, metavar="FILE", default=INSTALLED / "results.json", help="the readings")
    options = parser.parse_args()

    node = ROOT / ".tools" / "node" / "bin"
    if node.exists():
        os.environ["PATH"] = f"{node}:{os.environ['PATH']}"
    if options.switchboard:
        Switchboard.program = options.switchboard.resolve()
    classes = [cls for cls in GATEWAYS + EXTRA if cls.name in options.only] if options.only else GATEWAYS
    INSTALLED.mkdir(parents=True, exist_ok=True)
    for cls in classes:
        cls.install()
    isolated = private_network()
    if os.getloadavg()[0] > 1:
        print(f"the machine is busy: load {os.getloadavg()[0]:.1f}", file=sys.stderr)

    report = {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "only_loopback": isolated,
        "versions": {cls.name: cls.version for cls in classes},
        "rows": {},
    }
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        for name in options.rows:
            report["rows"][name] = measure_row(name, ROWS[name], classes, Path(folder))
            options.json.write_text(json.dumps(report, indent=2))
    print(table(report["rows"], classes))


if __name__ == "__main__":
    main()
