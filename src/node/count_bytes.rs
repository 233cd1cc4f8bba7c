//! How many bytes the addon has allocated: what a waiting run costs outside the heap of JS.
#![expect(unreachable_pub, reason = "exports of the addon are public for its macro")]

use napi_derive::napi;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes that were asked for and not given back, in all engines of the process.
#[napi(catch_unwind)]
pub fn allocated_bytes() -> f64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as f64 - stats.bytes_deallocated as f64
}
