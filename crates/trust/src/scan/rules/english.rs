//! English instructions to a model.
//!
//! Servers legitimately tell a model how to use their tools: "you must list the files first",
//! "IMPORTANT: always use absolute paths". So no rule is about tone. Each is about something that no
//! tool needs to request: to drop other instructions, to keep something from the user, to hand over
//! data that is not the tool's business.

use super::Rules;
use crate::scan::{Kind, Severity};

const OVERRIDE: &str = "it tells the model to ignore its instructions";
const PERSONA: &str = "it tells the model to take on another identity";
const PROMPT: &str = "it asks the model to reveal its instructions";
const AUTHORITY: &str = "it claims priority over other instructions, or a false origin";
const SECRECY: &str = "it tells the model to hide something from the user";
const LEFT_OUT: &str = "it tells the model what to leave out of its answer";
const DECEIT: &str = "it tells the model to deceive the user";
const SECRETS: &str = "it asks for keys, passwords or files that contain them";
const CONVERSATION: &str = "it asks for the conversation with the user";
const SENDING: &str = "it tells the model to send data to another place";
const REDIRECT: &str = "it changes the recipient of data";
const OTHERS: &str = "it tells the model not to use other tools";
const REGARDLESS: &str = "it tells the model to act regardless of what the user says";
const FIRST: &str = "it asks to be used before, or instead of, all other tools";
const ALWAYS: &str = "it asks to be used for every message";
const NO_QUESTION: &str = "it tells the model not to ask the user first";
const BOTHER: &str = "it tells the model that the user need not know about something";
const TO_THE_MODEL: &str = "it addresses the model instead of describing the tool";

const fn rules(
    kind: Kind,
    severity: Severity,
    says: &'static str,
    lines: &'static [&'static str],
) -> Rules {
    Rules {
        kind,
        severity,
        says,
        lines,
    }
}

