//! Changes of the code that a run knows: whether it has come to the changed place with the new code.

use super::code::Halt;
use super::limits::check_text;
use super::run::RunIx;
use super::shard::{Shard, Work};
use super::stuck::Stuck;
use crate::record::{Record, Seq};

impl Shard {
    /// Whether the run takes the changed way. It does where nothing after this place is recorded; that is recorded, and
    /// holds from then on.
    pub fn patched(&mut self, work: &mut Work<'_>, run: RunIx, id: &str) -> Result<bool, Halt> {
        let open = self.open_mut(run).ok_or(Halt::Dead)?;
        if !open.is_in_turn() {
            return Err(Halt::Dead);
        }
        if let Err(message) = check_text("the id of a patch", id) {
            let seq = Seq(open.asked);
            self.stick(work, run, Stuck { message, seq, recorded: None, asked: None, place: String::new() });
            return Err(Halt::Mismatch);
        }
        if open.patches.contains(id) {
            return Ok(true);
        }
        let Some(open) = self.run(run).open() else { return Err(Halt::Dead) };
        let is_new_ground = open.replay.as_ref().is_none_or(|replay| {
            self.behind_borders(run, open.cursor) >= replay.end && replay.recorded.len() <= open.asked as usize
        });
        if !is_new_ground {
            return Ok(false);
        }
        let no = self.run(run).no;
        self.commit(work, Some(run), &Record::Patched { run: no, id });
        if self.run(run).open().is_some() { Ok(true) } else { Err(Halt::Dead) }
    }
}
