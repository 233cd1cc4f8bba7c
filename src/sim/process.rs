//! The threads of one simulated process: whoever opened the directory, the parts that run its code, and threads that were
//! seized and do not know it.

use super::host::Host;
use super::world::World;
use crate::engine::{Config, EngineError, Event, Events, ForeignEngine, Place, Run, Token};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One thread: its engine, and the code that it runs.
pub(super) struct Thread {
    pub(super) engine: ForeignEngine,
    pub(super) host: Host,
    pub(super) events: Events,
    token: Token,
    bell: Arc<AtomicBool>,
}

impl Thread {
    fn over(engine: ForeignEngine, bell: Arc<AtomicBool>, is_mended: bool) -> Thread {
        let token = engine.first_token();
        Thread { engine, host: Host::new(is_mended), events: Events::default(), token, bell }
    }

    pub(super) fn rouse(&self) {
        self.bell.store(true, Ordering::Relaxed);
    }

    /// Whether it was woken, or has something that is due. It is awake then, until it sleeps again.
    pub(super) fn sleeps_no_more(&self, now_ms: i64) -> bool {
        let due_ms = [self.engine.next_due_at_ms(), self.host.next_body_ms()].into_iter().flatten().min();
        self.bell.load(Ordering::Relaxed) || due_ms.is_some_and(|due_ms| due_ms <= now_ms)
    }

    fn decide_offers(&mut self) -> bool {
        self.host.decide_offers(&mut self.engine)
    }

    /// Writes what it waits for, or sleeps until it is woken.
    pub(super) fn idle(&mut self, now_ms: i64) {
        self.bell.store(false, Ordering::Relaxed);
        let has_decided = self.decide_offers();
        let (_, has_news) = self.engine.idle();
        if has_news
            || has_decided
            || !self.host.runnable().is_empty()
            || !self.host.ready_bodies(&self.engine, now_ms).is_empty()
        {
            self.rouse();
        }
    }

    /// Two numbers that no request of this thread had before.
    pub(super) fn tokens(&mut self) -> Token {
        self.token += 2;
        self.token
    }

    fn place(&self) -> Place {
        Place::of(self.engine.first_token())
    }
}

/// A process that has the directory open.
pub(super) struct Process {
    /// The opener first, then the parts by number.
    threads: Vec<Option<Thread>>,
    zombies: Vec<Thread>,
}

/// Threads of earlier lives that still do something, at most.
const ZOMBIES_MAX: usize = 3;

impl Process {
    /// Opens the directory; its parts are still to come.
    pub(super) fn open(config: Config, is_mended: bool) -> Result<Process, EngineError> {
        let (bell, notify) = bell();
        let mut opener = ForeignEngine::open(config, notify)?;
        opener.listen(true);
        let workers = usize::from(opener.workers());
        let mut threads: Vec<Option<Thread>> = vec![Some(Thread::over(opener, bell, is_mended))];
        threads.resize_with(workers + 1, || None);
        Ok(Process { threads, zombies: Vec::new() })
    }

    pub(super) fn opener(&mut self) -> &mut Thread {
        self.threads[0].as_mut().expect("it is there as long as the process")
    }

    pub(super) fn engine(&self) -> &ForeignEngine {
        &self.threads[0].as_ref().expect("it is there as long as the process").engine
    }

    /// Numbers of the threads that are there.
    pub(super) fn present(&self) -> Vec<usize> {
        (0..self.threads.len()).filter(|index| self.threads[*index].is_some()).collect()
    }

    pub(super) fn thread(&mut self, index: usize) -> &mut Thread {
        self.threads[index].as_mut().expect("only those that are there are asked for")
    }

    pub(super) fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads.iter().flatten()
    }

    pub(super) fn threads_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.threads.iter_mut().flatten()
    }

    /// Numbers of the parts that are not there.
    fn absent(&self) -> Vec<usize> {
        (1..self.threads.len()).filter(|index| self.threads[*index].is_none()).collect()
    }

    fn join(&mut self, index: usize, config: &Config, is_mended: bool, has_listeners: bool) -> Result<(), String> {
        let joinable = self.engine().joinable();
        let (bell, notify) = bell();
        let engine = ForeignEngine::join(&joinable, (index - 1) as u16, config.definitions.clone(), notify);
        let mut engine = engine.map_err(|error| format!("a thread cannot join its group: {error}"))?;
        engine.listen(has_listeners);
        self.threads[index] = Some(Thread::over(engine, bell, is_mended));
        Ok(())
    }
}

fn bell() -> (Arc<AtomicBool>, Box<dyn Fn() + Send + Sync>) {
    let bell = Arc::new(AtomicBool::new(true));
    let rung = Arc::clone(&bell);
    (bell, Box::new(move || rung.store(true, Ordering::Relaxed)))
}

