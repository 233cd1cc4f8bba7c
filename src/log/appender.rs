//! The log's face: appending, flushing, what state it is in, and its end.

use super::LogError;
use super::device::{Batch, Device};
use super::recovery::{self, Found, Opened};
use super::reserve;
use super::segment::{WriteFault, is_full};
use super::storage::Storage;
use crate::record::{Lsn, Source};
use parking_lot::{Condvar, Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

mod copy;
mod trim;

pub use copy::{GoesOn, copy_file};

/// How the log is laid out.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// Bytes of a segment. Default 64 MiB.
    pub segment_bytes: u64,
    /// Largest record. Default 16 MiB.
    pub record_bytes_max: usize,
    /// Bytes that may wait for a full disk. Default 64 MiB.
    pub staged_bytes_max: usize,
    /// Bytes of the file that lets what may make space through on a full disk; 0: none. Default 2 MiB.
    pub reserve_bytes: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            segment_bytes: 64 << 20,
            record_bytes_max: 16 << 20,
            staged_bytes_max: 64 << 20,
            reserve_bytes: reserve::RESERVE_BYTES,
        }
    }
}

/// State of the log.
#[derive(Clone, Debug)]
pub enum LogState {
    /// It takes records and writes them.
    Healthy,
    /// The disk is full, or has no space for the reserve. What was appended waits; new commands are to be refused.
    Full(Arc<LogError>),
    /// It failed. Nothing is taken or written any more.
    Poisoned(Arc<LogError>),
    /// It was closed.
    Closed,
}

/// Why the log's thread is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kick {
    /// Somebody wants a flush.
    Flush,
    /// Nobody has wanted one for as long as it was to wait.
    Quiet,
    /// There will be nothing more to write.
    Over,
}

const HEALTHY: u8 = 0;
const FULL: u8 = 1;
const POISONED: u8 = 2;
const CLOSED: u8 = 3;

struct Staging {
    batch: Batch,
    last: Lsn,
}

type Hook = Arc<dyn Fn() + Send + Sync>;

/// The shared log. `Send` and `Sync`; every method takes `&self`.
pub struct Log {
    options: LogOptions,
    staging: Mutex<Staging>,
    device: Mutex<Device>,
    /// One trim at a time, and none over the end; taken before the device, which it does not keep over a sync.
    trimming: Mutex<()>,
    durable: AtomicU64,
    last: AtomicU64,
    /// Bytes of records, those that were there at the open included. Changes under the lock of the staging.
    appended_bytes: AtomicU64,
    /// The header of the growing segment says that everything up to here is durable.
    marked: AtomicU64,
    /// Up to here the reserve may be used.
    urgent: AtomicU64,
    /// The reserve is there. Changes under the device's lock.
    has_reserve: AtomicBool,
    /// Urgent records will get through, also on a full disk.
    has_relief: AtomicBool,
    /// Bytes that wait for a full disk, besides those that are staged.
    waiting_bytes: AtomicUsize,
    status: AtomicU8,
    trouble: Mutex<Option<Arc<LogError>>>,
    is_kicked: Mutex<bool>,
    kicked: Condvar,
    hook: RwLock<Option<Hook>>,
}

impl Log {
    /// Takes the directory, reads every record in the order of their numbers, and begins a segment of its own. What may
    /// never have been durable is made so before this returns.
    pub fn open(
        storage: Arc<dyn Storage>,
        options: LogOptions,
        each: &mut dyn FnMut(Lsn, Source, &[u8]),
    ) -> Result<(Log, Opened), LogError> {
        Log::open_beside(storage, options, &mut |_| Ok(Lsn::NONE), each)
    }

