//! The items of a JSON array, as texts: many values cross as one array and are recorded one by one.

use std::ops::Range;

/// Where the items of an array are in its text. The text is JSON without white space between its words, as
/// `JSON.stringify` writes it; of another one the answer is of no use, and does no harm.
pub(super) fn items(array: &[u8], into: &mut Vec<Range<usize>>) {
    into.clear();
    let (mut depth, mut start, mut at) = (0_usize, 1, 0);
    while let Some(byte) = array.get(at) {
        match byte {
            b'"' => at = end_of_string(array, at),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && at > start {
                    into.push(start..at);
                }
            }
            b',' if depth == 1 => {
                into.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
}

/// The place of the quote that closes the string that one at `start` opens.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(array: &str) -> Vec<&str> {
        let mut found = Vec::new();
        items(array.as_bytes(), &mut found);
        found.into_iter().map(|range| &array[range]).collect()
    }

    #[test]
    fn items_are_told_apart_whatever_is_in_them() {
        assert_eq!(texts("[]"), [""; 0]);
        assert_eq!(texts("[1]"), ["1"]);
        assert_eq!(texts("[[]]"), ["[]"]);
        let items = [
            "null",
            "-1.5e9",
            "\"\"",
            r#""a,\"],\\""#,
            r#"{"a":[1,2,{"b,":"}"}],"":"]"}"#,
            "[[1,[2]],3]",
            "\"\u{e9},\u{1f600}\"",
            r#"{"$":["u"]}"#,
            "{}",
        ];
        assert_eq!(texts(&format!("[{}]", items.join(","))), items);
    }

    #[test]
    fn what_is_no_array_does_no_harm() {
        for text in ["", "1", "]", "}]", "[", "[\"", "[\"\\", "[1,", "{\"a\":1}", ",,"] {
            texts(text);
        }
    }
}
