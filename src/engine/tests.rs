//! Tests of the engine: directories, clients' verbs, what is refused, crashes, the seam to other processes.

use super::*;
use crate::log::MemoryStorage;
use crate::machine::Message;
use crate::runtime::Group;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An engine and a host whose workflows wait for a signal `go` and return what it brings; those of type `echo` return
/// their input at once, those of type `parent` the end of the child that their input names.
struct Rig {
    engine: ForeignEngine,
    told: Vec<Event>,
    kinds: BTreeMap<Slot, (String, String)>,
}

impl Rig {
    fn open(config: Config) -> Result<Rig, EngineError> {
        let definitions = ["flow", "echo", "parent"].map(String::from).to_vec();
        let engine = ForeignEngine::open(Config { definitions, ..config }, Box::new(|| {}))?;
        Ok(Rig { engine, told: Vec::new(), kinds: BTreeMap::new() })
    }

    fn in_memory() -> Rig {
        Rig::open(memory()).unwrap()
    }

    fn start(&mut self, token: Token, id: &str, kind: &str, input: &str) -> Result<(), EngineError> {
        self.engine.start(token, StartRequest { kind, input: input.as_bytes(), ..request(id) }).map(drop)
    }

    fn signal(&mut self, token: Token, id: &str, payload: &str) -> Result<(), EngineError> {
        self.engine.signal(token, latest(id), "go", payload.as_bytes(), None, None)
    }

    /// Ticks, runs code and writes, until nothing is left to do.
    fn settle(&mut self) {
        for _ in 0..50 {
            self.tick();
            self.engine.idle();
        }
        self.tick();
    }

    fn tick(&mut self) {
        let mut events = Events::default();
        while self.engine.tick(&mut events) {}
        for event in events.drain() {
            let slot = Slot(event.a);
            match event.kind {
                EventKind::Start => {
                    let fields: Vec<&str> = event.text.split(FIELD).collect();
                    self.kinds.insert(slot, (fields[2].into(), fields[3].into()));
                    self.run(slot);
                }
                EventKind::Wake => self.run(slot),
                EventKind::Attempt
                | EventKind::Timeout
                | EventKind::Ended
                | EventKind::Notice
                | EventKind::Blocked
                | EventKind::Ask
                | EventKind::Offer
                | EventKind::Task
                | EventKind::TaskAbort
                | EventKind::TaskNotice => {}
                EventKind::Ack | EventKind::Reply | EventKind::Refuse | EventKind::Result | EventKind::Failed => {
                    self.told.push(event);
                }
            }
        }
    }

    fn run(&mut self, slot: Slot) {
        while let Ok(Some(delivery)) = self.engine.quiescent(slot) {
            let (kind, input) = self.kinds[&slot].clone();
            match (delivery.kind, kind.as_str()) {
                (DeliveryKind::Start, "echo") => {
                    self.engine.finish(slot, Status::Completed, input.as_bytes()).unwrap();
                }
                (DeliveryKind::Start, "parent") => {
                    let child = ChildSpec {
                        id: &input,
                        kind: "flow",
                        version: 1,
                        key_root: [0; 16],
                        timeout_ms: None,
                        parent_close: ParentClose::Terminate,
                        reuse: IdReuse::Allow,
                        conflict: IdConflict::Fail,
                        input: b"",
                    };
                    self.engine.open_child(slot, Seq(1), child).unwrap();
                }
                (DeliveryKind::Start, _) => drop(self.engine.open_wait(slot, Seq(1), "go", None)),
                _ => {
                    let payload = self.engine.payload(slot).unwrap();
                    self.engine.finish(slot, Status::Completed, payload.as_bytes()).unwrap();
                }
            }
        }
    }

    /// What was told to a token, as `KIND b text`.
    fn answer(&mut self, token: Token) -> Option<String> {
        let index = self.told.iter().position(|event| event.kind != EventKind::Failed && event.a == token)?;
        let event = self.told.remove(index);
        Some(format!("{:?} {} {}", event.kind, event.b, event.text.replace(FIELD, "|").replace(ROW, ";")))
    }

