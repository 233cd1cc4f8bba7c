use super::*;
use crate::record::{NewRun, Retry, Status};
use proptest::prelude::*;

fn start(run: u64) -> Record<'static> {
    let new = NewRun {
        id: "order-1",
        kind: "checkout",
        version: 2,
        key_root: [5; 16],
        deadline_ms: None,
        parent: None,
        input: b"{}",
        actor: None,
    };
    Record::Start { run: RunNo(run), time_ms: 1_000, new, origin: None }
}

fn done(run: u64, seq: u32, name: &'static str) -> Record<'static> {
    let (run, seq) = (RunNo(run), Seq(seq));
    Record::StepDone { run, seq, name, attempt: 1, time_ms: 2_000, is_failure: false, payload: b"1" }
}

fn end(run: u64) -> Record<'static> {
    let (run, status) = (RunNo(run), Status::Completed);
    Record::Done { run, time_ms: 3_000, status, payload: b"7", actor: None, origin: None }
}

fn written(records: &[(u64, Record<'_>)]) -> Vec<u8> {
    let mut writer = JournalFileWriter::default();
    for (lsn, record) in records {
        writer.push(&Numbered { lsn: Lsn(*lsn), record: *record });
    }
    writer.finish(ShardId(3), 8, false)
}

fn small() -> Vec<u8> {
    written(&[(4, start(7)), (9, done(7, 1, "pay")), (300, end(7))])
}

fn refused(bytes: &[u8]) -> (usize, String) {
    let fault = JournalFile::decode(bytes).unwrap_err();
    (fault.offset, fault.to_string())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_bytes_of_a_file_are_a_format() {
    let golden = "667573656572756e 01000000 ff4298c8 03000000 0300 0800 5600000000000000 00000000 00000000 \
                  2d04 0107d00f 076f726465722d31 08636865636b6f7574 02 05050505050505050505050505050505 \
                  0000 027b7d 0000 3b387e4c \
                  0d05 020701 03706179 01a01f 00 0131 893d3f04 \
                  09a302 1007f02e 01 0137 0000 e67d73ca";
    let (written, golden) = (hex(&small()), golden.replace(' ', ""));
    assert_eq!(written, golden);
}

#[test]
fn a_file_gives_back_what_was_put_in() {
    let bytes = small();
    let file = JournalFile::decode(&bytes).unwrap();
    assert_eq!((file.shard, file.shards, file.is_cut, file.records), (ShardId(3), 8, false, 3));
    let records: Vec<(u64, Record<'_>)> = file.entries().map(|entry| (entry.lsn.0, entry.record)).collect();
    assert_eq!(records, [(4, start(7)), (9, done(7, 1, "pay")), (300, end(7))]);
}

#[test]
fn every_bit_that_is_flipped_is_noticed() {
    let bytes = small();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let fault = JournalFile::decode(&flipped).unwrap_err();
        assert!(fault.offset <= bit / 8, "bit {bit}: {fault:?}");
    }
}

#[test]
fn a_file_that_is_short_or_too_long_says_where_it_ends_and_where_it_should() {
    let bytes = small();
    for length in 8..bytes.len() {
        let wanted = if length < HEADER_BYTES { HEADER_BYTES } else { bytes.len() };
        assert_eq!(refused(&bytes[..length]), (length, format!("it has {length} bytes and should have {wanted}")));
    }
    let long = [&bytes[..], b"x"].concat();
    let length = bytes.len();
    assert_eq!(refused(&long), (length, format!("it has {} bytes and should have {length}", length + 1)));
    assert_eq!(refused(b"hello"), (0, "this is no exported run".into()));
}

#[test]
fn a_newer_file_is_refused_as_that_and_not_as_damaged() {
    let mut bytes = small();
    bytes[8] = 2;
    assert_eq!(refused(&bytes).1, "it has format 2 and this version reads up to 1: use a newer version");
}

#[test]
fn records_that_are_no_run_are_refused_though_their_checksums_hold() {
    let first = HEADER_BYTES;
    assert_eq!(refused(&written(&[])), (first, "no record starts the run".into()));
    assert_eq!(refused(&written(&[(1, done(7, 1, "a"))])), (first, "the first record does not start a run".into()));
    let wrong = |record, why: &str| {
        let bytes = written(&[(1, start(7)), (2, record)]);
        let (offset, text) = refused(&bytes);
        assert_eq!((offset > first, text.as_str()), (true, why));
    };
    wrong(start(7), "the record is none of a journal");
    wrong(done(8, 1, "a"), "the record belongs to another run");
    wrong(done(7, 0, "a"), "the entry is no record: a number is malformed");
    wrong(done(7, OPERATIONS_MAX + 1, "a"), "the record is of an operation that cannot be");
    let behind = written(&[(1, start(7)), (2, end(7)), (3, done(7, 1, "a"))]);
    assert_eq!(refused(&behind).1, "there is a record behind the one that ends the run");
    assert_eq!(refused(&written(&[(LSN_MAX, start(7))])).1, "the number of the record is higher than any");
}

#[test]
fn a_cut_is_before_the_first_record_of_the_first_step_of_a_name() {
    let failed = Record::StepFailed {
        run: RunNo(7),
        seq: Seq(2),
        name: "pay",
        attempt: 1,
        time_ms: 0,
        retry: Retry::Paused,
        failure: b"",
    };
    let bytes = written(&[
        (1, start(7)),
        (2, done(7, 1, "quote")),
        (3, done(7, 4, "pay")),
        (4, failed),
        (5, done(7, 2, "pay")),
        (6, end(7)),
    ]);
    let file = JournalFile::decode(&bytes).unwrap();
    let place = |cut: Cut<'_>| cut.place(&mut file.entries());
    assert_eq!(place(Cut::BeforeStep("pay")), Some(3));
    assert_eq!(place(Cut::BeforeStep("quote")), Some(1));
    assert_eq!(place(Cut::BeforeOperation(Seq(4))), Some(2));
    assert_eq!((place(Cut::BeforeStep("ship")), place(Cut::BeforeOperation(Seq(3)))), (None, None));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_or_read_and_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        has_magic: bool,
    ) {
        let bytes = if has_magic { [&MAGIC[..], &1u32.to_le_bytes(), &bytes].concat() } else { bytes };
        if let Ok(file) = JournalFile::decode(&bytes) {
            prop_assert_eq!(file.entries().count(), file.records as usize);
        }
    }

    #[test]
    fn arbitrary_entries_behind_a_sound_header_never_panic(
        entries in proptest::collection::vec(any::<u8>(), 0..300),
        records: u32,
    ) {
        let (bytes, last, scratch) = ([&[0; HEADER_BYTES][..], &entries].concat(), Lsn::NONE, Vec::new());
        let bytes = JournalFileWriter { bytes, scratch, records, last }.finish(ShardId(0), 1, false);
        let fault = JournalFile::decode(&bytes).unwrap_err();
        prop_assert!(fault.offset <= bytes.len());
    }
}