impl World {
    /// Threads come and go: one dies, is seized, comes back, or others take over what it ran.
    pub(super) fn unrest(&mut self) -> Result<(), String> {
        let process = self.process.as_mut().expect("it is open");
        let absent = process.absent();
        if self.rng.one_in(self.climate.loss) {
            let present: Vec<usize> = process.present().into_iter().filter(|index| *index > 0).collect();
            if !present.is_empty() {
                let index = *self.rng.pick(&present);
                return self.lose(index);
            }
        }
        match self.rng.below(6) {
            0 if !absent.is_empty() => {
                let index = *self.rng.pick(&absent);
                self.spread(index);
                Ok(())
            }
            1..=3 if !absent.is_empty() => {
                let index = *self.rng.pick(&absent);
                self.join(index)
            }
            _ => self.zombie(),
        }
    }

    /// A part is gone, or is taken for gone and goes on without knowing it. Nobody there is told anything any more.
    fn lose(&mut self, index: usize) -> Result<(), String> {
        let process = self.process.as_mut().expect("it is open");
        let thread = process.threads[index].take().expect("it is there");
        let place = thread.place();
        self.asks.retain(|token, _| Place::of(*token) != place);
        if self.rng.one_in(2) {
            drop(thread);
            self.report.losses += 1;
            self.note(|| format!("part {} dies", index - 1));
            return Ok(());
        }
        let incarnation = thread.engine.incarnation();
        if !process.engine().lose((index - 1) as u16, incarnation) {
            return Err(format!("part {} was there and could not be seized", index - 1));
        }
        process.zombies.push(thread);
        if process.zombies.len() > ZOMBIES_MAX {
            process.zombies.remove(0);
        }
        self.report.seizures += 1;
        self.note(|| format!("part {} is seized, incarnation {incarnation}", index - 1));
        Ok(())
    }

    fn spread(&mut self, index: usize) {
        let moved = self.process.as_ref().expect("it is open").engine().spread((index - 1) as u16);
        self.report.moved_shards += moved as u64;
        self.note(|| format!("{moved} shards of part {} go to others", index - 1));
    }

    fn join(&mut self, index: usize) -> Result<(), String> {
        let config = self.config();
        let has_listeners = self.rng.one_in(2);
        let is_mended = self.is_mended;
        self.process.as_mut().expect("it is open").join(index, &config, is_mended, has_listeners)?;
        self.note(|| format!("part {} comes", index - 1));
        Ok(())
    }

    /// Every part comes or has its shards given to others, as long as one is there.
    pub(super) fn man_all(&mut self) -> Result<(), String> {
        for index in self.process.as_ref().expect("it is open").absent() {
            let is_first = self.process.as_ref().is_some_and(|process| process.present().len() == 1);
            if is_first || self.rng.one_in(2) {
                self.join(index)?;
            } else {
                self.spread(index);
            }
        }
        Ok(())
    }

    /// A thread whose place was taken goes on with what it has: nothing of it is recorded and nobody answers it.
    fn zombie(&mut self) -> Result<(), String> {
        let World { process, rng, oracle, now_ms, .. } = self;
        let process = process.as_mut().expect("it is open");
        if process.zombies.is_empty() {
            return Ok(());
        }
        let index = rng.below(process.zombies.len() as u64) as usize;
        let before = process.engine().group().last();
        let Thread { engine, host, events, token, .. } = &mut process.zombies[index];
        match rng.below(5) {
            0 => {
                engine.tick(events);
                for event in events.drain() {
                    if let Some(Event { kind, text, .. }) = host.handle(engine, oracle, event)? {
                        return Err(format!("LAW-1: a thread that was replaced is told {kind:?} {text:?}"));
                    }
                }
            }
            1 => {
                let runnable = host.runnable();
                if !runnable.is_empty() {
                    host.turn(engine, oracle, *rng.pick(&runnable))?;
                }
            }
            2 => {
                let ready = host.ready_bodies(engine, *now_ms);
                if !ready.is_empty() {
                    host.body(engine, oracle, *rng.pick(&ready), *now_ms, rng)?;
                }
            }
            3 => drop(engine.idle()),
            _ => {
                *token += 2;
                if engine.signal(*token, Run { id: "w0", run_id: "" }, "red", b"late", None, None).is_ok() {
                    return Err("LAW-7: a thread that was replaced gave a command".into());
                }
            }
        }
        let after = process.engine().group().last();
        if after > before {
            return Err(format!("LAW-7: a thread that was replaced recorded {after}"));
        }
        self.note(|| format!("zombie {index} goes on"));
        Ok(())
    }
}