    fn result(&mut self, token: Token, id: &str) -> Option<String> {
        self.engine.result(token, latest(id)).unwrap();
        self.settle();
        self.answer(token)
    }
}

fn memory() -> Config {
    Config { shards: 3, clock: Clock::virtual_at(1_000), ..Config::new(Durability::Memory(MemoryStorage::new())) }
}

fn request(id: &str) -> StartRequest<'_> {
    StartRequest {
        id,
        kind: "flow",
        version: 1,
        input: b"",
        reuse: IdReuse::Allow,
        conflict: IdConflict::Fail,
        attributes: b"",
        timeout_ms: None,
        actor: None,
        result_token: None,
        with: None,
    }
}

fn latest(id: &str) -> Run<'_> {
    Run { id, run_id: "" }
}

/// A directory that is there for one test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("fusee-engine-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path)
    }

    fn config(&self) -> Config {
        Config { shards: 3, flush: Some(FlushMode::Inline), ..Config::new(Durability::Local(self.path().into())) }
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Asks again until the disk has answered, on whatever thread it is written.
fn settled(rig: &mut Rig, token: Token) -> Option<String> {
    for _ in 0..2_000 {
        rig.settle();
        if let Some(answer) = rig.answer(token) {
            return Some(answer);
        }
        std::thread::yield_now();
    }
    None
}

#[test]
fn results_and_open_runs_are_there_after_a_close_in_every_flush_mode() {
    for mode in [FlushMode::Inline, FlushMode::Pipeline, FlushMode::Background] {
        let scratch = Scratch::new(&format!("reopen-{mode:?}"));
        let config = Config { flush: Some(mode), ..scratch.config() };
        let mut rig = Rig::open(config.clone()).unwrap();
        assert!(rig.engine.opened().is_new);
        rig.start(1, "done", "echo", "in").unwrap();
        rig.start(2, "open", "flow", "").unwrap();
        assert!(settled(&mut rig, 1).unwrap().starts_with("Reply 0"));
        assert!(settled(&mut rig, 2).unwrap().ends_with("|0"));
        rig.engine.close().unwrap();
        rig.engine.close().unwrap();
        assert_eq!(rig.start(3, "late", "echo", "").unwrap_err().code, ErrorCode::Closed);
        assert_eq!(rig.engine.result(3, latest("done")).unwrap_err().code, ErrorCode::Closed);
        assert_eq!(rig.engine.health().0, "failed");

        // An existing directory keeps its shard count.
        let mut rig = Rig::open(Config { shards: 7, ..config }).unwrap();
        let opened = rig.engine.opened();
        assert_eq!((opened.is_new, opened.is_clean, opened.open_runs), (false, true, 1));
        assert_eq!(rig.engine.group().shard_count(), 3);
        assert_eq!(rig.result(4, "done"), Some("Result 1 in".into()));
        rig.signal(5, "open", "went").unwrap();
        assert_eq!(settled(&mut rig, 5), Some("Ack 0 ".into()));
        rig.engine.result(6, latest("open")).unwrap();
        assert_eq!(settled(&mut rig, 6), Some("Result 1 went".into()));
        rig.engine.close().unwrap();
    }
}

#[test]
fn a_directory_is_open_once() {
    let scratch = Scratch::new("lock");
    let mut rig = Rig::open(scratch.config()).unwrap();
    let Err(error) = Rig::open(scratch.config()) else { panic!("it is open already") };
    assert_eq!(error.code, ErrorCode::Locked);
    rig.engine.close().unwrap();
    assert!(Rig::open(scratch.config()).is_ok());
}

#[test]
fn an_engine_without_a_shard_or_with_too_many_does_not_open() {
    for shards in [0, 1_025] {
        let Err(error) = Rig::open(Config { shards, ..memory() }) else { panic!("{shards} shards") };
        assert_eq!(error.code, ErrorCode::BadInput);
    }
}

#[test]
fn nothing_is_told_before_it_is_durable_refusals_included_law_1() {
    let mut rig = Rig::in_memory();
    rig.engine.start(1, StartRequest { kind: "echo", result_token: Some(2), ..request("a") }).unwrap();
    rig.start(3, "b", "flow", "").unwrap();
    rig.start(4, "b", "flow", "").unwrap();
    rig.signal(5, "b", "x").unwrap();
    rig.engine.describe(6, latest("b")).unwrap();
    rig.engine.list(7, &Filter::All(Vec::new()), "", false, "", 10).unwrap();
    rig.engine.cancel(8, latest("b"), "", None).unwrap();
    for _ in 0..3 {
        rig.tick();
        assert_eq!(rig.told, [], "nothing was flushed");
    }
    rig.settle();
    let kinds: Vec<String> = (1..=8).filter_map(|token| rig.answer(token)).collect();
    assert_eq!(kinds.len(), 8);
    assert!(kinds[3].starts_with("Refuse 0 ALREADY_STARTED|"), "{}", kinds[3]);
}

#[test]
fn a_start_that_nobody_asks_about_is_answered_by_its_result_alone() {
    let mut rig = Rig::in_memory();
    let started = |rig: &mut Rig| {
        let request = StartRequest { kind: "echo", result_token: Some(2), reuse: IdReuse::Reject, ..request("a") };
        rig.engine.start(0, request).unwrap()
    };
    let (shard, no) = started(&mut rig).unwrap();
    assert_eq!(rig.told, [], "nothing was flushed");
    rig.settle();
    assert_eq!(rig.told.len(), 1);
    assert!(rig.answer(2).unwrap().starts_with("Result"));
    rig.engine.result(3, Run { id: "a", run_id: &crate::record::run_id(shard, no) }).unwrap();
    rig.settle();
    assert!(rig.answer(3).unwrap().starts_with("Result"));
    assert_eq!(started(&mut rig), None);
    rig.settle();
    assert!(rig.answer(2).unwrap().starts_with("Refuse 0 ALREADY_STARTED|"));
}

#[test]
fn what_is_not_there_is_refused() {
    let mut rig = Rig::in_memory();
    rig.engine.result(1, latest("nobody")).unwrap();
    rig.signal(2, "nobody", "").unwrap();
    rig.engine.start(3, StartRequest { kind: "echo", ..request("a") }).unwrap();
    rig.settle();
    rig.engine.start(4, StartRequest { reuse: IdReuse::Reject, result_token: Some(5), ..request("a") }).unwrap();
    rig.settle();
    for (token, code) in [(1, "NOT_FOUND"), (2, "NOT_FOUND"), (4, "ALREADY_STARTED"), (5, "ALREADY_STARTED")] {
        let answer = rig.answer(token).unwrap();
        assert!(answer.starts_with(&format!("Refuse 0 {code}|")), "{answer}");
    }
    for run_id in ["nonsense", "9-1", "0-"] {
        let error = rig.engine.result(6, Run { id: "a", run_id }).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound);
    }
}