    /// The same beside something that goes with the log. `begin` is called once the directory is this opening's alone and
    /// before any record is read or anything is written; it answers with what it knows was durable, or refuses.
    pub fn open_beside(
        storage: Arc<dyn Storage>,
        options: LogOptions,
        begin: &mut dyn FnMut(Found) -> Result<Lsn, LogError>,
        each: &mut dyn FnMut(Lsn, Source, &[u8]),
    ) -> Result<(Log, Opened), LogError> {
        let lock = storage.lock()?;
        let mut recovered = recovery::recover(&*storage, &options, begin, each)?;
        recovered.opened.warnings.extend(storage.warning());
        let last = recovered.last;
        let device = Device::new(storage, recovered.segment, recovered.chain, recovered.older, lock);
        let log = Log {
            options,
            staging: Mutex::new(Staging { batch: Batch::default(), last }),
            device: Mutex::new(device),
            trimming: Mutex::new(()),
            durable: AtomicU64::new(last.0),
            last: AtomicU64::new(last.0),
            appended_bytes: AtomicU64::new(recovered.opened.bytes),
            // What was copied is in the header, and what was not is in the one before it.
            marked: AtomicU64::new(last.0),
            urgent: AtomicU64::new(0),
            has_reserve: AtomicBool::new(false),
            has_relief: AtomicBool::new(true),
            waiting_bytes: AtomicUsize::new(0),
            status: AtomicU8::new(HEALTHY),
            trouble: Mutex::new(None),
            is_kicked: Mutex::new(false),
            kicked: Condvar::new(),
            hook: RwLock::new(None),
        };
        log.make_reserve(&log.device.lock())?;
        Ok((log, recovered.opened))
    }

    /// Takes the next number for a record and copies its bytes. Not durable on return; never waits for the disk.
    pub fn append(&self, source: Source, record: &[u8]) -> Result<Lsn, LogError> {
        if record.len() > self.options.record_bytes_max {
            return Err(LogError::TooLarge { bytes: record.len(), max_bytes: self.options.record_bytes_max });
        }
        let mut staging = self.staging.lock();
        match self.status.load(Ordering::Acquire) {
            HEALTHY | FULL => {}
            _ => return Err(self.refusal()),
        }
        let is_full = self.status.load(Ordering::Acquire) == FULL;
        if is_full && staging.batch.payload.len() + record.len() > self.options.staged_bytes_max {
            return Err(self.refusal());
        }
        let lsn = staging.last.next();
        staging.last = lsn;
        staging.batch.push(lsn, source, record);
        self.last.store(lsn.0, Ordering::Release);
        let bytes = self.appended_bytes.load(Ordering::Relaxed) + record.len() as u64;
        self.appended_bytes.store(bytes, Ordering::Relaxed);
        Ok(lsn)
    }

    /// Everything at or below it has survived a completed write.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// The newest number given out.
    #[must_use]
    pub fn last(&self) -> Lsn {
        Lsn(self.last.load(Ordering::Acquire))
    }

    /// Bytes of records that were appended since the log was opened, or found then.
    #[must_use]
    pub fn appended_bytes(&self) -> u64 {
        self.appended_bytes.load(Ordering::Relaxed)
    }

    /// Writes everything appended so far and waits for the device. Returns what is durable then.
    pub fn flush(&self) -> Result<Lsn, LogError> {
        let device = self.device.lock();
        self.flush_with(device)
    }

    /// The same, unless somebody is writing right now.
    pub fn try_flush(&self) -> Option<Result<Lsn, LogError>> {
        self.device.try_lock().map(|device| self.flush_with(device))
    }

    fn flush_with(&self, mut device: parking_lot::MutexGuard<'_, Device>) -> Result<Lsn, LogError> {
        if self.status.load(Ordering::Acquire) >= POISONED {
            return Err(self.refusal());
        }
        let was_full = self.status.load(Ordering::Acquire) == FULL;
        if device.batch.frames.is_empty() {
            device.take(&mut self.staging.lock().batch);
        }
        if device.batch.frames.is_empty() && !was_full {
            return Ok(self.durable());
        }
        let mut result = self.write(&mut device);
        if result.is_ok() && was_full {
            // What was staged while the disk was full goes at once.
            device.take(&mut self.staging.lock().batch);
            result = self.write(&mut device);
        }
        drop(device);
        self.progress();
        result.map(|()| self.durable())
    }

