//! A disk that loses what was not synced, fails when it is told to, and shows what it has lost until the power is cut.
//!
//! Per file it keeps what a reader sees (the page cache) apart from what is on the device, in sectors of 512 bytes.
//! A write makes sectors dirty; a sync brings them to the device. A sync that fails leaves each of them on the device
//! or not, but clean: a second sync has nothing to do and succeeds, and a reader, also of the next process, sees ghosts.
//! A cut of the power keeps any subset of the dirty sectors, of the new lengths and of the directory's changes.

use super::rng::Rng;
use crate::log::{LockGuard, LogError, Storage, StorageFile};
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

const SECTOR: usize = 512;

/// Where the frames of a log file begin.
const HEAD: usize = crate::record::frame::FRAMES_START as usize;

/// Which calls fail. Chances are one in so many; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// A write fails and leaves a part of itself.
    pub write: u64,
    /// A sync fails.
    pub sync: u64,
    /// A read fails.
    pub read: u64,
    /// A call that needs space finds none, from then on until so many calls have passed.
    pub full: u64,
}

/// The disk. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk(Arc<Mutex<Disk>>);

struct Disk {
    rng: Rng,
    names: BTreeMap<String, Arc<Mutex<Content>>>,
    durable_names: BTreeMap<String, Arc<Mutex<Content>>>,
    is_locked: bool,
    faults: Faults,
    calls: u64,
    /// The process dies at this call.
    dies_at: Option<u64>,
    /// This call fails, and no other.
    fails_at: Option<u64>,
    is_dead: bool,
    full_until: u64,
    errors: u64,
}

#[derive(Default)]
struct Content {
    cache: Vec<u8>,
    device: Vec<u8>,
    dirty: BTreeSet<usize>,
}

/// Damage to a file whose bytes had reached the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rot {
    /// One bit is another.
    Bit,
    /// A sector is all zeros.
    Sector,
    /// The file is shorter.
    Cut,
}

struct SimFile(SimDisk, Arc<Mutex<Content>>);

struct SimLock(SimDisk);

impl LockGuard for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.0.0.lock().is_locked = false;
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Looks at something of which the simulated process knows nothing: also on a dead disk, and no call counts.
pub(super) fn quietly<T>(look: impl FnOnce() -> T) -> T {
    QUIET.set(true);
    let seen = look();
    QUIET.set(false);
    seen
}