#[test]
fn a_request_that_was_forgotten_is_not_answered() {
    let mut rig = Rig::in_memory();
    rig.start(1, "a", "flow", "").unwrap();
    rig.engine.result(2, latest("a")).unwrap();
    rig.engine.result(3, latest("nobody")).unwrap();
    for token in [1, 2, 3] {
        rig.engine.forget(token);
    }
    rig.signal(4, "a", "x").unwrap();
    rig.settle();
    assert_eq!(rig.answer(4), Some("Ack 0 ".into()));
    assert_eq!(rig.told, []);
}

#[test]
fn bounds_refuse_before_anything_is_recorded() {
    let mut rig = Rig::open(Config { open_runs_max: 2, payload_bytes_max: 10, ..memory() }).unwrap();
    let begin = rig.engine.group().last();
    assert_eq!(rig.start(1, "a", "flow", "12345678901").unwrap_err().code, ErrorCode::BadInput);
    let long = "x".repeat(257);
    for id in ["", long.as_str(), "a\nb", "a\0", "\u{1f}"] {
        assert_eq!(rig.start(1, id, "flow", "").unwrap_err().code, ErrorCode::BadInput, "{id:?}");
    }
    assert_eq!(rig.signal(1, "a", "12345678901").unwrap_err().code, ErrorCode::BadInput);
    assert_eq!(rig.engine.group().last(), begin);
    rig.start(1, &long[1..], "flow", "1234567890").unwrap();
    rig.start(2, "../é", "flow", "").unwrap();
    let error = rig.start(3, "c", "flow", "").unwrap_err();
    assert_eq!((error.code, error.message.contains("limit is 2")), (ErrorCode::Busy, true));
    rig.settle();
    rig.signal(4, "../é", "").unwrap();
    rig.settle();
    assert!(rig.start(3, "c", "flow", "").is_ok(), "one of them has ended");
}

