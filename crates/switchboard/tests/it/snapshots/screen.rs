//! The terminal after a command: removed text is gone, and escape codes have names.

/// Replays an output, and returns the lines that stay on the screen.
pub(super) fn replay(output: &str) -> String {
    let lines: Vec<String> = output.split('\n').map(replay_line).collect();
    lines.join("\n")
}

/// One cell per column, with the names of the codes before its character.
fn replay_line(line: &str) -> String {
    let mut cells: Vec<String> = Vec::new();
    let mut column = 0;
    let mut codes = String::new();
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        match character {
            '\r' => column = 0,
            '\u{7}' => codes.push_str("<bell>"),
            '\u{1b}' => match sequence(&mut rest).as_str() {
                "[K" | "[0K" => cells.truncate(column),
                code => codes.push_str(&name(code)),
            },
            character => {
                let cell = format!("{}{character}", std::mem::take(&mut codes));
                if column < cells.len() {
                    cells[column] = cell;
                } else {
                    cells.push(cell);
                }
                column += 1;
            }
        }
    }
    cells.push(codes);
    marked(&cells.concat())
}

/// A control sequence, without the escape character.
fn sequence(rest: &mut impl Iterator<Item = char>) -> String {
    let mut code = String::new();
    for character in rest {
        code.push(character);
        if character.is_ascii_alphabetic() {
            break;
        }
    }
    code
}

/// The name of a style; any other code is written as it is.
fn name(code: &str) -> String {
    let name = match code {
        "[m" | "[0m" => "reset",
        "[1m" => "bold",
        "[2m" => "dim",
        "[4m" => "underline",
        "[31m" => "red",
        "[32m" => "green",
        "[33m" => "yellow",
        "[34m" => "blue",
        "[35m" => "magenta",
        "[36m" => "cyan",
        other => return format!("<ESC {other}>"),
    };
    format!("<{name}>")
}

/// Marks spaces at the end of a line, which nothing else would show.
fn marked(line: &str) -> String {
    let text = line.trim_end_matches(' ');
    format!("{text}{}", "·".repeat(line.len() - text.len()))
}

#[test]
fn screen_keeps_what_stays_visible() {
    assert_eq!(replay("a\r\nb\r\n"), "a\nb\n");
    assert_eq!(replay("\r\u{1b}[Kstarting\r\u{1b}[Kready\r\n"), "ready\n");
    assert_eq!(replay("longer\rab"), "abnger");
    assert_eq!(
        replay("\u{1b}[31merror:\u{1b}[0m no  \u{7}"),
        "<red>error:<reset> no  <bell>"
    );
    assert_eq!(replay("\u{1b}[2Ja"), "<ESC [2J>a");
    assert_eq!(replay("space  \r\n"), "space··\n");
}
