//! Rust source as words and marks, without comments and texts, and the few things that the rules ask of it.
//!
//! It reads text and expands nothing: what a macro writes is not seen, and neither is an arrow behind an alias of the
//! crate root, for which reason such an alias and a glob over the root are reported themselves.

/// One word, mark or literal text, with the line it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: Kind,
    pub(crate) line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier, keyword or number.
    Word(String),
    /// One character of punctuation.
    Mark(char),
    /// A text, byte text or character, its content dropped.
    Text,
}

impl Piece {
    pub(crate) fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            Kind::Mark(_) | Kind::Text => None,
        }
    }

    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.word() == Some(word)
    }

    pub(crate) fn is_mark(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }
}

/// Splits a source into pieces.
pub(crate) fn scan(source: &str) -> Vec<Piece> {
    Scanner { chars: source.chars().collect(), at: 0, line: 1, pieces: Vec::new() }.run()
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    line: usize,
    pieces: Vec<Piece>,
}

impl Scanner {
    fn run(mut self) -> Vec<Piece> {
        while let Some(first) = self.peek(0) {
            match (first, self.peek(1)) {
                ('/', Some('/')) => self.skip_line_comment(),
                ('/', Some('*')) => self.skip_block_comment(),
                ('"', _) => self.text(0),
                ('\'', _) => self.character_or_lifetime(),
                (space, _) if space.is_whitespace() => self.advance(1),
                (letter, _) if is_word_part(letter) => self.word_or_prefixed_text(),
                (mark, _) => {
                    self.push(Kind::Mark(mark));
                    self.advance(1);
                }
            }
        }
        self.pieces
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn advance(&mut self, count: usize) {
        let end = (self.at + count).min(self.chars.len());
        self.line += self.chars[self.at..end].iter().filter(|c| **c == '\n').count();
        self.at = end;
    }

    fn push(&mut self, kind: Kind) {
        self.pieces.push(Piece { kind, line: self.line });
    }

    fn skip_line_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.advance(1);
        }
    }

    /// Block comments nest.
    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.chars.len() {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => {
                    depth += 1;
                    self.advance(2);
                }
                (Some('*'), Some('/')) => {
                    depth -= 1;
                    self.advance(2);
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.advance(1),
            }
        }
    }

    /// A text that starts at its quote; `hashes` is `None` where backslashes escape, else the count of `#` to end it.
    fn text_body(&mut self, hashes: Option<usize>) {
        self.push(Kind::Text);
        self.advance(1);
        while let Some(next) = self.peek(0) {
            match (next, hashes) {
                ('\\', None) => self.advance(2),
                ('"', None) => return self.advance(1),
                ('"', Some(count)) if (1..=count).all(|ahead| self.peek(ahead) == Some('#')) => {
                    return self.advance(1 + count);
                }
                _ => self.advance(1),
            }
        }
    }

    /// An ordinary text behind a prefix of so many characters.
    fn text(&mut self, prefix: usize) {
        self.advance(prefix);
        self.text_body(None);
    }

    fn character_or_lifetime(&mut self) {
        match (self.peek(1), self.peek(2)) {
            (Some('\\'), _) => {
                self.push(Kind::Text);
                self.advance(3);
                while self.peek(0).is_some_and(|c| c != '\'') {
                    self.advance(1);
                }
                self.advance(1);
            }
            (Some(_), Some('\'')) => {
                self.push(Kind::Text);
                self.advance(3);
            }
            _ => {
                self.push(Kind::Mark('\''));
                self.advance(1);
            }
        }
    }

    fn word_or_prefixed_text(&mut self) {
        let length = (0..).take_while(|ahead| self.peek(*ahead).is_some_and(is_word_part)).count();
        let word: String = self.chars[self.at..self.at + length].iter().collect();
        let hashes = (0..).take_while(|ahead| self.peek(length + ahead) == Some('#')).count();
        let is_quoted = self.peek(length + hashes) == Some('"');
        match word.as_str() {
            "r" | "br" | "cr" if is_quoted => {
                self.advance(length + hashes);
                self.text_body(Some(hashes));
            }
            "b" | "c" if hashes == 0 && is_quoted => self.text(length),
            "b" if self.peek(length) == Some('\'') => {
                self.advance(length);
                self.character_or_lifetime();
            }
            // A raw identifier: its name follows.
            "r" if hashes == 1 => self.advance(2),
            _ => {
                self.push(Kind::Word(word));
                self.advance(length);
            }
        }
    }
}

fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A path that starts at `crate` or climbs by `super` out of the module it stands in: the top-level name it leads to.
/// `*` stands for all of the crate root, `crate` for the root itself under another name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrow {
    pub(crate) to: String,
    pub(crate) line: usize,
}