#[test]
fn texts_that_are_too_long_refuse_before_anything_is_recorded() {
    let mut rig = Rig::in_memory();
    rig.start(1, "a", "flow", "").unwrap();
    rig.settle();
    let begin = rig.engine.group().last();
    let long = "x".repeat(257);
    let long = long.as_str();
    for text in [long, "a\u{1f}b", ""] {
        let refused = [
            rig.start(2, "b", text, "").unwrap_err(),
            rig.engine.start(2, StartRequest { actor: Some(text), ..request("b") }).unwrap_err(),
            rig.engine.signal(2, latest("a"), text, b"", None, None).unwrap_err(),
            rig.engine.signal(2, latest("a"), "go", b"", Some(text), None).unwrap_err(),
            rig.engine.signal(2, latest("a"), "go", b"", None, Some(text)).unwrap_err(),
            rig.engine.cancel(2, latest("a"), "", Some(text)).unwrap_err(),
            rig.engine.terminate(2, latest("a"), "", Some(text)).unwrap_err(),
            rig.engine.resume(2, latest("a"), Some(text)).unwrap_err(),
            rig.engine.wake(2, latest("a"), Some(text)).unwrap_err(),
        ];
        for error in refused {
            assert_eq!(error.code, ErrorCode::BadInput, "{error}");
            assert!(error.message.contains("256"), "{error}");
        }
    }
    assert_eq!(rig.engine.group().last(), begin);
}

#[test]
fn payloads_that_the_log_could_refuse_are_no_configuration() {
    let max = crate::log::LogOptions::default().record_bytes_max;
    let Err(error) = Rig::open(Config { payload_bytes_max: max, ..memory() }) else { panic!("it cannot keep that") };
    assert_eq!((error.code, error.message.contains(&max.to_string())), (ErrorCode::BadInput, true), "{error}");
    let payload_bytes_max = max - crate::record::FIELDS_BYTES_MAX;
    let mut rig = Rig::open(Config { payload_bytes_max, ..memory() }).unwrap();
    let largest = "x".repeat(payload_bytes_max);
    rig.start(1, &"i".repeat(256), "echo", &largest).unwrap();
    rig.settle();
    assert_eq!(rig.engine.health().0, "ok");
    assert!(rig.answer(1).unwrap().starts_with("Reply 0"));
}

#[test]
fn lists_go_page_by_page_in_both_directions() {
    let mut rig = Rig::in_memory();
    let ids: Vec<String> = (0..10).map(|number| format!("r{number}")).collect();
    for (index, id) in ids.iter().enumerate() {
        rig.engine.set_now_ms(1_000 + index as i64 / 2);
        rig.start(1, id, if index % 3 == 0 { "flow" } else { "echo" }, "").unwrap();
    }
    rig.settle();
    rig.told.clear();
    let all = Filter::All(Vec::new());
    for is_newest_first in [false, true] {
        let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            rig.engine.list(2, &all, "", is_newest_first, &cursor, 3).unwrap();
            rig.settle();
            let answer = rig.answer(2).unwrap();
            let mut rows: Vec<&str> = answer.strip_prefix("Reply 0 ").unwrap().split(';').collect();
            cursor = rows.pop().unwrap().to_owned();
            seen.extend(rows.iter().map(|row| row.split('|').next().unwrap().to_owned()));
            pages += 1;
            if cursor.is_empty() {
                break;
            }
        }
        let mut sorted = seen.clone();
        sorted.sort();
        assert_eq!((pages, sorted == ids), (4, true), "each once: {seen:?}");
        let halves: Vec<u8> = seen.iter().map(|id| (id.as_bytes()[1] - b'0') / 2).collect();
        assert!(halves.is_sorted_by(|a, b| if is_newest_first { a >= b } else { a <= b }), "{seen:?}");
    }
    for (filter, expected) in [
        (all.clone(), "10"),
        (Filter::Kind("flow".into()), "4"),
        (Filter::Status(1), "4"),
        (Filter::Status(2), "6"),
        (Filter::IdPrefix("r1".into()), "1"),
        (Filter::StartedFrom(1_004), "2"),
        (Filter::Stuck(true), "0"),
    ] {
        rig.engine.count(3, &filter).unwrap();
        rig.settle();
        assert_eq!(rig.answer(3), Some(format!("Reply 0 {expected}")), "{filter:?}");
    }
    for cursor in ["1.2", "1.2.3", "1.2.3.4.5", "a.b.c.d", "99999999999999999999.1.1.1"] {
        let error = rig.engine.list(2, &all, "", false, cursor, 3).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadInput, "{cursor}");
        assert!(error.message.ends_with("is no cursor of a list"), "{error}");
    }
}

