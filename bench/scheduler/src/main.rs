//! The scheduler alone: one cycle is the end of an attempt, the dispatch that follows, and a submission that takes the
//! place of what ran. `cargo run --release` in this folder; medians of five, taken in turns with the same cycle of the
//! crate cronoq-core, which encodes no records.

use cronoq_core::{Action, Core, CoreConfig, Outcome, Time};
use fusee::record::TaskSpec;
use fusee::scheduler::{Config, Dedupe, Engine, Lease, Output, QueueConfig};
use std::time::Instant;

const CYCLES: usize = 200_000;

fn main() {
    bytes_per_task();
    println!("{:<44} {:>10} {:>24}", "cycle: end, dispatch, submit", "fusee, µs", "cronoq-core, µs");
    for backlog in [1_000, 10_000, 100_000] {
        report(&format!("backlog {backlog}"), backlog, 0, 1);
    }
    for workers in [64, 1_024] {
        report(&format!("backlog {}, {workers} workers", workers * 16), workers * 16, 0, workers);
    }
    report("backlog 10000, 1000000 delayed", 10_000, 1_000_000, 1);
    report("backlog 1000000", 1_000_000, 0, 1);
}

fn report(name: &str, backlog: usize, delayed: usize, workers: usize) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        ours.push(cycle_us(backlog, delayed, workers));
        // Its delays are reserved starts, of which a queue takes few.
        if delayed == 0 {
            theirs.push(their_cycle_us(backlog, workers));
        }
    }
    println!("{name:<44} {} {}", spread(ours), spread(theirs));
}

fn spread(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    match times[..] {
        [least, _, median, _, most] => format!("{median:>6.3} ({least:.3} to {most:.3})"),
        _ => "–".to_owned(),
    }
}

fn their_cycle_us(backlog: usize, workers: usize) -> f64 {
    let mut core: Core<()> = Core::new(CoreConfig::default());
    let pool = core.pool_id("default").expect("the default pool");
    core.set_capacity(Time::ZERO, pool, workers as u32);
    let mut running = std::collections::VecDeque::new();
    for _ in 0..backlog + workers {
        core.submit(Time::ZERO, cronoq_core::TaskSpec::new(())).expect("it is taken");
        drain_theirs(&mut core, &mut running);
    }
    let began = Instant::now();
    for cycle in 0..CYCLES {
        let now = Time::from_secs_f64((cycle / 1_000) as f64 / 1e3);
        let lease = running.pop_front().expect("all slots are in use");
        core.complete(now, lease, Outcome::Success);
        core.submit(now, cronoq_core::TaskSpec::new(())).expect("it is taken");
        drain_theirs(&mut core, &mut running);
    }
    began.elapsed().as_secs_f64() * 1e6 / CYCLES as f64
}

fn drain_theirs(core: &mut Core<()>, running: &mut std::collections::VecDeque<cronoq_core::LeaseId>) {
    while let Some(action) = core.poll_action() {
        if let Action::Dispatch(dispatch) = action {
            running.push_back(dispatch.lease);
        }
    }
}

fn engine(workers: usize) -> Engine {
    let queue = QueueConfig { concurrency: workers as u32, ..QueueConfig::default() };
    Engine::new(Config { queues: [("q".into(), queue)].into(), ..Config::default() }).expect("it is in order")
}

fn cycle_us(backlog: usize, delayed: usize, workers: usize) -> f64 {
    let mut engine = engine(workers);
    let spec = TaskSpec::new("q", "k", b"");
    let later = TaskSpec { not_before_ms: Some(1 << 40), ..spec.clone() };
    let mut running: std::collections::VecDeque<Lease> = std::collections::VecDeque::new();
    for at in 0..backlog + workers + delayed {
        let of = if at < delayed { &later } else { &spec };
        engine.handle_submit(0, of, Dedupe::default()).expect("it is taken");
        drain(&mut engine, &mut running);
    }
    let began = Instant::now();
    for cycle in 0..CYCLES {
        let now_ms = (cycle / 1_000) as i64;
        let lease = running.pop_front().expect("all slots are in use");
        engine.handle_completed(now_ms, lease, b"");
        engine.handle_submit(now_ms, &spec, Dedupe::default()).expect("it is taken");
        drain(&mut engine, &mut running);
    }
    began.elapsed().as_secs_f64() * 1e6 / CYCLES as f64
}

fn drain(engine: &mut Engine, running: &mut std::collections::VecDeque<Lease>) {
    while let Some(record) = engine.poll_record() {
        std::hint::black_box(record);
    }
    while let Some(output) = engine.poll_output() {
        if let Output::Dispatch { lease, .. } = output {
            running.push_back(lease);
        }
    }
}

fn bytes_per_task() {
    let before = resident_bytes();
    let mut engine = engine(0);
    let spec = TaskSpec::new("q", "k", b"");
    for _ in 0..1_000_000 {
        engine.handle_submit(0, &spec, Dedupe::default()).expect("it is taken");
        while engine.poll_record().is_some() {}
    }
    let bytes = resident_bytes().saturating_sub(before) / 1_000_000;
    println!("{:<44} {bytes:>10}", "bytes of memory for each of 1000000 pending");
    std::hint::black_box(engine);
}

fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4_096
}
