//! Who writes the log when: the host's thread, or the log's own.
//!
//! One flush is in flight at a time, whoever leads it, and it takes everybody's bytes. `Inline` is the quickest when the
//! disk answers within the time of a thread's wake-up; `Background` never makes the host wait.

use crate::log::Log;
use crate::record::Lsn;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// A host's thread leads a flush itself only while one takes less than this. Judgement: about four wake-ups.
const LEAD_MAX: Duration = Duration::from_micros(250);

/// A host's thread spins for a flush in flight at most for this long, and only where a core is spare.
const SPIN_MAX: Duration = Duration::from_micros(60);

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
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Flusher {
    pub(super) fn new(log: Arc<Log>, mode: Option<FlushMode>, is_memory: bool) -> Self {
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
            thread: Mutex::new(None),
        }
    }

    pub(super) fn mode(&self) -> FlushMode {
        self.mode
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
        if self.log.durable() >= self.log.last() {
            return self.log.durable();
        }
        let average = self.figures().1;
        match self.mode {
            FlushMode::Inline if self.is_memory || average < LEAD_MAX => {
                let begun = Instant::now();
                match self.log.try_flush() {
                    Some(Ok(_)) => self.measured(begun.elapsed()),
                    // Poison and a full disk are seen by the caller in the log's state.
                    Some(Err(_)) => {}
                    None => self.kick(),
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

    fn kick(self: &Arc<Self>) {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let flusher = Arc::clone(self);
            let spawned = std::thread::Builder::new().name("fusee-log".into()).spawn(move || flusher.run());
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

    fn run(&self) {
        while self.log.wait_for_kick() {
            self.flush();
        }
    }

    /// Waits for the log's thread to end. The log must be closed or dropped from service first.
    pub(super) fn join(&self) {
        if let Some(thread) = self.thread.lock().take() {
            // A panic of the thread has poisoned the log and is reported by it.
            drop(thread.join());
        }
    }

    fn measured(&self, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let average_ns = self.average_ns.load(Ordering::Relaxed);
        let next_ns = if average_ns == 0 { took_ns } else { average_ns - average_ns / 8 + took_ns / 8 };
        self.average_ns.store(next_ns, Ordering::Relaxed);
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }
}