#[test]
fn a_page_is_whole_where_one_shard_has_most_of_it() {
    let mut rig = Rig::in_memory();
    let is_crowded = |id: &String| rig.engine.shard_of(id) == ShardId(0);
    let crowd: Vec<String> = (0..).map(|number| format!("c{number}")).filter(is_crowded).take(70).collect();
    let others = (0..10).map(|number| format!("o{number}"));
    let ids: Vec<String> = others.clone().take(5).chain(crowd).chain(others.skip(5)).collect();
    for (index, id) in ids.iter().enumerate() {
        rig.engine.set_now_ms(1_000 + index as i64);
        rig.start(1, id, "flow", "").unwrap();
    }
    rig.settle();
    let all = Filter::All(Vec::new());
    for is_newest_first in [false, true] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            rig.engine.list(2, &all, "", is_newest_first, &cursor, 30).unwrap();
            rig.settle();
            let answer = rig.answer(2).unwrap();
            let mut rows: Vec<&str> = answer.strip_prefix("Reply 0 ").unwrap().split(';').collect();
            cursor = rows.pop().unwrap().to_owned();
            seen.extend(rows.iter().map(|row| row.split('|').next().unwrap().to_owned()));
            if cursor.is_empty() {
                break;
            }
        }
        if is_newest_first {
            seen.reverse();
        }
        assert_eq!(seen, ids);
    }
}

#[test]
fn a_cursor_of_another_query_is_refused() {
    let mut rig = Rig::in_memory();
    for id in ["a", "b", "c"] {
        rig.start(1, id, "flow", "").unwrap();
    }
    rig.settle();
    let all = Filter::All(Vec::new());
    rig.engine.list(2, &all, "one", true, "", 1).unwrap();
    rig.settle();
    let cursor = rig.answer(2).unwrap().rsplit(';').next().unwrap().to_owned();
    rig.engine.list(2, &all, "one", true, &cursor, 1).unwrap();
    for (query, is_newest_first) in [("other", true), ("one", false)] {
        let error = rig.engine.list(2, &all, query, is_newest_first, &cursor, 1).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadInput);
        assert!(error.message.contains("of another query"), "{error}");
    }
}

#[test]
fn descriptions_histories_and_explanations_say_what_is_recorded() {
    let mut rig = Rig::in_memory();
    rig.start(1, "a", "flow", "in").unwrap();
    rig.start(2, "b", "unknown", "").unwrap();
    rig.settle();
    rig.told.clear();
    for (id, why) in [("a", "waiting|signal \"go\""), ("b", "notRegistered")] {
        rig.engine.explain(3, latest(id)).unwrap();
        rig.settle();
        assert_eq!(rig.answer(3), Some(format!("Reply 0 {why}")));
    }
    assert_eq!(rig.engine.unregistered().get("unknown"), Some(&1));
    rig.signal(4, "a", "x").unwrap();
    rig.settle();
    rig.told.clear();
    rig.engine.history(5, latest("a"), 0, 10).unwrap();
    rig.engine.history(6, latest("a"), 1, 1).unwrap();
    rig.engine.describe(7, latest("a")).unwrap();
    rig.engine.explain(8, latest("a")).unwrap();
    rig.settle();
    let history = rig.answer(5).unwrap();
    let labels: Vec<&str> = history.split(';').filter_map(|row| row.split('|').nth(2)).collect();
    assert_eq!(labels, ["started", "waitSet", "signalReceived", "ended"]);
    assert!(rig.answer(6).unwrap().contains("waitSet"));
    assert!(rig.answer(7).unwrap().starts_with("Reply 0 a|"));
    assert_eq!(rig.answer(8), Some("Reply 0 ended|1".into()));
}

