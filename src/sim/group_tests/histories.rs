//! Histories of a group in one thread, by the draw of a seed.

use super::super::Rng;
use super::rig::*;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// One history of a group in one thread: which part works when, dies and comes back is the seed's.
fn history(seed: u64) {
    let mut rng = Rng::new(seed);
    let (workers, shards) = (1 + rng.below(3) as u16, 3 + rng.below(3) as u16);
    let effects = Mutex::default();
    let mut client = client(workers, shards);
    let mut parts: Vec<Option<Host>> = (0..workers).map(|part| Some(Host::join(&client, part, || {}))).collect();
    let (mut zombies, mut waiting, mut unsignalled) = (Vec::<Host>::new(), BTreeMap::new(), BTreeSet::new());
    let mut losses = 0;
    for turn in 0..400 {
        let part = rng.below(u64::from(workers)) as usize;
        match rng.below(20) {
            0 if turn < 300 => {
                let id = format!("run-{turn}");
                waiting.insert(client.start(&id), id.clone());
                unsignalled.insert(id);
            }
            1 | 2 => {
                if let Some(id) = unsignalled.pop_first() {
                    client.signal(&id, &id);
                }
            }
            3 if turn < 300 => {
                if let Some(host) = parts[part].take() {
                    losses += 1;
                    assert!(client.engine.lose(part as u16, host.engine.incarnation()));
                    zombies.push(host);
                }
            }
            4 if parts[part].is_none() => drop(client.engine.spread(part as u16)),
            5 | 6 if parts[part].is_none() => parts[part] = Some(Host::join(&client, part as u16, || {})),
            7 => {
                // A thread that does not know that it is dead goes on: nothing of it counts.
                if let Some(zombie) = zombies.last_mut() {
                    let before = client.engine.group().last();
                    zombie.run_bodies(&effects);
                    assert_eq!(client.engine.group().last(), before, "seed {seed}: a dead incarnation recorded");
                }
            }
            8..=12 => {
                client.tick();
                client.engine.idle();
            }
            _ => {
                if let Some(host) = &mut parts[part] {
                    match rng.below(3) {
                        0 => host.tick(),
                        1 => drop(host.engine.idle()),
                        _ => host.run_bodies(&effects),
                    }
                }
            }
        }
    }
    for (part, host) in parts.iter_mut().enumerate() {
        host.get_or_insert_with(|| Host::join(&client, part as u16, || {}));
    }
    for id in std::mem::take(&mut unsignalled) {
        client.signal(&id, &id);
    }
    let mut parts: Vec<Host> = parts.into_iter().flatten().collect();
    let mut hosts: Vec<&mut Host> = parts.iter_mut().chain(std::iter::once(&mut client)).collect();
    settle(&mut hosts, &effects);
    for (token, id) in &waiting {
        let told = client.told.get(token).map(|(_, text)| text.as_str());
        assert_eq!(told, Some(id.as_str()), "seed {seed}: the result of {id} after {losses} losses");
    }
    assert_eq!(client.engine.orphans(), [], "seed {seed}: law 8");
}

#[test]
fn parts_that_die_at_any_moment_lose_no_result_laws_1_7_8() {
    (0..300).for_each(history);
}
