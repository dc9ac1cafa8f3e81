#!/usr/bin/env python3
"""Make the pictures of the README from the real program.

usage: scripts/pictures.py SWITCHBOARD

SWITCHBOARD is a built program. The script starts it in a home of its own with two servers from npm, records
commands on a terminal as docs/images/terminal.svg, and photographs the console as docs/images/console.png with
Chromium. It needs npx, the npm registry and Chromium.
"""

import html
import json
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import fcntl

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
COLUMNS = 96

# The commands of the recording, as a user types them.
RECORDED = [
    "switchboard add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes",
    "switchboard add everything -- npx -y @modelcontextprotocol/server-everything",
    "switchboard list",
    "switchboard search look up what is in my directory --limit 3",
    "switchboard call files:read_text_file path=$HOME/notes/todo.md",
    "switchboard memory store 'Ada prefers green tea'",
    "switchboard memory recall what does Ada drink",
]

COLOURS = {30: "#5c6370", 31: "#e06c75", 32: "#98c379", 33: "#e5c07b", 34: "#61afef", 35: "#c678dd", 36: "#56b6c2",
           37: "#abb2bf", 90: "#7f848e", 91: "#e06c75", 92: "#98c379", 93: "#e5c07b", 94: "#61afef", 95: "#c678dd",
           96: "#56b6c2", 97: "#ffffff"}


def run_on_terminal(command, env):
    """Run a command on a terminal and return its output, without carriage returns."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe("bash", ["bash", "-c", command], env)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    out = b""
    deadline = time.time() + 120
    while time.time() < deadline:
        ready, _, _ = select.select([fd], [], [], 1)
        if ready:
            try:
                part = os.read(fd, 65536)
            except OSError:
                break
            if not part:
                break
            out += part
    os.close(fd)
    _, status = os.waitpid(pid, 0)
    text = out.decode(errors="replace").replace("\r\n", "\n")
    # A line that was drawn over, such as a progress line, is shown as it ended.
    text = "\n".join(re.split(r"\r|\x1b\[2?K", line)[-1] for line in text.split("\n"))
    if status != 0:
        sys.exit(f"failed: {command}\n{text}")
    return text.rstrip("\n")


def spans(line):
    """A line with colours as SVG."""
    out, style = "", {}
    for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z])", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if code:
            for number in [int(n or 0) for n in code[1].split(";")]:
                if number == 0:
                    style = {}
                elif number == 1:
                    style["font-weight"] = "bold"
                elif number == 2:
                    style["opacity"] = ".6"
                elif number in COLOURS:
                    style["fill"] = COLOURS[number]
                elif number in (22, 39):
                    style = {}
        elif part and not part.startswith("\x1b"):
            css = ";".join(f"{key}:{value}" for key, value in style.items())
            out += f'<tspan style="{css}">{html.escape(part)}</tspan>' if css else f"<tspan>{html.escape(part)}</tspan>"
    return out


def recording(scenes):
    """An SVG in which the scenes, each a command and its output, appear one after the other."""
    height, width = 18, 8.02
    rows, at, row = [], 0.5, 0
    for command, output in scenes:
        rows.append((row, at, f'<tspan fill="#98c379">$</tspan> <tspan font-weight="bold">{html.escape(command)}</tspan>'))
        row, at = row + 1, at + 1.0
        for line in output.split("\n"):
            rows.append((row, at, spans(line)))
            row += 1
        row, at = row + 1, at + 1.4
    total = at + 4
    body = ""
    for row, at, text in rows:
        share = 100 * at / total
        body += (
            f'<text xml:space="preserve" x="20" y="{48 + row * height}" style="animation:l{row} {total:.1f}s step-end infinite">{text}</text>'
            f"<style>@keyframes l{row}{{0%{{opacity:0}}{share:.2f}%{{opacity:1}}}}</style>\n"
        )
    w, h = int(40 + COLUMNS * width), 60 + (rows[-1][0] + 1) * height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" '
        f'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="13.3" fill="#abb2bf">\n'
        "<title>Switchboard on the command line</title>\n"
        "<style>@media (prefers-reduced-motion:reduce){text{animation:none!important}}</style>\n"
        f'<rect width="{w}" height="{h}" rx="8" fill="#282c34"/>\n'
        '<circle cx="20" cy="18" r="6" fill="#e06c75"/><circle cx="40" cy="18" r="6" fill="#e5c07b"/><circle cx="60" cy="18" r="6" fill="#98c379"/>\n'
        f"{body}</svg>\n"
    )


def photograph(link, env):
    """A picture of the console, behind a link that signs in."""
    browser = next((path for path in map(shutil.which, ["chromium", "google-chrome", "chrome"]) if path), None)
    if not browser:
        sys.exit("no Chromium: `apt-get install chromium`")
    target = IMAGES / "console.png"
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", f"--user-data-dir={profile}", "--window-size=1280,800",
             "--hide-scrollbars", "--virtual-time-budget=15000", f"--screenshot={target}", link],
            env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120,
        )


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    program = pathlib.Path(sys.argv[1]).resolve()
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="home-") as folder:
        user = pathlib.Path(folder) / "ada"
        (user / "notes").mkdir(parents=True)
        (user / "notes" / "todo.md").write_text("- water the plants\n- write to Grace\n")
        config = user / ".config" / "switchboard" / "switchboard.json"
        config.parent.mkdir(parents=True)
        config.write_text(json.dumps({"approvals": {"rules": ["ask files:write_*"], "notify": "off"}}))
        tools = pathlib.Path(folder) / "bin"
        tools.mkdir()
        (tools / "switchboard").symlink_to(program)
        env = dict(os.environ, HOME=str(user), PATH=f"{tools}:{os.environ['PATH']}", TERM="xterm-256color",
                   COLUMNS=str(COLUMNS), npm_config_cache=str(pathlib.Path(folder) / "npm"))
        for name in ("SWITCHBOARD_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "NO_COLOR"):
            env.pop(name, None)
        serve = subprocess.Popen(["switchboard", "serve", "--listen", "127.0.0.1:0"], env=env,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                if subprocess.run(["switchboard", "status"], env=env, capture_output=True).returncode == 0:
                    break
                time.sleep(0.1)
            scenes = []
            for command in RECORDED:
                output = run_on_terminal(command, env).replace(str(user), "~")
                scenes.append((command, output))
            (IMAGES / "terminal.svg").write_text(recording(scenes))
            # A client whose call waits for an approval.
            asking = subprocess.Popen(["switchboard", "stdio", "--view", "direct"], env=env, stdin=subprocess.PIPE,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            hello = {"protocolVersion": "2025-06-18", "capabilities": {},
                     "clientInfo": {"name": "claude-code", "version": "2.1"}}
            write = {"name": "files__write_file", "arguments": {"path": f"{user}/notes/todo.md", "content": "- rest"}}
            for message in ({"id": 1, "method": "initialize", "params": hello}, {"method": "notifications/initialized"},
                            {"id": 2, "method": "tools/call", "params": write}):
                asking.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
                asking.stdin.flush()
            time.sleep(2)
            link = subprocess.run(["switchboard", "console"], env=env, capture_output=True, text=True, check=True).stdout
            photograph(re.search(r"http\S+", link)[0], env)
            asking.terminate()
            asking.wait(30)
        finally:
            subprocess.run(["switchboard", "stop"], env=env, capture_output=True)
            serve.wait(60)


main()
