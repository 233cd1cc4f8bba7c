//! Holds src/ to the table of ARCHITECTURE.md: who may use whom, where `unsafe` and the addon's library may stand, and
//! that no panic of ours gets out into JS. Reads the sources as text; `scan` says what that leaves out.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "architecture/scan.rs"]
mod scan;

use scan::{Piece, arrows, scan, unguarded_entries};

/// A module at the top of src/.
struct Room {
    name: &'static str,
    may_use: &'static [&'static str],
    /// Decides from its arguments alone: its mod.rs forbids `unsafe`, clocks, threads, files and hash order.
    is_pure: bool,
}

/// The table of ARCHITECTURE.md. A new arrow is changed there and here in one commit, with a note in docs/decisions/.
const HOUSE: &[Room] = &[
    Room { name: "record", may_use: &[], is_pure: true },
    Room { name: "machine", may_use: &["record"], is_pure: true },
    Room { name: "scheduler", may_use: &["record"], is_pure: true },
    Room { name: "log", may_use: &["record"], is_pure: false },
    Room { name: "store", may_use: &["record"], is_pure: false },
    Room { name: "runtime", may_use: &["machine", "scheduler", "log", "store", "record"], is_pure: false },
    Room { name: "engine", may_use: &["runtime", "machine", "scheduler", "log", "store", "record"], is_pure: false },
    Room { name: "node", may_use: &["engine", "record"], is_pure: false },
    Room {
        name: "sim",
        may_use: &["engine", "runtime", "machine", "scheduler", "log", "store", "record"],
        is_pure: false,
    },
];

/// Files that may contain `unsafe`, one reason each.
const UNSAFE_FILES: &[(&str, &str)] = &[
    ("log/system.rs", "three calls of the system that std does not offer"),
    ("node/heads.rs", "writes into a typed array that JS owns"),
    ("node/export.rs", "raw Node-API calls: one trampoline for all functions that JS calls"),
];

/// Functions that run a closure and turn its panic into an error; an entry from JS must name one of them.
const PANIC_GUARDS: &[&str] = &["catch_unwind"];

struct Source {
    /// From src/, with forward slashes.
    name: String,
    /// As in `crate::log::reader`: `["log", "reader"]`. Empty for the crate root.
    module: Vec<String>,
    pieces: Vec<Piece>,
}

impl Source {
    fn room(&self) -> Option<&'static Room> {
        HOUSE.iter().find(|room| self.module.first().is_some_and(|name| name == room.name))
    }

    fn parse(name: String, text: &str) -> Source {
        let mut module: Vec<String> = name.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        module.pop_if(|last| last == "mod" || last == "lib" || last == "main");
        Source { name, module, pieces: scan(text) }
    }
}

/// Every Rust file under src/ except binaries, which see the crate from outside.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
                if !name.starts_with("bin/") {
                    found.push(Source::parse(name, &fs::read_to_string(&path).unwrap()));
                }
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn wrong_arrows(source: &Source) -> Vec<String> {
    let Some(room) = source.room() else {
        return if source.module.is_empty() { Vec::new() } else { vec![unlisted(source)] };
    };
    let module: Vec<&str> = source.module.iter().map(String::as_str).collect();
    arrows(&module, &source.pieces)
        .into_iter()
        .filter(|arrow| arrow.to != room.name && !room.may_use.contains(&arrow.to.as_str()))
        .map(|arrow| format!("src/{}:{}: {}", source.name, arrow.line, complaint(room, &arrow.to)))
        .collect()
}

fn unlisted(source: &Source) -> String {
    format!(
        "src/{}: module `{}` is not in the table. Add a row to HOUSE in tests/architecture.rs and to ARCHITECTURE.md.",
        source.name, source.module[0]
    )
}

fn complaint(room: &Room, to: &str) -> String {
    if HOUSE.iter().any(|other| other.name == to) {
        return format!(
            "`{}` may not use `{to}`, only {:?}. See the module table of ARCHITECTURE.md.",
            room.name, room.may_use
        );
    }
    match to {
        "*" => "a glob over the crate root hides who is used; name the module.".to_owned(),
        "crate" => "an alias of the crate root hides who is used; name the module.".to_owned(),
        _ => format!("`crate::{to}` is no module of the table; write the path through its module, or add the module."),
    }
}

fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn every_arrow_is_in_the_table() {
    assert_none(&sources().iter().flat_map(wrong_arrows).collect::<Vec<_>>());
}

#[test]
fn the_table_has_no_cycle() {
    for (place, room) in HOUSE.iter().enumerate() {
        let below: BTreeSet<_> = HOUSE[..place].iter().map(|other| other.name).collect();
        assert!(room.may_use.iter().all(|name| below.contains(name)), "{} uses a module listed after it", room.name);
    }
}

#[test]
fn every_file_is_declared_by_its_parent() {
    let all = sources();
    let complaints: Vec<String> = all
        .iter()
        .filter(|source| !source.module.is_empty() && !is_declared(source, &all))
        .map(|source| format!("src/{}: no `mod` declares it, so it is never compiled", source.name))
        .collect();
    assert_none(&complaints);
}