    fn write(&self, device: &mut Device) -> Result<(), LogError> {
        loop {
            let mut written = device.write(&self.durable, &self.options);
            if let Err(WriteFault::Full(error)) = &written {
                self.fill(error);
                let is_urgent = self.urgent.load(Ordering::Acquire) > self.durable.load(Ordering::Acquire);
                if is_urgent && self.has_reserve.swap(false, Ordering::AcqRel) {
                    match device.use_reserve() {
                        Ok(()) => continue,
                        Err(fault) => written = Err(fault),
                    }
                }
            }
            return match written {
                Ok(()) => {
                    device.clear();
                    self.waiting_bytes.store(0, Ordering::Release);
                    self.has_relief.store(true, Ordering::Release);
                    if self.status.load(Ordering::Acquire) == FULL { self.make_reserve(device) } else { Ok(()) }
                }
                Err(WriteFault::Full(error)) => {
                    self.waiting_bytes.store(device.batch.payload.len(), Ordering::Release);
                    self.has_relief.store(self.has_reserve.load(Ordering::Acquire), Ordering::Release);
                    Err(error)
                }
                Err(WriteFault::Failed(error)) => {
                    self.poison(&error);
                    Err(error)
                }
            };
        }
    }

    /// The disk is full.
    fn fill(&self, error: &LogError) {
        *self.trouble.lock() = Some(Arc::new(error.clone()));
        // Poison and close are for good.
        let _ = self.status.compare_exchange(HEALTHY, FULL, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Has the reserve there again. The log is full for as long as there is no space for it.
    fn make_reserve(&self, device: &Device) -> Result<(), LogError> {
        let bytes = self.options.reserve_bytes;
        if bytes > 0 && !self.has_reserve.load(Ordering::Acquire) {
            match reserve::ensure(&*device.storage, bytes) {
                Ok(()) => self.has_reserve.store(true, Ordering::Release),
                Err(error) if is_full(&error) => {
                    self.fill(&reserve::missing(bytes, &error));
                    return Ok(());
                }
                Err(error) => {
                    let error = reserve::missing(bytes, &error);
                    self.poison(&error);
                    return Err(error);
                }
            }
        }
        let _ = self.status.compare_exchange(FULL, HEALTHY, Ordering::AcqRel, Ordering::Acquire);
        Ok(())
    }

    /// Something that counts as recorded was refused by [`Log::append`]: nothing after it may be recorded either, else the
    /// log would have a hole. Like a failed write: what is durable stays, everything else is lost at the next open.
    pub fn fail(&self, error: &LogError) {
        if self.status.load(Ordering::Acquire) < POISONED {
            self.poison(error);
        }
    }

    fn poison(&self, error: &LogError) {
        *self.trouble.lock() = Some(Arc::new(LogError::Poisoned { reason: error.to_string().into() }));
        self.status.store(POISONED, Ordering::Release);
        self.wake_thread();
    }

    /// State of the log.
    #[must_use]
    pub fn state(&self) -> LogState {
        let trouble = || self.trouble.lock().clone().unwrap_or_else(|| Arc::new(LogError::Closed));
        match self.status.load(Ordering::Acquire) {
            HEALTHY => LogState::Healthy,
            FULL => LogState::Full(trouble()),
            POISONED => LogState::Poisoned(trouble()),
            _ => LogState::Closed,
        }
    }

    /// Whether new commands are to be taken: refuses before anything is appended.
    pub fn admits(&self) -> Result<(), LogError> {
        match self.status.load(Ordering::Acquire) {
            HEALTHY => Ok(()),
            _ => Err(self.refusal()),
        }
    }

    /// The same for a command that may make space, with records of about so many bytes: on a full disk it is taken as
    /// long as it can be written, in the reserve if need be. Tell [`Log::hurry`] when it is appended.
    pub fn admits_urgent(&self, bytes: usize) -> Result<(), LogError> {
        let refused = match self.admits() {
            Err(error @ LogError::Full { .. }) if self.has_relief.load(Ordering::Acquire) => error,
            other => return other,
        };
        let waiting = self.waiting_bytes.load(Ordering::Acquire) + self.staging.lock().batch.payload.len() + bytes;
        // What waits before it has to be written before it. Frames have heads, and a large one closes a segment.
        let room = usize::try_from(self.options.reserve_bytes / 2).unwrap_or(usize::MAX);
        if waiting <= room.min(self.options.staged_bytes_max) { Ok(()) } else { Err(refused) }
    }

    /// Everything appended so far may be written into the reserve.
    pub fn hurry(&self) {
        self.urgent.fetch_max(self.last.load(Ordering::Acquire), Ordering::AcqRel);
    }

    fn refusal(&self) -> LogError {
        match self.state() {
            LogState::Full(error) | LogState::Poisoned(error) => (*error).clone(),
            LogState::Healthy | LogState::Closed => LogError::Closed,
        }
    }

    /// Has `hook` called, by whoever flushed and with no lock held, whenever more is durable or the state has changed.
    pub fn on_progress(&self, hook: Box<dyn Fn() + Send + Sync>) {
        *self.hook.write() = Some(hook.into());
    }

    fn progress(&self) {
        let hook = self.hook.read().clone();
        if let Some(hook) = hook {
            hook();
        }
    }

    /// Asks the log's thread to flush.
    pub fn kick(&self) {
        self.wake_thread();
    }

    fn wake_thread(&self) {
        *self.is_kicked.lock() = true;
        self.kicked.notify_all();
    }

    /// Waits, as the log's thread, until somebody kicks, and not longer than it is told.
    pub fn wait_for_kick(&self, at_most: Option<Duration>) -> Kick {
        let mut is_kicked = self.is_kicked.lock();
        while !*is_kicked {
            match at_most {
                None => self.kicked.wait(&mut is_kicked),
                Some(at_most) => {
                    if self.kicked.wait_for(&mut is_kicked, at_most).timed_out() {
                        break;
                    }
                }
            }
        }
        let was_kicked = std::mem::take(&mut *is_kicked);
        match self.status.load(Ordering::Acquire) {
            POISONED | CLOSED => Kick::Over,
            _ if was_kicked => Kick::Flush,
            _ => Kick::Quiet,
        }
    }

    /// Whether a [`Log::rest`] would find something to write down.
    #[must_use]
    pub fn is_restless(&self) -> bool {
        self.marked.load(Ordering::Acquire) < self.last.load(Ordering::Acquire)
    }

    /// To be called when nothing has been appended for a while: writes down that everything is durable, so that an end
    /// without warning leaves nothing ambiguous. `false`: not now, since something is not durable yet or is being
    /// written, or it is written down already.
    pub fn rest(&self) -> bool {
        let Some(mut device) = self.device.try_lock() else { return false };
        let durable = self.durable();
        let is_ready = self.status.load(Ordering::Acquire) == HEALTHY && durable == self.last();
        if !is_ready || !self.is_restless() {
            return false;
        }
        match device.segment.mark(durable) {
            Ok(()) => {
                self.marked.store(durable.0, Ordering::Release);
                true
            }
            Err(fault) => {
                self.poison(&LogError::from(fault));
                drop(device);
                self.progress();
                false
            }
        }
    }

    /// Flushes, marks the end as orderly, and lets go of the directory. Everything afterwards is refused.
    pub fn close(&self) -> Result<(), LogError> {
        let _alone = self.trimming.lock();
        let mut device = self.device.lock();
        let closed = match self.status.load(Ordering::Acquire) {
            CLOSED => return Ok(()),
            POISONED => Err(self.refusal()),
            _ => {
                self.hurry();
                device.take(&mut self.staging.lock().batch);
                self.write(&mut device).and_then(|()| {
                    let sealed = device.seal(self.durable(), &self.options);
                    sealed.map_err(LogError::from)
                })
            }
        };
        self.end(&mut device);
        closed
    }

    /// Lets go of the directory without writing anything: what a killed process leaves.
    pub fn abandon(&self) {
        let _alone = self.trimming.lock();
        let mut device = self.device.lock();
        self.end(&mut device);
    }

    fn end(&self, device: &mut Device) {
        self.status.store(CLOSED, Ordering::Release);
        device.let_go();
        self.wake_thread();
    }
}