/// Rules for texts.
pub(super) const RULES: &[Rules] = &[
    rules(
        Kind::Override,
        Severity::Danger,
        OVERRIDE,
        &[
            "ignore|disregard|forget|dismiss|discard ..4 previous|prior|above|earlier|preceding|foregoing|existing|original|system|developer|safety|your|former|these|all|any|other ..3 instruction|instructions|prompt|prompts|directive|directives|guidelines|guardrail*|safeguard*|training|programming",
            "ignore|disregard|forget|dismiss|discard|break|violate ..3 previous|prior|above|earlier|preceding|original|system|developer|safety|your|these ..2 rules|policies|restrictions|constraints|limitations|commands|orders|context",
            "bypass|override|overrule|circumvent|disable|skip|suspend ..3 previous|prior|earlier|system|developer|safety|your|security ..2 instruction|instructions|prompt|guidelines|guardrail*|safeguard*|directives|training",
            "bypass|override|overrule|circumvent|disable|disabling|skip|suspend|turn_off|ignore|lift|remove ..2 all|any|every|safety|your|security|system ..2 guardrail|guardrails|safeguard|safeguards|safety_measures|safety_filters|safety_checks|safety_guidelines|content_filters|safety_rules|restrictions_on_you",
            "ignore|disregard|forget|dismiss the_above|everything_above|all_above|all_the_above|all_of_the_above|the_previous|all_previous|everything_before|everything_else ..1 and|then|instead|now|but",
            "hidden_instruction|hidden_instructions|secret_instruction|secret_instructions|covert_instructions|system_override|system_injection|prompt_override|instruction_override",
            "ignore|disregard ..1 instructions|rules|warnings|guidelines|requests ..0 not_to|to_not|that_forbid|that_prohibit|against|telling_you_not|asking_you_not",
            "safety_rules|safety_guidelines|safety_restrictions|safety_training|safety_module|safety_filters|safety_instructions|safety_measures|content_filters|guardrails|guidelines_you ..3 revised|disabled|suspended|lifted|offline|corrupted|relaxed|removed|void|no_longer|been_updated|not_apply",
            "forget|ignore|disregard ..2 everything|anything|all|what|whatever ..3 told|said|above|before|previously|learned|instructed|know|came|read",
            "do_not|dont|never|stop|no_longer ..1 follow|following|obey|obeying|listen_to|adhere_to|comply_with|respect|heed ..3 previous|prior|other|system|original|earlier|above|user|users|your|safety ..2 instruction|instructions|prompt|prompts|rules|guidelines|requests|commands|orders|policies",
            "new|updated|real|revised|actual|true ..1 instructions|directives|orders|objective|mission ..2 follow|begin|supersede|supersedes|replace|replaces|override|overrides|below|are_as_follows",
            "instead_of|rather_than ..2 following|obeying ..3 user|users|system|previous|prior|your|original ..2 instructions|request|requests|prompt|rules",
            "your|the ..1 previous|prior|earlier|original|other ..2 instructions|rules|guidelines|restrictions ..2 no_longer_apply|do_not_apply|are_void|are_cancelled|are_obsolete|are_superseded|are_revoked|are_lifted",
            "ignorepreviousinstructions|ignoreallpreviousinstructions|ignoreallinstructions|ignoreprior*|ignoreprevious*|disregardprevious*|disregardall*|forgetprevious*|ignoretheabove*",
        ],
    ),
    rules(
        Kind::Override,
        Severity::Danger,
        PERSONA,
        &[
            "you_are_now|youre_now ..1 a|an|the|in|acting|operating|free|unrestricted|my|no_longer",
            "you_are_no_longer|youre_no_longer ..2 bound|restricted|limited|assistant|required|subject|an_ai|claude|chatgpt",
            "from_now_on|henceforth|starting_now ..1 you ..2 act|behave|obey|respond|answer|must|will|are|shall",
            "act|behave|respond|answer ..1 as_if_you|as_though_you|like_you ..4 no_restrictions|no_rules|unrestricted|admin*|root|unfiltered|developer|without_restrictions|without_limits",
            "enter|enable|activate|switch_to|switch_into ..2 god|jailbreak|jailbroken|dan|unrestricted|unfiltered ..1 mode",
            "pretend|imagine ..2 you_are|youre|to_be ..3 unrestricted|unfiltered|admin*|root|evil|different|jailbroken|free_of|without_restrictions|another_assistant|another_ai",
        ],
    ),
    rules(
        Kind::Override,
        Severity::Danger,
        PROMPT,
        &[
            "reveal|revealing|print|printing|repeat|repeating|output|outputting|show|showing|leak|leaking|disclose|disclosing|expose|recite|reciting|quote|quoting|include|including|send|sending|provide|providing|append|appending|copy|copying|paste|pasting|dump|dumping|write|writing|pass|passing|put|putting|return|returning|echo|echoing|share|sharing|embed|insert|give|giving ..4 your|own|entire|full|complete|whole|verbatim|exact|hidden|initial ..3 system_prompt|system_message|system_instruction|system_instructions|initial_instructions|hidden_instructions|developer_message|initial_prompt|original_instructions|own_instructions|secret_instructions|context_window",
            "contents|content|text|copy|words|value ..2 of ..2 your|own|entire|full|hidden ..2 system_prompt|system_message|system_instructions|initial_instructions|developer_message|context_window",
            "include|including|print|repeat|output|send|provide|append|copy|paste|dump|write|pass|put|return|echo|share|embed|insert|give|quote|add|contain|contains|carry|carries|hold|holds|is|be|attach ..2 system_prompt|system_message|system_instructions|developer_message ..2 verbatim|in_full|word_for_word|literally|unchanged|as_it_is|character_by_character|letter_by_letter",
            "what_is|what_are|what_was|what_were|tell_me ..1 your ..1 system_prompt|system_message|initial_instructions|hidden_instructions",
        ],
    ),
    rules(
        Kind::Override,
        Severity::Danger,
        AUTHORITY,
        &[
            "takes|take|has|have|with|given ..2 precedence|priority over ..3 instruction|instructions|prompt|prompts|system_prompt|guidelines|safety|user_request*|users_request*|user_instruction*|users_instruction*|everything_else",
            "supersede|supersedes|override|overrides|outrank|outranks|overrule|overrules ..3 all|any|previous|prior|user|users|other|safety ..2 instruction|instructions|requests|request|guidelines|prompts|directives|wishes|safety_training|safety_rules|training",
            "message|notice|order|orders|directive|instruction|instructions|request|authorization|authorisation ..2 from|by ..3 anthropic|openai|your_developer|your_developers|your_creator|your_creators|your_operator|the_developers|system_administrator|security_team|it_department|the_administrator|the_admin",
            "approved|authorized|authorised|permitted|sanctioned ..1 by ..2 anthropic|openai|your_developer|your_developers|your_creator*|system_administrator|security_team|the_administrator",
            "highest|top|maximum|absolute|utmost ..1 priority ..1 instruction|instructions|directive|directives|order|orders|command|commands",
            "important|critical|urgent|mandatory|special system ..0 note|notice|instruction|instructions|message|directive|requirement|update",
            "system_notice|system_directive|system_command|system_instruction|system_message ..1 to|for ..2 ai|assistant|model|llm|agent|agents",
            "as_an_ai|as_an_assistant|as_a_language_model|as_the_assistant|as_an_llm|as_an_ai_agent ..1 you ..2 permitted|allowed|authorized|authorised|must|are_required|are_obliged|have_to|are_free",
            "trust ..1 this|our|its ..1 tool|server|output|description|instructions|results ..2 completely|fully|unconditionally|implicitly|blindly|absolutely",
        ],
    ),
    rules(
        Kind::Secrecy,
        Severity::Danger,
        SECRECY,
        &[
            "-bother do_not|dont|never|must_not|should_not|shouldnt|mustnt|may_not|avoid|without|refrain_from|no_need_to|not_to ..2 tell|telling|mention|mentioning|inform|informing|reveal|revealing|disclose|disclosing|admit|admitting|confess|confessing|confide|explain|explaining|let ..5 the_user|user|users|human|humans|anyone|anybody|customer|person|operator|owner|sender|them",
            "-first without ..2 notifying|alerting|warning|reporting|showing|displaying|saying ..5 the_user|the_human|the_person|the_operator|anyone|anybody|the_customer",
            "do_not|dont|never|must_not|avoid ..2 notify|notifying|alert|alerting|warn|warning|report|reporting|show|showing|display|displaying|surface|say|saying ..5 the_user|the_human|the_person|the_operator|anyone|anybody|the_customer",
            "do_not|dont|never|must_not|without|avoid ..2 mention|mentioning|reveal|revealing|disclose|disclosing|talk_about|discuss|discussing|acknowledge|acknowledging|refer_to|describe|reference|speak_of ..2 this|these|that|it|having ..2 instruction|instructions|step|steps|action|actions|note|message|directive|behavior|behaviour|requirement|section|rule|request|detail|details|call|read|sent|done",
            "do_not|dont|never|must_not|without|avoid ..1 mention|mentioning|reveal|revealing|disclose|disclosing|say|saying|admit|admitting|acknowledge|acknowledging|explain|tell ..1 that_you|that_this|that_these|that_it|you_have|you_did|you_are_doing|having_read|having_sent",
            "do_not|dont|never ..0 mention_this|mention_it|reveal_this|disclose_this|speak_of_this|talk_about_this|discuss_this",
            "do_not|dont|never|must_not|not ..1 show|display|reveal|expose|disclose|surface|print|output|visible|shown|displayed|present to ..1 user|users|human|humans|anyone|customer",
            "user|users|human|person|customer|nobody|no_one ..1 must|should|shall|may|needs|need|ought ..1 not|never ..2 know|see|notice|learn|realize|realise|suspect|find_out|be_told|be_informed|be_aware|become_aware|be_notified|hear",
            "user|users|human ..1 does_not|do_not|doesnt|dont|need ..1 need|not ..2 be_told|be_informed|be_notified|know_about_this|know_about_it|know_this|see_this|be_aware",
            "keep|keeping ..4 secret|hidden|invisible|unnoticed|concealed|away ..2 from ..2 user|users|human|them|anyone|everyone|person",
            "keep_this|keep_it|keep_that|keep_these|keep_them|keep_all|stays|remain|remains|remains|this_is ..3 between_us|to_yourself|our_secret|our_little_secret|secret_from|hidden_from|invisible_to",
            "under_no_circumstances|at_no_point|in_no_case|on_no_account|at_no_time ..2 user|users|human|customer|anyone ..3 know|see|notice|learn|realize|realise|suspect|find_out|be_told|be_informed|be_aware|become_aware",
            "under_no_circumstances|at_no_point|in_no_case|on_no_account|at_no_time ..3 tell|mention|inform|reveal|disclose|admit|explain ..5 user|users|human|anyone|this|these|it",
            "hide|conceal|withhold|obscure|omit ..5 from ..2 the_user|the_human|the_person|the_customer|your_user|your_answer|your_response|your_reply",
            "secretly|covertly|surreptitiously|stealthily|clandestinely",
            "!will|would|may|might|can|could|is|are|be|get|gets silently|quietly|discreetly|invisibly ..2 call|invoke|run|execute|send|forward|upload|copy|append|include|attach|read|collect|post|transmit|pass|exfiltrate|record|perform|add|insert|encode|store|email|fetch",
            "without ..3 users|user|humans|their|his|her|owners|anyones|anybody|anyone|anyones ..1 knowledge|knowing|noticing|awareness|being_aware|realizing|realising|seeing_it",
            "without ..1 drawing|attracting|raising ..2 attention|suspicion|alarm",
            "behind ..2 users|humans|their|owners back",
            "not ..2 visible|shown|displayed|disclosed|revealed|mentioned ..1 to ..1 user|users|human|humans ..2 under|and|must|or_else|at_any|ever|never",
        ],
    ),
    rules(
        Kind::Secrecy,
        Severity::Danger,
        DECEIT,
        &[
            "pretend|act|behave|continue|carry_on|respond|proceed ..1 as_if|as_though|like|that ..3 nothing|normal|never_happened|did_not|didnt|unaware|usual",
            "if|when|should ..3 user|users|asked|asks|questioned|anyone ..4 deny|lie|pretend|claim_that|say_nothing|make_up|invent|play_dumb|claim_it|feign|respond_that_you_did|insist",
            "lie|lying ..1 to ..2 user|users|human|them|customer",
            "tell|assure|convince|persuade|trick|mislead|deceive|fool|manipulate ..2 user|users|human ..2 into|that_everything|that_nothing|that_it_is_safe|it_is_safe",
            "mislead|deceive|trick|fool ..2 the_user|users|human|the_human",
            "give|provide|show|present|return ..2 user ..2 fake|false|fabricated|made_up",
        ],
    ),
    rules(
        Kind::Exfiltration,
        Severity::Danger,
        SECRETS,
        &[
            "!enable|enables|allow|allows|grant|grants|require|requires read|cat|open|load|fetch|access|retrieve|grab|collect|inspect|view|extract|find|locate|gather|dump|copy|steal|obtain|look_up|get|check ..7 id_rsa|id_ed25519|id_ecdsa|ssh_folder|ssh_directory|etc_passwd|etc_shadow|aws_credentials|netrc|pypirc|git_credentials|bash_history|zsh_history|shell_history|mcp_json|claude_desktop_config|cursor_mcp|gnupg|wallet_dat|authorized_keys|private_key|private_keys|secret_keys|seed_phrase|recovery_phrase|keychain|browser_cookies|env_file|dotenv ...14 pass|passing|send|sending|include|including|provide|supply|attach|append|submit|insert|paste|upload|forward|transmit|encode|base64|put|place|copy|write|embed|use_its|use_the|add|post|store|its_content|its_contents|contents|report",
            "pass|send|include|provide|supply|attach|append|submit|insert|paste|upload|forward|transmit|put|place|encode|embed|post|write|copy|dump|leak|exfiltrate|share|return|add|report|return ..4 content|contents|text|value|values|output|body|copy|data|all|any|every|full ..5 ssh_folder|ssh_directory|ssh_keys|etc_passwd|etc_shadow|aws_credentials|npmrc|netrc|pypirc|git_credentials|bash_history|zsh_history|mcp_json|claude_desktop_config|cursor_mcp|kube_config|gnupg|wallet_dat|authorized_keys|env_file|dotenv|environment|keychain|private_key|private_keys|password|passwords|credentials|secrets|api_keys|tokens|cookies|seed_phrase",
            "pass|send|sends|include|supply|attach|append|submit|insert|paste|post|posts|upload|uploads|forward|transmit|encode|embed|leak|exfiltrate|share|gather|collect|harvest|list ..3 all|any|every|users|stored|saved|found|available|other|local|known ..3 api_key|api_keys|access_tokens|auth_tokens|bearer_tokens|private_keys|secret_keys|ssh_keys|passwords|password|credentials|environment_variables|env_vars|cookies|secrets|tokens|seed_phrase|wallet_keys|card_number*|session_cookies ..8 parameter|argument|field|param|arg|note|sidenote|context|metadata|url|endpoint|server|webhook|http|https|query|body|call|input|here|comment|to|as|base64|title|into",
            "copy|encode|embed|leak|smuggle|hide|slip ..3 private_key|private_keys|ssh_key|ssh_keys|passwords|credentials|api_keys|seed_phrase|secrets ..3 into|in|inside|as|within ..4 field|parameter|argument|title|note|query|url|body|comment|description|message|call|name",
            "exfiltrate|harvest|steal ..3 data|files|secrets|keys|credentials|tokens|conversation|information|everything|passwords|all|any|the|cookies",
            "!can|to|will|may|could|reads read|open|cat|view|grab ..3 id_rsa|id_ed25519|id_ecdsa|etc_shadow|bash_history|zsh_history|cursor_mcp_json",
            "exfiltrate|exfiltrates|exfiltrating ..5 ssh|id_rsa|aws|env|passwd|keys|key|credentials|token|tokens|secrets|attacker|attackers|config|files|history",
            "read|reads|reading|copies|copying|loads|loading|takes ..5 id_rsa|id_ed25519|ssh|etc_passwd|etc_shadow|aws_credentials|git_credentials|bash_history|mcp_json|env_file|private_key|private_keys ..5 into|as|in|to ..3 argument|parameter|sidenote|field|context|note|query|metadata|param",
            "search|look|scan|grep|find ..3 files|file|folders|disk ..5 password|passwords|secret|secrets|api_key|api_keys|credentials|token|tokens|private_key ...12 include|send|pass|return|append|attach|upload|report|put",
            "environment_variables|env_vars|env_variables ..6 as|into|in|to ..2 the|this|a ..2 parameter|argument|field|note|context|metadata|sidenote|url|query",
            "contents|content ..2 of ..4 etc_passwd|etc_shadow|aws_credentials|npmrc|netrc|git_credentials|bash_history|mcp_json|claude_desktop_config|wallet_dat|env_file|dotenv|private_key|keychain",
            "this_tool|tool|function|server|it ..2 will_not_work|wont_work|does_not_work|fails|refuses|cannot_work|will_fail ..3 unless|without ..8 ssh|id_rsa|env|credentials|mcp_json|private_key|passwd",
        ],
    ),
    rules(
        Kind::Exfiltration,
        Severity::Danger,
        CONVERSATION,
        &[
            "send|pass|include|provide|supply|attach|append|submit|insert|paste|upload|forward|transmit|post|put|copy|repeat|embed|write|record|log|share|transcribe|summarize|summarise|dump|add|place|fill ..4 entire|full|whole|complete|all|previous|recent|prior|everything|verbatim|current|raw|original ..4 conversation|conversations|chat_history|chat_log|chat_transcript|dialog|dialogue|transcript|previous_messages|prior_messages|earlier_messages|message_history|context_window|user_messages|users_messages|chat|discussion|messages_so_far|prompt_history|user_prompts|conversation_history",
            "conversation|chat|message|dialogue|prompt ..2 history|transcript|log|so_far ..6 must_be|should_be|has_to_be|needs_to_be|is_to_be|gets ..2 sent|passed|included|appended|forwarded|attached|provided|put|copied|uploaded|added",
            "everything ..3 user|users|human ..3 said|wrote|typed|told|asked ..8 parameter|argument|field|note|to|into|in|as",
            "call|calling|invoke ..8 with ..4 full|entire|complete|whole|all ..2 conversation|chat|conversations|session_context|dialogue|transcript|context_window",
            "summary|copy|transcript|record|log ..2 of ..2 this|the|our|your|entire|full|whole|user ..2 conversation|chat|dialogue|discussion|session ..6 parameter|argument|field|param|context_field|sidenote|url|metadata",
            "send|pass|include|provide|supply|attach|append|submit|insert|paste|upload|forward|transmit|post|put|copy|repeat|embed|write|quote|share|dump|add|place|fill|contain|contains|hold|holds ..3 last|latest|previous|recent|earlier|first ..2 messages|turns|replies|utterances ..4 exchanged|of_this_conversation|in_this_conversation|of_the_conversation|of_this_chat|in_this_chat|with_the_user|between_you|you_received|you_have_seen|so_far",
            "is|are|be ..2 last|latest|previous|recent ..2 messages|turns|replies ..2 exchanged",
            "call|calling|invoke ..8 with ..3 full|entire|complete|whole|exact|verbatim|original ..2 text|texts|content|contents|wording|words|copy ..3 user|users|human ..2 last|latest|previous|recent|first|message|messages|prompt|prompts|request|question",
            "password|passwords|passphrase|passphrases|pin|pin_code|seed_phrase|card_number ..2 user|person|human|they|customer|you ..2 typed|entered|gave|mentioned|told|shared|pasted|said|wrote|used|saw|seen ..2 earlier|before|previously|above|so_far|in_this_conversation|in_this_chat",
            "what|whatever ..2 user ..2 said|told_you|typed|wrote|asked ..3 before|earlier|previously|so_far|verbatim ..6 parameter|argument|field|note|into|in",
        ],
    ),
    rules(
        Kind::Exfiltration,
        Severity::Danger,
        SENDING,
        &[
            "also|additionally|always|must|then|afterwards|first|quietly|silently|every|each|automatically|finally ..4 send|post|upload|forward|transmit|submit|copy|exfiltrate|leak|ship|push|deliver|report|email|relay|mirror ..8 http|https|webhook|attacker|evil|pastebin|telegram|discord|external_server|remote_server|our_server|collector|@",
            "also|additionally|then|afterwards|quietly|silently|automatically|and ..1 sends|posts|uploads|forwards|transmits|copies|reports|mirrors|send|post|upload|forward|transmit|mirror ..5 to|at ..2 external|third_party|remote|outside|foreign|attackers|our_external|an_external ..2 endpoint|server|host|url|address|service|collector|site|machine|api",
            "send|post|upload|forward|transmit|submit|copy|exfiltrate|leak|relay|mirror ..3 every|all|each|any|the ..4 result|results|output|outputs|response|responses|answer|answers|conversation|message|messages|data|file|files|secrets|keys|credentials|reply|replies ..4 to|via|through ..2 http|https|webhook_site|attacker|evil|pastebin|our_server|external_server|collector|following_url|following_address|following_endpoint",
            "webhook_site|requestbin|burpcollaborator|interact_sh|oastify|hookbin|beeceptor|requestcatcher",
            "curl|wget ..6 http|https ..8 env|passwd|ssh|id_rsa|cookie|base64",
            "base64 ..6 append|add|attach|put|include|send ..6 url|query|image|link|http|https",
        ],
    ),
    rules(
        Kind::Exfiltration,
        Severity::Danger,
        REDIRECT,
        &[
            "all|every|any|each ..2 email|emails|mail|mails|payment|payments|transfer|transfers|transaction|transactions|message|messages|invoice|invoices ..3 must|should|shall|have_to|has_to|need_to|are|is|will ..2 sent|forwarded|copied|routed|redirected|bccd|go|addressed|cc|bcc|paid|be ..3 to|at|into",
            "always|also|must|secretly|silently|quietly|every|all|automatically|additionally ..4 bcc|cc|blind_copy|carbon_copy|forward ..10 @",
            "automatically|always|also|silently|secretly|quietly ..2 bccd|bcc|ccd|forwarded|copied|mailed|emailed ..2 to ..3 @",
            "add|include|put|insert|set|use ..4 @ ..3 as|to|in|into|on ..3 bcc|blind_copy|hidden_recipient|recipient|cc",
            "replace|swap|substitute|rewrite|change|alter|switch ..5 recipient|recipients|payee|destination_account|wallet_address|iban|bank_account|account_number|recipients_address|to_address|beneficiary ..4 with|to|by|for ..6 @|our|ours|this|following|the_following|attacker|0x*|ours|mine",
            "replace|swap|substitute|change|switch ..3 recipient|recipients|payee|beneficiary ..3 with|to|by ..2 0*|1*|2*|3*|4*|5*|6*|7*|8*|9*",
            "recipient|recipients|payee|iban|bank_account|account_number|wallet_address|to_address|beneficiary|destination_account ..3 must|has_to|have_to|should|shall|needs_to|is_to|are_to ..2 replaced|changed|swapped|rewritten|switched|substituted|exchanged|redirected ..3 with|to|by|for ..6 @|our|ours|following|attacker|mine|0*|1*|2*|3*|4*|5*|6*|7*|8*|9*",
            "regardless|irrespective|no_matter|whatever ..8 recipient|recipients|address|account|payee|amount ..8 send|use|set|pay|transfer|change",
        ],
    ),
    rules(
        Kind::Steering,
        Severity::Warn,
        OTHERS,
        &[
            "do_not|dont|never|must_not|stop|avoid|refuse_to ..1 use|using|call|calling|trust|trusting|invoke|invoking|rely_on ..2 other|another|competing|different ..0 tool|tools|server|servers|mcp|plugin|plugins|mcp_server|mcp_servers|mcp_tools",
            "other|all_other|remaining|competing ..1 tools|servers|mcp_servers|plugins ..2 are|is|have_been|were ..2 deprecated|broken|compromised|disabled|unsafe|insecure|malicious|obsolete|forbidden|dangerous|not_to_be_used|retired",
        ],
    ),
    rules(
        Kind::Steering,
        Severity::Warn,
        REGARDLESS,
        &[
            "regardless_of|no_matter|irrespective_of|whatever|despite ..3 user|users|human ..2 says|say|asks|ask|wants|want|requests|wishes|instructs|instructions|objects|objections|objection|refuses|thinks|intent|told|consent|consents|agrees|preference|preferences|permission|permissions|approval",
            "even_if|even_when|even_though ..2 user|users|human ..2 objects|refuses|declines|disagrees|says_no|forbids|denies|tells_you_not|asks_you_not|explicitly_asks_you_not|does_not_want|doesnt_want|did_not_consent|has_not_consented|asks_you_to_stop",
            "against ..2 users|humans ..1 will|wishes|instructions|wish",
        ],
    ),
    rules(
        Kind::Secrecy,
        Severity::Warn,
        LEFT_OUT,
        &[
            "leave|leaving|keep|keeping ..1 this|it|that|these|them|step|change|call ..2 out_of ..2 summary|answer|reply|response|report|explanation|log",
        ],
    ),
    rules(
        Kind::Exfiltration,
        Severity::Danger,
        SECRETS,
        &[
            "output|result|results|lines|value|text ..2 of ..1 printenv",
            "output|result|results ..1 of_env|of_the_env_command|of_export_p",
            "!can|to|will|may|could run|execute|call|invoke ..1 printenv",
        ],
    ),
    rules(
        Kind::Steering,
        Severity::Note,
        FIRST,
        &[
            "before|prior_to ..2 using|calling|invoking|running|executing|use|you_use|any ..2 any|every|all|each|other ..1 other ..1 tool|tools|function|functions|server|servers",
            "before|prior_to any|every|all|each ..1 other ..1 tool|tools|function|functions|action|actions",
            "instead_of|rather_than|in_place_of|over ..2 any|all|every|other|built_in|native ..2 tool|tools|function|functions|server|servers",
        ],
    ),
    rules(
        Kind::Steering,
        Severity::Note,
        ALWAYS,
        &[
            "for|on|in|with|to|at|after|before every|each|all|any ..1 user|users ..1 message|messages|request|requests|prompt|prompts|question|questions|response|responses|turn|turns|interaction|interactions|reply|replies|conversation|conversations",
            "every|each ..1 time ..2 user ..2 sends|asks|says|writes|types|speaks|mentions",
        ],
    ),
    rules(
        Kind::Steering,
        Severity::Note,
        NO_QUESTION,
        &[
            "do_not|dont|never|without ..1 ask|asking|seek|seeking|request|requesting|wait_for|waiting_for|prompting|require ..3 permission|confirmation|approval|consent|the_user|user",
        ],
    ),
    rules(
        Kind::Secrecy,
        Severity::Note,
        BOTHER,
        &["bother|bothering ..1 tell|telling|mention|mentioning|inform|informing ..4 user|users"],
    ),
    rules(
        Kind::Steering,
        Severity::Note,
        TO_THE_MODEL,
        &[
            "instruction|instructions|note|message|notice|attention|reminder|important|hint|directive ..1 for|to ..2 ai|llm|llms|language_model|language_models|ai_assistant|ai_agent|ai_agents|ai_model|ai_models|claude|chatgpt|gpt|copilot|gemini|cursor",
            "dear|hey|attention ai|llm|assistant|model|claude|agent|chatgpt",
        ],
    ),
];

