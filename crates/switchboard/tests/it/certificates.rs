//! Servers behind TLS whose certificate is not from a public authority.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::json;
use switchboard_test_support::until;

use crate::support::{Gateway, Place, json};

/// A server over HTTPS, with a tool, at a port that it prints.
const SECURE: &str = r#"
import http.server, json, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, params = asked["method"], asked.get("params") or {}
        body, status = b"", 202
        if "id" in asked:
            result = {}
            if method == "initialize":
                result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                          "serverInfo": {"name": "secure", "version": "1"}}
            elif method == "tools/list":
                result = {"tools": [{"name": "say", "inputSchema": {"type": "object"}}]}
            body, status = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode(), 200
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

/// A server with a certificate, which ends with the test.
struct Secure {
    child: Child,
    url: String,
}

impl Secure {
    fn start(place: &Place, certificate: &Path) -> Self {
        let script = place.write("secure.py", SECURE);
        let mut child = Command::new("python3")
            .arg(script)
            .arg(certificate)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut port).unwrap();
        let url = format!("https://localhost:{}/mcp", port.trim());
        Self { child, url }
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn openssl(folder: &Path, words: &str) {
    let done = Command::new("openssl")
        .args(words.split(' '))
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{words}: {done:?}");
}

const NEW_KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";

#[test]
fn refused_certificate_is_explained() {
    let place = Place::without_memory();
    let folder = place.user();
    let make = |words: &str| openssl(&folder, words);
    // The certificate of an authority, and one that it has signed.
    make(&format!(
        "req -x509 {NEW_KEY} -subj /CN=authority -addext subjectAltName=DNS:localhost -keyout own.key -out own.pem"
    ));
    make(&format!(
        "req {NEW_KEY} -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout leaf.key -out leaf.csr"
    ));
    make(
        "x509 -req -in leaf.csr -CA own.pem -CAkey own.key -CAcreateserial -days 2 -copy_extensions copy -out leaf.pem",
    );
    let chain = |name: &str| {
        let part = |end| fs::read_to_string(folder.join(format!("{name}.{end}"))).unwrap();
        place.write(&format!("{name}.chain"), &(part("key") + &part("pem")))
    };
    let own = Secure::start(&place, &chain("own"));
    let leaf = Secure::start(&place, &chain("leaf"));
    let config = json!({
        "listen": "127.0.0.1:0",
        "memory": { "enabled": false },
        "mcpServers": {
            "own": { "url": own.url, "start": "eager" },
            "leaf": { "url": leaf.url, "start": "eager" },
        },
    });
    place.write_config(&config.to_string());
    {
        let _gateway = Gateway::start(&place, &[]);
        let explained = |name: &str| {
            let servers = json(&place, &["list", "--json"]);
            let servers = servers["servers"].as_array().unwrap();
            let one = servers.iter().find(|server| server["name"] == name);
            let word = |key| one.unwrap()[key].as_str().unwrap_or_default().to_owned();
            (word("reason"), word("action"))
        };
        for (name, what) in [
            (
                "own",
                "the server's certificate is not trusted: it is self-signed",
            ),
            (
                "leaf",
                "the server's certificate is not trusted: its issuer is not a trusted authority",
            ),
        ] {
            until("it has failed", || !explained(name).0.is_empty());
            let (reason, action) = explained(name);
            assert!(reason.contains(what), "{reason}");
            assert!(action.contains("SSL_CERT_FILE"), "{action}");
        }
    }
    // As the action advises.
    let authority = folder.join("own.pem");
    let mut serve = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    serve.env("SSL_CERT_FILE", authority);
    let _gateway = Gateway::spawn(&place, serve);
    until("its tools are known", || {
        place.run(&["describe", "leaf:say"]).code == Some(0)
    });
}
