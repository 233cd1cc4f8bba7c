//! Workflows that a seed makes: what their code asks for, one instruction after the other.

use super::chance::Chance;

/// What the code does next; it goes on when everything that it asked for is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// So many steps side by side.
    Steps(u32),
    /// A step that fails so many times first; with more than three it has failed.
    Flaky(u32),
    /// A step that runs at most once.
    AtMostOnce,
    /// Sleeps.
    Sleep(i64),
    /// Waits for a signal, perhaps for a limited time.
    Wait(Option<i64>),
    /// Runs a child and waits for it.
    Child,
    /// Sends a signal to another workflow, which may not be there.
    Send(u64),
}

/// The instructions of a workflow: they follow from its input alone, so that a replay has the same.
pub(super) fn script(seed: u64, depth: u64) -> Vec<Instruction> {
    let mut chance = Chance::new(seed);
    (0..1 + chance.below(6))
        .map(|_| match chance.below(12) {
            0..=3 => Instruction::Steps(1 + chance.below(3) as u32),
            4 => Instruction::Flaky(chance.below(5) as u32),
            5 => Instruction::AtMostOnce,
            6 | 7 => Instruction::Sleep(chance.below(5_000) as i64),
            8 => Instruction::Wait(Some(chance.below(3_000) as i64)),
            9 => Instruction::Wait(None),
            10 if depth < 2 => Instruction::Child,
            10 => Instruction::Steps(1),
            _ => Instruction::Send(chance.below(20)),
        })
        .collect()
}