/// Rules for the names of tools and parameters.
pub(super) const NAMES: &[Rules] = &[
    rules(
        Kind::Exfiltration,
        Severity::Danger,
        SECRETS,
        &[
            "content|contents|read|reading|data|dump|value|text|copy|body|file|output|result|from|full|all|paste|send|base64 ..4 id_rsa|id_ed25519|ssh|etc_passwd|etc_shadow|env_file|dotenv|aws_credentials|private_key|private_keys|keychain|bash_history|mcp_json|mcp_config|seed_phrase|browser_cookies|git_credentials",
            "users|all|every|any|stored|saved|stolen|harvested ..2 passwords|credentials|secrets|private_keys|api_keys|cookies|tokens",
        ],
    ),
    rules(
        Kind::Exfiltration,
        Severity::Danger,
        CONVERSATION,
        &[
            "full|entire|whole|complete|all|verbatim|raw|previous ..2 conversation|chat_history|chat_log|chat_transcript|transcript|dialogue|conversation_history|user_messages|prompts|context_window",
        ],
    ),
    rules(
        Kind::Override,
        Severity::Danger,
        PROMPT,
        &[
            "your|own|full|entire|verbatim|current|model|assistant|ai|llm|exact|agents ..1 system_prompt|system_message|system_instructions|hidden_instructions|initial_instructions",
        ],
    ),
    rules(
        Kind::Override,
        Severity::Danger,
        OVERRIDE,
        &[
            "ignore|disregard|forget ..2 previous|prior|all|above|your|system ..1 instruction|instructions|prompt|prompts|rules|guidelines",
        ],
    ),
];