/// The arrows of a file that is the module `module` (`["log", "reader"]`), those within its own top module included.
pub(crate) fn arrows(module: &[&str], pieces: &[Piece]) -> Vec<Arrow> {
    let mut found = Vec::new();
    let mut inline: Vec<(String, usize)> = Vec::new();
    let mut depth = 0usize;
    for (at, piece) in pieces.iter().enumerate() {
        if piece.is_mark('{') {
            depth += 1;
            if let Some(name) = opens_module(pieces, at) {
                inline.push((name.to_owned(), depth));
            }
        } else if piece.is_mark('}') {
            inline.pop_if(|(_, opened)| *opened == depth);
            depth = depth.saturating_sub(1);
        } else if piece.is_word("crate") {
            from_crate(pieces, at, &mut found);
        } else if piece.is_word("super") && !follows_super(pieces, at) {
            let base = module.iter().map(|name| (*name).to_owned()).chain(inline.iter().map(|(name, _)| name.clone()));
            resolve(base.collect(), pieces, at, &mut found);
        }
    }
    found
}

/// The name in `mod name {` if the brace at `at` is that one.
fn opens_module(pieces: &[Piece], at: usize) -> Option<&str> {
    let is_module = at >= 2 && pieces[at - 2].is_word("mod");
    if is_module { pieces[at - 1].word() } else { None }
}

fn from_crate(pieces: &[Piece], at: usize, found: &mut Vec<Arrow>) {
    let line = pieces[at].line;
    let previous = at.checked_sub(1).map(|before| &pieces[before]);
    if previous.is_some_and(|piece| piece.is_word("extern")) {
        if pieces.get(at + 1).is_some_and(|piece| piece.is_word("self")) {
            found.push(Arrow { to: "crate".into(), line });
        }
    } else if is_path_separator(pieces, at + 1) {
        resolve(Vec::new(), pieces, at + 3, found);
    } else if pieces.get(at + 1).is_some_and(|piece| piece.is_word("as")) {
        found.push(Arrow { to: "crate".into(), line });
    }
}

fn follows_super(pieces: &[Piece], at: usize) -> bool {
    at >= 3 && is_path_separator(pieces, at - 2) && pieces[at - 3].is_word("super")
}

fn is_path_separator(pieces: &[Piece], at: usize) -> bool {
    [at, at + 1].iter().all(|place| pieces.get(*place).is_some_and(|piece| piece.is_mark(':')))
}

/// Follows the path at `at`, read from module `base`, through `self`, `super` and groups to the top-level names.
fn resolve(mut base: Vec<String>, pieces: &[Piece], mut at: usize, found: &mut Vec<Arrow>) {
    while let Some(piece) = pieces.get(at) {
        let line = piece.line;
        let is_super = piece.is_word("super");
        if is_super {
            base.pop();
        }
        if is_super || piece.is_word("self") {
            if is_path_separator(pieces, at + 1) {
                at += 3;
                continue;
            }
            let to = base.first().map_or("crate", String::as_str).to_owned();
            return found.push(Arrow { to, line });
        }
        if piece.is_mark('{') {
            return elements(pieces, at).into_iter().for_each(|start| resolve(base.clone(), pieces, start, found));
        }
        let end = match &piece.kind {
            Kind::Word(word) => word.clone(),
            Kind::Mark('*') => "*".to_owned(),
            Kind::Mark(_) | Kind::Text => return,
        };
        return found.push(Arrow { to: base.into_iter().next().unwrap_or(end), line });
    }
}

/// Where the elements of the brace group that opens at `open` begin.
fn elements(pieces: &[Piece], open: usize) -> Vec<usize> {
    let mut starts = vec![open + 1];
    let mut depth = 0usize;
    for (at, piece) in pieces.iter().enumerate().skip(open) {
        match piece.kind {
            Kind::Mark('{') => depth += 1,
            Kind::Mark('}') if depth == 1 => break,
            Kind::Mark('}') => depth -= 1,
            Kind::Mark(',') if depth == 1 => starts.push(at + 1),
            Kind::Mark(_) | Kind::Word(_) | Kind::Text => {}
        }
    }
    starts
}

/// The piece after the group that opens at `open` with one of `( [ {`.
pub(crate) fn after_group(pieces: &[Piece], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, piece) in pieces.iter().enumerate().skip(open) {
        match piece.kind {
            Kind::Mark('(' | '[' | '{') => depth += 1,
            Kind::Mark(')' | ']' | '}') => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            Kind::Mark(_) | Kind::Word(_) | Kind::Text => {}
        }
    }
    pieces.len()
}