#[test]
fn metrics_count_what_was_done() {
    let mut rig = Rig::in_memory();
    rig.start(1, "p", "parent", "kid").unwrap();
    rig.settle();
    rig.signal(2, "kid", "x").unwrap();
    rig.settle();
    let figures: BTreeMap<String, u64> = rig.engine.metrics().into_iter().collect();
    let sum = |name: &str| {
        let is_meant = |key: &str| key.starts_with("shard.") && key.ends_with(name);
        figures.iter().filter(|(key, _)| is_meant(key)).map(|(_, value)| value).sum::<u64>()
    };
    assert_eq!((sum(".runs_started"), sum(".runs_completed"), sum(".open_runs")), (2, 2, 0));
    assert_eq!((sum(".signals"), sum(".messages_sent"), sum(".unacknowledged_messages")), (1, 2, 0));
    assert_eq!(figures["log.durable_lsn"], figures["log.last_lsn"]);
    assert_eq!(figures["log.last_lsn"], sum(".records") + 1, "and the settings");
    assert_eq!(rig.engine.health(), ("ok", Vec::new()));
}

#[test]
fn a_crash_in_memory_loses_what_was_not_told_and_nothing_else() {
    let mut rig = Rig::in_memory();
    rig.start(1, "kept", "flow", "").unwrap();
    rig.settle();
    rig.start(2, "lost", "flow", "").unwrap();
    rig.engine.crash().unwrap();
    rig.settle();
    assert_eq!(rig.answer(2), None, "tokens are void");
    rig.signal(3, "kept", "x").unwrap();
    assert_eq!(rig.result(4, "kept"), Some("Result 1 x".into()));
    assert!(rig.result(5, "lost").unwrap().starts_with("Refuse 0 NOT_FOUND"));
    let scratch = Scratch::new("crash");
    let mut rig = Rig::open(scratch.config()).unwrap();
    assert_eq!(rig.engine.crash().unwrap_err().code, ErrorCode::BadInput);
}

#[test]
fn a_record_that_the_log_refuses_stops_everything_instead_of_leaving_a_hole_law_9() {
    let mut rig = Rig::in_memory();
    rig.start(1, "a", "flow", "").unwrap();
    rig.settle();
    rig.start(2, "b", "flow", "").unwrap();
    let too_large = vec![0; crate::log::LogOptions::default().record_bytes_max + 1];
    rig.engine.group().with(ShardId(0), |_, work| work.log.append(&too_large));
    rig.settle();
    assert_eq!(rig.answer(2), None);
    assert!(rig.told.iter().any(|event| event.kind == EventKind::Failed && event.text.contains("over the limit")));
    assert_eq!(rig.start(3, "c", "flow", "").unwrap_err().code, ErrorCode::Storage);
    rig.engine.crash().unwrap();
    rig.told.clear();
    rig.signal(4, "a", "x").unwrap();
    assert_eq!(rig.result(5, "a"), Some("Result 1 x".into()));
    assert!(rig.result(6, "b").unwrap().starts_with("Refuse 0 NOT_FOUND"));
}

/// Carries messages between two groups, as another process would: it loses and repeats them.
#[derive(Default)]
struct Wire {
    /// Shards that are elsewhere, seen from the group that sends.
    remote: Vec<u16>,
    messages: Mutex<Vec<Message>>,
    receipts: Mutex<Vec<(ShardId, ShardId, u64)>>,
}

