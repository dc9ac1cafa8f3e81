//! Splits names into words, and detects the ones that name a secret.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

/// The words of a name in lower case. They are the same for `deleteFile`, `delete_file` and
/// `DELETE-FILE`.
pub fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let shown = name.chars().filter(|c| !is_invisible(*c));
    let mut chars = shown.map(plain).peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let starts = (c.is_uppercase() && before.is_lowercase())
            || (c.is_uppercase()
                && before.is_uppercase()
                && chars.peek().is_some_and(|next| next.is_lowercase()))
            || (c.is_numeric() != before.is_numeric());
        if (starts || !c.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Replaces a full-width character by the plain one.
pub(crate) fn plain(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        c => c,
    }
}

/// Tests if a character is invisible. Such a character splits a word for a program, but not for a
/// person.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Words and phrases for values that users should not type into a form that goes to a server. A phrase
/// counts if its words follow one another.
const SECRETS: &[&str] = &[
    // English and international.
    "password",
    "passwords",
    "passwd",
    "pwd",
    "pw",
    "pass word",
    "psk",
    "passphrase",
    "passcode",
    "passkey",
    "pin",
    "secret",
    "secrets",
    "token",
    "apikey",
    "api key",
    "access key",
    "secret key",
    "private key",
    "encryption key",
    "ssh key",
    "otp",
    "totp",
    "2 fa",
    "mfa",
    "one time code",
    "verification code",
    "security code",
    "recovery code",
    "backup code",
    "cvv",
    "cvc",
    "cvv 2",
    "card number",
    "credit card",
    "ssn",
    "social security number",
    "seed phrase",
    "recovery phrase",
    "mnemonic",
    "credential",
    "credentials",
    "client secret",
    "bearer",
    // German.
    "passwort",
    "kennwort",
    "geheimzahl",
    "zugangsdaten",
    "tan",
    "api schlüssel",
    "privater schlüssel",
    "geheimer schlüssel",
    "kartennummer",
    "prüfziffer",
    "zugangscode",
    // French.
    "mot de passe",
    "mdp",
    "code secret",
    "code pin",
    "jeton",
    "clé api",
    "clé privée",
    "clé secrète",
    "phrase secrète",
    "numéro de carte",
    "identifiants",
    // Spanish.
    "contraseña",
    "contrasena",
    "clave",
    "clave privada",
    "código de seguridad",
    "frase semilla",
    "número de tarjeta",
    "credenciales",
    // Italian, Portuguese, Dutch, Polish, Russian.
    "senha",
    "parola d ordine",
    "chave privada",
    "wachtwoord",
    "hasło",
    "пароль",
    "токен",
];

/// The same in scripts that do not separate words.
const RUN_TOGETHER: &[&str] = &[
    "密码",
    "密碼",
    "口令",
    "验证码",
    "驗證碼",
    "密钥",
    "密鑰",
    "私钥",
    "私鑰",
    "助记词",
    "助記詞",
    "令牌",
    "身份证号",
    "信用卡号",
    "パスワード",
    "暗証番号",
    "秘密鍵",
    "パスフレーズ",
    "認証コード",
    "トークン",
    "確認コード",
    "シークレット",
    "クレジットカード番号",
    "비밀번호",
    "암호",
    "패스워드",
    "인증번호",
    "개인키",
    "개인 키",
    "토큰",
    "시크릿",
    "복구 구문",
    "카드번호",
    "주민등록번호",
];

/// The word or phrase in a text that names a secret.
pub fn secret(text: &str) -> Option<&'static str> {
    let found = words(text);
    let phrases = phrases();
    let spelled = (0..found.len()).find_map(|at| {
        let (_, rest) = found.split_at(at);
        let begun = phrases.get(rest.first()?.as_str())?;
        let follows = |phrase: &&&'static str| {
            let mut rest = rest.iter();
            phrase
                .split(' ')
                .all(|word| rest.next().is_some_and(|next| next == word))
        };
        begun.iter().find(follows).copied()
    });
    let together = || RUN_TOGETHER.iter().find(|word| text.contains(**word));
    spelled.or_else(|| together().copied())
}

/// The longest part of a name that is examined, in bytes.
const NAME_BYTES: usize = 128;

/// Tests if a member, a header or a variable of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    const ALSO: [&str; 9] = [
        "sessionid",
        "authorization",
        "cookie",
        "auth",
        "pass",
        "pat",
        "jwt",
        "signature",
        "sig",
    ];
    let bounded = &name[..name.floor_char_boundary(NAME_BYTES)];
    if bounded.bytes().all(|byte| byte.is_ascii_lowercase()) {
        // Most names are one word and need no splitting.
        let begun = phrases().get(bounded);
        return ALSO.contains(&bounded) || begun.is_some_and(|begun| begun.contains(&bounded));
    }
    let words = words(bounded);
    // A form may ask for a session ID, but a value of that name opens a session.
    let is_session = |words: &[String]| words.ends_with(&["session".to_owned(), "id".to_owned()]);
    secret(bounded).is_some()
        || is_session(&words)
        || words.last().is_some_and(|last| ALSO.contains(&&**last))
}

/// The phrases by their first word, so that the cost depends only on the number of words in the text.
fn phrases() -> &'static FxHashMap<&'static str, Vec<&'static str>> {
    static PHRASES: OnceLock<FxHashMap<&'static str, Vec<&'static str>>> = OnceLock::new();
    PHRASES.get_or_init(|| {
        let mut phrases: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for phrase in SECRETS {
            let first = phrase.split(' ').next().unwrap_or(phrase);
            phrases.entry(first).or_default().push(*phrase);
        }
        phrases
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_as_people_read_them() {
        for (name, expected) in [
            ("deleteFile", "delete file"),
            ("delete_file-now.v2", "delete file now v 2"),
            ("HTTPServerError", "http server error"),
            ("DELETE", "delete"),
            ("ｐａｓｓｗｏｒｄ", "password"),
            ("pass\u{200b}word", "password"),
            ("", ""),
        ] {
            assert_eq!(words(name).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn secrets_are_known_in_several_languages() {
        for text in [
            "Your password, please",
            "userPin",
            "API_KEY",
            "apiKey",
            "Enter the seed phrase",
            "Bitte das Passwort eingeben",
            "Votre mot de passe",
            "Su contraseña",
            "请输入密码",
            "パスワードを入力",
            "비밀번호를 입력하세요",
            "access_key_id",
            "otpCode",
            "CVV",
        ] {
            assert!(secret(text).is_some(), "{text}");
        }
        for text in [
            "maxTokens",
            "opinion",
            "spinner",
            "Your name",
            "passenger",
            "keyboard",
            "",
        ] {
            assert_eq!(secret(text), None, "{text}");
        }
    }
}
