//! Who writes the log when: the host's thread, or the log's own.
//!
//! One flush is in flight at a time, whoever leads it, and it takes everybody's bytes. `Inline` is the quickest when the
//! disk answers within the time of a thread's wake-up; `Background` never makes the host wait.

use crate::log::{Kick, Log, LogState};
use crate::record::Lsn;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Where the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushMode {
    /// The host's thread, when it has nothing else to do.
    Inline,
    /// A thread of the log's, as soon as something is appended, while the host's code runs on.
    Pipeline,
    /// A thread of the log's, when the host has nothing else to do.
    Background,
}

/// A host's thread leads a flush itself only while one takes less than this: half of what other work of its event loop
/// may wait. A thread that has to be woken for it costs more where all cores are busy, up to a time slice of the system.
const LEAD_MAX: Duration = Duration::from_micros(500);

/// A host's thread spins for a flush in flight at most for this long, and only where a core is spare.
const SPIN_MAX: Duration = Duration::from_micros(60);

/// A log in which nothing was appended for about this long writes down that everything is durable.
const REST_AFTER: Duration = Duration::from_millis(100);

/// Drives the log's device.
pub(super) struct Flusher {
    log: Arc<Log>,
    mode: FlushMode,
    /// Moving average of the time of a flush, in ns.
    average_ns: AtomicU64,
    flushes: AtomicU64,
    may_spin: bool,
    /// A flush takes no time worth handing it over.
    is_memory: bool,
    /// Time passes by itself: it is measured, and the log may have a thread, which lets it rest after an idle time. Where
    /// it does not, the host decides when what is written, as a simulation does.
    is_real: bool,
    /// The log's thread, if there is one, sleeps until it is kicked.
    is_dormant: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Flusher {
    pub(super) fn new(log: Arc<Log>, mode: Option<FlushMode>, is_memory: bool, is_real: bool) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mode = match mode {
            _ if is_memory => FlushMode::Inline,
            Some(mode) => mode,
            None if cores > 2 => FlushMode::Pipeline,
            None => FlushMode::Inline,
        };
        Flusher {
            log,
            mode,
            average_ns: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            may_spin: cores > 2,
            is_memory,
            is_real,
            is_dormant: AtomicBool::new(true),
            thread: Mutex::new(None),
        }
    }

    pub(super) fn mode(&self) -> FlushMode {
        self.mode
    }

    /// Time passes by itself, so that there may be threads.
    pub(super) fn is_real(&self) -> bool {
        self.is_real
    }

    /// Flushes since the log was opened, and the moving average of their time.
    pub(super) fn figures(&self) -> (u64, Duration) {
        (self.flushes.load(Ordering::Relaxed), Duration::from_nanos(self.average_ns.load(Ordering::Relaxed)))
    }

    /// Writes everything on this thread, whatever the mode: to close, and where nobody else would.
    pub(super) fn flush(&self) {
        let begun = Instant::now();
        if self.log.flush().is_ok() {
            self.measured(begun.elapsed());
        }
    }

    /// The host has appended and goes on: in `Pipeline` mode the disk may begin.
    pub(super) fn appended(self: &Arc<Self>) {
        if self.mode == FlushMode::Pipeline {
            self.kick();
        }
    }

    /// The host has nothing else to do: writes what is staged, here or on the log's thread. Returns what is durable.
    pub(super) fn idle(self: &Arc<Self>) -> Lsn {
        if !self.has_to_write() {
            return self.log.durable();
        }
        let average = self.figures().1;
        match self.mode {
            FlushMode::Inline if self.is_memory || !self.is_real || average < LEAD_MAX => {
                let begun = Instant::now();
                match self.log.try_flush() {
                    Some(Ok(_)) => {
                        self.measured(begun.elapsed());
                        self.stir();
                    }
                    // Poison and a full disk are seen by the caller in the log's state.
                    Some(Err(_)) => {}
                    None if self.is_real => self.kick(),
                    None => self.flush(),
                }
            }
            FlushMode::Inline | FlushMode::Background => self.kick(),
            FlushMode::Pipeline => {
                self.kick();
                self.spin(average);
            }
        }
        self.log.durable()
    }

    /// Waits a moment for a flush in flight. Never on two cores or fewer: there the spinner holds up the disk.
    fn spin(&self, average: Duration) {
        if !self.may_spin || average > SPIN_MAX {
            return;
        }
        let wanted = self.log.last();
        let until = Instant::now() + (average * 2 + Duration::from_micros(10)).min(SPIN_MAX);
        while self.log.durable() < wanted && Instant::now() < until {
            std::hint::spin_loop();
        }
    }

    /// What is staged is to be written soon, on no thread of the hosts.
    pub(super) fn kick(self: &Arc<Self>) {
        if !self.is_real {
            return;
        }
        let mut thread = self.thread.lock();
        if thread.is_none() {
            // Whoever leaves a closed group finds nothing to write.
            if matches!(self.log.state(), LogState::Closed) {
                return;
            }
            let flusher = Arc::clone(self);
            let spawned = super::threads::start("fusee-log", Box::new(move || flusher.run()));
            match spawned {
                Ok(handle) => *thread = Some(handle),
                // Without a thread this one has to do it.
                Err(_) => {
                    drop(thread);
                    self.flush();
                    return;
                }
            }
        }
        drop(thread);
        self.log.kick();
    }