/// Lines on which JS enters Rust and a panic would leave it: exported functions without `catch_unwind` in their
/// attribute, callbacks with a C calling convention and closures handed to JS that name none of `guards`.
pub(crate) fn unguarded_entries(pieces: &[Piece], guards: &[&str]) -> Vec<usize> {
    (0..pieces.len())
        .filter(|at| is_unguarded_export(pieces, *at, guards) || is_unguarded_callback(pieces, *at, guards))
        .map(|at| pieces[at].line)
        .collect()
}

fn names_any(pieces: &[Piece], words: &[&str]) -> bool {
    pieces.iter().filter_map(Piece::word).any(|word| words.contains(&word))
}

/// `#[napi…]` on a function that is not async (the promise of an async one rejects).
fn is_unguarded_export(pieces: &[Piece], at: usize, guards: &[&str]) -> bool {
    if !pieces[at].is_mark('#') || !pieces.get(at + 1).is_some_and(|piece| piece.is_mark('[')) {
        return false;
    }
    let mut end = after_group(pieces, at + 1);
    let attribute = &pieces[at..end];
    if !names_any(attribute, &["napi"]) || names_any(attribute, &["catch_unwind"]) {
        return false;
    }
    while pieces.get(end).is_some_and(|piece| piece.is_mark('#')) {
        end = after_group(pieces, end + 1);
    }
    loop {
        match pieces.get(end).map(|piece| &piece.kind) {
            Some(Kind::Word(word)) if word == "fn" => return !body_names_any(pieces, end, guards),
            Some(Kind::Word(word)) if word == "async" => return false,
            Some(Kind::Word(word)) if matches!(word.as_str(), "pub" | "const" | "unsafe" | "extern") => end += 1,
            Some(Kind::Mark('(')) => end = after_group(pieces, end),
            Some(Kind::Text) => end += 1,
            Some(Kind::Word(_) | Kind::Mark(_)) | None => return false,
        }
    }
}

/// `extern "C" fn name` with a body, or a call that makes a JS function of a closure.
fn is_unguarded_callback(pieces: &[Piece], at: usize, guards: &[&str]) -> bool {
    if pieces[at].is_word("extern") {
        let function = at + 1 + usize::from(pieces.get(at + 1).is_some_and(|piece| piece.kind == Kind::Text));
        let is_named = pieces.get(function + 1).is_some_and(|piece| piece.word().is_some());
        let is_function = pieces.get(function).is_some_and(|piece| piece.is_word("fn"));
        return is_function && is_named && !body_names_any(pieces, function, guards);
    }
    let is_call = pieces.get(at + 1).is_some_and(|piece| piece.is_mark('('));
    let makes_function = pieces[at].is_word("create_function_from_closure");
    makes_function && is_call && !names_any(&pieces[at..after_group(pieces, at + 1)], guards)
}

/// Whether the body of the function at `function` names one of `words`; one without a body counts as guarded.
fn body_names_any(pieces: &[Piece], function: usize, words: &[&str]) -> bool {
    let mut at = function;
    while let Some(piece) = pieces.get(at) {
        match piece.kind {
            Kind::Mark('(' | '[') => at = after_group(pieces, at),
            Kind::Mark(';') => return true,
            Kind::Mark('{') => return names_any(&pieces[at..after_group(pieces, at)], words),
            Kind::Mark(_) | Kind::Word(_) | Kind::Text => at += 1,
        }
    }
    true
}

mod tests {
    use super::{Arrow, arrows, scan, unguarded_entries};

    fn found(module: &[&str], source: &str) -> Vec<String> {
        arrows(module, &scan(source)).into_iter().map(|Arrow { to, .. }| to).collect()
    }

    #[test]
    fn a_plain_path_is_an_arrow() {
        assert_eq!(found(&["machine"], "use crate::log::Reader; fn f() { crate::store::open() }"), ["log", "store"]);
    }

    #[test]
    fn a_brace_group_is_an_arrow_to_each_of_its_elements() {
        let source = "use crate::{log::{self, Reader}, store as s, record::{Lsn, ids::{Seq}}};";
        assert_eq!(found(&["machine"], source), ["log", "store", "record"]);
    }

    #[test]
    fn super_is_an_arrow_where_it_leaves_the_module() {
        assert_eq!(found(&["machine"], "use super::log::Reader;"), ["log"]);
        assert_eq!(found(&["machine", "run"], "use super::timers::Timer;"), ["machine"]);
        assert_eq!(found(&["machine", "run"], "use super::super::log;"), ["log"]);
        assert_eq!(found(&["machine"], "use self::super::{log, store::Key};"), ["log", "store"]);
    }

