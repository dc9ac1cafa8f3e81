//! Orders about files and variables that contain keys, whose names are marked in the text.
//!
//! Tools mention them legitimately: a tool that connects with a key, or one that needs a token. So a
//! name alone is at most suspicious. To make a model put their content into a call is dangerous.

use super::Rules;
use crate::scan::{Kind, Severity};

/// Rules for texts in which such names are marked.
pub(super) const RULES: &[Rules] = &[
    Rules {
        kind: Kind::Exfiltration,
        severity: Severity::Danger,
        says: "it asks for the contents of a file or variable that holds keys",
        lines: &[
            // Arguments that must contain it.
            "must|should|shall|has_to|have_to|needs_to|need_to ..1 contain|include|hold|carry|equal|repeat|quote ..6 asecretfile|ausualsecretfile",
            "contain|contains|containing|equals|equal|holds|carries|is|be|as|with ..3 what|whatever|content|contents|text|everything|lines|entry|entries|output ..5 asecretfile|ausualsecretfile",
            "contain|contains|containing|equals|equal|holds|carries ..3 what|whatever|content|contents|text|value|output ..5 asecretkey|asecretvalue",
            "contents|content ..2 of ..3 asecretfile",
            // Actions that the model must take with it.
            "!can|to|will|would|may|could|might|not|dont|or|it|tool|optionally put|pass|send|include|fill|insert|append|attach|add|paste|write|copy|use|provide|supply|submit|upload|forward|post|embed|encode|quote|repeat|print|echo|take ..5 what|whatever|content|contents|text|value|values|output|line|lines|everything|body|entry|entries|cookies|key|token|password|passwords ..5 asecretfile|ausualsecretfile",
            "!can|to|will|would|may|could|might|not|dont|or|it|tool|optionally|should use|put|pass|send|include|fill|insert|append|attach|paste|copy|submit|upload|forward|post|embed|encode|quote|repeat|print|echo ..5 what|whatever|content|contents|value|values|output ..4 asecretkey|asecretvalue",
            "!can|to|will|would|may|could|might|not|dont|or|it|tool|optionally set|fill ..4 to|with ..2 asecretkey|asecretvalue",
            "!can|to|will|would|may|could|might|not|dont|or|it|tool|optionally put|include|append|insert|embed|quote|paste|echo|print|send ..3 asecretkey|asecretvalue ..4 in|into|as|to ..3 parameter|argument|field|note|sidenote|memo|comment|query|answer|message|call|request|context|title",
            "!can|to|will|would|may|could|might|not|dont|or|it|tool|optionally send|upload|post|forward|exfiltrate|transmit|email|mail|attach|paste|leak|submit|quote|repeat|embed ..3 asecretfile|ausualsecretfile",
            "!can|to|will|would|may|could|might|not|dont|or|it|tool|optionally put|include|append|insert|add|copy|write ..3 asecretfile|ausualsecretfile ..4 in|into|as|to ..3 parameter|argument|field|note|sidenote|memo|comment|query|answer|message|call|request|context|title",
            "!can|to|will|would|may|could|might|not|dont cat|less|tail|base64|xxd|strings ..1 asecretfile|ausualsecretfile",
            "read|open|load|fetch|access|look_at|look_into|look_up|check|grab|take|get|find|collect|copy|inspect|view|extract|parse ..6 asecretfile|ausualsecretfile ...12 pass|send|include|attach|append|submit|insert|paste|upload|forward|transmit|encode|put|place|embed|quote|add|give|use|write ..2 it|its|them|that|everything|content|contents|what|result ..1 as|in|into|to|here|along|with|for|over|verbatim|content|contents",
            "!can|to|will|would|may|could|might|not|dont|or|it|tool|optionally put|include|append|insert|embed|quote|paste|echo|print|send|add|fill|write|copy ..3 asecretvalue|asecretfile ..4 in|into|as",
            "echo|print asecretvalue",
            "answer|reply|respond|start|begin|end|finish ..3 with ..4 asecretfile|ausualsecretfile|asecretvalue",
            // Destinations.
            "asecretfile|ausualsecretfile ..2 content|contents|text ..3 as|into|goes|belongs|here",
            "asecretfile|ausualsecretfile|asecretkey|asecretvalue ..5 goes|go|belongs|belong ..1 into|in|here|to",
            "asecretfile|ausualsecretfile ..4 must_be|has_to_be|should_be|needs_to_be|is_to_be|are_to_be|gets ..1 sent|passed|included|appended|forwarded|attached|put|copied|uploaded|quoted|repeated|pasted",
            "asecretfile|ausualsecretfile ..5 is|are required|needed|expected|wanted ..1 here|as_the_value|in_this_field|in_this_argument|in_this_parameter",
        ],
    },
    Rules {
        kind: Kind::Exfiltration,
        severity: Severity::Warn,
        says: "it mentions a file that holds keys or passwords",
        lines: &["asecretfile"],
    },
    Rules {
        kind: Kind::Exfiltration,
        severity: Severity::Note,
        says: "it mentions a file or variable that may hold keys",
        lines: &["ausualsecretfile|asecretkey|asecretvalue"],
    },
];