fn is_declared(source: &Source, all: &[Source]) -> bool {
    let Some((name, parent)) = source.module.split_last() else { return true };
    let declares = |other: &Source| other.pieces.windows(2).any(|pair| pair[0].is_word("mod") && pair[1].is_word(name));
    all.iter().any(|other| other.module == parent && declares(other))
}

#[test]
fn pure_modules_carry_their_bans() {
    let bans = [
        vec!["#", "!", "[", "forbid", "(", "unsafe_code", ")", "]"],
        vec!["clippy", ":", ":", "disallowed_methods"],
        vec!["clippy", ":", ":", "disallowed_types"],
    ];
    let all = sources();
    let tops = all.iter().filter(|source| source.module.len() == 1 && source.room().is_some_and(|room| room.is_pure));
    for top in tops {
        let words: Vec<String> = top.pieces.iter().map(spell).collect();
        let denies = |ban: &Vec<&str>| words.windows(ban.len()).any(|window| window == ban.as_slice());
        assert!(
            bans.iter().all(denies) && words.windows(4).any(|window| window == ["#", "!", "[", "deny"]),
            "src/{} must begin with #![forbid(unsafe_code)] and \
             #![deny(clippy::disallowed_methods, clippy::disallowed_types)]",
            top.name
        );
    }
}

fn spell(piece: &Piece) -> String {
    match &piece.kind {
        scan::Kind::Word(word) => word.clone(),
        scan::Kind::Mark(mark) => mark.to_string(),
        scan::Kind::Text => "\"\"".to_owned(),
    }
}

#[test]
fn unsafe_stands_only_where_it_is_listed() {
    let with_unsafe: BTreeSet<String> = sources()
        .into_iter()
        .filter(|source| source.pieces.iter().any(|piece| piece.is_word("unsafe")))
        .map(|source| source.name)
        .collect();
    let listed: BTreeSet<String> = UNSAFE_FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(
        with_unsafe, listed,
        "left: files of src/ that contain `unsafe`; right: UNSAFE_FILES in tests/architecture.rs. \
         One small file per reason; add it there with the reason, or take the file off the list"
    );
}

#[test]
fn the_addon_library_is_used_only_in_node() {
    let complaints: Vec<String> = sources()
        .iter()
        .filter(|source| source.module.first().is_none_or(|name| name != "node"))
        .flat_map(|source| {
            let uses = source.pieces.iter().filter(|piece| is_addon_library(piece));
            uses.map(|piece| format!("src/{}:{}: napi belongs in src/node/", source.name, piece.line))
                .collect::<Vec<_>>()
        })
        .collect();
    assert_none(&complaints);
}

fn is_addon_library(piece: &Piece) -> bool {
    piece.word().is_some_and(|word| matches!(word, "napi" | "napi_derive" | "napi_sys"))
}

#[test]
fn no_panic_gets_out_into_js() {
    let complaints: Vec<String> = sources()
        .iter()
        .flat_map(|source| {
            let lines = unguarded_entries(&source.pieces, PANIC_GUARDS);
            lines.into_iter().map(|line| {
                format!(
                    "src/{}:{line}: a panic here would abort the process: #[napi(catch_unwind)] on an export; in a \
                     callback or closure one of {PANIC_GUARDS:?} (add a guard of your own to PANIC_GUARDS)",
                    source.name
                )
            })
        })
        .collect();
    assert_none(&complaints);
}

#[test]
fn a_planted_arrow_fails_with_file_line_and_remedy() {
    let planted = Source::parse("machine/run.rs".to_owned(), "\nuse crate::{log::Reader, record::Lsn};");
    let complaints = wrong_arrows(&planted);
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints[0].starts_with("src/machine/run.rs:2: `machine` may not use `log`"), "{complaints:?}");
}

#[test]
fn a_planted_module_fails_and_names_the_table() {
    let planted = Source::parse("helpers.rs".to_owned(), "");
    let complaints = wrong_arrows(&planted);
    assert!(complaints[0].contains("`helpers` is not in the table"), "{complaints:?}");
    let used = Source::parse("engine/mod.rs".to_owned(), "use crate::Lsn;");
    assert!(wrong_arrows(&used)[0].contains("`crate::Lsn` is no module"), "{:?}", wrong_arrows(&used));
}

#[test]
fn a_planted_file_that_nothing_declares_is_found() {
    let parent = Source::parse("log/mod.rs".to_owned(), "mod reader; // mod writer;");
    let reader = Source::parse("log/reader.rs".to_owned(), "");
    let writer = Source::parse("log/writer.rs".to_owned(), "");
    assert!(is_declared(&reader, std::slice::from_ref(&parent)));
    assert!(!is_declared(&writer, std::slice::from_ref(&parent)));
}

#[test]
fn a_module_may_use_itself() {
    let inner = Source::parse("machine/run/timers.rs".to_owned(), "use crate::machine::Run; use super::super::Shard;");
    assert_eq!(wrong_arrows(&inner), [""; 0]);
}
