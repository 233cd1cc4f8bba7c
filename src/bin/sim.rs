//! Runs the simulator over many seeds, on all cores: `cargo run --release --features sim --bin sim -- --seeds 20000`.
//!
//! `--from n` begins at another seed, `--seed n` runs one and prints what happened. Ends with 1 at the first seed that
//! breaks a law, and prints the command that shows it.

use fusee::sim::{Report, run_seed, trace_seed};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let index = arguments.iter().position(|argument| argument == name)?;
        arguments.get(index + 1)?.parse::<u64>().ok()
    };
    let one = number("--seed").or_else(|| std::env::var("FUSEE_SEED").ok()?.parse().ok());
    match one {
        Some(seed) => show(seed),
        None => many(number("--from").unwrap_or(1), number("--seeds").unwrap_or(20_000)),
    }
}

fn show(seed: u64) -> ExitCode {
    let (result, trace) = trace_seed(seed);
    println!("{}", trace.join("\n"));
    println!("seed {seed}: {result:#?}");
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn many(from: u64, count: u64) -> ExitCode {
    println!("seeds {from} to {}", from + count - 1);
    // A panic is a finding and reported with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    let begun = Instant::now();
    let next = AtomicU64::new(from);
    let failed: Mutex<Option<(u64, String)>> = Mutex::new(None);
    let total = Mutex::new((0u64, 0u64, Report::default()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count || failed.lock().is_ok_and(|failed| failed.is_some()) {
                        break;
                    }
                    let again = if seed.is_multiple_of(100) { Some(run_seed(seed)) } else { None };
                    let result = run_seed(seed);
                    let is_same = again.is_none_or(|again| format!("{again:?}") == format!("{result:?}"));
                    let result =
                        if is_same { result } else { Err("the seed does something else the second time".into()) };
                    match result {
                        Ok(report) => add(&mut total.lock().expect("no thread panics with it"), &report),
                        Err(broken) => {
                            let mut failed = failed.lock().expect("no thread panics with it");
                            if failed.as_ref().is_none_or(|(first, _)| seed < *first) {
                                *failed = Some((seed, broken));
                            }
                        }
                    }
                }
            });
        }
    });
    let (seeds, faulty, sum) = *total.lock().expect("no thread panics with it");
    println!(
        "{seeds} seeds in {:.1} s: {} actions, {} runs, {} records, {} bodies; {} kills, {} power cuts, {} crashes in \
         recovery, {} orderly ends; {} checkpoints, {} failed; {} threads died, {} were seized, {} shards went to others; {} damaged copies, {} of them refused; {} failed calls in {faulty} seeds; {:.1} days of simulated time",
        begun.elapsed().as_secs_f64(),
        sum.actions,
        sum.runs,
        sum.records,
        sum.bodies,
        sum.kills,
        sum.power_cuts,
        sum.crashes_in_recovery,
        sum.clean_closes,
        sum.checkpoints,
        sum.checkpoints_failed,
        sum.losses,
        sum.seizures,
        sum.moved_shards,
        sum.damages,
        sum.damages_refused,
        sum.failed_calls,
        sum.simulated_ms as f64 / 86_400_000.0,
    );
    match failed.into_inner().expect("no thread panics with it") {
        None => ExitCode::SUCCESS,
        Some((seed, broken)) => {
            println!("seed {seed} breaks a law: {broken}");
            println!("cargo run --release --features sim --bin sim -- --seed {seed}");
            ExitCode::FAILURE
        }
    }
}

fn add((seeds, faulty, sum): &mut (u64, u64, Report), report: &Report) {
    *seeds += 1;
    *faulty += u64::from(report.failed_calls > 0);
    *sum = Report {
        actions: sum.actions + report.actions,
        runs: sum.runs + report.runs,
        records: sum.records + report.records,
        bodies: sum.bodies + report.bodies,
        kills: sum.kills + report.kills,
        losses: sum.losses + report.losses,
        seizures: sum.seizures + report.seizures,
        moved_shards: sum.moved_shards + report.moved_shards,
        power_cuts: sum.power_cuts + report.power_cuts,
        crashes_in_recovery: sum.crashes_in_recovery + report.crashes_in_recovery,
        clean_closes: sum.clean_closes + report.clean_closes,
        checkpoints: sum.checkpoints + report.checkpoints,
        checkpoints_failed: sum.checkpoints_failed + report.checkpoints_failed,
        damages: sum.damages + report.damages,
        damages_refused: sum.damages_refused + report.damages_refused,
        failed_calls: sum.failed_calls + report.failed_calls,
        simulated_ms: sum.simulated_ms + report.simulated_ms,
        digest: sum.digest ^ report.digest,
    };
}
