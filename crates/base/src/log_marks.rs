//! The marks of lines in the log of a server that has several instances.

/// The beginning of the lines of an instance, after the time.
pub fn mark_of(number: &str) -> String {
    format!("[{number}] ")
}

/// Tests if a line of a log is about the instance with this number.
pub fn is_of(line: &str, number: u64) -> bool {
    let text = line.split_once(' ').map(|(_, text)| text);
    text.is_some_and(|text| text.starts_with(&mark_of(&number.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_by_their_number() {
        let line = "2026-11-19T00:00:00.000Z [2] [switchboard] started";
        assert!(is_of(line, 2) && !is_of(line, 1) && !is_of(line, 22));
        assert!(!is_of("2026-11-19T00:00:00.000Z said [2] ", 2));
    }
}