impl Relay for Wire {
    fn is_remote(&self, shard: ShardId) -> bool {
        self.remote.contains(&shard.0)
    }

    fn send(&self, message: &Message) {
        self.messages.lock().push(message.clone());
    }

    fn acknowledge(&self, sender: ShardId, receiver: ShardId, number: u64) {
        self.receipts.lock().push((sender, receiver, number));
    }
}

impl Wire {
    /// Hands over what is under way. Every so many things are lost; what is not is handed over twice.
    fn carry(&self, to: &Group, loses: &mut impl FnMut() -> bool) {
        for message in std::mem::take(&mut *self.messages.lock()) {
            if !loses() {
                to.receive(&message);
                to.receive(&message);
            }
        }
        for (sender, receiver, number) in std::mem::take(&mut *self.receipts.lock()) {
            if !loses() {
                to.acknowledge(sender, receiver, number);
            }
        }
    }
}

#[test]
fn groups_that_share_shards_over_a_relay_that_loses_and_repeats_apply_each_message_once_law_3() {
    for loses_one_in in [u32::MAX, 4, 2] {
        let wires = [vec![2, 3], vec![0, 1]].map(|remote| Arc::new(Wire { remote, ..Wire::default() }));
        let mut rigs =
            wires.clone().map(|wire| Rig::open(Config { shards: 4, relay: Some(wire), ..memory() }).unwrap());
        let is_at = |id: &str, group: usize| usize::from(crate::record::shard_of(id, 4).0) / 2 == group;
        let parents: Vec<String> = (0..40).map(|n| format!("p{n}")).filter(|id| is_at(id, 0)).take(8).collect();
        let kids: Vec<String> = (0..40).map(|n| format!("k{n}")).filter(|id| is_at(id, 1)).take(8).collect();
        for (parent, kid) in parents.iter().zip(&kids) {
            rigs[0].start(1, parent, "parent", kid).unwrap();
        }
        rigs[0].tick();
        assert!(wires[0].messages.lock().is_empty(), "a message leaves once its record is durable");
        let mut count = 0u32;
        let mut loses = || {
            count += 1;
            count.is_multiple_of(loses_one_in)
        };
        for round in 0..60 {
            if round == 10 {
                // One side is killed and sends again what it does not know to have arrived.
                rigs[0].engine.crash().unwrap();
                rigs[0].kinds.clear();
            }
            if round == 20 {
                rigs[1].settle();
                for kid in &kids {
                    rigs[1].signal(2, kid, kid).unwrap();
                }
            }
            rigs[0].settle();
            rigs[1].settle();
            wires[0].carry(rigs[1].engine.group(), &mut loses);
            wires[1].carry(rigs[0].engine.group(), &mut loses);
            // What was lost is sent again when its time has come, and not because somebody asks for it.
            for rig in &rigs {
                if let Some(due_ms) = rig.engine.next_due_at_ms() {
                    rig.engine.set_now_ms(due_ms);
                }
            }
        }
        for (parent, kid) in parents.iter().zip(&kids) {
            assert_eq!(rigs[0].result(3, parent), Some(format!("Result 1 1|{kid}")), "one in {loses_one_in} lost");
            rigs[1].engine.history(4, latest(kid), 0, 100).unwrap();
            rigs[1].settle();
            assert_eq!(rigs[1].answer(4).unwrap().matches("started").count(), 1);
        }
        for rig in &rigs {
            let waiting =
                rig.engine.metrics().into_iter().filter(|(name, _)| name.ends_with("unacknowledged_messages"));
            assert_eq!(waiting.map(|(_, count)| count).sum::<u64>(), 0);
            assert_eq!(rig.engine.orphans(), []);
            assert_eq!(rig.engine.next_due_at_ms(), None, "nothing is sent again once everything has a receipt");
        }
    }
}