/// What a call is about to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    Write,
    /// It needs space.
    Extend,
    Sync,
    Name,
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new(rng: Rng) -> SimDisk {
        SimDisk(Arc::new(Mutex::new(Disk {
            rng,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            is_locked: false,
            faults: Faults::default(),
            calls: 0,
            dies_at: None,
            fails_at: None,
            is_dead: false,
            full_until: 0,
            errors: 0,
        })))
    }

    /// Which calls fail from now on.
    pub fn set_faults(&self, faults: Faults) {
        let mut disk = self.0.lock();
        disk.faults = faults;
        if faults.full == 0 {
            disk.full_until = 0;
        }
    }

    /// The process dies in the `calls`-th call from now, 1 is the next one; `None`: in none.
    pub fn die_after(&self, calls: Option<u64>) {
        let mut disk = self.0.lock();
        disk.dies_at = calls.map(|calls| disk.calls + calls);
    }

    /// The `calls`-th call from now fails, 1 is the next one, whatever it is.
    pub fn fail_after(&self, calls: u64) {
        let mut disk = self.0.lock();
        disk.fails_at = Some(disk.calls + calls);
    }

    /// Whether a call has killed the process.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.0.lock().is_dead
    }

    /// Calls that failed, since they were taken.
    #[must_use]
    pub(super) fn errors(&self) -> u64 {
        self.0.lock().errors
    }

    /// Calls that failed, since the last time this was asked.
    pub fn take_errors(&self) -> u64 {
        std::mem::take(&mut self.0.lock().errors)
    }

    /// The process is gone. With `is_power_cut` the machine is too, and with it everything that is not on the device.
    pub fn crash(&self, is_power_cut: bool) {
        let mut disk = self.0.lock();
        disk.is_dead = false;
        disk.dies_at = None;
        disk.fails_at = None;
        disk.is_locked = false;
        if is_power_cut {
            disk.cut_power();
        }
    }

    /// A copy of what a reader would find, all of it on the device.
    pub(super) fn copy(&self, rng: &mut Rng) -> SimDisk {
        let copy = SimDisk::new(rng.fork(0));
        let mut disk = copy.0.lock();
        for (name, content) in &self.0.lock().names {
            let bytes = content.lock().cache.clone();
            let content = Content { device: bytes.clone(), cache: bytes, dirty: BTreeSet::new() };
            disk.names.insert(name.clone(), Arc::new(Mutex::new(content)));
        }
        disk.durable_names = disk.names.clone();
        drop(disk);
        copy
    }

    /// A copy of what a reader would find, with one log file of it damaged; how, and where.
    pub(super) fn rotten(&self, rng: &mut Rng) -> Option<(SimDisk, Rot, String)> {
        let rotten = self.copy(rng);
        let mut files: Vec<(String, Vec<u8>, usize)> = Vec::new();
        for (name, content) in &rotten.0.lock().names {
            let bytes = content.lock().cache.clone();
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            files.push((name.clone(), bytes, used));
        }
        let logs: Vec<usize> =
            (0..files.len()).filter(|index| files[*index].0.ends_with(".log") && files[*index].2 > 0).collect();
        if logs.is_empty() {
            return None;
        }
        let (name, bytes, used) = &mut files[*rng.pick(&logs)];
        // The head of a file has much room that nothing is in.
        let from = if *used > HEAD && !rng.one_in(6) { HEAD } else { 0 };
        let at = from + rng.below((*used - from) as u64) as usize;
        let (rot, place) = match rng.below(6) {
            0..=2 => {
                bytes[at] ^= 1 << rng.below(8);
                (Rot::Bit, format!("bit at {at} of {name}"))
            }
            3..=4 => {
                let from = at / SECTOR * SECTOR;
                let to = (from + SECTOR).min(bytes.len());
                bytes[from..to].fill(0);
                (Rot::Sector, format!("sector at {from} of {name}"))
            }
            _ => {
                // Also where nothing but zeros is lost.
                let at = if rng.one_in(4) { at + rng.below((bytes.len() - at) as u64) as usize } else { at };
                bytes.truncate(at);
                (Rot::Cut, format!("end, from {at} of {name}"))
            }
        };
        if let Some(content) = rotten.0.lock().names.get(name) {
            let content = &mut *content.lock();
            content.cache.clone_from(bytes);
            content.device.clone_from(bytes);
        }
        Some((rotten, rot, place))
    }

    /// What a reader would find in a file.
    #[cfg(test)]
    pub(super) fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let content = self.0.lock().names.get(name).cloned()?;
        let bytes = content.lock().cache.clone();
        Some(bytes)
    }

    /// Puts a file in place, or away, on the device as well.
    #[cfg(test)]
    pub(super) fn put(&self, name: &str, bytes: Option<Vec<u8>>) {
        let mut disk = self.0.lock();
        match bytes {
            Some(bytes) => {
                let content = Content { device: bytes.clone(), cache: bytes, dirty: BTreeSet::new() };
                disk.names.insert(name.into(), Arc::new(Mutex::new(content)));
            }
            None => drop(disk.names.remove(name)),
        }
        disk.durable_names = disk.names.clone();
    }

    /// Names of the files.
    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<String> {
        self.0.lock().names.keys().cloned().collect()
    }

    fn call(&self, call: Call) -> io::Result<()> {
        if QUIET.get() {
            return Ok(());
        }
        let mut disk = self.0.lock();
        disk.calls += 1;
        if disk.is_dead || disk.dies_at.is_some_and(|at| disk.calls >= at) {
            disk.is_dead = true;
            disk.errors += 1;
            return Err(io::Error::other("the process is dead"));
        }
        if disk.fails_at == Some(disk.calls) {
            disk.errors += 1;
            return Err(io::Error::other("simulated EIO"));
        }
        let faults = disk.faults;
        if matches!(call, Call::Extend | Call::Name) && faults.full > 0 {
            if disk.calls >= disk.full_until && disk.rng.one_in(faults.full) {
                disk.full_until = disk.calls + disk.rng.below(12) + 1;
            }
            if disk.calls < disk.full_until {
                disk.errors += 1;
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        let chance = match call {
            Call::Read => faults.read,
            Call::Write | Call::Extend => faults.write,
            Call::Sync => faults.sync,
            Call::Name => 0,
        };
        if chance > 0 && disk.rng.one_in(chance) {
            disk.errors += 1;
            return Err(io::Error::other("simulated EIO"));
        }
        Ok(())
    }

    /// How far a write that fails has come.
    fn partly(&self, length: usize) -> usize {
        let mut disk = self.0.lock();
        let sectors = disk.rng.below((length / SECTOR + 2) as u64) as usize;
        (sectors * SECTOR).min(length)
    }
}

impl Disk {
    fn cut_power(&mut self) {
        let rng = &mut self.rng;
        let style = rng.below(4);
        let mut keeps = || match style {
            0 => false,
            1 => true,
            _ => rng.one_in(2),
        };
        let mut names = self.durable_names.clone();
        for (name, content) in &self.names {
            // New, or in place of another file.
            let is_changed = self.durable_names.get(name).is_none_or(|durable| !Arc::ptr_eq(durable, content));
            if is_changed && keeps() {
                names.insert(name.clone(), Arc::clone(content));
            }
        }
        for name in self.durable_names.keys() {
            if !self.names.contains_key(name) && keeps() {
                names.remove(name);
            }
        }
        for content in names.values() {
            let content = &mut *content.lock();
            if content.cache.len() != content.device.len() && keeps() {
                content.device.resize(content.cache.len(), 0);
            }
            let dirty = std::mem::take(&mut content.dirty);
            for sector in dirty {
                if keeps() {
                    content.store(sector);
                }
            }
            content.cache.clone_from(&content.device);
        }
        self.durable_names.clone_from(&names);
        self.names = names;
    }
}

impl Content {
    /// Brings a sector to the device, as far as the file goes there.
    fn store(&mut self, sector: usize) {
        let from = sector * SECTOR;
        let to = (from + SECTOR).min(self.cache.len()).min(self.device.len());
        if from < to {
            self.device[from..to].copy_from_slice(&self.cache[from..to]);
        }
    }

    fn write(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if end > self.cache.len() {
            self.cache.resize(end, 0);
        }
        self.cache[offset..end].copy_from_slice(bytes);
        if !bytes.is_empty() {
            self.dirty.extend(offset / SECTOR..=(end - 1) / SECTOR);
        }
    }

    fn sync(&mut self) {
        self.device.resize(self.cache.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            self.store(sector);
        }
    }
}

impl Storage for SimDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        self.call(Call::Read)?;
        Ok(self.0.lock().names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.call(Call::Name)?;
        let mut disk = self.0.lock();
        if disk.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let content = Arc::<Mutex<Content>>::default();
        disk.names.insert(name.into(), Arc::clone(&content));
        Ok(Box::new(SimFile(self.clone(), content)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.call(Call::Read)?;
        let content = self.0.lock().names.get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(SimFile(self.clone(), content)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.call(Call::Write)?;
        let mut disk = self.0.lock();
        let content = disk.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.names.insert(to.into(), content);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call(Call::Write)?;
        self.0.lock().names.remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.call(Call::Sync)?;
        let disk = &mut *self.0.lock();
        disk.durable_names.clone_from(&disk.names);
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn LockGuard>, LogError> {
        let mut disk = self.0.lock();
        if disk.is_locked {
            return Err(LogError::Locked { directory: "simulated".into(), holder: "in this process".into() });
        }
        disk.is_locked = true;
        drop(disk);
        Ok(Box::new(SimLock(self.clone())))
    }
}

impl StorageFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        self.0.call(Call::Read)?;
        Ok(self.1.lock().cache.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.call(Call::Read)?;
        let content = self.1.lock();
        let from = (offset as usize).min(content.cache.len());
        let count = buffer.len().min(content.cache.len() - from);
        buffer[..count].copy_from_slice(&content.cache[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let is_extending = offset as usize + bytes.len() > self.1.lock().cache.len();
        let written = self.0.call(if is_extending { Call::Extend } else { Call::Write });
        let count = if written.is_ok() { bytes.len() } else { self.0.partly(bytes.len()) };
        self.1.lock().write(&bytes[..count], offset as usize);
        written
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let is_extending = length as usize > self.1.lock().cache.len();
        self.0.call(if is_extending { Call::Extend } else { Call::Write })?;
        let content = &mut *self.1.lock();
        let (before, after) = (content.cache.len(), length as usize);
        content.cache.resize(after, 0);
        // The device may still have bytes there, from before the file was cut.
        if after > before {
            content.dirty.extend(before / SECTOR..=(after - 1) / SECTOR);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let synced = self.0.call(Call::Sync);
        let content = &mut *self.1.lock();
        match synced {
            Ok(()) => content.sync(),
            Err(_) if self.0.is_dead() => {}
            // Clean, whether they reached the device or not: the next sync of the file has nothing to do.
            Err(_) => {
                for sector in std::mem::take(&mut content.dirty) {
                    if self.0.0.lock().rng.one_in(3) {
                        content.store(sector);
                    }
                }
            }
        }
        synced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_sync_leaves_ghosts_that_a_cut_of_the_power_takes() {
        let seen: BTreeSet<_> = (0..20)
            .map(|seed| {
                let disk = SimDisk::new(Rng::new(seed));
                let file = disk.create("a").unwrap();
                file.write_at(&[1; 4 * SECTOR], 0).unwrap();
                file.sync().unwrap();
                disk.sync_directory().unwrap();
                file.write_at(&[2; 4 * SECTOR], 0).unwrap();
                disk.set_faults(Faults { sync: 1, ..Faults::default() });
                assert!(file.sync().is_err());
                disk.set_faults(Faults::default());
                assert!(file.sync().is_ok(), "the second one lies");
                disk.crash(false);
                let mut bytes = [0; 4 * SECTOR];
                disk.open("a").unwrap().read_at(&mut bytes, 0).unwrap();
                assert_eq!(bytes, [2; 4 * SECTOR], "the next process sees them");
                disk.crash(true);
                disk.open("a").unwrap().read_at(&mut bytes, 0).unwrap();
                [bytes[0], bytes[SECTOR], bytes[2 * SECTOR], bytes[3 * SECTOR]]
            })
            .collect();
        assert!(seen.len() > 4, "any subset is kept: {seen:?}");
    }

    #[test]
    fn what_was_not_synced_may_be_lost_and_what_was_is_kept() {
        for seed in 0..50 {
            let disk = SimDisk::new(Rng::new(seed));
            let file = disk.create("a").unwrap();
            file.write_at(&[1; 2 * SECTOR], 0).unwrap();
            file.sync().unwrap();
            disk.sync_directory().unwrap();
            file.write_at(&[2; SECTOR], 2 * SECTOR as u64).unwrap();
            disk.create("b").unwrap();
            disk.crash(true);
            let mut bytes = [0; 2 * SECTOR];
            assert_eq!(disk.open("a").unwrap().read_at(&mut bytes, 0).unwrap(), 2 * SECTOR);
            assert_eq!(bytes, [1; 2 * SECTOR]);
        }
    }
}
