//! Failures that the engine itself records, in the writing of the SDK's codec: an object with the one key `$`, whose
//! value is `["e", name, message, stack, fields]`.
//!
//! Everything else in a payload is the host's, and is not looked at here.

use std::fmt::Write;

/// An error of the SDK: its class and its code, what it says.
#[must_use]
pub fn encode_failure(name: &str, code: &str, message: &str) -> String {
    let mut text = String::with_capacity(message.len() + 64);
    error(&mut text, name, message, |text| field(text, "code", code));
    text
}

/// A step that has failed for good after so many attempts, because of something that no further attempt would mend.
#[must_use]
pub fn encode_step_failure(step: &str, attempts: u32, message: &str) -> String {
    let mut text = String::with_capacity(2 * message.len() + 256);
    error(&mut text, "StepError", message, |text| {
        field(text, "code", "STEP_FAILED");
        text.push(',');
        field(text, "step", step);
        let _ = write!(text, ",\"attempts\":{attempts},\"history\":[],\"cause\":");
        text.push_str(&encode_failure("NonRetryableError", "NON_RETRYABLE", message));
    });
    text
}

fn error(text: &mut String, name: &str, message: &str, fields: impl FnOnce(&mut String)) {
    text.push_str("{\"$\":[\"e\",");
    quoted(text, name);
    text.push(',');
    quoted(text, message);
    text.push_str(",\"\",{");
    fields(text);
    text.push_str("}]}");
}

fn field(text: &mut String, name: &str, value: &str) {
    quoted(text, name);
    text.push(':');
    quoted(text, value);
}

fn quoted(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            control if control < ' ' => {
                let _ = write!(text, "\\u{:04x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_written_as_the_codec_writes_errors() {
        assert_eq!(
            encode_failure("JournalLimitError", "JOURNAL_LIMIT", "say \"no\"\n\\"),
            r#"{"$":["e","JournalLimitError","say \"no\"\u000a\\","",{"code":"JOURNAL_LIMIT"}]}"#
        );
        assert_eq!(
            encode_step_failure("a\"b", 2, "é"),
            concat!(
                r#"{"$":["e","StepError","é","",{"code":"STEP_FAILED","step":"a\"b","attempts":2,"history":[],"#,
                r#""cause":{"$":["e","NonRetryableError","é","",{"code":"NON_RETRYABLE"}]}}]}"#
            )
        );
    }
}
