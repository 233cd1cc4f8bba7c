//! Chance from a seed: the same numbers for the same seed, on every machine. Jitter and the keys of runs use it, and what it
//! decides is recorded.

/// splitmix64.
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// For something of this name: another name has others, even from the same seed.
    pub(super) fn bytes_for(&mut self, name: &str) -> [u8; 16] {
        let own = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut of_name = Chance(self.next() ^ own);
        (u128::from(of_name.next()) << 64 | u128::from(of_name.next())).to_le_bytes()
    }

    /// From 0 up to and without `bound`; 0 if that is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}