#[test]
fn a_message_without_a_receipt_is_sent_again_with_longer_and_longer_waits_law_3() {
    let wire = Arc::new(Wire { remote: vec![1], ..Wire::default() });
    let mut rig = Rig::open(Config { shards: 2, relay: Some(wire.clone()), ..memory() }).unwrap();
    let id_at = |prefix: &str, shard: u16| {
        (0..).map(|n| format!("{prefix}{n}")).find(|id| crate::record::shard_of(id, 2).0 == shard).unwrap()
    };
    let (parent, kid) = (id_at("p", 0), id_at("k", 1));
    assert_eq!(rig.engine.next_due_at_ms(), None);
    rig.start(1, &parent, "parent", &kid).unwrap();
    rig.tick();
    rig.engine.set_now_ms(5_000);
    rig.tick();
    assert!(wire.messages.lock().is_empty(), "not even again before it is durable");
    rig.settle();
    let mut sent: Vec<i64> = vec![5_000];
    assert_eq!(wire.messages.lock().drain(..).map(|message| message.number).collect::<Vec<_>>(), [1]);
    for _ in 0..8 {
        let due_ms = rig.engine.next_due_at_ms().unwrap();
        rig.engine.set_now_ms(due_ms - 1);
        rig.settle();
        assert!(wire.messages.lock().is_empty(), "not before its time");
        rig.engine.set_now_ms(due_ms);
        rig.settle();
        assert_eq!(wire.messages.lock().drain(..).map(|message| message.number).collect::<Vec<_>>(), [1]);
        sent.push(due_ms);
    }
    let waits: Vec<i64> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits[waits.len() - 2..], [60_000, 60_000], "{waits:?}");
    assert!(waits.is_sorted(), "{waits:?}");
    rig.engine.group().acknowledge(ShardId(0), ShardId(1), 1);
    assert_eq!(rig.engine.next_due_at_ms(), None);
    rig.engine.set_now_ms(sent.last().unwrap() + 600_000);
    rig.settle();
    assert!(wire.messages.lock().is_empty());
}

#[test]
fn shards_that_share_the_log_set_no_timer_for_their_messages() {
    let mut rig = Rig::in_memory();
    rig.start(1, "p", "parent", "kid").unwrap();
    assert_eq!(rig.engine.next_due_at_ms(), None);
    rig.settle();
    assert_eq!(rig.engine.next_due_at_ms(), None);
}

#[test]
fn threads_that_work_on_one_shard_lose_no_message_of_it_law_3() {
    let clock = Clock::virtual_at(1_000);
    let rig = Rig::open(Config { shards: 2, clock, ..memory() }).unwrap();
    let group = rig.engine.group();
    let is_at = |id: &String, shard: u16| crate::record::shard_of(id, 2).0 == shard;
    let ids = |prefix: char, shard: u16| {
        (0..).map(move |number| format!("{prefix}{number}")).filter(move |id| is_at(id, shard)).take(400)
    };
    let (parents, kids): (Vec<String>, Vec<String>) = (ids('p', 0).collect(), ids('k', 1).collect());
    let begin = |parent: &str, kid: &str| {
        group.with(ShardId(0), |cell, work| {
            let new = crate::record::NewRun {
                id: parent,
                kind: "flow",
                version: 1,
                key_root: [0; 16],
                deadline_ms: None,
                parent: None,
                input: b"",
                actor: None,
            };
            let (reuse, conflict) = (IdReuse::Allow, IdConflict::Fail);
            let command = crate::machine::StartCommand { new, attributes: b"", reuse, conflict };
            let run = cell.shard.start(work, command).unwrap().run;
            cell.shard.load(run).unwrap();
            cell.shard.quiescent(work, run).unwrap();
            let child = ChildSpec {
                id: kid,
                kind: "flow",
                version: 1,
                key_root: [0; 16],
                timeout_ms: None,
                parent_close: ParentClose::Terminate,
                reuse: IdReuse::Allow,
                conflict: IdConflict::Fail,
                input: b"",
            };
            cell.shard.open_child(work, run, Seq(1), child).unwrap();
        });
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (parents, kids) = (&parents, &kids);
            scope.spawn(move || {
                for index in (thread..400).step_by(4) {
                    begin(&parents[index], &kids[index]);
                }
            });
        }
    });
    let started = group.with(ShardId(1), |cell, _| cell.shard.open_count());
    assert_eq!(started, 400);
}
