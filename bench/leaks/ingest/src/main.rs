// SPDX-License-Identifier: Apache-2.0
// A server that remembers what it read, with the default allocator or with one of its own.
//
// job: ingest
//   build: cargo build -q --release --manifest-path $HERE/ingest/Cargo.toml --target-dir $OUT/ingest
//   start: $OUT/ingest/release/ingest
//   expect: grows remember
// job: ingest-jemalloc
//   build: cargo build -q --release --manifest-path $HERE/ingest/Cargo.toml --target-dir $OUT/ingest-je --features tikv-jemallocator
//   start: $OUT/ingest-je/release/ingest
//   expect: unseen allocator (inside|of its own)
// job: ingest-jemalloc-mmap
//   record: --mmap
//   start: $OUT/ingest-je/release/ingest
//   expect: grows remember|parse
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::{thread, time::Duration};

#[cfg(feature = "tikv-jemallocator")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

type Seen = Arc<Mutex<HashMap<u64, Vec<u8>>>>;

#[inline(never)]
fn remember(seen: &Seen, key: u64) {
    seen.lock().unwrap().insert(key, vec![key as u8; 4000]);
}

#[inline(never)]
fn parse(key: u64) -> usize {
    let mut work: Vec<String> = Vec::new();
    for i in 0..50 {
        work.push(format!("{key} {i}"));
    }
    work.len()
}

fn main() {
    let seen: Seen = Arc::new(Mutex::new(HashMap::new()));
    println!("leak begins");
    let threads: Vec<_> = (0..2u64)
        .map(|thread| {
            let seen = seen.clone();
            thread::spawn(move || {
                for request in 0.. {
                    if parse(request) > 0 {
                        remember(&seen, thread << 32 | request);
                    }
                    thread::sleep(Duration::from_millis(6));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