    #[test]
    fn super_in_an_inline_module_climbs_out_of_that_first() {
        let source = "mod tests { use super::*; mod deep { use super::super::x; } } use super::log;";
        assert_eq!(found(&["machine"], source), ["machine", "machine", "log"]);
        assert_eq!(found(&["machine"], "mod tests { use super::super::store; }"), ["store"]);
    }

    #[test]
    fn comments_and_texts_hold_no_arrows() {
        let source = r##"
            // use crate::log;
            //! [`crate::log`]
            /* use crate::log; /* nested */ use crate::store; */
            const A: &str = "crate::log \" crate::log";
            const B: &str = r#"crate::log " crate::log"#;
            const C: &[u8] = b"crate::log";
            const D: char = '"'; const E: char = '\''; const F: u8 = b'"'; const G: char = '\u{1f600}';
            fn f<'a>(x: &'a str) -> &'a str { x }
            use crate::record::Lsn;
        "##;
        assert_eq!(found(&["machine"], source), ["record"]);
    }

    #[test]
    fn an_arrow_knows_its_line() {
        let source = "/* one\n two */\nconst A: &str = \"three\n four\";\nuse crate::log;";
        assert_eq!(arrows(&["machine"], &scan(source)), [Arrow { to: "log".into(), line: 5 }]);
    }

    #[test]
    fn what_would_hide_an_arrow_is_reported_itself() {
        assert_eq!(found(&["machine"], "use crate::*;"), ["*"]);
        assert_eq!(found(&["machine"], "use super::*;"), ["*"]);
        assert_eq!(found(&["machine"], "use crate as root;"), ["crate"]);
        assert_eq!(found(&["machine"], "extern crate self as root;"), ["crate"]);
        assert_eq!(found(&["machine"], "use crate::{self as root};"), ["crate"]);
        assert_eq!(found(&["machine"], "macro_rules! m { () => { $crate::log::open() } }"), ["log"]);
    }

    #[test]
    fn visibility_is_no_arrow() {
        assert_eq!(found(&["machine"], "pub(crate) fn f() {} pub(crate) struct S;"), [""; 0]);
    }

    fn unguarded(source: &str) -> Vec<usize> {
        unguarded_entries(&scan(source), &["catch_unwind", "guarded"])
    }

    #[test]
    fn an_export_without_catch_unwind_is_found() {
        assert_eq!(unguarded("#[napi]\npub fn f() {}"), [1]);
        assert_eq!(unguarded("\n#[napi(js_name = \"g\")]\n#[inline]\npub(crate) unsafe fn f() {}"), [2]);
        assert_eq!(unguarded("#[napi]\nimpl A {\n#[napi(constructor)]\nfn f() {}\n}"), [3]);
        assert_eq!(unguarded("#[cfg_attr(feature = \"node\", napi)] fn f() {}"), [1]);
        assert_eq!(unguarded("#[napi_derive::napi] fn f() {}"), [1]);
    }

    #[test]
    fn an_export_that_cannot_panic_into_js_passes() {
        assert_eq!(unguarded("#[napi(catch_unwind)] pub fn f() {}"), [0; 0]);
        assert_eq!(unguarded("#[napi(getter, catch_unwind)] pub fn f() {}"), [0; 0]);
        assert_eq!(unguarded("#[napi(object)] pub struct A { pub b: u32 }"), [0; 0]);
        assert_eq!(unguarded("#[napi] pub enum A { B }"), [0; 0]);
        assert_eq!(unguarded("#[napi] pub async fn f() {}"), [0; 0]);
        assert_eq!(unguarded("#[napi(module_exports)] fn f(e: Object) -> R<()> { guarded(|| g(e)) }"), [0; 0]);
        assert_eq!(unguarded("#[cfg(feature = \"napi\")] fn f() {}"), [0; 0]);
    }

    #[test]
    fn a_callback_without_a_guard_is_found() {
        assert_eq!(unguarded("unsafe extern \"C\" fn f(a: [u8; 4]) -> napi_value { g() }"), [1]);
        assert_eq!(unguarded("extern fn f() { g() }"), [1]);
        assert_eq!(unguarded("env.create_function_from_closure(\"f\", |call| g(call))"), [1]);
    }

    #[test]
    fn a_callback_with_a_guard_passes() {
        assert_eq!(unguarded("extern \"C\" fn f() { std::panic::catch_unwind(|| g()); }"), [0; 0]);
        assert_eq!(unguarded("env.create_function_from_closure(\"f\", |call| guarded(|| g(call)))"), [0; 0]);
        assert_eq!(unguarded("extern \"C\" { fn f(); } type F = extern \"C\" fn(u32);"), [0; 0]);
    }
}