    /// Something was written: has the log's thread see to it that the log rests afterwards.
    pub(super) fn stir(self: &Arc<Self>) {
        // With the one in `nap`: either this sees that the thread sleeps, or the thread sees what was written.
        fence(Ordering::SeqCst);
        if self.has_rest() && self.is_dormant.load(Ordering::Relaxed) && self.log.is_restless() {
            self.kick();
        }
    }

    fn run(&self) {
        let mut last = Lsn::NONE;
        loop {
            match self.log.wait_for_kick(self.nap()) {
                Kick::Over => return,
                Kick::Flush if self.has_to_write() => self.flush(),
                Kick::Flush => {}
                // A host that writes by itself does not kick: what counts is that nothing came since the last look.
                Kick::Quiet => {
                    if self.log.last() == last {
                        self.log.rest();
                    }
                    last = self.log.last();
                }
            }
        }
    }

    /// How long the thread may sleep; without end once there is nothing to write down.
    fn nap(&self) -> Option<Duration> {
        let is_restless = || self.has_rest() && self.log.is_restless();
        if !is_restless() {
            self.is_dormant.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if !is_restless() {
                return None;
            }
        }
        self.is_dormant.store(false, Ordering::Relaxed);
        Some(REST_AFTER)
    }

    /// Nothing is to be written down about memory.
    fn has_rest(&self) -> bool {
        self.is_real && !self.is_memory
    }

    fn has_to_write(&self) -> bool {
        self.log.durable() < self.log.last() || matches!(self.log.state(), LogState::Full(_))
    }

    /// Waits for the log's thread to end. The log must be closed or dropped from service first.
    pub(super) fn join(&self) {
        if let Some(thread) = self.thread.lock().take() {
            // A panic of the thread has poisoned the log and is reported by it.
            drop(thread.join());
        }
    }

    fn measured(&self, took: Duration) {
        let average_ns = self.average_ns.load(Ordering::Relaxed);
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let next_ns = match average_ns {
            0 => took_ns,
            // One flush that hangs, or in which this thread was put aside, says nothing about the next one.
            average_ns => average_ns - average_ns / 8 + took_ns.min(average_ns.saturating_mul(2)) / 8,
        };
        self.average_ns.store(next_ns, Ordering::Relaxed);
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{LogOptions, MemoryStorage};
    use crate::record::{ShardId, Source};

    const SHARD: Source = Source::Shard(ShardId(0));

    /// Waits for another thread to come to a state; that it never does is the end of the test's patience.
    fn until(what: &str, is_so: impl Fn() -> bool) {
        for _ in 0..12_000 {
            if is_so() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("never: {what}");
    }

    fn open(memory: &MemoryStorage) -> (Arc<Log>, u64) {
        let storage = Arc::new(memory.clone());
        let (log, opened) = Log::open(storage, LogOptions::default(), &mut |_, _, _| {}).unwrap();
        (Arc::new(log), opened.copied)
    }

    #[test]
    fn nothing_starts_a_thread_for_a_log_that_is_closed() {
        let (log, _) = open(&MemoryStorage::new());
        let flusher = Arc::new(Flusher::new(Arc::clone(&log), None, false, true));
        log.close().unwrap();
        flusher.kick();
        assert!(flusher.thread.lock().is_none());
    }

    #[test]
    fn an_idle_log_writes_down_once_that_all_is_durable_and_sleeps_from_then_on() {
        for mode in [FlushMode::Inline, FlushMode::Pipeline, FlushMode::Background] {
            let memory = MemoryStorage::new();
            let (log, _) = open(&memory);
            let flusher = Arc::new(Flusher::new(Arc::clone(&log), Some(mode), false, true));
            for round in 1..=3 {
                log.append(SHARD, b"record").unwrap();
                flusher.appended();
                until("it is durable", || flusher.idle() == Lsn(round));
                until("it rests", || !log.is_restless());
                // Without an end to its sleep nothing but a kick wakes it.
                until("its thread sleeps", || flusher.is_dormant.load(Ordering::SeqCst));
                assert_eq!(flusher.nap(), None);
            }
            log.abandon();
            flusher.join();
            memory.crash();
            let (log, copied) = open(&memory);
            assert_eq!((log.last(), copied), (Lsn(3), 0), "nothing was ambiguous");
        }
    }

    #[test]
    fn without_a_rest_the_end_is_ambiguous_and_copied_and_no_thread_is_started() {
        let memory = MemoryStorage::new();
        let (log, _) = open(&memory);
        let flusher = Arc::new(Flusher::new(Arc::clone(&log), Some(FlushMode::Inline), false, false));
        log.append(SHARD, b"record").unwrap();
        until("it is durable", || flusher.idle() == Lsn(1));
        flusher.stir();
        assert!(flusher.thread.lock().is_none());
        log.abandon();
        memory.crash();
        assert_eq!(open(&memory).1, 1);
    }
}
