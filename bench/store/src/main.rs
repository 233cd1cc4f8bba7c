//! The work of a checkpoint on two embedded stores: 20,000 finished runs a transaction (head, journal, id, three index
//! entries each), then reads by id, reopening after a kill, and removal of the oldest half.
//!
//! `cargo run --release -- DIRECTORY redb|fjall [CHECKPOINTS]`

use std::path::Path;
use std::time::Instant;

const RUNS: u64 = 20_000;

/// Table, key and value of everything that one finished run leaves.
fn entries(run: u64) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
    let number = run.to_be_bytes();
    let id = format!("order-{:016x}", run.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let created = (1_700_000_000_000u64 + run / 5).to_be_bytes();
    let join = |parts: &[&[u8]]| parts.concat();
    vec![
        (0, number.to_vec(), vec![b'h'; 140]),
        (1, join(&[&number, &[0; 4]]), vec![b'j'; 320]),
        (2, join(&[id.as_bytes(), &[0], &number]), vec![0; 4]),
        (3, join(&[&[1], &created, &number]), vec![0; 4]),
        (4, join(&[b"checkout", &[0, 1], &created, &number]), vec![0; 4]),
        (5, join(&[&[1], &created, &number]), vec![0; 4]),
    ]
}

trait Bench {
    fn checkpoint(&mut self, runs: std::ops::Range<u64>, is_removal: bool);
    fn read(&self, run: u64) -> usize;
}

const NAMES: [&str; 6] = ["heads", "journals", "ids", "created", "kinds", "ended"];

struct Redb(redb::Database);

impl Bench for Redb {
    fn checkpoint(&mut self, runs: std::ops::Range<u64>, is_removal: bool) {
        let mut writing = self.0.begin_write().unwrap();
        writing.set_quick_repair(true);
        {
            let mut tables = NAMES.map(|name| writing.open_table(redb::TableDefinition::<&[u8], &[u8]>::new(name)).unwrap());
            for run in runs {
                for (table, key, value) in entries(run) {
                    if is_removal {
                        tables[table].remove(&key[..]).unwrap();
                    } else {
                        tables[table].insert(&key[..], &value[..]).unwrap();
                    }
                }
            }
        }
        writing.commit().unwrap();
    }

    fn read(&self, run: u64) -> usize {
        use redb::ReadableDatabase;
        let reading = self.0.begin_read().unwrap();
        let mut bytes = 0;
        for (table, key, _) in entries(run).into_iter().take(3) {
            let table = reading.open_table(redb::TableDefinition::<&[u8], &[u8]>::new(NAMES[table])).unwrap();
            bytes += table.get(&key[..]).unwrap().map_or(0, |value| value.value().len());
        }
        bytes
    }
}

struct Fjall(fjall::Database, Vec<fjall::Keyspace>);

impl Bench for Fjall {
    fn checkpoint(&mut self, runs: std::ops::Range<u64>, is_removal: bool) {
        let mut batch = self.0.batch();
        for run in runs {
            for (table, key, value) in entries(run) {
                if is_removal {
                    batch.remove(&self.1[table], key);
                } else {
                    batch.insert(&self.1[table], key, value);
                }
            }
        }
        batch.commit().unwrap();
        self.0.persist(fjall::PersistMode::SyncData).unwrap();
    }

    fn read(&self, run: u64) -> usize {
        let found = entries(run).into_iter().take(3);
        found.map(|(table, key, _)| self.1[table].get(key).unwrap().map_or(0, |value| value.len())).sum()
    }
}

fn open(kind: &str, directory: &Path) -> Box<dyn Bench> {
    match kind {
        "redb" => {
            let database = redb::Builder::new().set_cache_size(64 << 20).create(directory.join("store")).unwrap();
            Box::new(Redb(database))
        }
        _ => {
            let database = fjall::Database::builder(directory.join("fjall")).open().unwrap();
            let options = fjall::KeyspaceCreateOptions::default;
            let tables = NAMES.map(|name| database.keyspace(name, options).unwrap()).into();
            Box::new(Fjall(database, tables))
        }
    }
}

fn bytes_of(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else { return std::fs::metadata(path).map_or(0, |found| found.len()) };
    entries.map(|entry| bytes_of(&entry.unwrap().path())).sum()
}

fn resident_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4 / 1024
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (directory, kind) = (Path::new(&arguments[1]), &*arguments[2]);
    let count: u64 = arguments.get(3).map_or(25, |count| count.parse().unwrap());
    std::fs::create_dir_all(directory).unwrap();
    let begun = Instant::now();
    let mut bench = open(kind, directory);
    println!("{kind}: open {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    let mut times = Vec::new();
    for round in 0..count {
        let begun = Instant::now();
        bench.checkpoint(round * RUNS..(round + 1) * RUNS, false);
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let runs = count * RUNS;
    println!(
        "{kind}: checkpoint of {RUNS} runs: median {:.0} ms, worst {:.0} ms; {} bytes a run, {} MiB resident",
        times[times.len() / 2],
        times[times.len() - 1],
        bytes_of(directory) / runs,
        resident_mib()
    );
    let begun = Instant::now();
    let reads = 100_000;
    let found: usize = (0..reads).map(|read| bench.read(read * 7_919 % runs)).sum();
    println!("{kind}: read by id {:.1} us ({found} bytes)", begun.elapsed().as_secs_f64() * 1e6 / reads as f64);
    let begun = Instant::now();
    for round in 0..count / 2 {
        bench.checkpoint(round * RUNS..(round + 1) * RUNS, true);
    }
    let removing_ms = begun.elapsed().as_secs_f64() * 1e3 / (count / 2).max(1) as f64;
    println!("{kind}: removal of {RUNS} runs {removing_ms:.0} ms; {} MiB on disk", bytes_of(directory) >> 20);
    // As a killed process: nothing is dropped.
    std::mem::forget(bench);
    if arguments.len() < 5 {
        let again = std::process::Command::new(&arguments[0])
            .args([&arguments[1], &arguments[2], "1", "again"])
            .output()
            .unwrap();
        print!("after it: {}", String::from_utf8_lossy(&again.stdout).lines().next().unwrap_or_default());
        println!();
    }
}
