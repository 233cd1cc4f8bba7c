//! Threads of the group. One place for all of them: each kind of closure would bring the code that starts it once more.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread. Names are those that the system shows, up to 15 bytes.
pub(super) fn start(name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.into()).spawn(work)
}
